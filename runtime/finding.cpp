#include "runtime/finding.h"

namespace kiln {

const char* name(FindingKind kind) {
  switch (kind) {
    case FindingKind::OutOfBounds: return "out-of-bounds";
    case FindingKind::Misaligned: return "misaligned";
    case FindingKind::UseAfterFree: return "use-after-free";
    case FindingKind::Uninitialised: return "uninitialised";
    case FindingKind::Race: return "race";
    case FindingKind::Divergence: return "divergence";
    case FindingKind::Deadlock: return "deadlock";
    case FindingKind::AsyncMisuse: return "async-misuse";
    case FindingKind::Registers: return "registers";
    case FindingKind::Descriptor: return "descriptor";
    case FindingKind::TensorMap: return "tensor-map";
    case FindingKind::Trap: return "trap";
    case FindingKind::Limit: return "limit";
    case FindingKind::Invalid: return "invalid";
  }
  return "";
}

}  // namespace kiln

#include "runtime/image/arg_sig.h"

#include <utility>

namespace kiln::rt {

void ArgSig::append(Arg arg) {
  arg.size = arg.kind == ArgKind::Pointer ? 8 : static_cast<std::uint32_t>(kiln::bytes(arg.dtype));
  arg.offset = (bytes + arg.size - 1) / arg.size * arg.size;
  bytes = arg.offset + arg.size;
  args.push_back(std::move(arg));
}

}  // namespace kiln::rt

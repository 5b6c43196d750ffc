#include "runtime/base/dtype.h"

#include <array>

namespace kiln {
namespace {

struct Row {
  const char* name;
  int bits;
  DKind kind;
};

constexpr std::array kRows = {
#define KILN_DTYPE(name, bits, kind, host) Row{#name, bits, DKind::kind},
#include "runtime/base/dtype.def"
};

const Row& row(DType d) { return kRows[static_cast<std::size_t>(d)]; }

}  // namespace

const char* name(DType d) { return row(d).name; }
int bits(DType d) { return row(d).bits; }
int bytes(DType d) { return (row(d).bits + 7) / 8; }
DKind kind(DType d) { return row(d).kind; }

std::optional<DType> dtype_named(std::string_view text) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (text == kRows[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace kiln

#include "backend/ir/type.h"

namespace kiln::ir {

std::int64_t Type::elements() const {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

Type Type::with(DType d) const {
  Type t = *this;
  t.dtype = d;
  t.ptr = t.shared = t.read_only = false;
  return t;
}

Type Type::with_shape(Shape s) const {
  Type t = *this;
  t.shape = std::move(s);
  t.tile = true;
  t.layout = kNoLayout;
  return t;
}

std::string Type::str() const {
  std::string element = name(dtype);
  if (ptr) element = std::string("ptr<") + (shared ? "shared " : "") + (read_only ? "const " : "") + element + ">";
  if (!tile) return element;
  std::string s = "tile<";
  for (std::int64_t extent : shape) s += std::to_string(extent) + "x";
  s += element;
  if (layout != kNoLayout) s += ", #" + std::to_string(layout);
  return s + ">";
}

}  // namespace kiln::ir

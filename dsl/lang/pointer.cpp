#include "dsl/lang/pointer.h"

#include <fmt/format.h>

namespace kiln::detail {

ir::Value pointer_operand(Tracer& t, const Handle& ptr, const char* who, SourceLoc at) {
  const ir::Value p = t.read(ptr, at);
  if (!t.type(p).ptr) t.fail(at, fmt::format("{}: needs a pointer, not {}", who, t.type(p).str()));
  return p;
}

ir::Value written_pointer(Tracer& t, const Handle& ptr, const char* who, SourceLoc at) {
  const ir::Value p = pointer_operand(t, ptr, who, at);
  if (t.type(p).read_only)
    t.fail(at, fmt::format("{}: through the read-only pointer {} of an In parameter", who, t.type(p).str()));
  return p;
}

ir::Value mask_operand(Tracer& t, const Operand& mask, const ir::Type& ptr, const char* who, SourceLoc at) {
  if (!mask.handle && mask.number.own == DType::i1 && mask.number.bits != 0) return {};
  const ir::Value m = value_of(t, mask, at);
  const ir::Type& type = t.type(m);
  if (type.dtype != DType::i1 || type.ptr) t.fail(at, fmt::format("{}: mask must be i1, not {}", who, type.str()));
  return broadcast_like(t, m, ptr, who, at);
}

ir::Value element_operand(Tracer& t, const Operand& o, const ir::Type& ptr, const char* who, const char* what,
                          SourceLoc at) {
  const ir::Value v = value_as(t, o, ptr.dtype, who, at);
  const ir::Type& type = t.type(v);
  if (type.ptr || type.dtype != ptr.dtype)
    t.fail(at, fmt::format("{}: {} is {}, pointer is {}; cast first", who, what, type.str(), ptr.str()));
  return broadcast_like(t, v, ptr, who, at);
}

}  // namespace kiln::detail

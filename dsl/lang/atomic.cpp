#include "dsl/lang/atomic.h"

#include <fmt/format.h>

#include "dsl/lang/pointer.h"

namespace kiln {
namespace detail {
namespace {

// The enums of the language and of the IR list the same things in the same order.
constexpr ir::Rmw rmw_of(AtomicOp op) { return ir::Rmw(op); }
static_assert(rmw_of(AtomicOp::add) == ir::Rmw::Add && rmw_of(AtomicOp::exchange) == ir::Rmw::Exchange);
static_assert(ir::MemoryOrder(Order::acq_rel) == ir::MemoryOrder::AcqRel);
static_assert(ir::MemoryScope(kiln::Scope::system) == ir::MemoryScope::System);

constexpr const char* kNames[] = {"atomic_add", "atomic_min", "atomic_max", "atomic_and",
                                  "atomic_or",  "atomic_xor", "atomic_xchg"};

ir::Value changed_pointer(Tracer& t, const Handle& ptr, const char* who, SourceLoc at) {
  const ir::Value p = written_pointer(t, ptr, who, at);
  if (bits(t.type(p).dtype) < 16)
    t.fail(at, fmt::format("{}: pointer is {}; only elements of 16, 32 and 64 bits are changed atomically", who,
                           t.type(p).str()));
  return p;
}

void add(std::vector<ir::Attr>& attrs, ir::AttrKey key, std::int64_t value) {
  const ir::Attr attr{key, value};  // moved from a temporary, g++ 12 takes it for uninitialised
  attrs.push_back(attr);
}

void add_order(std::vector<ir::Attr>& attrs, Atomic how) {
  if (how.order != Order::relaxed) add(attrs, ir::AttrKey::semantics, std::int64_t(how.order));
  if (how.scope != kiln::Scope::gpu) add(attrs, ir::AttrKey::scope, std::int64_t(how.scope));
}

}  // namespace

Made atomic(AtomicOp op, const Handle& ptr, const Operand& value, const Operand* mask, Atomic how, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  const char* who = kNames[std::size_t(op)];
  const ir::Value p = changed_pointer(t, ptr, who, at);
  const ir::Type type = t.type(p);
  const bool bitwise = op == AtomicOp::and_ || op == AtomicOp::or_ || op == AtomicOp::xor_;
  if (bitwise && is_float(type.dtype)) t.fail(at, fmt::format("{}: needs integers, pointer is {}", who, type.str()));
  std::vector<ir::Value> operands{p, element_operand(t, value, type, who, "value", at)};
  if (mask)
    if (const ir::Value m = mask_operand(t, *mask, type, who, at); m.valid()) operands.push_back(m);
  std::vector<ir::Attr> attrs{{ir::AttrKey::rmw, std::int64_t(rmw_of(op))}};
  add_order(attrs, how);
  return {t.emit(at, [&](ir::Builder& b) { return b.make(ir::Op::AtomicRmw, operands, attrs, at); }).id};
}

Made atomic_cas(const Handle& ptr, const Operand& expected, const Operand& desired, const Operand* mask, Atomic how,
                SourceLoc at) {
  Tracer& t = Tracer::current(at);
  const char* who = "atomic_cas";
  const ir::Value p = changed_pointer(t, ptr, who, at);
  const ir::Type type = t.type(p);
  std::vector<ir::Value> operands{p, element_operand(t, expected, type, who, "expected", at),
                                  element_operand(t, desired, type, who, "desired", at)};
  if (mask)
    if (const ir::Value m = mask_operand(t, *mask, type, who, at); m.valid()) operands.push_back(m);
  std::vector<ir::Attr> attrs;
  add_order(attrs, how);
  return {t.emit(at, [&](ir::Builder& b) { return b.make(ir::Op::AtomicCas, operands, attrs, at); }).id};
}

}  // namespace detail

#define KILN_CAS(Handle, Any)                                                                       \
  Handle atomic_cas(const Handle& ptr, Any expected, Any desired, RawLoc l) {                       \
    return Handle(detail::atomic_cas(ptr, expected, desired, nullptr, {}, l));                      \
  }                                                                                                 \
  Handle atomic_cas(const Handle& ptr, Any expected, Any desired, Any mask, Atomic how, RawLoc l) { \
    return Handle(detail::atomic_cas(ptr, expected, desired, &mask, how, l));                       \
  }                                                                                                 \
  Handle atomic_cas(const Handle& ptr, Any expected, Any desired, Atomic how, RawLoc l) {           \
    return Handle(detail::atomic_cas(ptr, expected, desired, nullptr, how, l));                     \
  }
KILN_CAS(Tile, Arg)
KILN_CAS(Scalar, SArg)
#undef KILN_CAS

}  // namespace kiln

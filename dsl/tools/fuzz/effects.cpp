// Atomics on the program's own memory. Of duplicate addresses the order is not stated, so there the old values are not
// used, and the operation is one whose result does not depend on the order.
#include "dsl/tools/fuzz/generator.h"

namespace kiln::fuzz {

using ir::Attr;
using ir::AttrKey;
using ir::Op;
using ir::Rmw;
using ir::Value;

namespace {

void order(std::vector<Attr>& attrs, std::int64_t semantics, std::int64_t scope) {
  if (semantics != 0) attrs.push_back(attr(AttrKey::semantics, semantics));
  if (scope != 0) attrs.push_back(attr(AttrKey::scope, scope));
}

}  // namespace

void Generator::atomic() {
  static const std::vector<Rmw> any_order{Rmw::Add, Rmw::Min, Rmw::Max, Rmw::And, Rmw::Or, Rmw::Xor};
  const Pointer& p = any(pointers_);
  const bool integer = is_int(p.dtype) && bytes(p.dtype) >= 4;
  if (p.read_only || bytes(p.dtype) < 4) return;
  const bool distinct = !integer || chance(60);
  const Rmw rmw = integer && (!distinct || chance(80)) ? any(any_order) : Rmw::Exchange;
  const std::optional<ir::Shape> s = any_shape();
  const Value at = s ? address(p, *s, distinct) : scalar_address(p);
  if (!at.valid()) return;
  std::vector<Value> operands{at, storable(p.dtype, s)};
  if (s && chance(50)) operands.push_back(mask(*s));
  std::vector<Attr> attrs{attr(AttrKey::rmw, std::int64_t(rmw))};
  order(attrs, pick({0, 0, 1, 2, 3}), pick({0, 0, 1, 3}));
  const Value old = b_.make(Op::AtomicRmw, operands, attrs, kLoc);
  if (distinct) keep(old);
}

void Generator::compare_and_swap() {
  const Pointer& p = any(pointers_);
  if (p.read_only || bytes(p.dtype) < 4) return;
  const std::optional<ir::Shape> s = any_shape();
  const Value at = s ? address(p, *s, true) : scalar_address(p);
  if (!at.valid()) return;
  // Half the time what memory holds, so that it is swapped.
  const Value expected = chance(50) ? b_.load(at, {}, {}, ir::CacheHint::Plain, kLoc) : value(p.dtype, s, 2);
  std::vector<Value> operands{at, expected, storable(p.dtype, s)};
  if (s && chance(30)) operands.push_back(mask(*s));
  std::vector<Attr> attrs;
  order(attrs, pick({0, 0, 1, 2, 3}), pick({0, 0, 1, 3}));
  keep(b_.make(Op::AtomicCas, operands, attrs, kLoc));
}

}  // namespace kiln::fuzz

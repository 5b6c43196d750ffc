// Reductions and scans. Every combine is associative on what it is given, so that the grouping that a layout implies
// does not show; some are not commutative, so that the order does.
#include "dsl/tools/fuzz/generator.h"

#include <algorithm>
#include <bit>

namespace kiln::fuzz {

using ir::Attr;
using ir::AttrKey;
using ir::InstId;
using ir::Op;
using ir::Shape;
using ir::Type;
using ir::Value;

namespace {

/// Integers up to which every one is a number of the type.
std::int64_t exact_limit(DType d) {
  switch (d) {
    case DType::f16: return 1 << 11;
    case DType::bf16: return 1 << 8;
    case DType::f32: return 1 << 24;
    default: return std::int64_t(1) << 52;
  }
}

}  // namespace

Generator::Combine Generator::any_combine(std::int64_t n) {
  using Values = std::vector<Value>;
  const auto ew = [this](Op o, std::vector<Value> v) { return b_.elementwise(o, std::move(v), kLoc); };
  DType d = any_dtype();
  switch (below(6)) {
    case 0: {  // the larger one of two, at equality the one with the lower number: argmax
      while (is_f8(d) || d == DType::i1) d = any_dtype();
      const DType i = any_int();
      return {{d, i}, [=, this](const Values& a, const Values& b) {
                const Value greater = ew(Op::Gt, {b[0], a[0]}), same = ew(Op::Eq, {b[0], a[0]});
                const Value first = ew(Op::And, {same, ew(Op::Lt, {b[1], a[1]})}), take = ew(Op::Or, {greater, first});
                return Values{b_.select(take, b[0], a[0], kLoc), b_.select(take, b[1], a[1], kLoc)};
              }};
    }
    case 1: {  // composed lines a·x + b, wrapping
      const DType i = any_int();
      return {{i, i}, [=](const Values& a, const Values& b) {
                return Values{ew(Op::Mul, {a[0], b[0]}), ew(Op::Add, {ew(Op::Mul, {a[1], b[0]}), b[1]})};
              }};
    }
    case 2: return {{d}, [](const Values&, const Values& b) { return b; }};  // the last one
    case 3: {                                                                // the sum of floats, and their number
      d = any(std::vector<DType>{DType::f16, DType::bf16, DType::f32, DType::f64});
      if (exact_limit(d) < 2 * n) d = DType::f32;
      return {{d}, [=](const Values& a, const Values& b) { return Values{ew(Op::Add, {a[0], b[0]})}; }, true};
    }
    default: break;
  }
  while (is_f8(d)) d = any_dtype();
  static const std::vector<Op> floats{Op::Min, Op::Max}, bits{Op::And, Op::Or, Op::Xor},
      integers{Op::Add, Op::Mul, Op::Min, Op::Max, Op::And, Op::Or, Op::Xor};
  const Op o = any(is_float(d) ? floats : d == DType::i1 ? bits : integers);
  return {{d}, [=](const Values& a, const Values& b) { return Values{ew(o, {a[0], b[0]})}; }};
}

std::vector<Value> Generator::operands_of(const Combine& c, const Shape& s, std::int64_t n) {
  std::vector<Value> out;
  for (DType d : c.dtypes) {
    if (!c.exact) {
      out.push_back(storable(d, s));
      continue;
    }
    const std::int64_t most =
        std::int64_t(std::bit_floor(std::uint64_t(std::min(exact_limit(d) / n, std::int64_t(1) << 16)))) - 1;
    const Value small = op(Op::And, value(DType::i32, s, 2), b_.constant(ir::Literal::of_int(DType::i32, most), kLoc));
    out.push_back(cast(small, d));
  }
  return out;
}

void Generator::combine(bool scan) {
  const Shape s = any(shapes_);
  const auto axis = std::int64_t(below(s.size()));
  const std::int64_t n = s[std::size_t(axis)] + 1;  // and an initial value
  const Combine c = any_combine(n);
  std::vector<Value> operands = operands_of(c, s, n);
  std::vector<Attr> attrs{attr(AttrKey::axis, axis)};
  if (scan && chance(40)) attrs.push_back(attr(AttrKey::reverse, 1));
  if (scan && chance(40)) {
    attrs.push_back(attr(AttrKey::exclusive, 1));
    for (DType d : c.dtypes)
      operands.push_back(c.exact ? b_.constant(ir::Literal::of_int(d, 1), kLoc) : storable(d, std::nullopt));
  }
  const InstId inst = b_.append(scan ? Op::Scan : Op::Reduce, operands, {}, attrs, kLoc);
  const ir::RegionId region = f_.add_region(inst), outer = b_.region();
  std::vector<Value> a, b;
  for (std::vector<Value>* side : {&a, &b})
    for (DType d : c.dtypes) side->push_back(f_.add_region_param(region, Type::scalar(d)));
  b_.set_region(region);
  yield(c.body(a, b));
  b_.set_region(outer);
  keep_all(inst);
}

}  // namespace kiln::fuzz

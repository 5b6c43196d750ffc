// Steps that move the elements of whole tiles: shapes, gathers, sorting, counting; and products of matrices.
#include "dsl/tools/fuzz/generator.h"

#include <algorithm>
#include <bit>

namespace kiln::fuzz {

using ir::Attr;
using ir::AttrKey;
using ir::Op;
using ir::Shape;
using ir::Type;
using ir::Value;

namespace {

std::int64_t elements(const Shape& s) {
  std::int64_t n = 1;
  for (std::int64_t extent : s) n *= extent;
  return n;
}

}  // namespace

void Generator::move_elements() {
  switch (below(5)) {
    case 0: return reshape_or_permute();
    case 1: return join_or_split();
    case 2: return slice_or_flip();
    case 3: return cat();
    default: return gather_elements();
  }
}

Shape Generator::reshaped(const Shape& s) {
  std::int64_t left = elements(s);
  Shape out;
  for (int axes = int(pick({0, 1, 1, 2, 3})); axes > 0; --axes) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= left; ++d)
      if (left % d == 0) divisors.push_back(d);
    out.push_back(any(divisors));
    left /= out.back();
  }
  out.insert(out.begin() + std::ptrdiff_t(below(out.size() + 1)), left);
  return out;
}

void Generator::reshape_or_permute() {
  const Shape s = any(shapes_);
  const Value x = value(any_dtype(), s, 2);
  if (chance(50)) return keep(b_.make(Op::Reshape, {x}, {}, kLoc, Type::tile_of(f_.type(x).dtype, reshaped(s))));
  std::vector<std::int64_t> order(s.size());
  for (std::size_t a = 0; a < order.size(); ++a) order[a] = std::int64_t(a);
  std::shuffle(order.begin(), order.end(), random_);
  keep(b_.make(Op::Permute, {x}, {Attr{AttrKey::order, order}}, kLoc));
}

void Generator::join_or_split() {
  const Shape s = any(shapes_);
  const DType d = any_dtype();
  Value x;
  if (s.back() == 2) x = value(d, s, 2);
  else if (2 * elements(s) <= kMaxElements) keep(x = b_.make(Op::Join, {value(d, s, 2), value(d, s, 2)}, {}, kLoc));
  if (x.valid() && f_.type(x).shape.size() > 1 && chance(60)) keep_all(b_.append(Op::Split, {x}, {}, {}, kLoc));
}

void Generator::slice_or_flip() {
  const Shape s = any(shapes_);
  const auto axis = std::int64_t(below(s.size())), n = s[std::size_t(axis)];
  const Value x = value(any_dtype(), s, 2);
  if (chance(40)) return keep(b_.make(Op::Flip, {x}, {attr(AttrKey::axis, axis)}, kLoc));
  const auto start = std::int64_t(below(std::uint64_t(n))),
             end = start + 1 + std::int64_t(below(std::uint64_t(n - start)));
  keep(
      b_.make(Op::Slice, {x}, {attr(AttrKey::axis, axis), attr(AttrKey::start, start), attr(AttrKey::end, end)}, kLoc));
}

void Generator::cat() {
  const Shape s = any(shapes_);
  const std::size_t axis = below(s.size());
  const std::int64_t rest = elements(s) / s[axis], room = kMaxElements / rest - s[axis];
  if (room < 1) return;
  Shape t = s;
  if (room < t[axis] || chance(50)) t[axis] = 1 + std::int64_t(below(std::uint64_t(std::min<std::int64_t>(room, 40))));
  const DType d = any_dtype();
  keep(b_.make(Op::Cat, {value(d, s, 2), value(d, t, 2)}, {attr(AttrKey::axis, std::int64_t(axis))}, kLoc));
}

void Generator::gather_elements() {
  const Shape s = any(shapes_);
  const std::size_t axis = below(s.size());
  Shape t = s;
  const std::int64_t room = kMaxElements / (elements(s) / s[axis]);
  if (chance(50)) t[axis] = 1 + std::int64_t(below(std::uint64_t(std::min<std::int64_t>(room, 64))));
  Value at = value(any_int(), t, 2);
  if (chance(70)) {  // mostly inside
    const DType d = f_.type(at).dtype;
    const std::int64_t bits = std::min<std::int64_t>(std::int64_t(std::bit_ceil(std::uint64_t(s[axis]))) - 1, 127);
    at = op(Op::And, at, b_.constant(ir::Literal::of_int(d, bits), kLoc));
  }
  keep(b_.make(Op::Gather, {value(any_dtype(), s, 2), at}, {attr(AttrKey::axis, std::int64_t(axis))}, kLoc));
}

void Generator::sort() {
  const Shape s = any(shapes_);
  std::vector<Value> tiles;
  for (std::uint64_t n = below(2) + 1; n > 0; --n) tiles.push_back(value(any_dtype(), s, 2));
  std::vector<Attr> attrs{attr(AttrKey::axis, std::int64_t(below(s.size())))};
  if (chance(50)) attrs.push_back(attr(AttrKey::descending, 1));
  keep_all(b_.append(Op::Sort, tiles, {}, attrs, kLoc));
}

void Generator::histogram() {
  const Shape s = any(shapes_);
  std::vector<Value> operands{value(any_int(), s, 2)};
  if (chance(50)) operands.push_back(mask(s));
  keep(b_.make(Op::Histogram, operands, {}, kLoc, Type::tile_of(DType::i32, {pick({1, 10, 16, 33, 64})})));
}

void Generator::dot() {
  static const std::vector<DType> sums{DType::f32, DType::f32, DType::f64, DType::i32, DType::u32, DType::i64};
  static const std::vector<DType> floats{DType::f16, DType::bf16, DType::f32, DType::f8e4m3, DType::f8e5m2};
  static const std::vector<DType> small{DType::i8, DType::i16, DType::i32};
  const DType sum = any(sums);
  const auto element = [&] { return is_float(sum) ? any(floats) : sum == DType::u32 ? DType::u8 : any(small); };
  const std::int64_t m = pick({1, 2, 5, 8, 16}), n = pick({1, 3, 8, 16}), k = pick({1, 2, 7, 8, 16});
  Shape batch;
  if (chance(30)) batch = {pick({1, 2, 3})};
  const auto with = [&](std::int64_t rows, std::int64_t columns) {
    Shape s = batch;
    s.push_back(rows);
    s.push_back(columns);
    return s;
  };
  keep(b_.make(Op::Dot, {value(element(), with(m, k), 2), value(element(), with(k, n), 2), value(sum, with(m, n), 2)},
               {}, kLoc));
}

}  // namespace kiln::fuzz

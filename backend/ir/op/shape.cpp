// Ops that move the elements of tiles: reshape, permute, join, split, slice, cat, flip, gather. Tiles are evaluated in
// row-major order, so that most ops copy the runs that an axis divides a tile into.
#include <cstring>
#include <utility>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/numeric.h"

namespace kiln::ir {
namespace {

/// A row-major tile seen from one axis: `outer` times `extent` runs of `run` bytes.
struct Runs {
  std::size_t outer = 1, extent = 1, run;
  Runs(const Type& t, std::size_t axis) : run(element_bytes(t)) {
    for (std::size_t a = 0; a < t.shape.size(); ++a)
      (a < axis ? outer : a == axis ? extent : run) *= std::size_t(t.shape[a]);
  }
  std::size_t bytes() const { return extent * run; }
  /// Offset of position `i` within the `o`-th group.
  std::size_t at(std::size_t o, std::size_t i) const { return (o * extent + i) * run; }
};

std::size_t axis_of(const Inst& inst) { return std::size_t(inst.i64(AttrKey::axis)); }

void copy_all(Evaluator& e, Value from, Value to) {
  std::memcpy(e.define(to), e.data(from), element_bytes(e.type(to)) * e.elements(to));
}

}  // namespace

Types infer_Reshape(const InferInput& in) {
  const Type& x = in.type(0);
  const Shape& to = in.wanted().shape;
  if (!x.tile) in.fail("takes a tile, not " + x.str());
  check_shape(in, to);
  const Type result = x.with_shape(to);
  if (result.elements() != x.elements())
    in.fail(x.str() + " has " + std::to_string(x.elements()) + " elements, shape " + shape_str(to) + " has " +
            std::to_string(result.elements()));
  return {laid_out(in, result)};
}
void eval_Reshape(Evaluator& e, const Inst& inst) { copy_all(e, inst.operands[0], inst.results[0]); }

Types infer_Permute(const InferInput& in) {
  const Type& x = in.type(0);
  const std::vector<std::int64_t>& order = in.ints(AttrKey::order);
  if (!x.tile) in.fail("takes a tile, not " + x.str());
  std::vector<bool> seen(x.shape.size(), false);
  Shape shape;
  for (std::int64_t axis : order) {
    if (axis < 0 || axis >= std::int64_t(x.shape.size()) || seen[std::size_t(axis)]) break;
    seen[std::size_t(axis)] = true;
    shape.push_back(x.shape[std::size_t(axis)]);
  }
  if (order.size() != x.shape.size() || shape.size() != order.size())
    in.fail("order " + shape_str(order) + " is no permutation of the axes of " + x.str());
  return {laid_out(in, x.with_shape(std::move(shape)))};
}
void eval_Permute(Evaluator& e, const Inst& inst) {
  const Value x = inst.operands[0], r = inst.results[0];
  const Shape &from = e.type(x).shape, &to = e.type(r).shape;
  const std::vector<std::int64_t>& order = inst.ints(AttrKey::order);
  std::vector<std::size_t> stride(from.size(), 1);
  for (std::size_t a = from.size(); a-- > 1;) stride[a - 1] = stride[a] * std::size_t(from[a]);
  const std::size_t bytes = element_bytes(e.type(r)), n = e.elements(r);
  const std::byte* in = e.data(x);
  std::byte* out = e.define(r);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t source = 0, rest = i;
    for (std::size_t a = to.size(); a-- > 0; rest /= std::size_t(to[a]))
      source += rest % std::size_t(to[a]) * stride[std::size_t(order[a])];
    std::memcpy(out + i * bytes, in + source * bytes, bytes);
  }
}

Types infer_Join(const InferInput& in) {
  const Type &a = in.type(0), &b = in.type(1);
  if (!a.tile) in.fail("takes tiles, not " + a.str());
  if (a != b) in.fail("types differ: " + a.str() + " and " + b.str());
  Shape shape = a.shape;
  shape.push_back(2);
  check_shape(in, shape);
  return {laid_out(in, a.with_shape(std::move(shape)))};
}
void eval_Join(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  const std::size_t bytes = element_bytes(e.type(r)), n = e.elements(inst.operands[0]);
  std::byte* out = e.define(r);
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < n; ++i)
      std::memcpy(out + (2 * i + k) * bytes, e.data(inst.operands[k]) + i * bytes, bytes);
}

Types infer_Split(const InferInput& in) {
  const Type& x = in.type(0);
  if (!x.tile || x.shape.empty() || x.shape.back() != 2) in.fail("takes a tile whose last extent is 2, not " + x.str());
  const Type half = x.with_shape(Shape(x.shape.begin(), x.shape.end() - 1));
  return {laid_out(in, half, 0), laid_out(in, half, 1)};
}
void eval_Split(Evaluator& e, const Inst& inst) {
  for (std::size_t k = 0; k < 2; ++k) {
    const Value r = inst.results[k];
    const std::size_t bytes = element_bytes(e.type(r)), n = e.elements(r);
    std::byte* out = e.define(r);
    for (std::size_t i = 0; i < n; ++i)
      std::memcpy(out + i * bytes, e.data(inst.operands[0]) + (2 * i + k) * bytes, bytes);
  }
}

Types infer_Slice(const InferInput& in) {
  const Type& x = in.type(0);
  const std::size_t axis = checked_axis(in, x);
  const std::int64_t start = in.i64(AttrKey::start), end = in.i64(AttrKey::end);
  if (start < 0 || end <= start || end > x.shape[axis])
    in.fail("positions " + std::to_string(start) + " to " + std::to_string(end) + " are no part of axis " +
            std::to_string(axis) + " of " + x.str());
  Shape shape = x.shape;
  shape[axis] = end - start;
  return {laid_out(in, x.with_shape(std::move(shape)))};
}
void eval_Slice(Evaluator& e, const Inst& inst) {
  const Value x = inst.operands[0], r = inst.results[0];
  const Runs from(e.type(x), axis_of(inst)), to(e.type(r), axis_of(inst));
  const auto start = std::size_t(inst.i64(AttrKey::start));
  std::byte* out = e.define(r);
  for (std::size_t o = 0; o < to.outer; ++o) std::memcpy(out + to.at(o, 0), e.data(x) + from.at(o, start), to.bytes());
}

Types infer_Cat(const InferInput& in) {
  const Type &a = in.type(0), &b = in.type(1);
  const std::size_t axis = checked_axis(in, a);
  Shape shape = a.shape;
  if (b.tile && b.shape.size() == shape.size()) shape[axis] = b.shape[axis];
  Type like = a.with_shape(shape);
  like.layout = b.layout;
  if (like != b) in.fail(a.str() + " and " + b.str() + " differ in more than axis " + std::to_string(axis));
  shape[axis] += a.shape[axis];
  check_shape(in, shape);
  return {laid_out(in, a.with_shape(std::move(shape)))};
}
void eval_Cat(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  const Runs to(e.type(r), axis_of(inst));
  std::byte* out = e.define(r);
  std::size_t at = 0;
  for (Value x : inst.operands) {
    const Runs from(e.type(x), axis_of(inst));
    for (std::size_t o = 0; o < to.outer; ++o) std::memcpy(out + to.at(o, at), e.data(x) + from.at(o, 0), from.bytes());
    at += from.extent;
  }
}

Types infer_Flip(const InferInput& in) {
  checked_axis(in, in.type(0));
  return {laid_out(in, in.type(0))};
}
void eval_Flip(Evaluator& e, const Inst& inst) {
  const Value x = inst.operands[0], r = inst.results[0];
  const Runs runs(e.type(r), axis_of(inst));
  std::byte* out = e.define(r);
  for (std::size_t o = 0; o < runs.outer; ++o)
    for (std::size_t i = 0; i < runs.extent; ++i)
      std::memcpy(out + runs.at(o, i), e.data(x) + runs.at(o, runs.extent - 1 - i), runs.run);
}

Types infer_Gather(const InferInput& in) {
  const Type &x = in.type(0), &indices = in.type(1);
  const std::size_t axis = checked_axis(in, x);
  if (!indices.tile || indices.ptr || !is_int(indices.dtype))
    in.fail("indices must be a tile of integers, not " + indices.str());
  Shape shape = x.shape;
  if (indices.shape.size() == shape.size()) shape[axis] = indices.shape[axis];
  if (shape != indices.shape)
    in.fail(x.str() + " and indices " + indices.str() + " differ in more than axis " + std::to_string(axis));
  return {laid_out(in, x.with_shape(indices.shape))};
}
void eval_Gather(Evaluator& e, const Inst& inst) {
  const Value x = inst.operands[0], indices = inst.operands[1], r = inst.results[0];
  const Runs from(e.type(x), axis_of(inst)), to(e.type(r), axis_of(inst));
  const std::size_t bytes = element_bytes(e.type(r)), inner = to.run / bytes;
  std::byte* out = e.define(r);
  num::dispatch(e.type(indices).dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      const T* index = e.in<T>(indices);
      for (std::size_t i = 0; i < e.elements(r); ++i) {
        const std::size_t o = i / (to.extent * inner), k = i % inner;
        const bool inside = std::cmp_greater_equal(index[i], 0) && std::cmp_less(index[i], from.extent);
        if (inside) std::memcpy(out + i * bytes, e.data(x) + from.at(o, std::size_t(index[i])) + k * bytes, bytes);
        else std::memset(out + i * bytes, 0, bytes);
      }
    }
  });
}

}  // namespace kiln::ir

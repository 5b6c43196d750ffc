// Ops that move the elements of tiles: reshape, permute, join, split, slice, cat, flip, gather.
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {

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
void eval_Reshape(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "reshape is not evaluated yet"); }

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
void eval_Permute(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "permute is not evaluated yet"); }

Types infer_Join(const InferInput& in) {
  const Type &a = in.type(0), &b = in.type(1);
  if (!a.tile) in.fail("takes tiles, not " + a.str());
  if (a != b) in.fail("types differ: " + a.str() + " and " + b.str());
  Shape shape = a.shape;
  shape.push_back(2);
  check_shape(in, shape);
  return {laid_out(in, a.with_shape(std::move(shape)))};
}
void eval_Join(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "join is not evaluated yet"); }

Types infer_Split(const InferInput& in) {
  const Type& x = in.type(0);
  if (!x.tile || x.shape.empty() || x.shape.back() != 2) in.fail("takes a tile whose last extent is 2, not " + x.str());
  const Type half = x.with_shape(Shape(x.shape.begin(), x.shape.end() - 1));
  return {laid_out(in, half, 0), laid_out(in, half, 1)};
}
void eval_Split(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "split is not evaluated yet"); }

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
void eval_Slice(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "slice is not evaluated yet"); }

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
void eval_Cat(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "cat is not evaluated yet"); }

Types infer_Flip(const InferInput& in) {
  checked_axis(in, in.type(0));
  return {laid_out(in, in.type(0))};
}
void eval_Flip(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "flip is not evaluated yet"); }

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
void eval_Gather(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "gather is not evaluated yet"); }

}  // namespace kiln::ir

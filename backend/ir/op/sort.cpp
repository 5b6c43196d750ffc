// Sort along an axis, and histogram.
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {

Types infer_Sort(const InferInput& in) {
  if (in.operands.empty()) in.fail("takes one tile or more");
  checked_axis(in, in.type(0));
  Types types;
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const Type& x = in.type(i);
    if (x.ptr) in.fail("pointers are not sorted: " + x.str());
    if (!x.tile || x.shape != in.type(0).shape) in.fail("shapes differ: " + in.type(0).str() + " and " + x.str());
    types.push_back(laid_out(in, x, i));
  }
  return types;
}
void eval_Sort(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "sort is not evaluated yet"); }

Types infer_Histogram(const InferInput& in) {
  const Type& x = in.type(0);
  if (!x.tile || x.ptr || !is_int(x.dtype)) in.fail("takes a tile of integers, not " + x.str());
  if (in.operands.size() > 1 && in.type(1) != x.with(DType::i1))
    in.fail("mask is " + in.type(1).str() + ", must be " + x.with(DType::i1).str());
  const Shape& to = in.wanted().shape;
  check_shape(in, to);
  if (to.size() != 1) in.fail("counts are a tile of one axis, not of shape " + shape_str(to));
  return {laid_out(in, Type::tile_of(DType::i32, to))};
}
void eval_Histogram(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "histogram is not evaluated yet"); }

}  // namespace kiln::ir

// print and assert.
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {

Types infer_Print(const InferInput&) { return {}; }
void eval_Print(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "print is not evaluated yet"); }

Types infer_Assert(const InferInput& in) {
  const Type& cond = in.type(0);
  if (cond.ptr || cond.dtype != DType::i1) in.fail("condition must be i1, is " + cond.str());
  if (in.operands.size() > 1 && in.type(1) != cond) in.fail("mask is " + in.type(1).str() + ", must be " + cond.str());
  return {};
}
void eval_Assert(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "assert is not evaluated yet"); }

}  // namespace kiln::ir

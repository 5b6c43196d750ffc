// Atomic read-modify-write and compare-and-swap.
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

void check(const InferInput& in, std::size_t values, std::size_t mask) {
  const Type& ptr = in.type(0);
  if (!ptr.ptr) in.fail("takes a pointer, not " + ptr.str());
  if (ptr.read_only) in.fail("pointer is " + ptr.str() + ", which is read only");
  const Type element = ptr.with(ptr.dtype), wanted = ptr.with(DType::i1);
  for (std::size_t i = 1; i <= values; ++i)
    if (in.type(i) != element) in.fail("value is " + in.type(i).str() + ", pointer is " + ptr.str());
  if (in.operands.size() > mask && in.type(mask) != wanted)
    in.fail("mask is " + in.type(mask).str() + ", must be " + wanted.str() + " for a pointer of " + ptr.str());
}

}  // namespace

Types infer_AtomicRmw(const InferInput& in) {
  check(in, 1, 2);
  return {in.type(1)};
}
void eval_AtomicRmw(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "atomic_rmw is not evaluated yet"); }

Types infer_AtomicCas(const InferInput& in) {
  check(in, 2, 3);
  return {in.type(1)};
}
void eval_AtomicCas(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "atomic_cas is not evaluated yet"); }

}  // namespace kiln::ir

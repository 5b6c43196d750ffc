// Products of matrices: the last two axes of a, b and acc, batched over those before.
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {

Types infer_Dot(const InferInput& in) {
  const Type &a = in.type(0), &b = in.type(1), &acc = in.type(2);
  const std::size_t rank = a.shape.size();
  if (!a.tile || !b.tile || !acc.tile || a.ptr || b.ptr || acc.ptr || rank < 2 || b.shape.size() != rank ||
      acc.shape.size() != rank)
    in.fail("takes tiles of one rank, at least 2: " + a.str() + ", " + b.str() + ", " + acc.str());
  Shape wanted = a.shape;
  wanted.back() = b.shape.back();
  bool fits = a.shape[rank - 1] == b.shape[rank - 2] && acc.shape == wanted;
  for (std::size_t i = 0; i + 2 < rank; ++i) fits = fits && a.shape[i] == b.shape[i];
  if (!fits) in.fail("extents do not fit: " + a.str() + " times " + b.str() + " into " + acc.str());
  return {acc};
}
void eval_Dot(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "dot is not evaluated yet"); }

}  // namespace kiln::ir

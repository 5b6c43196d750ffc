// Reductions and scans along an axis. The region combines two groups of scalars; the verifier checks its types.
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

void check_tiles(const InferInput& in, std::size_t tiles) {
  checked_axis(in, in.type(0));
  for (std::size_t i = 0; i < tiles; ++i) {
    const Type& x = in.type(i);
    if (x.ptr) in.fail("pointers are not combined: " + x.str());
    if (!x.tile || x.shape != in.type(0).shape) in.fail("shapes differ: " + in.type(0).str() + " and " + x.str());
  }
}

}  // namespace

Types infer_Reduce(const InferInput& in) {
  if (in.operands.empty()) in.fail("takes one tile or more");
  check_tiles(in, in.operands.size());
  Types types;
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const Type& x = in.type(i);
    Shape shape = x.shape;
    shape.erase(shape.begin() + in.i64(AttrKey::axis));
    types.push_back(shape.empty() ? Type::scalar(x.dtype) : laid_out(in, x.with_shape(std::move(shape)), i));
  }
  return types;
}
void eval_Reduce(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "reduce is not evaluated yet"); }

Types infer_Scan(const InferInput& in) {
  const bool exclusive = in.i64(AttrKey::exclusive) != 0;
  const std::size_t tiles = exclusive ? in.operands.size() / 2 : in.operands.size();
  if (tiles == 0 || (exclusive && in.operands.size() % 2 != 0))
    in.fail("takes one tile or more, and if exclusive one scalar each, has " + std::to_string(in.operands.size()) +
            " operands");
  check_tiles(in, tiles);
  Types types;
  for (std::size_t i = 0; i < tiles; ++i) types.push_back(laid_out(in, in.type(i), i));
  for (std::size_t i = tiles; i < in.operands.size(); ++i)
    if (const Type wanted = Type::scalar(in.type(i - tiles).dtype); in.type(i) != wanted)
      in.fail("initial value is " + in.type(i).str() + ", must be " + wanted.str());
  return types;
}
void eval_Scan(Evaluator&, const Inst& inst) { throw UserError(inst.loc, "scan is not evaluated yet"); }

}  // namespace kiln::ir

// What experts ask for by name: shared memory, barriers, PTX, values hidden from the optimiser. And names themselves.
#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {

Types infer_Alloc(const InferInput& in) {
  const Type& t = in.wanted();
  const std::int64_t count = in.i64(AttrKey::count);
  if (t.tile || !t.ptr || !t.shared) in.fail("gives a pointer to shared memory, not " + t.str());
  if (count < 1 || count > kMaxTileElements) in.fail("takes 1 to 1048576 elements, count is " + std::to_string(count));
  return {t};
}
void eval_Alloc(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  const auto n = std::size_t(inst.i64(AttrKey::count)) * std::size_t(bytes(e.type(r).dtype));
  *e.out<std::uint64_t>(r) = e.shared_memory(inst, n);
}

Types infer_Barrier(const InferInput& in) {
  const std::int64_t id = in.i64(AttrKey::id), threads = in.i64(AttrKey::threads);
  if (id < 0 || id > 15) in.fail("barriers are 0 to 15, id is " + std::to_string(id));
  if (threads < 0 || threads > 1024 || threads % 32 != 0)
    in.fail("threads must be a multiple of 32 up to 1024, is " + std::to_string(threads));
  return {};
}
void eval_Barrier(Evaluator&, const Inst&) {}  // the only thread is always there

Types infer_InlinePtx(const InferInput& in) {
  Types types(in.stated.begin(), in.stated.end());
  for (std::size_t i = 0; i < in.operands.size(); ++i)
    for (const Type& t : types)
      if (t.tile != in.type(i).tile || t.shape != in.type(i).shape || t.layout != in.type(i).layout)
        in.fail("shapes differ: " + in.type(i).str() + " and " + t.str());
  return types;
}
void eval_InlinePtx(Evaluator&, const Inst& inst) {
  throw UserError(inst.loc, "inline_ptx: the interpreter cannot run PTX; use the simulator or a GPU");
}

Types infer_Opaque(const InferInput& in) { return {in.type(0)}; }
void eval_Opaque(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  std::memcpy(e.define(r), e.data(inst.operands[0]), element_bytes(e.type(r)) * e.elements(r));
}

Types infer_Name(const InferInput&) { return {}; }
void eval_Name(Evaluator&, const Inst&) {}

}  // namespace kiln::ir

// Atomics.
#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"

namespace kiln::cg {

void emit_AtomicRmw(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "atomic_rmw is not compiled yet"); }
void emit_AtomicCas(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "atomic_cas is not compiled yet"); }

}  // namespace kiln::cg

// Shared memory, barriers, PTX, values hidden from the optimiser.
#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"

namespace kiln::cg {

void emit_Alloc(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "alloc is not compiled yet"); }
void emit_Barrier(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "barrier is not compiled yet"); }
void emit_InlinePtx(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "inline_ptx is not compiled yet"); }

}  // namespace kiln::cg

// Ops that move the elements of tiles.
#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"

namespace kiln::cg {

void emit_Reshape(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "reshape is not compiled yet"); }
void emit_Permute(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "permute is not compiled yet"); }
void emit_Join(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "join is not compiled yet"); }
void emit_Split(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "split is not compiled yet"); }
void emit_Slice(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "slice is not compiled yet"); }
void emit_Cat(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "cat is not compiled yet"); }
void emit_Flip(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "flip is not compiled yet"); }
void emit_Gather(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "gather is not compiled yet"); }

}  // namespace kiln::cg

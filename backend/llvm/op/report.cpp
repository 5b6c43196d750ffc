// print and assert.
#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"

namespace kiln::cg {

void emit_Print(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "print is not compiled yet"); }
void emit_Assert(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "assert is not compiled yet"); }

}  // namespace kiln::cg

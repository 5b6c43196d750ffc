// Reductions and scans.
#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"

namespace kiln::cg {

void emit_Reduce(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "reduce is not compiled yet"); }
void emit_Scan(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "scan is not compiled yet"); }

}  // namespace kiln::cg

// Products of matrices.
#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"

namespace kiln::cg {

void emit_Dot(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "dot is not compiled yet"); }

}  // namespace kiln::cg

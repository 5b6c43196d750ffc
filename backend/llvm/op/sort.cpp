// Sort and histogram.
#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"

namespace kiln::cg {

void emit_Sort(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "sort is not compiled yet"); }
void emit_Histogram(Emitter&, const ir::Inst& inst) { throw UserError(inst.loc, "histogram is not compiled yet"); }

}  // namespace kiln::cg

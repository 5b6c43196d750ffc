#include "backend/llvm/emitter.h"
#include "runtime/base/error.h"
namespace kiln::cg {
void emit_Block(Emitter&, const ir::Inst&) { throw InternalError("block"); }
void emit_Fill(Emitter&, const ir::Inst&) { throw InternalError("block"); }
void emit_Take(Emitter&, const ir::Inst&) { throw InternalError("block"); }
void emit_Release(Emitter&, const ir::Inst&) { throw InternalError("block"); }
void emit_RingDot(Emitter&, const ir::Inst&) { throw InternalError("block"); }
void emit_Partitions(Emitter&, const ir::Inst&) { throw InternalError("block"); }
}

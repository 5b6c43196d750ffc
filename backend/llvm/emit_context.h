// EmitContext: what every emission function sees, and the interface between the structural emitter and the two families
// that work on one element at a time, elementwise ops and casts (op/elementwise.cpp, op/cast.cpp, math/).
//
// Element types as LLVM values: i1 → i1 (i8 in memory), i8…u64 → iN, index → i64, f8e4m3 and f8e5m2 → i8 (their bits),
// f16 → half, bf16 → bfloat, f32 → float, f64 → double. An index value whose range fits 32 bits is handed over as
// DType::i32, so no function here needs to know about narrowing.
#pragma once
#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>

#include "backend/ir/op.h"
#include "backend/target.h"
#include "runtime/base/dtype.h"
#include "runtime/base/source_loc.h"

namespace kiln::cg {

struct EmitContext {
  llvm::IRBuilder<>& b;  ///< positioned where code goes; has no fast-math flags, and none may be set on it
  const Target& target;
  SourceLoc loc;  ///< of the instruction being emitted: for UserErrors

  llvm::Type* type(DType) const;         ///< as a register value
  llvm::Type* memory_type(DType) const;  ///< in memory: i8 for i1
  llvm::LLVMContext& context() const { return b.getContext(); }
  llvm::Module& module() const { return *b.GetInsertBlock()->getModule(); }
  llvm::Function& function() const { return *b.GetInsertBlock()->getParent(); }
};

// Both work on single elements, may append basic blocks to the function (the builder then stands in the block where the
// flow joins again), and throw UserError at c.loc for what the target cannot do.

/// One elementwise op of ops.def on operands of element type `dtype`; the result has the type of op.h's TypeRule.
/// `fast`: the hardware's approximation is allowed.
llvm::Value* emit_elementwise(EmitContext& c, ir::Op op, DType dtype, llvm::ArrayRef<llvm::Value*> operands, bool fast);

/// The conversion of ops.def's cast.
llvm::Value* emit_cast(EmitContext& c, llvm::Value* x, DType from, DType to, bool saturate);

}  // namespace kiln::cg

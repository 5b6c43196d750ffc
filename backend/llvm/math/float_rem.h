// The remainder of floats, which no target has as an instruction.
#pragma once
#include <llvm/IR/IRBuilder.h>

namespace kiln::cg::math {

/// The exact remainder of a / b with the sign of a (C's fmod) of two f32 or two f64: NaN for b = 0 or a infinite, a for
/// b infinite. Appends a loop, in which a quotient below 2^8 (f64: 2^11) takes no more than one step.
llvm::Value* emit_float_rem(llvm::IRBuilder<>& b, llvm::Value* a, llvm::Value* divisor);

}  // namespace kiln::cg::math

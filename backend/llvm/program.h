// Which program this is.
#pragma once
#include "backend/llvm/emitter.h"

namespace kiln::cg {

/// Number of this program along a grid axis, as i64; equal in all its threads.
llvm::Value* program_number(Emitter& e, std::int64_t axis);

}  // namespace kiln::cg

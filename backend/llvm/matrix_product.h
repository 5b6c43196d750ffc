// Products of matrices on tensor cores.
#pragma once
#include "backend/llvm/emitter.h"

namespace kiln::cg {

/// The result of a dot whose unit is not fma.
TileValue emit_matrix_product(Emitter& e, const ir::Inst& dot);

}  // namespace kiln::cg

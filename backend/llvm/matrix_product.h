// Products of matrices on tensor cores.
#pragma once
#include "backend/llvm/emitter.h"

namespace kiln::cg {

/// What instructions of the units call elements of this type; "tf32" for f32.
const char* element_name(DType d);

/// The result of a dot whose unit is not fma.
TileValue emit_matrix_product(Emitter& e, const ir::Inst& dot);

}  // namespace kiln::cg

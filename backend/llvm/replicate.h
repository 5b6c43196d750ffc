// What one thread knows, for all threads that hold the same element: results of effects, which only an element's owner
// has.
#pragma once
#include "backend/llvm/emitter.h"

namespace kiln::cg {

/// `own` in every thread, from plain elements that are right in their owners: registers that repeat one are copied,
/// lanes shuffle, and where elements repeat over warps they go through the scratch of `inst`.
/// @pre ir::scratch_bytes of `inst` is ir::replica_bytes of its result
TileValue from_owner(Emitter& e, const ir::Inst& inst, const Geometry& g, TileValue own, DType dtype);

}  // namespace kiln::cg

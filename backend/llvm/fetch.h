// Rings that the threads which multiply fill themselves, by cp.async: taking and releasing their slots.
#pragma once
#include "backend/llvm/emitter.h"
#include "backend/llvm/shared_place.h"

namespace kiln::cg {

/// Where the elements of a block of these padded extents stand in its slot.
SharedPlace place_in_slot(std::int64_t bytes, int along, const ir::Shape& extents);

/// `take` and `release` that name their ring.
void take_fetched(Emitter& e, const ir::Inst& take);
void release_fetched(Emitter& e, const ir::Inst& release);

}  // namespace kiln::cg

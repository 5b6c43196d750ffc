// Rings that the threads which multiply fill themselves, by cp.async: taking and releasing their slots.
#pragma once
#include "backend/ir/op/fetch.h"
#include "backend/llvm/emitter.h"
#include "backend/llvm/shared_place.h"

namespace kiln::cg {

/// Where the elements of a block stand in its slot.
SharedPlace place_in_slot(const ir::FetchBlock& block);
/// The block that a pointer which `take` gave leads to.
ir::FetchBlock fetched_block(const ir::Function& f, ir::Value taken);

/// `take` and `release` that name their ring.
void take_fetched(Emitter& e, const ir::Inst& take);
void release_fetched(Emitter& e, const ir::Inst& release);

}  // namespace kiln::cg

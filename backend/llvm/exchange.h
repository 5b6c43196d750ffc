// Exchange: elements on their way to other registers and threads.
//
// relayout() takes a tile from one register layout to another by the cheapest way there is (ir/exchange_plan.h).
// scatter() and gather() are the general form: each element goes to a place in shared memory that is a function of its
// coordinate, and is read from there by whoever wants it; reshapes of padded tiles, concatenations and gathers are
// such.
#pragma once
#include <llvm/ADT/STLFunctionalExtras.h>

#include "backend/ir/exchange_plan.h"
#include "backend/llvm/emitter.h"

namespace kiln::cg {

/// The plain tile `x` of type `from` in the registers of type `to`: equal shape and element type, layouts may differ.
/// `scratch` has at least ir::exchange_bytes(from's layout, to's layout, element bytes).
/// @post dead registers of `to` are null
TileValue relayout(Emitter& e, const TileValue& x, const ir::Type& from, const ir::Type& to, const Scratch& scratch);

/// A place in an array of elements in shared memory: number v + c.
struct Slot {
  llvm::Value* v = nullptr;  ///< i32; null: 0
  std::int64_t c = 0;
  llvm::Value* active = nullptr;  ///< i1: the element is moved at all; null: always
};

/// Writes every element of the plain tile `x` once, to slot(register). Two elements must not have one slot.
void scatter(Emitter& e, const TileValue& x, const ir::Type& type, const Scratch& scratch,
             llvm::function_ref<Slot(int)> slot);
/// A plain tile of `type` of the elements at slot(register); zero where the slot is not active.
TileValue gather(Emitter& e, const ir::Type& type, const Scratch& scratch, llvm::function_ref<Slot(int)> slot);
/// The slot of register `reg` in a row-major array of `strides`, one an axis (in elements).
Slot strided(Emitter& e, const Geometry& g, int reg, const std::vector<std::int64_t>& strides);

}  // namespace kiln::cg

// depth_first: an order of instructions that keeps few values alive.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::cg {

/// Moves each instruction without effects to just before its first use in its block, its operands' instructions before
/// it, and so on. Code is emitted tile by tile, so that all elements of one tile stand before the first of the next;
/// the assembler keeps that order as far as it sees no reason against it, and with it all elements of a tile alive at
/// once. What loads, stores, synchronises or leaves its block keeps its place.
void depth_first(llvm::Function& f);

}  // namespace kiln::cg

// Arithmetic on index values in the form of tile_value.h, and pointer offsets. Every result equals the one of 64-bit
// wrapping arithmetic; ranges only decide which parts fit 32 bits.
#pragma once
#include "backend/llvm/emit_context.h"
#include "backend/llvm/geometry.h"
#include "backend/llvm/tile_value.h"

namespace kiln::cg {

TileValue index_scalar(llvm::Value* i64, Known known);
TileValue index_constant(std::int64_t x);

/// An elementwise op on index operands (converted or materialised where no better form is known). Comparisons give
/// plain i1.
TileValue index_elementwise(EmitContext& c, const Geometry& g, ir::Op op, llvm::ArrayRef<TileValue> operands);

/// The i64 value of register r.
llvm::Value* index_value(llvm::IRBuilder<>& b, const TileValue& t, int r);
/// The value of register r modulo 2^bits, without 64-bit arithmetic where bits ≤ 32.
llvm::Value* index_low_bits(llvm::IRBuilder<>& b, const TileValue& t, int r, unsigned bits);

/// An index from plain integers, extended by their signedness.
TileValue index_of_integers(llvm::IRBuilder<>& b, const Geometry& g, const TileValue& plain, DType from);

/// `ptr` advanced by `offset` elements of `bytes` bytes.
TileValue advance(llvm::IRBuilder<>& b, const Geometry& g, const TileValue& ptr, const TileValue& offset,
                  std::int64_t bytes);
/// Address of register r without its constant part: to be written as [address + c].
llvm::Value* address(llvm::IRBuilder<>& b, const TileValue& ptr, int r);
/// The whole address of register r as a pointer.
llvm::Value* pointer_value(llvm::IRBuilder<>& b, const TileValue& ptr, int r);

}  // namespace kiln::cg

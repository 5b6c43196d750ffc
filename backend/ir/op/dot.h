// How a dot goes through shared memory: a slice of positions along k at a time, of both operands.
#pragma once
#include "backend/ir/function.h"

namespace kiln::ir {

/// Bytes that the slices of a and b may take together; both fit there wherever that leaves one position.
inline constexpr std::int64_t kDotScratch = 48 << 10;

/// Positions along k that are in shared memory at a time: a power of two.
std::int64_t dot_slice(const Function& f, const Inst& dot);
/// Bytes of the slice of operand 0 or 1: its elements have the accumulator's type, extents are padded.
std::int64_t dot_slice_bytes(const Function& f, const Inst& dot, std::size_t operand);

}  // namespace kiln::ir

// Blocks of results on their way to memory: registers, then lines of shared memory, swizzled as in the ring, then a
// copy by a tensor map or whole vectors.
//
// Each warpgroup has buffers of its own, of 64 rows of one line each, and uses them in turn: while one is being copied
// the next is written.
#pragma once
#include "backend/ir/op/ring.h"

namespace kiln::ir {

inline constexpr std::int64_t kStagedRows = 64, kStagingBuffers = 2;
inline constexpr std::int64_t kStagingBytes = kStagedRows * kLine;  ///< of one buffer

/// What one copy takes of a result of this type: 64 rows of one line.
RingBlock staged_piece(DType dtype);
/// Whether blocks of this form can go: whole lines of elements of 1, 2 or 4 bytes, 64 rows for each of so many warps
/// / 4.
bool can_stage(const Type& value, int warps);
/// Base, sizes, strides and coordinates of a store_block.
std::span<const Value> stored_array(const Inst& store);
/// The tensor maps that a function is launched with: those of its fill, then those that results leave by, each once.
std::vector<rt::TensorMapRecipe> kernel_maps(const Function& f);
/// Which of them a store_block goes by. @pre it has the attribute mapped
std::size_t map_of(const Function& f, const Inst& store);
/// How many copies may still read when the first buffer of a store_block is written: all but the one that it was last
/// used by, where each takes both buffers equally often.
int pending_copies(const Function& f);
/// Whether some result leaves by a tensor map.
bool copies_results(const Function& f);
/// Shared memory that the store_blocks of a function have in common.
std::int64_t staging_bytes(const Function& f);

}  // namespace kiln::ir

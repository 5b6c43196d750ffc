// Fetches: tiles that are copied to a slot of a ring ahead of the trip that uses them, by the threads that compute.
//
// The ring is an `alloc`, slot after slot. A block stands in its slot as operands of products do: lines of at most 128
// bytes along the axis whose elements lie beside each other in memory, in units of 16 bytes that are swizzled by the
// line's number (SharedPlace::lines); its extents are padded to powers of two.
#pragma once
#include "backend/ir/function.h"

namespace kiln::ir {

inline constexpr std::size_t kFetchFirst = 2, kFetchOperands = 2;  ///< of a fetch: the first block's, those of each

struct FetchBlock {
  DType dtype = DType::bf16;
  Shape extents;            ///< padded
  int along = 1;            ///< the contiguous axis
  std::int64_t offset = 0;  ///< bytes from the start of the slot
  bool singly = false;      ///< lanes read one element of 4 or 8 bytes each: of four lines side by side
  std::int64_t size() const { return extents[0] * extents[1] * bytes(dtype); }
};
std::vector<FetchBlock> fetch_blocks(const Function& f, const Inst& fetch);

/// A fetch into `ring`; they all bring the same blocks.
const Inst& fetch_into(const Function& f, Value ring);
/// Bytes of a slot of `ring`, and how many there are.
std::int64_t fetch_slot_bytes(const Function& f, Value ring);
std::int64_t fetch_slots(const Function& f, Value ring);

/// What blocks of these types and directions take in a slot: where each begins, and then the end of all.
std::vector<std::int64_t> slot_offsets(std::span<const std::int64_t> sizes);

}  // namespace kiln::ir

// The ring of a function: slots of shared memory, each of which holds one block of every matrix that a fill brings.
//
// A block lies in panels: lines of kLine bytes along its contiguous axis, one for each position along the other axis,
// panel after panel; units of 16 bytes are swizzled by the position, as tensor maps write them and the units of a
// warpgroup read them. Behind the slots stand two mbarriers for each: "full" and "empty".
#pragma once
#include <algorithm>
#include <optional>
#include <span>

#include "backend/ir/function.h"
#include "runtime/image/tensor_map_recipe.h"

namespace kiln::ir {

inline constexpr std::int64_t kLine = 128, kRingAlign = 1024;
inline constexpr int kMaxBox = 256;  ///< positions that one copy of a tensor map brings
/// What the copy engine moves at once: coordinates along lines are multiples of so many bytes, else the instruction is
/// illegal; and what it stores ends at a multiple of it, be that beyond the array's size.
inline constexpr std::int64_t kCopyUnit = 16;

/// Operands of a fill for one matrix: base, two sizes, two strides, two coordinates.
inline constexpr std::size_t kFillOperands = 7;

/// One block of a slot.
struct RingBlock {
  DType dtype = DType::bf16;
  std::int64_t extents[2] = {1, 1};
  int along = 1;            ///< the contiguous axis
  std::int64_t offset = 0;  ///< bytes from the start of the slot
  bool both = false;        ///< each of the two blocks of a cluster brings a half of it
  std::int64_t lines() const { return extents[1 - along]; }
  std::int64_t panels() const { return extents[along] * bytes(dtype) / kLine; }
  /// Halves are panels where they can be, else lines.
  bool halved_by_panels() const { return panels() % 2 == 0; }
  bool can_be_halved() const { return halved_by_panels() || lines() % 16 == 0; }
  /// Lines that one copy brings.
  std::int64_t copy_lines() const {
    const std::int64_t all = both && !halved_by_panels() ? lines() / 2 : lines();
    return all < kMaxBox ? all : kMaxBox;
  }
  std::int64_t size() const { return extents[0] * extents[1] * bytes(dtype); }
};
std::vector<RingBlock> ring_blocks(const Function& f, const Inst& fill);
/// Bytes of a slot, and of a ring of so many of them with its mbarriers.
std::int64_t slot_bytes(const Function& f, const Inst& fill);
std::int64_t ring_bytes(const Function& f, const Inst& fill, std::int64_t stages);

/// The tensor map by which blocks of a matrix are copied: `array` is its base, sizes and strides, parameters or
/// numbers. Nothing where one of them is neither.
std::optional<rt::TensorMapRecipe> block_map(const Function& f, std::span<const Value> array, const RingBlock& block);
/// Those of a fill, in order.
std::vector<rt::TensorMapRecipe> fill_maps(const Function& f, const Inst& fill);

/// Warps of the role that computes, for products of so many rows: a warpgroup for each 64, two at most.
inline int ring_warps(std::int64_t rows) { return rows > 64 ? 8 : 4; }

/// Registers of a thread for the part that is next added to `sums` of them, where a product's sums are added in parts:
/// as many as fit beside them, but at least 64 if there are so many.
inline std::int64_t part_registers(std::int64_t sums) {
  constexpr std::int64_t kBoth = 192, kLeast = 64;
  return std::min(sums, std::max(kLeast, kBoth - sums));
}

/// The function's fill; kNone if it has no ring.
InstId fill_of(const Function& f);
/// The function's walk over programs; kNone where each team runs one.
InstId walk_of(const Function& f);

}  // namespace kiln::ir

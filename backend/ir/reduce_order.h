// The order in which the elements along an axis combine: the one thing that a laid reduction's evaluation and its code
// have in common, so that sums of floats are equal bit for bit wherever they are computed.
//
// Elements along an axis of extent 2^n are numbered by n bits, and in a layout each of these bits is one bit of the
// register, lane, warp or block number (its *place*). A reduction is a tree over these bits, in some order: a step over
// bit p combines, for every pair of partial results that differ in bit p alone, the one where it is 0 with the one
// where it is 1. Elements outside the extent do not exist; a partial result without a partner stays as it is.
//
//     8 elements, steps over bits 0, 2, 1:    ((x0+x1)+(x4+x5)) + ((x2+x3)+(x6+x7))
//
// Steps over ascending bits combine neighbours, so operands keep their order and any associative combination is right.
// A combination that commutes goes over its bits by price instead, registers before lanes before warps, whatever
// elements they stand for.
//
// A scan goes over ascending bits in any case. Its blocks are the 2^p neighbours that the bits so far tell apart; each
// has a total, and each of its elements what precedes it inside, its prefix:
//
//   lane bit               prefix of the right half = (total of the left half) ∘ prefix; total = left ∘ right
//   run of register, warp  the blocks from first to last: prefix of block j = acc ∘ prefix, then acc = acc ∘ total of
//   or block bits          j; total = acc
//
// An element's result is prefix ∘ element. Where the lowest bits are registers, their blocks get it at once and go on
// without a prefix: each thread scans its own elements first. From last to first (reverse), an element's number is that
// of its mirror image.
#pragma once
#include <optional>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Which bit of the numbers along an axis a bit of a place is.
struct AxisBit {
  Hw hw = Hw::Register;
  int bit = 0;       ///< of the place
  int position = 0;  ///< of the element's number along the axis
  bool operator==(const AxisBit&) const = default;
};

/// The bits along `axis` by ascending position; nothing where some place bit moves along two axes at once or two place
/// bits are one bit of the axis: reductions are not emitted in such a layout.
std::optional<std::vector<AxisBit>> axis_bits(const LinearLayout& l, int axis);
/// The steps of a reduction, in order.
std::vector<AxisBit> reduce_order(const LinearLayout& l, int axis, bool commutes);
/// A scan's bits, ascending, in runs that are combined at once: each a lane bit, or neighbours that are all register,
/// all warp or all block bits.
std::vector<std::vector<AxisBit>> scan_order(const LinearLayout& l, int axis);

/// The layout in which a reduction or scan over `axis` of a tile of layout `l` and this shape works: `l` itself
/// wherever possible.
LinearLayout reducible_layout(const Function& f, const LinearLayout& l, const Shape& shape, int axis);

/// Whether region(a…, b…) and region(b…, a…) are equal bit for bit: proved by comparing the two expressions, so false
/// only says that no proof was found.
bool commutes(const Function& f, RegionId region);
/// The elements e… with region(e…, x…) = region(x…, e…) = x for every x: known where each result is one add, mul, min,
/// max, and, or, xor of its two parameters.
std::optional<std::vector<Literal>> identity_of(const Function& f, RegionId region);

/// How partial results cross warps in shared memory: one slot a (register, warp, lane) that holds its own.
struct WarpExchange {
  std::vector<AxisBit> bits;            ///< warp bits along the axis, ascending: the lowest bits of a slot's warp part
  std::vector<std::int64_t> registers;  ///< that hold partial results, the bits combined before being 0
  std::int64_t lane_mask = 0;           ///< bits of the lane that tell results apart
  std::int64_t warps = 1;               ///< in all
  std::int64_t lanes() const { return std::int64_t(1) << __builtin_popcountll(std::uint64_t(lane_mask)); }
  std::int64_t slots() const { return std::int64_t(registers.size()) * warps * lanes(); }
};
/// The exchange for a run of warp bits after `done` were combined.
/// @pre the tile's type has a layout with clean bits along the axis (axis_bits)
WarpExchange warp_exchange(const Function& f, const Type& tile, const std::vector<AxisBit>& done,
                           const std::vector<AxisBit>& run);
/// The exchange between the blocks of a cluster after `done` were combined: every thread has a slot a register, and
/// finds those of its place in the other blocks.
WarpExchange block_exchange(const Function& f, const Type& tile, const std::vector<AxisBit>& done,
                            const std::vector<AxisBit>& run);
/// Bytes of shared memory in which the partial results of `components` cross a run of warp or block bits; 0 for others.
std::int64_t exchanged_bytes(const Function& f, const Type& tile, const std::vector<AxisBit>& done,
                             const std::vector<AxisBit>& run, const std::vector<DType>& components);
/// Bytes in shared memory of a value of a dtype: at least 4, so that neighbours are in different banks.
std::int64_t slot_bytes(DType d);
/// Byte offsets of each component's slots in an exchange, and last the size of all.
std::vector<std::int64_t> slot_offsets(const WarpExchange& x, const std::vector<DType>& components);

}  // namespace kiln::ir

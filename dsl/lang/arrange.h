// Rearranging tiles: the elements of the result are those of the operands, in other places. Any dtype, pointers and i1
// included; any rank; extents need not be powers of two.
//
// Shapes, axes and positions are C++ values. A negative axis counts from the last: -1 is the last one. What does not
// fit is a UserError with both shapes at the caller's line.
#pragma once
#include <utility>
#include <vector>

#include "dsl/lang/tile.h"

namespace kiln {

/// The elements of x in row-major order, as a tile of `shape`, which has as many. One extent may be -1: it is what the
/// others leave. Example: reshape(arange(6), {2, -1}) is index[2,3], rows 0 1 2 and 3 4 5.
[[nodiscard]] Tile reshape(const Tile& x, const Shape& shape, RawLoc l = RawLoc::current());
/// The elements of x in row-major order, as a tile of rank 1.
[[nodiscard]] Tile ravel(const Tile& x, RawLoc l = RawLoc::current());
/// x without `axis`, whose extent is 1: the inverse of expand.
[[nodiscard]] Tile squeeze(const Tile& x, int axis, RawLoc l = RawLoc::current());

/// Axis i of the result is axis order[i] of x. Example: permute(x, {2, 0, 1}) of f32[2,3,5] is f32[5,2,3].
[[nodiscard]] Tile permute(const Tile& x, const std::vector<int>& order, RawLoc l = RawLoc::current());
/// x with its last two axes exchanged.
[[nodiscard]] Tile trans(const Tile& x, RawLoc l = RawLoc::current());

/// a and b (of one dtype and shape) side by side along a new last axis of extent 2.
/// Example: join(a, b) of f32[8] is f32[8,2] with rows a[i], b[i].
[[nodiscard]] Tile join(const Tile& a, const Tile& b, RawLoc l = RawLoc::current());
/// The two halves of x along its last axis, whose extent is 2: the inverse of join.
[[nodiscard]] std::pair<Tile, Tile> split(const Tile& x, RawLoc l = RawLoc::current());

/// Positions start to end-1 of x along `axis`. Example: slice(arange(10), 0, 3, 7) is 3, 4, 5, 6.
[[nodiscard]] Tile slice(const Tile& x, int axis, std::int64_t start, std::int64_t end, RawLoc l = RawLoc::current());
/// b after a along `axis`. They have one dtype, and one extent along every other axis.
[[nodiscard]] Tile cat(const Tile& a, const Tile& b, int axis, RawLoc l = RawLoc::current());
/// One or more tiles, one after the other along `axis`. Example: cat({a, b, c}, 0).
[[nodiscard]] Tile cat(const std::vector<Tile>& tiles, int axis, RawLoc l = RawLoc::current());
/// x with the positions along `axis` in reverse order.
[[nodiscard]] Tile flip(const Tile& x, int axis, RawLoc l = RawLoc::current());

/// Elements of x picked along `axis`: result[.., i, ..] = x[.., indices[.., i, ..], ..]. `indices` is a tile of any
/// integer type, of x's rank, and has x's extents along the other axes. An index outside of x, a negative one included,
/// gives 0 (false, a null pointer).
[[nodiscard]] Tile gather(const Tile& x, const Tile& indices, int axis, RawLoc l = RawLoc::current());

}  // namespace kiln

// The layouts that passes ask for by name; each with its (place) -> (coordinate) rule.
#pragma once
#include <cstdint>
#include <vector>

#include "backend/ir/layout.h"

namespace kiln::ir {

/// `extent` rounded up to a power of two.
std::int64_t padded(std::int64_t extent);
/// Each extent rounded up to a power of two.
std::vector<std::int64_t> padded(const std::vector<std::int64_t>& shape);
/// Number of elements of the padded tile.
std::int64_t padded_elements(const std::vector<std::int64_t>& shape);

/// Register layout for coalesced memory access. The padded tile is walked axis order[0] first; bits of that walk are,
/// from the lowest: `vector` (register), 5 lane, log2(warps) warp, log2(blocks) block, and register again for the rest:
///
///     element e  ->  register (e mod V) + V·(e / (V·T)),  thread (e / V) mod T        with T = 32 · warps · blocks
///
/// so that thread t owns vectors t, t + T, t + 2T, …, and neighbouring threads touch neighbouring vectors. Registers
/// are outermost so that the padding of an odd extent falls into whole registers, which are dropped. Thread bits that
/// the tile has no elements for replicate.
/// @pre order is a permutation of the axes; vector, warps, blocks are powers of two; vector divides
/// padded(shape[order[0]])
/// @post surjective; injective over registers
LinearLayout blocked(const std::vector<std::int64_t>& shape, std::int64_t vector, const std::vector<int>& order,
                     int warps, int blocks = 1);

/// The same where each thread owns a box of `owned` neighbours (powers of two), in registers along order[0] first: for
/// tiles that are accessed along several axes.
/// @post blocked(shape, {1, …, vector at order[0], …, 1}, …) == blocked(shape, vector, …)
LinearLayout blocked(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& owned,
                     const std::vector<int>& order, int warps, int blocks = 1);

/// Register layout for the result of a product of matrices, [batches…, M, N], computed by threads: each owns 4x4
/// elements or fewer, eight lanes stand side by side along N and four along M, so that one wavefront reads 128
/// neighbouring bytes of b and few rows of a, and results are stored in vectors of 4. Warps are spread over the batches
/// first, then so that a thread's further 4x4 blocks stay as square as possible. Smaller tiles give up elements a
/// thread first, and replicate last.
/// @post surjective; injective over registers
LinearLayout product_blocks(const std::vector<std::int64_t>& shape, int warps, int blocks = 1);

/// Register layout for the result of a product of matrices on tensor cores, [batches…, M, N], in blocks of m x 8 that one
/// instruction of a warp gives (m is 8 or 16): lanes stand in rows of four, each with two neighbours along N, and with the
/// same two eight rows below where m is 16. A warp's registers hold blocks beside each other, up to 64 columns as long as
/// all warps have some; then warps are spread over the batches first, then so that each has a part as square as possible;
/// the rest is registers. Bits for which the tile has no rows or columns replicate.
/// @post surjective; injective over registers
LinearLayout matrix_blocks(const std::vector<std::int64_t>& shape, int m, int warps);

/// The same for the units of a warpgroup, [M, N] with M a multiple of 64 and N of 8: each four warps have 64 rows, 16 a
/// warp, and all columns in registers; further rows are other warpgroups', then registers.
LinearLayout warpgroup_blocks(const std::vector<std::int64_t>& shape, int warps);

/// Axes from the last to the first: the order of a row-major tile.
std::vector<int> row_major(int rank);

}  // namespace kiln::ir

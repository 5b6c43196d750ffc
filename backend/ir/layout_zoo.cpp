#include "backend/ir/layout_zoo.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace kiln::ir {

std::int64_t padded(std::int64_t extent) { return std::int64_t(std::bit_ceil(std::uint64_t(extent))); }

std::vector<std::int64_t> padded(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> out;
  for (std::int64_t extent : shape) out.push_back(padded(extent));
  return out;
}

std::int64_t padded_elements(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= padded(extent);
  return n;
}

LinearLayout blocked(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& owned,
                     const std::vector<int>& order, int warps, int blocks) {
  KILN_CHECK(order.size() == shape.size() && owned.size() == shape.size(),
             fmt::format("blocked: order of {} axes, {} owned, for rank {}", order.size(), owned.size(), shape.size()));
  LinearLayout layout(padded(shape));
  std::vector<LinearLayout::Coord> walk;  // bases of the padded tile's bits, fastest first
  const auto add_steps = [&](int axis, std::int64_t from, std::int64_t to) {
    for (std::int64_t step = from; step < to; step *= 2) {
      LinearLayout::Coord c(shape.size(), 0);
      c[std::size_t(axis)] = step;
      walk.push_back(std::move(c));
    }
  };
  std::int64_t vector = 1;
  for (int axis : order) {
    const std::int64_t own = owned[std::size_t(axis)];
    KILN_CHECK(own <= padded(shape[std::size_t(axis)]),
               fmt::format("blocked: {} owned in extents {}", fmt::join(owned, "x"), fmt::join(shape, "x")));
    add_steps(axis, 1, own);
    vector *= own;
  }
  for (int axis : order) add_steps(axis, owned[std::size_t(axis)], layout.out_shape()[std::size_t(axis)]);
  std::size_t next = 0;
  const auto take = [&](Hw h, std::int64_t size) {
    KILN_CHECK(std::has_single_bit(std::uint64_t(size)),
               fmt::format("blocked: {} {}s is not a power of two", size, name(h)));
    for (; size > 1; size /= 2)
      layout.add_bit(h, next < walk.size() ? walk[next++] : LinearLayout::Coord(shape.size(), 0));
  };
  take(Hw::Register, vector);
  take(Hw::Lane, 32);
  take(Hw::Warp, warps);
  take(Hw::Block, blocks);
  while (next < walk.size()) layout.add_bit(Hw::Register, walk[next++]);
  return layout;
}

LinearLayout blocked(const std::vector<std::int64_t>& shape, std::int64_t vector, const std::vector<int>& order,
                     int warps, int blocks) {
  std::vector<std::int64_t> owned(shape.size(), 1);
  KILN_CHECK(order.size() == shape.size() && (!shape.empty() || vector == 1),
             fmt::format("blocked: order of {} axes for rank {}, vector of {}", order.size(), shape.size(), vector));
  if (!shape.empty()) owned[std::size_t(order[0])] = vector;
  return blocked(shape, owned, order, warps, blocks);
}

LinearLayout product_blocks(const std::vector<std::int64_t>& shape, int warps, int blocks) {
  KILN_CHECK(shape.size() >= 2, fmt::format("product_blocks: rank {}", shape.size()));
  LinearLayout layout(padded(shape));
  const int rank = int(shape.size()), m = rank - 2, n = rank - 1;
  std::vector<int> next(shape.size(), 0), left;  // by axis: bits taken, bits to take
  for (std::int64_t extent : layout.out_shape()) left.push_back(std::countr_zero(std::uint64_t(extent)));
  const auto take = [&](Hw h, int axis, int count) {
    count = std::min(count, left[std::size_t(axis)]);
    for (int i = 0; i < count; ++i, --left[std::size_t(axis)]) {
      LinearLayout::Coord c(shape.size(), 0);
      c[std::size_t(axis)] = std::int64_t(1) << next[std::size_t(axis)]++;
      layout.add_bit(h, std::move(c));
    }
    return count;
  };
  const auto fill = [&](Hw h, int bits) {  // from the batches, then from the longer of M and N
    for (int axis = 0; axis < m; ++axis) bits -= take(h, axis, bits);
    for (; bits > 0 && left[std::size_t(m)] + left[std::size_t(n)] > 0; --bits)
      take(h, left[std::size_t(m)] >= left[std::size_t(n)] ? m : n, 1);
    for (; bits > 0; --bits) layout.add_bit(h, LinearLayout::Coord(shape.size(), 0));
  };
  const int lane_bits = 5, warp_bits = std::countr_zero(unsigned(warps)),
            block_bits = std::countr_zero(unsigned(blocks));
  const int registers = std::max(layout.total_out_bits() - lane_bits - warp_bits - block_bits, 0);
  const int along_m = std::min({2, left[std::size_t(m)], registers / 2});
  const int along_n = take(Hw::Register, n, std::min(2, registers - along_m));
  take(Hw::Register, m, std::min(2, registers - along_n));
  int lanes = lane_bits;
  lanes -= take(Hw::Lane, n, 3);
  lanes -= take(Hw::Lane, m, lanes);
  lanes -= take(Hw::Lane, n, lanes);
  fill(Hw::Lane, lanes);
  fill(Hw::Warp, warp_bits);
  fill(Hw::Block, block_bits);
  for (int axis = rank - 1; axis >= 0; --axis) take(Hw::Register, axis, left[std::size_t(axis)]);
  return layout;
}

LinearLayout matrix_blocks(const std::vector<std::int64_t>& shape, int m, int warps) {
  KILN_CHECK(shape.size() >= 2, fmt::format("matrix_blocks: rank {}", shape.size()));
  LinearLayout layout(padded(shape));
  const int rank = int(shape.size()), row = rank - 2, column = rank - 1;
  std::vector<std::int64_t> next(shape.size(), 1);  // by axis: the lowest step that is not spread yet
  const auto extent = [&](int axis) { return layout.out_shape()[std::size_t(axis)]; };
  const auto add = [&](Hw h, int axis, std::int64_t step) {
    LinearLayout::Coord c(shape.size(), 0);
    if (step < extent(axis)) c[std::size_t(axis)] = step;
    else if (h == Hw::Register) return;
    layout.add_bit(h, std::move(c));
  };
  const auto left = [&](int axis) { return next[std::size_t(axis)] < extent(axis); };
  const auto take = [&](Hw h, int axis) {
    add(h, axis, next[std::size_t(axis)]);
    next[std::size_t(axis)] *= 2;
  };
  add(Hw::Register, column, 1);
  if (m == 16) add(Hw::Register, row, 8);
  for (std::int64_t step : {2, 4}) add(Hw::Lane, column, step);
  for (std::int64_t step : {1, 2, 4}) add(Hw::Lane, row, step);
  next[std::size_t(row)] = m;
  next[std::size_t(column)] = 8;
  constexpr std::int64_t kColumns = 64;                                  // of a warp: 128 bytes of a 16-bit result
  std::int64_t along_rows = std::max<std::int64_t>(extent(row) / m, 1);  // warps that batches and rows have work for
  for (int axis = 0; axis < row; ++axis) along_rows *= extent(axis);
  const std::int64_t each = extent(column) * along_rows / std::max<std::int64_t>(warps, along_rows);
  while (left(column) && next[std::size_t(column)] < std::min(kColumns, each)) take(Hw::Register, column);
  std::int64_t rows = extent(row), columns = extent(column);  // of a warp
  for (int n = warps; n > 1; n /= 2) {
    int axis = 0;
    while (axis < row && !left(axis)) ++axis;
    if (axis == row) axis = left(row) && (rows >= columns || !left(column)) ? row : column;
    if (axis >= row) (axis == row ? rows : columns) /= 2;
    take(Hw::Warp, axis);
  }
  for (int axis = rank - 1; axis >= 0; --axis)
    while (left(axis)) take(Hw::Register, axis);
  return layout;
}

LinearLayout warpgroup_blocks(const std::vector<std::int64_t>& shape, int warps) {
  KILN_CHECK(shape.size() == 2 && shape[0] % 64 == 0 && shape[1] % 8 == 0 && warps % 4 == 0,
             fmt::format("warpgroup_blocks: {} on {} warps", fmt::join(shape, "x"), warps));
  LinearLayout layout(padded(shape));
  const std::int64_t rows = layout.out_shape()[0], columns = layout.out_shape()[1];
  layout.add_bit(Hw::Register, {0, 1});
  layout.add_bit(Hw::Register, {8, 0});
  for (std::int64_t n = 8; n < columns; n *= 2) layout.add_bit(Hw::Register, {0, n});
  for (std::int64_t n : {2, 4}) layout.add_bit(Hw::Lane, {0, n});
  for (std::int64_t m : {1, 2, 4}) layout.add_bit(Hw::Lane, {m, 0});
  std::int64_t m = 16;
  for (int n = warps; n > 1; n /= 2, m *= 2) layout.add_bit(Hw::Warp, {m < rows ? m : 0, 0});
  for (; m < rows; m *= 2) layout.add_bit(Hw::Register, {m, 0});
  return layout;
}

std::vector<int> row_major(int rank) {
  std::vector<int> order;
  for (int axis = rank - 1; axis >= 0; --axis) order.push_back(axis);
  return order;
}

}  // namespace kiln::ir

// How work in two dimensions becomes a launch grid.
//
// An axis of a grid other than the first ends at 65535; arrays do not. So the slower dimension is spread over two axes,
// as evenly as they divide, and the few programs beyond its end find no element.
#pragma once
#include <algorithm>
#include <bit>

#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// fast × slow programs, neighbours along `fast`.
inline Grid blocks(std::int64_t fast, std::int64_t slow) {
  constexpr std::int64_t kLongestAxis = 65535;
  const std::int64_t z = cdiv(slow, kLongestAxis);
  return {fast, z == 0 ? 0 : cdiv(slow, z), z};
}
/// This program's number along the slow dimension; the last ones may lie beyond it.
inline Scalar slow_block() { return program_id(2) * num_programs(1) + program_id(1); }

/// The smallest power of two that covers `extent`, at most `limit`.
inline int block_for(std::int64_t extent, int limit) {
  return int(std::bit_ceil(std::uint64_t(std::clamp<std::int64_t>(extent, 1, limit))));
}

}  // namespace kiln::lib

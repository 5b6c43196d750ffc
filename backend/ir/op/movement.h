// Movement: where the elements of a rearranged tile come from, for the layouts that operands and result have.
//
// A rearranging op takes each element of its result from one element of one operand. With both layouts given, that is
// for each register of the result and each thread a place: operand, register, thread. Most ops were laid out so that
// the place is in the same thread and in the same register of all threads (backend/ir/op/shape_layout.cpp); a flip
// whose axis lies in lanes takes it from lane ^ m. What cannot be said that way moves through shared memory.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

/// How elements of `bytes` bytes stand in the scratch of these ops: rows of 128 bytes with a gap behind each.
struct ScratchRows {
  std::int64_t elements, gap;  ///< of a row, and as many as the gap is wide
  explicit ScratchRows(std::size_t bytes)
      : elements(128 / std::int64_t(bytes)), gap(bytes >= 4 ? 1 : 4 / std::int64_t(bytes)) {}
};

struct Movement {
  /// For every thread, register `reg` of the thread whose lane is the own one ^ lane_xor. reg < 0: no thread takes
  /// this register's element from this operand.
  struct Place {
    int reg = -1, lane_xor = 0;
  };
  std::vector<std::array<Place, 2>> regs;  ///< [result register][operand]
  bool shared = false;                     ///< some element has no such place; regs are not complete then
};

/// @pre `inst` is at stage laid, of one or two tile operands: expand_dims, broadcast, reshape, …, flip (not gather)
Movement movement(const Function& f, const Inst& inst, std::size_t result);

/// A gather whose positions along the axis are all in one warp, for every element of the result: bit b of an index says
/// bit lane_bit[b] of the lane that has the element, or one bit of its register.
struct WarpGather {
  std::vector<int> lane_bit;           ///< -1: a register bit
  std::vector<std::vector<int>> regs;  ///< [result register][register bits of the index, lowest first]
  int register_bits = 0;
};
/// Nothing if other threads' elements are needed or more than four registers would have to be tried for each.
/// @pre `gather` is at stage laid
std::optional<WarpGather> warp_gather(const Function& f, const Inst& gather);

/// Number of the operand that element `at` of a result is taken from, and its coordinate there.
std::size_t source_of(const Function& f, const Inst& inst, std::size_t result, const Shape& at, Shape& from);

}  // namespace kiln::ir

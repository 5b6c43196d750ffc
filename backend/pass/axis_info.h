// AxisInfo: what is known, without running, of the integers and addresses a kernel computes.
//
// For every integer, index, i1 or pointer value, and every axis of a tile (a scalar counts as one axis of extent 1):
//
//   contiguity    the largest power of two c such that in each aligned group of c positions along the axis, elements
//                 grow by one (an address: by one element). Aligned: starting at a position that is a multiple of c.
//   divisibility  a power of two that divides the first element of each such group (an address: bytes)
//   constancy     the largest power of two k such that each aligned group of k positions holds equal elements
//
// and, over all elements, the range [lo, hi]. Example: i = splat(p) + arange(0, 1024) with p = program_id(0) * 1024:
// contiguity 1024, divisibility 1024, constancy 1, range [0, 2^41). With n divisible by 16, `i < splat(n)` has
// constancy 16: a vector of 4, 8 or 16 elements is masked as a whole.
//
// Positions beyond a tile's extent (padding) have no meaning and do not shorten a group. index and 64-bit integers wrap
// at 2^64, like addresses; narrower ones wrap at their own width, and a group then stays whole only if it cannot
// straddle the wrap: its first element is divisible by its size, or the range shows that nothing wraps.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

/// A closed interval of integers. The default holds every 64-bit one.
struct Interval {
  std::int64_t lo = std::numeric_limits<std::int64_t>::min();
  std::int64_t hi = std::numeric_limits<std::int64_t>::max();

  static Interval of(std::int64_t x) { return {x, x}; }
  /// The values of an integer dtype; u64, which is not an interval of these, is everything.
  static Interval all(DType);
  bool single() const { return lo == hi; }
  bool inside(const Interval& o) const { return lo >= o.lo && hi <= o.hi; }
  bool fits_i32() const { return inside(all(DType::i32)); }
  bool operator==(const Interval&) const = default;
};

struct AxisInfo {
  struct Axis {
    std::int64_t contiguity = 1, divisibility = 1, constancy = 1;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;
  Interval range;  ///< not of pointers and floats
};

/// The facts of every value of a function, computed on construction. Loop bodies are walked until the facts of their
/// carried values hold for every trip: `p += 256` keeps the contiguity of p, and its alignment as far as 256 elements
/// do. Values of other types (floats) have the constancy of their operands.
class AxisAnalysis {
 public:
  explicit AxisAnalysis(const Function& f);
  const AxisInfo& operator[](Value v) const { return info_[v.id]; }

 private:
  std::vector<AxisInfo> info_;
};

/// Whether so many elements, a scalar, are known to be whole units of the copy engine (kCopyUnit).
bool copy_aligned(const AxisAnalysis& facts, Value elements, DType dtype);

}  // namespace kiln::ir

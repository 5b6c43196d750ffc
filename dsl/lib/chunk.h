// How long rows are worked off: in chunks of which each thread takes several vectors, and whose running results are
// one tile of a value a thread.
//
// A chunk is a tile [kVectors, kLanes, kElements]. Reduced over its first and last axis it leaves one value a lane,
// which costs no exchange between threads; they meet once, behind the loop.
#pragma once
#include "dsl/lang/arrange.h"
#include "dsl/lang/math.h"
#include "dsl/lang/ops.h"
#include "dsl/lang/reduce.h"

namespace kiln::lib {

/// Vectors of a lane, and lanes: cross-entropy of 8192x128256 bf16 on one H200 4567 GB/s, with 8 vectors 4080.
inline constexpr int kVectors = 4, kLanes = 256;

/// Elements of a vector of 16 bytes.
template <class T>
inline constexpr int kElements = 16 / int(sizeof(T));
template <class T>
inline constexpr int kChunk = kVectors* kLanes* kElements<T>;

/// The positions of a chunk: [kVectors, kLanes, kElements].
template <class T>
Tile chunk_positions() {
  return reshape(arange(kChunk<T>), {kVectors, kLanes, kElements<T>});
}
/// A chunk's elements of one lane: summed, and the largest.
inline Tile lane_sum(const Tile& x) { return sum(sum(x, 2), 0); }
inline Tile lane_max(const Tile& x) { return max(max(x, 2), 0); }

/// e^x, of a tile or scalar, to the accuracy that a result of type T keeps.
template <class T, class X>
X exp_for(const X& x) {
  if constexpr (sizeof(T) < 4) return fast::exp(x);
  else return exp(x);
}

/// Σ e^(x - m) as a pair of tiles or scalars that chunks are added to, with m the largest x so far. Nothing so far is
/// m = -inf, s = 0; rows that are -inf throughout stay there.
struct OnlineSum {
  Tile m = full(f32, {kLanes}, -std::numeric_limits<float>::infinity());
  Tile s = zeros(f32, {kLanes});

  /// Adds a chunk of f32, in which elements beyond the row are -inf.
  template <class T>
  void add(const Tile& x) {
    Tile next = maximum(m, lane_max(x));
    // A lane that has seen nothing but -inf subtracts 0: -inf - -inf would be NaN.
    Tile base = select(next == -std::numeric_limits<float>::infinity(), 0.f, next);
    s = s * exp_for<T>(m - base) + lane_sum(exp_for<T>(x - expand(expand(base, 0), 2)));
    m = next;
  }
  Scalar largest() const { return max(m); }
  /// Σ e^(x - largest) of all lanes; NaN if the whole row is -inf.
  template <class T>
  Scalar total(const Scalar& largest) const {
    return sum(s * exp_for<T>(m - largest));
  }
};

}  // namespace kiln::lib

// Ready-made stages for chains (chain.h): linear(x, w).then(epilogue::bias<bf16>({b, {N}})).then(epilogue::relu).
#pragma once
#include "dsl/lang/math.h"
#include "dsl/lib/chain.h"

namespace kiln::lib::epilogue {

/// max(t, 0); NaN stays NaN.
struct Relu {
  static constexpr const char* kName = "relu";
  Tile operator()(const Tile& t) const { return kiln::relu(t); }
};
inline constexpr Relu relu;

struct Bias {
  static constexpr const char* kName = "bias";
  Tile operator()(const Tile& t, const Tile& b) const { return t + b.cast(t.dtype()); }
};
/// t + b of its column, b [N], converted to t's dtype before.
template <Element T>
chain::Stage<Bias, chain::Extra<chain::PerColumn<T>>> bias(Vector<const T> b) {
  return {{}, {per_column<T>(b)}};
}

}  // namespace kiln::lib::epilogue

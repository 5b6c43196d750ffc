// Ready-made stages for chains (chain.h): linear(x, w).then(epilogue::bias<bf16>({b, {N}})).then(epilogue::relu).
//
// They compute in the dtype that the tile has, f32 as a rule; functions of floats take integers as f32.
#pragma once
#include "dsl/lang/atomic.h"
#include "dsl/lang/math.h"
#include "dsl/lang/random.h"
#include "dsl/lang/reduce.h"
#include "dsl/lib/chain.h"

namespace kiln::lib {

namespace chain {

inline Tile as_float(const Tile& t) { return is_float(t.dtype()) ? t : t.cast(f32); }

struct Relu {
  static constexpr const char* kName = "relu";
  Tile operator()(const Tile& t) const { return kiln::relu(t); }
};
struct Gelu {
  static constexpr const char* kName = "gelu";
  Tile operator()(const Tile& t) const { return kiln::gelu(as_float(t)); }
};
struct GeluTanh {
  static constexpr const char* kName = "gelu_tanh";
  Tile operator()(const Tile& t) const { return kiln::gelu_tanh(as_float(t)); }
};
struct Silu {
  static constexpr const char* kName = "silu";
  Tile operator()(const Tile& t) const { return kiln::silu(as_float(t)); }
};
struct Swiglu {
  static constexpr const char* kName = "swiglu";
  static constexpr int kFold = 2;
  Tile operator()(const Tile& t) const {
    const auto [gate, up] = split(reshape(as_float(t), {t.extent(0), t.extent(1) / 2, 2}));
    return kiln::silu(gate) * up;
  }
};
struct Bias {
  static constexpr const char* kName = "bias";
  Tile operator()(const Tile& t, const Tile& b) const { return t + b; }
};
struct Residual {
  static constexpr const char* kName = "residual";
  Tile operator()(const Tile& t, const Tile& r) const { return t + r; }
};
struct Scale {
  static constexpr const char* kName = "scale";
  Tile operator()(const Tile& t, const Tile& s) const { return t * s; }
};
struct Dropout {
  static constexpr const char* kName = "dropout";
  static constexpr bool kCrowded = true;  ///< four words of Philox an element
  Tile operator()(const Place& p, const Tile& t, const Scalar& least, const Scalar& scale, const Scalar& seed) const {
    Tile row = p.row_numbers();
    if (!p.ends_early) row = row + p.group * p.rows;
    Tile counter = row * cdiv(p.cols, 4) + (p.column / 4 + arange(p.width / 4));
    const auto [w0, w1, w2, w3] = rand4(seed, counter);
    Tile number = reshape(join(join(w0, w2), join(w1, w3)), {p.height, p.width});
    return select(number >= least, as_float(t) * scale, 0);
  }
};
struct Save {
  static constexpr const char* kName = "save";
  template <class T>
  void operator()(const Place& p, const Tile& t, const View<T, 2>& y) const {
    y.store({p.row, p.column}, t.template cast<T>());
  }
};
template <class T>
struct CastAmax {
  static constexpr const char* kName = "cast_amax";
  Tile operator()(const Place& p, const Tile& t, const Tile& scale, const Scalar& amax) const {
    Tile v = t.cast(f32);
    atomic_max(amax, max(select(p.inside(), abs(v), 0)));
    return (v * scale).template cast_sat<T>();
  }
};

}  // namespace chain

namespace epilogue {

/// max(t, 0), NaN stays NaN; gelu with erf and in its tanh form; t / (1 + e^-t).
inline constexpr chain::Relu relu;
inline constexpr chain::Gelu gelu;
inline constexpr chain::GeluTanh gelu_tanh;
inline constexpr chain::Silu silu;
/// silu(t[2i]) · t[2i + 1]: column i of the result, which has half as many. w's rows are gate and up in turn.
inline constexpr chain::Swiglu swiglu;

/// t + b of its column; b [N].
template <Element T>
chain::Stage<chain::Bias, chain::Extra<chain::PerColumn<T>>> bias(Vector<const T> b) {
  return {{}, {per_column<T>(b)}};
}
/// t + r; r [M, N]. y may be the same memory.
template <Element T>
chain::Stage<chain::Residual, chain::Extra<chain::PerElement<T>>> residual(Matrix<const T> r) {
  return {{}, {per_element<T>(r)}};
}
/// t · s, with s any extra tensor: scale(per_row<float>({s, {M}})), scale(number(0.5f)).
template <chain::IsExtra E>
chain::Stage<chain::Scale, E> scale(const E& s) {
  return {{}, {s}};
}
/// t / (1 - p) where a number made of seed and position is at least p, else 0. The number of element (r, c) is word c %
/// 4 of Philox4x32-10 with counter r · ⌈N / 4⌉ + c / 4 and the seed as key, as a multiple of 2^-24 in [0, 1): where N
/// is divisible by 4 that of lib::dropout of the whole result, so that its call is the backward pass. Of batches, rows
/// are counted on. Errors: UserError at this line for a p outside [0, 1).
inline auto dropout(double p, std::uint64_t seed, RawLoc at = RawLoc::current()) {
  chain::check_probability("dropout", at, p);
  using F = chain::Extra<chain::HostScalar<float>>;
  return chain::Stage<chain::Dropout, F, F, chain::Extra<chain::HostScalar<std::uint64_t>>>{
      {}, {F{p}, F{1 / (1 - p)}, {seed}}};
}
/// Writes the tile to y [M, N], rounded to T, and goes on with it as it was.
template <Element T>
chain::Stage<chain::Save, chain::Extra<chain::Written<T>>> save(Matrix<T> y) {
  return {{}, {{y}}};
}
/// t · scale, rounded to T and clamped to its largest finite value; amax[0] becomes the larger of itself and the
/// largest |t|, NaN if one is. scale and amax are one float in device memory. For results of 8 bits with delayed
/// scaling.
template <Element T>
chain::Stage<chain::CastAmax<T>, chain::Extra<chain::PerTensor<float>>, chain::Extra<chain::Shared<float>>> cast_amax(
    typename Param<In<float>>::Host scale, typename Param<InOut<float>>::Host amax) {
  return {{}, {{scale}, {amax}}};
}

}  // namespace epilogue
}  // namespace kiln::lib

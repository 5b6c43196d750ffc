// The arithmetic that Kiln's math functions are written over, and the few helpers they share.
//
// A math function is one template over an arithmetic `M`. The tests instantiate it with host floats and sweep it over
// every input; the emitter instantiates it with LLVM values (ir_arith.h), so that what was swept is what runs. `M` has
// the types
//   F  an f32, converts from float       B  a truth value
//   I  32 bits, converts from int        L  64 bits
// and member functions of the names below. Floats round to nearest even and keep denormals; nothing is contracted.
// min and max propagate NaN. lt, gt, eq are false for NaN operands. Shift counts are in [0, 31], or [0, 63] for L.
//
// The hardware approximations are named as PTX names them, `_ftz` where denormals count as zero. An accurate function
// may use one only where its error is removed again (a Newton step) or cannot matter; host tests run with the worst
// error that the PTX manual allows, in both directions.
#pragma once
#include <concepts>
#include <cstddef>
#include <limits>

namespace kiln::cg::math {

template <class M>
concept Arithmetic = std::convertible_to<float, typename M::F> && std::convertible_to<int, typename M::I> &&
    requires(M& m, typename M::F x, typename M::I i, typename M::L l, typename M::B b) {
  { m.fma(x, x, x) } -> std::same_as<typename M::F>;
  { m.bits(x) } -> std::same_as<typename M::I>;
  { m.from_bits(i) } -> std::same_as<typename M::F>;
  { m.umul(i, i) } -> std::same_as<typename M::L>;
  { m.scaled(l, 1.0) } -> std::same_as<typename M::F>;
  { m.lt(x, x) } -> std::same_as<typename M::B>;
  { m.sel(b, x, x) } -> std::same_as<typename M::F>;
  { m.ex2_ftz(x) } -> std::same_as<typename M::F>;
};

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kLog2e = 0x1.715476p0f;
inline constexpr int kSignBit = static_cast<int>(0x80000000u);
/// Adding it to |x| < 2^22 rounds x to an integer, which the low bits of the sum then hold.
inline constexpr float kRounder = 0x1.8p23f;
inline constexpr int kRounderBits = 0x4b400000;

/// c[0] + c[1] x + … by Horner's rule.
template <Arithmetic M, std::size_t N>
typename M::F poly(M& m, typename M::F x, const float (&c)[N]) {
  typename M::F p = c[N - 1];
  for (std::size_t k = N - 1; k-- > 0;) p = m.fma(p, x, c[k]);
  return p;
}

/// 2^n for n in [-126, 127].
template <Arithmetic M>
typename M::F pow2(M& m, typename M::I n) {
  return m.from_bits(m.shl(m.iadd(n, 127), 23));
}

/// p · 2^n with one rounding, for p in [0.5, 2] and n in [-252, 254]: denormal results and overflow come out right.
template <Arithmetic M>
typename M::F scale(M& m, typename M::F p, typename M::I n) {
  typename M::I half = m.sar(n, 1);
  return m.mul(m.mul(p, pow2(m, half)), pow2(m, m.isub(n, half)));
}

/// |magnitude| with the sign of x; magnitude must not be negative.
template <Arithmetic M>
typename M::F with_sign(M& m, typename M::F magnitude, typename M::F x) {
  return m.from_bits(m.ior(m.bits(magnitude), m.iand(m.bits(x), kSignBit)));
}

/// 1/d within 0.51 ulp for normal d of moderate size: the approximation and one Newton step.
template <Arithmetic M>
typename M::F reciprocal(M& m, typename M::F d) {
  typename M::F y = m.rcp_ftz(d);
  return m.fma(y, m.fma(m.neg(d), y, 1.f), y);
}

}  // namespace kiln::cg::math

// pow of f32: log2 of |x| to 2^-35 as an unevaluated sum of two floats, times y, then 2^ of that; special cases as C's.
#pragma once
#include "backend/llvm/math/exp_log.h"

namespace kiln::cg::math {

/// hi + lo, |lo| <= ulp(hi)/2 or a little more.
template <Arithmetic M>
struct Pair {
  typename M::F hi, lo;
};

/// log2 of a positive finite x. With s = 2f/(2+f), log2(1+f) = log2(e) (s + s³/12 + s⁵/80 + …): the first two terms in
/// pairs, the rest (error 2^-44) in f32.
template <Arithmetic M>
Pair<M> log2_pair(M& m, typename M::F x) {
  using F = typename M::F;
  constexpr float kP[] = {0x1.2776c4p-6f, 0x1.a6195p-9f, 0x1.47b118p-11f, 0x1.207cccp-13f};
  constexpr float kLog2eLow = 0x1.4ae0cp-26f;
  constexpr float kThird = 0x1.ec709ep-4f, kThirdLow = -0x1.e2fe02p-31f;  // log2(e)/12
  LogParts<M> l = log_parts(m, x);
  F r = reciprocal(m, m.add(l.f, 2.f));
  F s = m.mul(m.mul(l.f, 2.f), r);
  // The exact remainder 2f - s(2+f), in which 2f - 2s cancels without rounding.
  F s_low = m.mul(m.fma(m.neg(s), l.f, m.mul(m.sub(l.f, s), 2.f)), r);
  F t = m.mul(s, s);
  F t_low = m.fma(s, s, m.neg(t));
  t_low = m.fma(m.mul(s, 2.f), s_low, t_low);
  // q = log2(e)/12 + t P(t) and then q·t as pairs
  F tail = m.fma(poly(m, t, kP), t, kThirdLow);
  F q = m.add(tail, kThird);
  F q_low = m.add(m.sub(kThird, q), tail);
  F c = m.mul(q, t);
  F c_low = m.fma(q, t, m.neg(c));
  c_low = m.fma(q, t_low, m.fma(q_low, t, c_low));
  // (log2(e) + c) · s
  F g = m.add(c, kLog2e);
  F g_low = m.add(m.add(m.sub(kLog2e, g), c), m.add(c_low, kLog2eLow));
  F hi = m.mul(g, s);
  F lo = m.fma(g, s, m.neg(hi));
  lo = m.fma(g, s_low, m.fma(g_low, s, lo));
  F sum = m.add(l.n, hi);  // n is 0 or at least as large as hi
  return {sum, m.add(m.add(m.sub(l.n, sum), hi), lo)};
}

/// |x|^y for positive finite |x| and any y but NaN.
template <Arithmetic M>
typename M::F pow_positive(M& m, typename M::F x, typename M::F y) {
  using F = typename M::F;
  Pair<M> l = log2_pair(m, x);
  // Beyond 2^33 every x but 1 gives 0 or inf already; the products below then stay finite.
  F yc = m.max(m.min(y, 0x1p33f), -0x1p33f);
  F p = m.mul(yc, l.hi);
  F p_low = m.fma(yc, l.lo, m.fma(yc, l.hi, m.neg(p)));
  p_low = m.sel(m.lt(m.abs(p), 256.f), p_low, 0.f);
  p = m.max(m.min(p, 160.f), -160.f);
  F t = m.add(p, kRounder);
  F r = m.add(m.sub(p, m.sub(t, kRounder)), p_low);
  return scale(m, exp2_core(m, r), m.isub(m.bits(t), kRounderBits));
}

template <Arithmetic M>
typename M::F pow(M& m, typename M::F x, typename M::F y) {
  using F = typename M::F;
  F a = m.abs(x), b = m.abs(y);
  F r = pow_positive(m, a, y);
  // 0 and inf: the result is 0 where exactly one of "x is 0", "y is negative" holds
  typename M::B zero = m.eq(a, 0.f), infinite = m.eq(a, kInf);
  F at_zero = m.sel(m.lt(y, 0.f), kInf, 0.f), at_inf = m.sel(m.lt(y, 0.f), 0.f, kInf);
  r = m.sel(zero, at_zero, m.sel(infinite, at_inf, r));
  // A negative x, -0 included: the sign of an odd power; NaN for a y that is no integer (all floats from 2^23 on are,
  // from 2^24 on even ones).
  typename M::B negative = m.ilt(m.bits(x), 0);
  F half = m.mul(y, 0.5f);
  typename M::B integral = m.eq(m.trunc(y), y);
  typename M::B odd = m.both(m.both(integral, m.lt(b, 0x1p24f)), m.ne(m.trunc(half), half));
  r = m.sel(m.both(negative, odd), m.neg(r), r);
  typename M::B defined = m.either(integral, m.either(zero, infinite));
  r = m.sel(m.both(negative, m.nope(defined)), kNaN, r);
  r = m.sel(m.either(m.ne(x, x), m.ne(y, y)), kNaN, r);
  return m.sel(m.either(m.eq(x, 1.f), m.eq(y, 0.f)), 1.f, r);
}

}  // namespace kiln::cg::math

// exp, exp2, log, log2 of f32: argument reduction by a power of two, a minimax polynomial, exact scaling.
// Every coefficient is a discrete minimax (Lawson) fit of Kiln's own, rounded one after the other.
#pragma once
#include "backend/llvm/math/arith.h"

namespace kiln::cg::math {

/// e^x = mantissa · 2^n with mantissa in [0.7, 1.42], for |x| <= 104.
template <Arithmetic M>
struct ExpParts {
  typename M::F mantissa;
  typename M::I n;
};

template <Arithmetic M>
ExpParts<M> exp_parts(M& m, typename M::F x) {
  // e^r = 1 + r + r² P(r) on |r| <= ln2/2, error 2^-28.3
  constexpr float kP[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b6p-5f, 0x1.1239a2p-7f, 0x1.6a4744p-10f};
  typename M::F t = m.fma(x, kLog2e, kRounder);
  typename M::F n = m.sub(t, kRounder);
  typename M::F r = m.fma(n, -0x1.62e4p-1f, x);  // ln 2 in two parts, the first short enough that n times it is exact
  r = m.fma(n, -0x1.7f7d1cp-20f, r);
  typename M::F p = m.fma(poly(m, r, kP), m.mul(r, r), r);
  return {m.add(p, 1.f), m.isub(m.bits(t), kRounderBits)};
}

template <Arithmetic M>
typename M::F exp(M& m, typename M::F x) {
  ExpParts<M> e = exp_parts(m, m.max(m.min(x, 89.f), -104.f));
  return scale(m, e.mantissa, e.n);
}

/// e^x for |x| <= 80, where neither the result nor the scaling leaves the normal range.
template <Arithmetic M>
typename M::F exp_bounded(M& m, typename M::F x) {
  ExpParts<M> e = exp_parts(m, x);
  return m.mul(e.mantissa, pow2(m, e.n));
}

/// 2^r for |r| <= 1/2: 1 + r P(r), error 2^-34.
template <Arithmetic M>
typename M::F exp2_core(M& m, typename M::F r) {
  constexpr float kP[] = {0x1.62e43p-1f,   0x1.ebfbep-3f,   0x1.c6b06ep-5f, 0x1.3b2a5cp-7f,
                          0x1.5da584p-10f, 0x1.440e0ap-13f, 0x1.e0bacap-17f};
  return m.fma(poly(m, r, kP), r, 1.f);
}

template <Arithmetic M>
typename M::F exp2(M& m, typename M::F x) {
  typename M::F xc = m.max(m.min(x, 129.f), -151.f);
  typename M::F t = m.add(xc, kRounder);
  typename M::F r = m.sub(xc, m.sub(t, kRounder));
  return scale(m, exp2_core(m, r), m.isub(m.bits(t), kRounderBits));
}

/// A positive finite x as (1 + f) · 2^n with f in [-1/3, 1/3].
template <Arithmetic M>
struct LogParts {
  typename M::F f, n;
};

template <Arithmetic M>
LogParts<M> log_parts(M& m, typename M::F x) {
  typename M::B denormal = m.lt(x, 0x1p-126f);
  typename M::I u = m.bits(m.sel(denormal, m.mul(x, 0x1p23f), x));
  typename M::I e = m.iand(m.isub(u, 0x3f2aaaab), static_cast<int>(0xff800000u));
  typename M::F n = m.fma(m.to_float(e), 0x1p-23f, m.sel(denormal, -23.f, 0.f));
  return {m.sub(m.from_bits(m.isub(u, e)), 1.f), n};
}

/// `r` for positive finite x; -inf at ±0, NaN below, x itself for +inf and NaN.
template <Arithmetic M>
typename M::F log_special(M& m, typename M::F x, typename M::F r) {
  r = m.sel(m.lt(x, kInf), r, x);
  r = m.sel(m.lt(x, 0.f), kNaN, r);
  return m.sel(m.eq(x, 0.f), -kInf, r);
}

template <Arithmetic M>
typename M::F log(M& m, typename M::F x) {
  // log(1+f) = f - f²/2 + f³ P(f), error 2^-27.7 of the result
  constexpr float kP[] = {0x1.555506p-2f, -0x1.fffef4p-3f, 0x1.99d05ep-3f, -0x1.559d36p-3f,
                          0x1.1ed424p-3f, -0x1.f32078p-4f, 0x1.1e73ap-3f,  -0x1.07e5f4p-3f};
  LogParts<M> l = log_parts(m, x);
  typename M::F p = m.fma(poly(m, l.f, kP), l.f, -0.5f);
  p = m.fma(p, m.mul(l.f, l.f), l.f);
  return log_special(m, x, m.fma(l.n, 0x1.62e43p-1f, p));
}

template <Arithmetic M>
typename M::F log2(M& m, typename M::F x) {
  // log2(1+f) = f log2(e) + f² P(f), error 2^-27.7 of the result
  constexpr float kP[] = {-0x1.715476p-1f, 0x1.ec703p-2f,   -0x1.7153dep-2f, 0x1.279d7p-2f,  -0x1.ecd15ep-3f,
                          0x1.9de5bap-3f,  -0x1.6849f8p-3f, 0x1.9cddeep-3f,  -0x1.7bef2ep-3f};
  LogParts<M> l = log_parts(m, x);
  typename M::F low = m.mul(l.f, m.fma(poly(m, l.f, kP), l.f, 0x1.4ae0cp-26f));
  return log_special(m, x, m.add(m.fma(l.f, kLog2e, low), l.n));
}

}  // namespace kiln::cg::math

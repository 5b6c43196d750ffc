// sin and cos of f32 over the whole range: reduction to |r| <= pi/4 and a quadrant, by Cody and Waite up to 47000 and
// by Payne and Hanek beyond, then one polynomial each.
#pragma once
#include "backend/llvm/math/arith.h"

namespace kiln::cg::math {

/// x = q·pi/2 + r; only the two low bits of q count.
template <Arithmetic M>
struct Quadrant {
  typename M::F r;
  typename M::I q;
};

/// For 0 <= x <= 47000: pi/2 in three parts.
template <Arithmetic M>
Quadrant<M> reduce_near(M& m, typename M::F x) {
  typename M::F t = m.fma(x, 0x1.45f306p-1f, kRounder);
  typename M::F n = m.sub(t, kRounder);
  typename M::F r = m.fma(n, -0x1.921fb0p0f, x);
  r = m.fma(n, -0x1.5110b4p-22f, r);
  r = m.fma(n, -0x1.846988p-48f, r);
  return {r, m.bits(t)};
}

/// For finite x >= 2^15. With x = a·2^(e-31), a the mantissa in 32 bits, x·2/pi needs only the bits of 2/pi from e-33
/// on (those before give multiples of 4) and 96 of them: the product modulo 2^96 has the quadrant in its two top bits
/// and a fraction that is right to 2^-62, while no f32 comes closer to a multiple of pi/2 than 2^-30.
template <Arithmetic M>
Quadrant<M> reduce_far(M& m, typename M::F x) {
  using I = typename M::I;
  constexpr unsigned kTwoOverPi[7] = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041};
  I u = m.bits(x);
  I a = m.ior(m.shl(u, 8), kSignBit);
  I position = m.isub(m.shr(u, 23), 128);  // e - 1: counts the leading zero word of the table
  I word = m.shr(position, 5), shift = m.iand(position, 31);
  auto pick = [&](int k) {  // table[word + k]
    I v = static_cast<int>(kTwoOverPi[k]);
    for (int w = 1; w < 4; ++w) v = m.isel(m.ieq(word, w), static_cast<int>(kTwoOverPi[w + k]), v);
    return v;
  };
  I w0 = pick(0), w1 = pick(1), w2 = pick(2), w3 = pick(3);
  auto window = [&](I hi, I lo) { return m.high(m.lshl(m.join(hi, lo), shift)); };
  typename M::L product = m.ladd(m.lshr(m.umul(a, window(w2, w3)), 32), m.umul(a, window(w1, w2)));
  product = m.ladd(product, m.join(m.imul(a, window(w0, w1)), 0));
  typename M::L fraction = m.lshl(product, 2);  // signed, in units of 2^-64: [-1/2, 1/2)
  I q = m.iadd(m.shr(m.high(product), 30), m.shr(m.high(fraction), 31));
  return {m.scaled(fraction, 0x1.921fb54442d18p-64), q};
}

/// sin (offset 0) or cos (offset 1) of x >= 0; NaN at inf.
template <Arithmetic M>
typename M::F sine_of_quadrant(M& m, typename M::F x, int offset) {
  // sin r = r + r³ S(r²), cos r = 1 - r²/2 + r⁴ C(r²) on |r| <= pi/4; errors 2^-37 and 2^-33
  constexpr float kS[] = {-0x1.555556p-3f, 0x1.111174p-7f, -0x1.a0596cp-13f, 0x1.7c3888p-19f};
  constexpr float kC[] = {1.f, -0.5f, 0x1.55554ap-5f, -0x1.6c0c2ap-10f, 0x1.99e8fap-16f};
  typename M::B far = m.both(m.gt(x, 47000.f), m.lt(x, kInf));
  Quadrant<M> z = m.branch(
      far, [&] { return reduce_far(m, x); }, [&] { return reduce_near(m, x); });
  typename M::F s = m.mul(z.r, z.r);
  typename M::F sine = m.fma(m.mul(poly(m, s, kS), s), z.r, z.r);
  typename M::I q = m.iadd(z.q, offset);
  typename M::F v = m.sel(m.ieq(m.iand(q, 1), 0), sine, poly(m, s, kC));
  return m.from_bits(m.ixor(m.bits(v), m.shl(m.iand(q, 2), 30)));
}

template <Arithmetic M>
typename M::F sin(M& m, typename M::F x) {
  typename M::F v = sine_of_quadrant(m, m.abs(x), 0);
  return m.from_bits(m.ixor(m.bits(v), m.iand(m.bits(x), kSignBit)));
}

template <Arithmetic M>
typename M::F cos(M& m, typename M::F x) {
  return sine_of_quadrant(m, m.abs(x), 1);
}

}  // namespace kiln::cg::math

// rsqrt, tanh, erf and the activations built from them, of f32.
#pragma once
#include "backend/llvm/math/exp_log.h"

namespace kiln::cg::math {

/// The approximation and one Newton step, which is left out where it would make NaN: at 0, inf and below 0.
template <Arithmetic M>
typename M::F rsqrt(M& m, typename M::F x) {
  typename M::F y = m.rsqrt_approx(x);
  typename M::F e = m.fma(m.neg(m.mul(x, y)), y, 1.f);
  return m.sel(m.lt(e, 1.f), m.fma(m.mul(y, 0.5f), e, y), y);
}

template <Arithmetic M>
typename M::F tanh(M& m, typename M::F x) {
  // x + x³ P(x²) below 0.55 (error 2^-28.4), 1 - 2/(e^2x + 1) above
  constexpr float kP[] = {-0x1.55553ep-2f, 0x1.1109bep-3f, -0x1.b89abap-5f, 0x1.54c3c2p-6f, -0x1.828776p-8f};
  typename M::F a = m.abs(x);
  typename M::F s = m.mul(a, a);
  typename M::F small = m.fma(m.mul(poly(m, s, kP), s), a, a);
  typename M::F e = exp_bounded(m, m.mul(m.min(a, 10.f), 2.f));
  typename M::F big = m.fma(reciprocal(m, m.add(e, 1.f)), -2.f, 1.f);
  return with_sign(m, m.sel(m.lt(a, 0.55f), small, big), x);
}

template <Arithmetic M>
typename M::F erf(M& m, typename M::F x) {
  // x + x P(x²) below 0.92 (error 2^-31), 1 - e^-Q(x) above; from 4 on that rounds to 1
  constexpr float kP[] = {0x1.06eba8p-3f, -0x1.81274p-2f,   0x1.ce2d64p-4f, -0x1.b8011ap-6f,
                          0x1.544a1ap-8f, -0x1.a60a2ep-11f, 0x1.4f675ep-14f};
  constexpr float kQ[] = {-0x1.506efap-13f, 0x1.21229ap0f,    0x1.445fc6p-1f,  0x1.ba6b1cp-4f, -0x1.97e32ap-6f,
                          0x1.09a786p-8f,   -0x1.9ffe18p-12f, 0x1.e042f2p-17f, 0x1.18257p-21f};
  typename M::F a = m.abs(x);
  typename M::F small = m.fma(poly(m, m.mul(a, a), kP), a, a);
  typename M::F big = m.sub(1.f, exp_bounded(m, m.neg(poly(m, m.min(a, 4.f), kQ))));
  return with_sign(m, m.sel(m.lt(a, 0.921875f), small, big), x);
}

/// 1/(1+e^-x) as z/(1+z) with z = e^-|x| for x < 0, so that small results keep their relative accuracy.
template <Arithmetic M>
typename M::F sigmoid(M& m, typename M::F x) {
  typename M::F z = exp(m, m.neg(m.abs(x)));
  typename M::F r = reciprocal(m, m.add(z, 1.f));
  return m.sel(m.lt(x, 0.f), m.mul(z, r), r);
}

/// -inf · 0 would be NaN: far below where the factor vanishes, x no longer matters. NaN stays NaN.
template <Arithmetic M>
typename M::F bounded_below(M& m, typename M::F x) {
  return m.max(x, -200.f);
}

template <Arithmetic M>
typename M::F silu(M& m, typename M::F x) {
  return m.mul(bounded_below(m, x), sigmoid(m, x));
}

template <Arithmetic M>
typename M::F gelu(M& m, typename M::F x) {
  typename M::F e = erf(m, m.mul(x, 0x1.6a09e6p-1f));
  return m.mul(m.mul(bounded_below(m, x), 0.5f), m.add(e, 1.f));
}

/// (1 + tanh u)/2 = sigmoid(2u): the argument 2u of gelu_tanh.
template <Arithmetic M>
typename M::F gelu_tanh_argument(M& m, typename M::F x) {
  constexpr float k1 = 0x1.988454p0f, k3 = 0x1.2444f2p-4f;  // 2 sqrt(2/pi) and 0.044715 of it
  return m.mul(x, m.fma(m.mul(x, x), k3, k1));
}

template <Arithmetic M>
typename M::F gelu_tanh(M& m, typename M::F x) {
  return m.mul(bounded_below(m, x), sigmoid(m, gelu_tanh_argument(m, x)));
}

}  // namespace kiln::cg::math

// The fast forms: what `fast` allows, the hardware's approximation with the fewest instructions around it, and the
// narrow forms, for results that are rounded to f16 or bf16 and so never lose their 0.51 ulp to an approximation. An
// input or result of a `_ftz` approximation below 2^-126 counts as 0. Bounds: docs/semantics.md, held by tests/math.
#pragma once
#include "backend/llvm/math/activation.h"

namespace kiln::cg::math {

template <Arithmetic M>
typename M::F fast_exp(M& m, typename M::F x) {
  return m.ex2_ftz(m.mul(x, kLog2e));
}
template <Arithmetic M>
typename M::F fast_exp2(M& m, typename M::F x) {
  return m.ex2_ftz(x);
}
template <Arithmetic M>
typename M::F fast_log(M& m, typename M::F x) {
  return m.mul(m.lg2_ftz(x), 0x1.62e43p-1f);
}
template <Arithmetic M>
typename M::F fast_log2(M& m, typename M::F x) {
  return m.lg2_ftz(x);
}
template <Arithmetic M>
typename M::F fast_sin(M& m, typename M::F x) {
  return m.sin_approx(x);
}
template <Arithmetic M>
typename M::F fast_cos(M& m, typename M::F x) {
  return m.cos_approx(x);
}
template <Arithmetic M>
typename M::F fast_tanh(M& m, typename M::F x) {
  return m.tanh_approx(x);
}
template <Arithmetic M>
typename M::F fast_rsqrt(M& m, typename M::F x) {
  return m.rsqrt_ftz(x);
}

template <Arithmetic M>
typename M::F fast_sqrt(M& m, typename M::F x) {
  return m.sqrt_ftz(x);
}
/// The full-range approximation: the plain one gives 0 for divisors beyond 2^126.
template <Arithmetic M>
typename M::F fast_div(M& m, typename M::F x, typename M::F y) {
  return m.div_full_ftz(x, y);
}

template <Arithmetic M>
typename M::F fast_sigmoid(M& m, typename M::F x) {
  return m.rcp_ftz(m.add(m.ex2_ftz(m.mul(x, -kLog2e)), 1.f));
}

template <Arithmetic M>
typename M::F fast_silu(M& m, typename M::F x) {
  return m.mul(bounded_below(m, x), fast_sigmoid(m, x));
}

template <Arithmetic M>
typename M::F fast_gelu_tanh(M& m, typename M::F x) {
  return m.mul(bounded_below(m, x), fast_sigmoid(m, gelu_tanh_argument(m, x)));
}

/// As fast_exp and fast_exp2, with denormal results: bf16 has them where f32 has.
template <Arithmetic M>
typename M::F narrow_exp(M& m, typename M::F x) {
  return m.ex2(m.mul(x, kLog2e));
}
template <Arithmetic M>
typename M::F narrow_exp2(M& m, typename M::F x) {
  return m.ex2(x);
}
template <Arithmetic M>
typename M::F narrow_rsqrt(M& m, typename M::F x) {
  return m.rsqrt_approx(x);
}

/// As sigmoid, on approximations.
template <Arithmetic M>
typename M::F narrow_sigmoid(M& m, typename M::F x) {
  typename M::F z = narrow_exp(m, m.neg(m.abs(x)));
  typename M::F r = m.rcp_ftz(m.add(z, 1.f));
  return m.sel(m.lt(x, 0.f), m.mul(z, r), r);
}

template <Arithmetic M>
typename M::F narrow_silu(M& m, typename M::F x) {
  return m.mul(bounded_below(m, x), narrow_sigmoid(m, x));
}

template <Arithmetic M>
typename M::F narrow_gelu_tanh(M& m, typename M::F x) {
  return m.mul(bounded_below(m, x), narrow_sigmoid(m, gelu_tanh_argument(m, x)));
}

}  // namespace kiln::cg::math

#include "tests/math/functions.h"

#include <algorithm>
#include <bit>

namespace kiln::test {
namespace {

namespace m = cg::math;
constexpr double kPi = 3.14159265358979323846;
constexpr double kAll = HUGE_VAL;

double ref_rsqrt(double x) { return 1 / std::sqrt(x); }
// Near 0 and far out the plain formulas lose digits that an f32 result can show.
double ref_sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double ref_silu(double x) { return x == -HUGE_VAL ? -0.0 : x * ref_sigmoid(x); }
double ref_gelu(double x) { return x == -HUGE_VAL ? -0.0 : x / 2 * std::erfc(-x / std::sqrt(2.0)); }
double ref_gelu_tanh(double x) {
  return x == -HUGE_VAL ? -0.0 : x * ref_sigmoid(2 * std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x));
}

#define KILN_ROW(fn, metric, bound, low, high, ref)                              \
  MathFunction {                                                                 \
#fn, Metric::metric, bound, low, high, [](double x) -> double { return ref; }, \
               [](HostArith& a, const float* x, float* y, int n) {                    \
                 for (int i = 0; i < n; ++i) y[i] = m::fn(a, x[i]);                   \
               } \
  }

/// Distance between neighbouring floats around v.
double ulp_of(double v) {
  int e = 0;
  std::frexp(static_cast<double>(static_cast<float>(v)), &e);
  return std::ldexp(1.0, std::clamp(e, -125, 128) - 24);
}

const std::vector<float>& special_values() {
  static const std::vector<float> values = [] {
    std::vector<float> v;
    for (float x : {0.f,     0x1p-149f, 0x1p-126f, 0x1.fffffcp-127f, 0x1p-24f,  0.5f,         0.55f, 0.921875f, 1.f,
                    2.f,     4.f,       10.f,      47000.f,          88.72284f, 103.97208f,   128.f, 149.f,     200.f,
                    0x1p23f, 0x1p31f,   0x1p64f,   0x1.fffffep127f,  HUGE_VALF, std::nanf("")})
      for (float s : {x, -x})
        for (float n : {s, std::nextafter(s, 0.f), std::nextafter(s, s * 2)}) v.push_back(n);
    return v;
  }();
  return values;
}

}  // namespace

const std::vector<MathFunction>& accurate_functions() {
  static const std::vector<MathFunction> rows = {
      KILN_ROW(rsqrt, Ulp, 2, -kAll, kAll, ref_rsqrt(x)),
      KILN_ROW(exp, Ulp, 2, -kAll, kAll, std::exp(x)),
      KILN_ROW(exp2, Ulp, 2, -kAll, kAll, std::exp2(x)),
      KILN_ROW(log, Ulp, 2, -kAll, kAll, std::log(x)),
      KILN_ROW(log2, Ulp, 2, -kAll, kAll, std::log2(x)),
      KILN_ROW(sin, Ulp, 2, -kAll, kAll, std::sin(x)),
      KILN_ROW(cos, Ulp, 2, -kAll, kAll, std::cos(x)),
      KILN_ROW(tanh, Ulp, 2, -kAll, kAll, std::tanh(x)),
      KILN_ROW(erf, Ulp, 2, -kAll, kAll, std::erf(x)),
      KILN_ROW(sigmoid, Rel, 2, -kAll, kAll, ref_sigmoid(x)),
      KILN_ROW(silu, Rel, 2, -kAll, kAll, ref_silu(x)),
      KILN_ROW(gelu, Rel, 2, -kAll, kAll, ref_gelu(x)),
      KILN_ROW(gelu_tanh, Rel, 2, -kAll, kAll, ref_gelu_tanh(x)),
  };
  return rows;
}

const std::vector<MathFunction>& fast_functions() {
  static const std::vector<MathFunction> rows = {
      KILN_ROW(fast_rsqrt, Ulp, 3, 0x1p-126, kAll, ref_rsqrt(x)),
      KILN_ROW(fast_sqrt, Ulp, 3, 0x1p-126, kAll, std::sqrt(x)),
      KILN_ROW(fast_exp, Ulp, 4, -1, 1, std::exp(x)),
      KILN_ROW(fast_exp, Ulp, 3 + 1.25 * 89, -87, 89, std::exp(x)),
      KILN_ROW(fast_exp2, Ulp, 4, -126, kAll, std::exp2(x)),
      KILN_ROW(fast_log, Ulp, 5, 2, kAll, std::log(x)),
      KILN_ROW(fast_log, Abs, 0x1p-22, 0.5, 2, std::log(x)),
      KILN_ROW(fast_log2, Ulp, 5, 2, kAll, std::log2(x)),
      KILN_ROW(fast_log2, Abs, 0x1p-21, 0.5, 2, std::log2(x)),
      KILN_ROW(fast_sin, Abs, 0x1p-20, -2 * kPi, 2 * kPi, std::sin(x)),
      KILN_ROW(fast_cos, Abs, 0x1p-20, -2 * kPi, 2 * kPi, std::cos(x)),
      KILN_ROW(fast_tanh, Ulp, 0x1p13 + 1, -kAll, kAll, std::tanh(x)),
      KILN_ROW(fast_sigmoid, Rel, 2, -kAll, kAll, ref_sigmoid(x)),
      KILN_ROW(fast_silu, Rel, 2, -kAll, kAll, ref_silu(x)),
      KILN_ROW(fast_gelu_tanh, Rel, 2, -kAll, kAll, ref_gelu_tanh(x)),
  };
  return rows;
}

const std::vector<MathFunction>& narrow_functions() {
  static const std::vector<MathFunction> rows = {
      KILN_ROW(narrow_rsqrt, Ulp, 2, -kAll, kAll, ref_rsqrt(x)),
      KILN_ROW(narrow_exp, Ulp, 2, -kAll, kAll, std::exp(x)),
      KILN_ROW(narrow_exp2, Ulp, 2, -kAll, kAll, std::exp2(x)),
      KILN_ROW(log, Ulp, 2, -kAll, kAll, std::log(x)),
      KILN_ROW(log2, Ulp, 2, -kAll, kAll, std::log2(x)),
      KILN_ROW(sin, Ulp, 2, -kAll, kAll, std::sin(x)),
      KILN_ROW(cos, Ulp, 2, -kAll, kAll, std::cos(x)),
      KILN_ROW(tanh, Ulp, 2, -kAll, kAll, std::tanh(x)),
      KILN_ROW(erf, Ulp, 2, -kAll, kAll, std::erf(x)),
      KILN_ROW(narrow_sigmoid, Ulp, 2, -kAll, kAll, ref_sigmoid(x)),
      KILN_ROW(narrow_silu, Ulp, 2, -kAll, kAll, ref_silu(x)),
      KILN_ROW(narrow_gelu_tanh, Ulp, 2, -kAll, kAll, ref_gelu_tanh(x)),
  };
  return rows;
}
#undef KILN_ROW

double error_of(const MathFunction& f, float x, float got) {
  double want = f.reference(x);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  float rounded = static_cast<float>(want);
  if (rounded == got) {
    if (rounded == 0 && std::signbit(rounded) != std::signbit(got)) return 1e30;
    if (std::isinf(got)) return 0;
  }
  if (std::isinf(want)) return 1e30;
  // A wrong overflow counts as 2^128, so that one ulp too early or late is an error of one ulp.
  double e = std::fabs((std::isinf(got) ? std::copysign(0x1p128, got) : got) - want);
  switch (f.metric) {
    case Metric::Abs: return e;
    case Metric::Ulp: return e / ulp_of(std::min(std::fabs(want), 0x1.fffffep127));
    case Metric::Rel: return e / (0x1p-23 * std::max({std::fabs(double{x}), std::fabs(want), 0x1p-126}));
  }
  return 1e30;
}

Worst sweep(const MathFunction& f, std::uint64_t stride, double bias, std::uint32_t first) {
  HostArith a{bias};
  Worst worst;
  constexpr int kBlock = 1024;
  float x[kBlock], y[kBlock];
  int n = 0;
  auto flush = [&] {
    f.run(a, x, y, n);
    for (int i = 0; i < n; ++i) {
      double e = error_of(f, x[i], y[i]);
      if (e > worst.error) worst = {e, x[i], false};
    }
    n = 0;
  };
  auto put = [&](float v) {
    bool swept = std::isfinite(v) ? (v >= f.low && v <= f.high) : (std::isnan(v) || (v < 0 ? f.low : f.high) == v);
    if (swept) x[n++] = v;
    if (n == kBlock) flush();
  };
  for (float v : special_values()) put(v);
  for (std::uint64_t b = first; b < (std::uint64_t{1} << 32); b += stride)
    put(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
  flush();
  worst.approximated = a.approximated;
  return worst;
}

}  // namespace kiln::test

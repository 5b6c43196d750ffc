#include "tests/math/functions.h"

#include <algorithm>
#include <bit>
#include <optional>

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

/// Distance between neighbouring floats around v: 2^-23 of its power of two, at least 2^-149.
double ulp_of(double v) {
  const auto exponent = std::bit_cast<std::uint32_t>(static_cast<float>(v)) >> 23 & 0xff;
  const std::uint64_t e = std::clamp<std::uint64_t>(exponent, 1, 254) + (1023 - 127 - 23);
  return std::bit_cast<double>(e << 52);
}

const std::vector<float>& special_values() {
  static const std::vector<float> values = [] {
    std::vector<float> v;
    for (float x : {0.f,        0x1p-149f,
                    0x1p-126f,  0x1.fffffcp-127f,
                    0x1p-24f,   0.5f,
                    0.55f,      0.921875f,
                    1.f,        1.5f,
                    2.f,        3.f,
                    4.f,        7.f,
                    10.f,       47000.f,
                    88.7228f,   88.72284f,
                    103.97208f, 128.f,
                    149.f,      200.f,
                    8388607.f,  0x1p23f,
                    0x1p24f,    0x1p31f,
                    0x1p33f,    0x1p64f,
                    0x1p126f,   0x1.fffffep127f,
                    HUGE_VALF,  std::nanf("")})
      for (float s : {x, -x})
        for (float n : {s, std::nextafter(s, 0.f), std::nextafter(s, s * 2)}) v.push_back(n);
    return v;
  }();
  return values;
}

bool flushed(double v) { return v != 0 && std::fabs(v) < 0x1p-126; }

/// Point i of a Weyl sequence in the unit square, whose points lie far apart (powers of the plastic number).
struct Point {
  std::uint32_t u, v;
};
Point point(std::uint64_t i) {
  return {static_cast<std::uint32_t>(i * 0xc13fa9a902a6328full >> 32),
          static_cast<std::uint32_t>(i * 0x91e10da5c79e7b1dull >> 32)};
}
double unit(std::uint32_t u) { return (u + 0.5) * 0x1p-32; }

std::pair<float, float> any_pair(std::uint64_t i) {
  const Point p = point(i);
  return {std::bit_cast<float>(p.u), std::bit_cast<float>(p.v)};
}

/// In turn: any bits; any positive base, and one near 1, with an exponent whose result is finite; a base of either sign
/// with a whole exponent.
std::pair<float, float> pow_pair(std::uint64_t i) {
  const Point p = point(i / 4);
  const double result = -151 + 280 * unit(p.v);  // its logarithm
  const auto positive = std::bit_cast<float>(1 + p.u % 0x7f7fffff);
  const auto near_one = static_cast<float>(0.5 + unit(p.u));
  switch (i % 4) {
    case 0: return any_pair(i / 4);
    case 1: return {positive, static_cast<float>(result / std::log2(double{positive}))};
    case 2: return {near_one, static_cast<float>(result / std::log2(double{near_one}))};
    default: {
      const double whole = std::trunc(result / std::log2(double{positive}));
      return {p.v & 1 ? -positive : positive, static_cast<float>(whole)};
    }
  }
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

const std::vector<PairFunction>& pair_functions() {
  static const std::vector<PairFunction> rows = {
      {"pow", Metric::Ulp, 2, [](double x, double y) { return std::pow(x, y); },
       [](HostArith& a, const float* x, const float* y, float* out, int n) {
         for (int i = 0; i < n; ++i) out[i] = m::pow(a, x[i], y[i]);
       },
       pow_pair, [](double, double, double) { return true; }},
      {"fast_div", Metric::Ulp, 2, [](double x, double y) { return x / y; },
       [](HostArith& a, const float* x, const float* y, float* out, int n) {
         for (int i = 0; i < n; ++i) out[i] = m::fast_div(a, x[i], y[i]);
       },
       any_pair,
       // a result within 2 ulp of the denormals may become 0
       [](double x, double y, double want) { return !flushed(x) && !flushed(y) && !flushed(want / 0x1.00001p0); }},
  };
  return rows;
}

double error_of(Metric metric, double x, double want, float got) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  float rounded = static_cast<float>(want);
  if (rounded == got) {
    if (rounded == 0 && std::signbit(rounded) != std::signbit(got)) return 1e30;
    if (std::isinf(got)) return 0;
  }
  if (std::isinf(want)) return 1e30;
  // A wrong overflow counts as 2^128, so that one ulp too early or late is an error of one ulp.
  double e = std::fabs((std::isinf(got) ? std::copysign(0x1p128, got) : got) - want);
  switch (metric) {
    case Metric::Abs: return e;
    case Metric::Ulp: return e / ulp_of(std::min(std::fabs(want), 0x1.fffffep127));
    case Metric::Rel: return e / (0x1p-23 * std::max({std::fabs(x), std::fabs(want), 0x1p-126}));
  }
  return 1e30;
}

namespace {

/// Runs inputs in blocks: `run(arith, x, y, out, n)`, then `want(x, y)` once for all hardware models.
template <class Run, class Want>
class Sweeper {
 public:
  Sweeper(Metric metric, Run run, Want want) : metric_(metric), run_(run), want_(want) {}

  void put(float x, float y = 0) {
    x_[n_] = x;
    y_[n_++] = y;
    if (n_ == kBlock) flush();
  }
  Worst finish() {
    flush();
    return worst_;
  }

 private:
  static constexpr int kBlock = 1024;
  static constexpr double kBiases[] = {0, -1, 1};

  void flush() {
    int models = 1;
    for (int k = 0; k < models; ++k) {
      HostArith a{kBiases[k]};
      run_(a, x_, y_, out_[k], n_);
      if (a.approximated) models = 3;
    }
    for (int i = 0; i < n_; ++i) {
      const std::optional<double> want = want_(x_[i], y_[i]);
      if (!want) continue;
      for (int k = 0; k < models; ++k) {
        const double e = error_of(metric_, x_[i], *want, out_[k][i]);
        if (e > worst_.error) worst_ = {e, x_[i], y_[i], kBiases[k]};
      }
    }
    n_ = 0;
  }

  Metric metric_;
  Run run_;
  Want want_;
  Worst worst_;
  int n_ = 0;
  float x_[kBlock], y_[kBlock], out_[3][kBlock];
};

}  // namespace

Worst sweep(const MathFunction& f, const Inputs& in) {
  Sweeper sweeper(
      f.metric, [&](HostArith& a, const float* x, const float*, float* out, int n) { f.run(a, x, out, n); },
      [&](float x, float) { return std::optional(f.reference(x)); });
  auto put = [&](float v) {
    bool swept = std::isfinite(v) ? (v >= f.low && v <= f.high) : (std::isnan(v) || (v < 0 ? f.low : f.high) == v);
    if (swept) sweeper.put(v);
  };
  for (float v : special_values()) put(v);
  for (std::uint64_t b = in.first; b < in.end; b += in.stride) put(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
  return sweeper.finish();
}

Worst sweep(const PairFunction& f, const Inputs& in) {
  Sweeper sweeper(
      f.metric, [&](HostArith& a, const float* x, const float* y, float* out, int n) { f.run(a, x, y, out, n); },
      [&](float x, float y) {
        const double want = f.reference(x, y);
        return f.promised(x, y, want) ? std::optional(want) : std::nullopt;
      });
  for (float x : special_values())
    for (float y : special_values()) sweeper.put(x, y);
  for (std::uint64_t i = in.first; i < in.end; i += in.stride) {
    const auto [x, y] = f.pair(i);
    sweeper.put(x, y);
  }
  return sweeper.finish();
}

}  // namespace kiln::test

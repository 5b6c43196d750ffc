// Every math function against f64, under the hardware models of host_arith.h. The full sweep is kiln_math_sweep.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "runtime/base/float16.h"
#include "tests/math/functions.h"

namespace kiln::test {
namespace {

namespace m = cg::math;

template <class Function>
void expect_bounds(const std::vector<Function>& rows, std::uint64_t stride) {
  for (const Function& f : rows) {
    const Worst w = sweep(f, {.stride = stride});
    EXPECT_LE(w.error, f.bound) << f.name << " at " << w.x << ", " << w.y << ", bias " << w.bias;
  }
}

TEST(MathFunctions, AccurateFormsKeepTheirBounds) { expect_bounds(accurate_functions(), 499); }
TEST(MathFunctions, FastFormsKeepTheirBounds) { expect_bounds(fast_functions(), 997); }
TEST(MathFunctions, FunctionsOfTwoKeepTheirBounds) { expect_bounds(pair_functions(), 1021); }

TEST(MathFunctions, SweepSeesAWrongResult) {
  MathFunction f = accurate_functions()[1];
  f.run = [](HostArith& a, const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = m::exp(a, x[i]) * (1 + 3 * 0x1p-23f);
  };
  EXPECT_GT(sweep(f, {.stride = 100003}).error, f.bound);
}

/// Distance of neighbouring values of a 16-bit format with `digits` significand bits and smallest exponent `low`.
double narrow_ulp(double v, int digits, int low) {
  int e = 0;
  std::frexp(v, &e);
  return std::ldexp(1.0, std::max(e - 1, low) - (digits - 1));
}

/// Error in ulp of T of running `f` in f32 and rounding to T, for the input with these bits.
template <class T, int kDigits, int kLow>
double narrow_error(const MathFunction& f, HostArith& a, std::uint16_t bits) {
  T x;
  x.bits = bits;
  float in = static_cast<float>(x), out = 0;
  f.run(a, &in, &out, 1);
  double want = f.reference(in), got = static_cast<double>(static_cast<float>(T(out)));
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  if (std::isinf(want)) return want == got ? 0 : 1e30;
  int max_exponent = kDigits == 11 ? 16 : 128;
  double limit = std::ldexp(1.0, max_exponent);
  if (std::isinf(got)) got = std::copysign(limit, got);
  double capped = std::min(std::fabs(want), limit * (1 - std::ldexp(1.0, -kDigits)));
  return std::fabs(got - std::clamp(want, -limit, limit)) / narrow_ulp(capped, kDigits, kLow);
}

template <class T, int kDigits, int kLow>
void expect_narrow() {
  for (const MathFunction& f : narrow_functions())
    for (double bias : {-1.0, 0.0, 1.0}) {
      HostArith a{bias};
      double worst = 0;
      int at = 0;
      for (int b = 0; b < 0x10000; ++b) {
        double e = narrow_error<T, kDigits, kLow>(f, a, static_cast<std::uint16_t>(b));
        if (e > worst) worst = e, at = b;
      }
      EXPECT_LE(worst, 0.51) << f.name << " at " << std::hex << at << ", bias " << bias;
      testing::Test::RecordProperty(f.name, std::to_string(worst));
    }
}

TEST(MathFunctions, F16ResultsStayWithin51HundredthsOfAnUlp) { expect_narrow<f16, 11, -14>(); }
TEST(MathFunctions, Bf16ResultsStayWithin51HundredthsOfAnUlp) { expect_narrow<bf16, 8, -126>(); }

// What a sweep of all pairs covers, by a count of its parts.
TEST(Pow, PairsOfTheSweepReachFiniteResultsOfEverySize) {
  const PairFunction& pow = pair_functions()[0];
  int finite = 0, negative = 0, tiny = 0, large = 0;
  for (std::uint64_t i = 0; i < 40000; ++i) {
    const auto [x, y] = pow.pair(i * 104729);
    const double r = pow.reference(x, y);
    finite += std::isfinite(r) && r != 0;
    negative += r < 0;
    tiny += r > 0 && r < 0x1p-100;
    large += std::isfinite(r) && r > 0x1p100;
  }
  EXPECT_GT(finite, 25000);
  EXPECT_GT(negative, 1000);
  EXPECT_GT(tiny, 4000);
  EXPECT_GT(large, 2000);
}

TEST(Pow, TakesIntegerExponents) {
  HostArith a;
  EXPECT_EQ(m::pow(a, 3.f, 0.f), 1.f);
  EXPECT_EQ(m::pow(a, 3.f, -1.f), 1.f / 3);
  EXPECT_EQ(m::pow(a, 3.f, -2.f), 1.f / 9);
  EXPECT_EQ(m::pow(a, -2.f, 3.f), -8.f);
  EXPECT_EQ(m::pow(a, 10.f, 10.f), 1e10f);
}

TEST(MathFunctions, ExactCasesAreExact) {
  HostArith a;
  for (int n = -149; n < 128; ++n) {
    EXPECT_EQ(m::exp2(a, static_cast<float>(n)), std::ldexp(1.f, n));
    EXPECT_EQ(m::log2(a, std::ldexp(1.f, n)), static_cast<float>(n));
  }
  EXPECT_EQ(m::exp(a, 0.f), 1.f);
  EXPECT_EQ(m::log(a, 1.f), 0.f);
  EXPECT_EQ(m::cos(a, 0.f), 1.f);
}

}  // namespace
}  // namespace kiln::test

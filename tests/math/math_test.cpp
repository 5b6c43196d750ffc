// Every math function against f64, under the hardware models of host_arith.h. The full sweep is kiln_math_sweep.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "runtime/base/float16.h"
#include "tests/math/functions.h"

namespace kiln::test {
namespace {

namespace m = cg::math;

void expect_bounds(const std::vector<MathFunction>& rows, std::uint64_t stride) {
  for (const MathFunction& f : rows)
    for (double bias : {0.0, -1.0, 1.0}) {
      Worst w = sweep(f, stride, bias);
      EXPECT_LE(w.error, f.bound) << f.name << " at " << w.at << ", bias " << bias;
      if (!w.approximated) break;
    }
}

TEST(MathFunctions, AccurateFormsKeepTheirBounds) { expect_bounds(accurate_functions(), 499); }
TEST(MathFunctions, FastFormsKeepTheirBounds) { expect_bounds(fast_functions(), 997); }

TEST(MathFunctions, SweepSeesAWrongResult) {
  MathFunction f = accurate_functions()[1];
  f.run = [](HostArith& a, const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = m::exp(a, x[i]) * (1 + 3 * 0x1p-23f);
  };
  EXPECT_GT(sweep(f, 100003, 0).error, f.bound);
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

double pow_error(float x, float y) {
  HostArith a;
  MathFunction f{"pow", Metric::Ulp, 2, 0, 0, nullptr, nullptr};
  static thread_local double want;
  want = std::pow(double{x}, double{y});
  f.reference = [](double) { return want; };
  return error_of(f, x, m::pow(a, x, y));
}

TEST(Pow, StaysWithinItsBoundWhereResultsAreFinite) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint32_t> any_positive(1, 0x7f7fffff);
  std::uniform_real_distribution<double> exponent(-151, 129), near_one(-0.5, 0.5);
  double worst = 0;
  for (int i = 0; i < 4'000'000; ++i) {
    float x = i % 2 ? std::bit_cast<float>(any_positive(random)) : static_cast<float>(1 + near_one(random));
    float y = static_cast<float>(exponent(random) / std::log2(double{x}));
    double e = pow_error(x, y);
    ASSERT_LE(e, 2) << "pow(" << x << ", " << y << ")";
    worst = std::max(worst, e);
  }
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Pow, FollowsCAtEveryPairOfSpecialValues) {
  std::vector<float> values;
  for (float v : {0.f,           0x1p-149f,     0x1p-126f, 0.5f,    0.75f,           1.f,
                  1.5f,          2.f,           3.f,       7.f,     8388607.f,       8388609.f,
                  16777215.f,    16777216.f,    0x1p33f,   0x1p40f, 0x1.fffffep127f, HUGE_VALF,
                  0x1.000002p0f, 0x1.fffffep-1f})
    values.insert(values.end(), {v, -v});
  values.push_back(std::nanf(""));
  for (float x : values)
    for (float y : values) EXPECT_LE(pow_error(x, y), 2) << "pow(" << x << ", " << y << ")";
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

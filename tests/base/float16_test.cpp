// The four narrow formats against a reference that knows only their definition: a value is sign · fraction ·
// 2^exponent, and rounding takes the nearest of all finite values, ties to the even pattern. Decoding and round trips
// are exhaustive.
#include "runtime/base/float16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kiln {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct F16 {
  using T = f16;
  static constexpr int kExponent = 5, kMantissa = 10;
  static constexpr bool kInfinity = true;
  static T from(double v) { return f16_from_double(v); }
  static T saturated(float v) { return saturate_f16(v); }
};
struct BF16 {
  using T = bf16;
  static constexpr int kExponent = 8, kMantissa = 7;
  static constexpr bool kInfinity = true;
  static T from(double v) { return bf16_from_double(v); }
  static T saturated(float v) { return saturate_bf16(v); }
};
struct E4M3 {
  using T = f8e4m3;
  static constexpr int kExponent = 4, kMantissa = 3;
  static constexpr bool kInfinity = false;
  static T from(double v) { return f8e4m3_from_double(v, false); }
  static T saturated(float v) { return saturate_f8e4m3(v); }
};
struct E5M2 {
  using T = f8e5m2;
  static constexpr int kExponent = 5, kMantissa = 2;
  static constexpr bool kInfinity = true;
  static T from(double v) { return f8e5m2_from_double(v, false); }
  static T saturated(float v) { return saturate_f8e5m2(v); }
};

/// Value of a pattern by the format's definition.
template <class F>
double value(unsigned pattern) {
  const unsigned sign = pattern >> (F::kExponent + F::kMantissa) & 1;
  const int e = static_cast<int>(pattern >> F::kMantissa & ((1u << F::kExponent) - 1));
  const int m = static_cast<int>(pattern & ((1u << F::kMantissa) - 1)), top = (1 << F::kExponent) - 1;
  const int bias = top / 2;
  double v;
  if (F::kInfinity && e == top) v = m ? kNan : kInf;
  else if (!F::kInfinity && e == top && m == (1 << F::kMantissa) - 1) v = kNan;
  else if (e == 0) v = std::ldexp(m, 1 - bias - F::kMantissa);
  else v = std::ldexp(m + (1 << F::kMantissa), e - bias - F::kMantissa);
  return sign ? -v : v;
}

/// All finite values ≥ 0 in order; a value's index is its pattern.
template <class F>
std::vector<double> magnitudes() {
  std::vector<double> v;
  for (unsigned p = 0; std::isfinite(value<F>(p)); ++p) v.push_back(value<F>(p));
  return v;
}

template <class F>
typename F::T of_pattern(unsigned pattern) {
  typename F::T t;
  t.bits = static_cast<decltype(t.bits)>(pattern);
  return t;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class F>
class Narrow : public ::testing::Test {};
using Formats = ::testing::Types<F16, BF16, E4M3, E5M2>;
TYPED_TEST_SUITE(Narrow, Formats);

template <class F>
constexpr unsigned kPatterns = 1u << (1 + F::kExponent + F::kMantissa);

TYPED_TEST(Narrow, EveryPatternDecodesToItsDefinition) {
  for (unsigned p = 0; p < kPatterns<TypeParam>; ++p)
    ASSERT_TRUE(same(static_cast<float>(of_pattern<TypeParam>(p)), value<TypeParam>(p))) << std::hex << p;
}

TYPED_TEST(Narrow, EveryPatternSurvivesARoundTrip) {
  for (unsigned p = 0; p < kPatterns<TypeParam>; ++p) {
    const float v = static_cast<float>(of_pattern<TypeParam>(p));
    const typename TypeParam::T back(v);
    ASSERT_EQ(back.bits, TypeParam::from(v).bits);
    if (std::isnan(v)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(back))) << std::hex << p;
    } else {
      ASSERT_EQ(unsigned(back.bits), p) << std::hex << p;
    }
    if (std::isfinite(v)) {
      ASSERT_EQ(back.bits, TypeParam::saturated(v).bits);
    }
  }
}

TYPED_TEST(Narrow, EveryMidpointRoundsToTheEvenPattern) {
  const std::vector<double> all = magnitudes<TypeParam>();
  const unsigned sign = kPatterns<TypeParam> / 2;
  for (unsigned p = 0; p + 1 < all.size(); ++p) {
    const double mid = (all[p] + all[p + 1]) / 2;  // exact: one more bit than the format
    const unsigned even = p & 1 ? p + 1 : p;
    ASSERT_EQ(unsigned(TypeParam::from(mid).bits), even) << p;
    ASSERT_EQ(unsigned(TypeParam::from(-mid).bits), even | sign) << p;
    ASSERT_EQ(unsigned(typename TypeParam::T(static_cast<float>(mid)).bits), even) << p;
    ASSERT_EQ(unsigned(TypeParam::from(std::nextafter(mid, 0)).bits), p) << p;
    ASSERT_EQ(unsigned(TypeParam::from(std::nextafter(mid, 1e300)).bits), p + 1) << p;
  }
}

TYPED_TEST(Narrow, AnyDoubleRoundsToTheNearestValue) {
  const std::vector<double> all = magnitudes<TypeParam>();
  std::mt19937_64 random(1);
  const int low = std::ilogb(all[1]) - 3, high = std::ilogb(all.back());
  for (int i = 0; i < 200000; ++i) {
    const double v = std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52),
                                low + static_cast<int>(random() % static_cast<unsigned>(high - low)));
    const auto above = std::lower_bound(all.begin(), all.end(), v);
    ASSERT_NE(above, all.end());
    auto nearest = above;
    if (above != all.begin()) {
      const double up = *above - v,
                   down = v - *(above - 1);  // neighbours are within a factor of two or denormal: exact
      const bool odd = (above - all.begin()) & 1;
      if (down < up || (down == up && odd)) nearest = above - 1;
    }
    ASSERT_EQ(long(TypeParam::from(v).bits), nearest - all.begin()) << v;
    const float f = static_cast<float>(v);
    ASSERT_EQ(typename TypeParam::T(f).bits, TypeParam::from(f).bits) << f;
  }
}

TYPED_TEST(Narrow, OverflowGoesWhereTheFormatSays) {
  const double largest = magnitudes<TypeParam>().back();
  const double step = largest - magnitudes<TypeParam>().rbegin()[1];
  // Half a step above the largest value is a tie with the value that does not exist; the tie goes to the even pattern.
  const bool largest_is_even = (magnitudes<TypeParam>().size() - 1) % 2 == 0;
  const auto over = [&](double v) { return static_cast<float>(TypeParam::from(v)); };
  EXPECT_EQ(over(std::nextafter(largest + step / 2, 0)), largest);
  EXPECT_EQ(over(largest + step / 2) == largest, largest_is_even);
  const float beyond = over(std::nextafter(largest + step / 2, 1e300));
  EXPECT_EQ(TypeParam::kInfinity, std::isinf(beyond));
  EXPECT_EQ(!TypeParam::kInfinity, std::isnan(beyond));
  EXPECT_EQ(over(1e300) == kInf, TypeParam::kInfinity);
  EXPECT_EQ(over(kInf) == kInf, TypeParam::kInfinity);
  EXPECT_EQ(over(-kInf) == -kInf, TypeParam::kInfinity);
}

TYPED_TEST(Narrow, SaturationClampsToTheLargestValue) {
  const float largest = static_cast<float>(magnitudes<TypeParam>().back());
  EXPECT_EQ(static_cast<float>(TypeParam::saturated(std::numeric_limits<float>::max())), largest);
  EXPECT_EQ(static_cast<float>(TypeParam::saturated(kInf)), largest);
  EXPECT_EQ(static_cast<float>(TypeParam::saturated(-kInf)), -largest);
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam::saturated(kNan))));
  EXPECT_EQ(static_cast<float>(TypeParam::saturated(1.0f)), 1.0f);
}

TYPED_TEST(Narrow, ZeroKeepsItsSignAndTinyValuesBecomeZero) {
  const double smallest = magnitudes<TypeParam>()[1];
  for (const double v : {0.0, smallest / 2, 1e-300, 5e-324}) {
    EXPECT_TRUE(same(static_cast<float>(TypeParam::from(v)), 0.0)) << v;
    EXPECT_TRUE(same(static_cast<float>(TypeParam::from(-v)), -0.0)) << v;
  }
  EXPECT_EQ(unsigned(TypeParam::from(std::nextafter(smallest / 2, 1)).bits), 1u);
}

TYPED_TEST(Narrow, EveryNanStaysNan) {
  for (const unsigned payload : {0x7f800001u, 0x7fc00000u, 0xffffffffu, 0xff800001u, 0x7f80ffffu}) {
    float v;
    static_assert(sizeof v == sizeof payload);
    std::copy_n(reinterpret_cast<const char*>(&payload), sizeof v, reinterpret_cast<char*>(&v));
    EXPECT_TRUE(std::isnan(static_cast<float>(typename TypeParam::T(v)))) << std::hex << payload;
  }
}

// Rounding through f16 first would give 1.0 (it lands on the tie).
TEST(F8E4M3, RoundsOnceFromFloat) { EXPECT_EQ(static_cast<float>(f8e4m3(1.0625001f)), 1.125f); }

TEST(F8E5M2, InfinityStaysInfinityUnlessSaturated) {
  EXPECT_EQ(static_cast<float>(f8e5m2(kInf)), kInf);
  EXPECT_EQ(static_cast<float>(saturate_f8e5m2(kInf)), 57344.0f);
}

// 1 + 2^-11 + 2^-30 is above the f16 tie; as a float it is exactly the tie and would round down.
TEST(F16, RoundsOnceFromDouble) {
  const double v = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -30);
  EXPECT_EQ(f16_from_double(v).bits, 0x3c01);
  EXPECT_EQ(f16(static_cast<float>(v)).bits, 0x3c00);
}

}  // namespace
}  // namespace kiln

// Casts between every pair of types.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/ir/eval.h"
#include "tests/ir/op_samples.h"

namespace kiln::ir::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double to_real(DType from, double v, DType to, bool saturate = false) {
  return eval_cast(Literal::of_float(from, v), to, saturate).as_double();
}
Literal to_int(DType from, double v, DType to) { return eval_cast(Literal::of_float(from, v), to, false); }
Literal of_int(std::int64_t v, DType from, DType to) { return eval_cast(Literal::of_int(from, v), to, false); }

TEST(Cast, IntegersWrap) {
  EXPECT_EQ(of_int(-1, i32, u8), Literal::of_int(u8, 255));
  EXPECT_EQ(of_int(300, i32, i8), Literal::of_int(i8, 44));
  EXPECT_EQ(of_int(200, u8, i8), Literal::of_int(i8, -56));
  EXPECT_EQ(of_int(-1, i8, u64).bits, ~std::uint64_t(0));
  EXPECT_EQ(of_int(200, u8, i64), Literal::of_int(i64, 200));
  EXPECT_EQ(of_int((std::int64_t(1) << 32) + 5, DType::index, i32), Literal::of_int(i32, 5));
  EXPECT_EQ(of_int(1, DType::i1, i8), Literal::of_int(i8, 1));
}

TEST(Cast, ToI1IsUnequalToZero) {
  EXPECT_EQ(of_int(256, i32, DType::i1).bits, 1u);
  EXPECT_EQ(of_int(0, i32, DType::i1).bits, 0u);
  EXPECT_EQ(to_int(f32, 0.25, DType::i1).bits, 1u);
  EXPECT_EQ(to_int(f32, -0.0, DType::i1).bits, 0u);
  EXPECT_EQ(to_int(f32, kNaN, DType::i1).bits, 1u);
  EXPECT_EQ(to_int(DType::f8e5m2, kInf, DType::i1).bits, 1u);
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  EXPECT_EQ(to_int(f32, 2.9, i32).as_int(), 2);
  EXPECT_EQ(to_int(f32, -2.9, i32).as_int(), -2);
  EXPECT_EQ(to_int(f32, 300, u8).as_int(), 255);
  EXPECT_EQ(to_int(f32, -5, u8).as_int(), 0);
  EXPECT_EQ(to_int(f32, -0.5, u8).as_int(), 0);
  EXPECT_EQ(to_int(DType::bf16, -1e30, i16).as_int(), -32768);
  EXPECT_EQ(to_int(f64, 2147483647.5, i32).as_int(), 2147483647);
  EXPECT_EQ(to_int(f64, -2147483648.5, i32).as_int(), -2147483648LL);
  EXPECT_EQ(to_int(f64, 9.3e18, DType::index).as_int(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(to_int(f64, -9.3e18, i64).as_int(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(to_int(f64, 0x1p63, u64).bits, std::uint64_t(1) << 63);
  EXPECT_EQ(to_int(f64, 0x1p64, u64).bits, ~std::uint64_t(0));
  EXPECT_EQ(to_int(f64, kInf, u64).bits, ~std::uint64_t(0));
  for (DType d : all_dtypes())
    if (is_int(d)) {
      EXPECT_EQ(to_int(f32, kNaN, d).bits, 0u) << name(d);
      EXPECT_EQ(to_int(DType::f16, kNaN, d).bits, 0u) << name(d);
    }
}

TEST(Cast, IntegerToFloatRoundsOnce) {
  const std::int64_t tie = (std::int64_t(1) << 60) + (std::int64_t(1) << 52);  // half way in bf16; +1 is lost in double
  EXPECT_EQ(of_int(tie, i64, DType::bf16).as_double(), 0x1p60);
  EXPECT_EQ(of_int(tie + 1, i64, DType::bf16).as_double(), 0x1.02p60);
  EXPECT_EQ(of_int(-(tie + 1), i64, DType::bf16).as_double(), -0x1.02p60);
  const std::int64_t tie32 = (std::int64_t(1) << 60) + (std::int64_t(1) << 36);
  EXPECT_EQ(of_int(tie32, DType::index, f32).as_double(), 0x1p60);
  EXPECT_EQ(of_int(tie32 + 1, DType::index, f32).as_double(), 0x1.000002p60);
  EXPECT_EQ(of_int(-1, u64, f32).as_double(), 0x1p64);
  EXPECT_EQ(of_int((std::int64_t(1) << 53) + 1, i64, f64).as_double(), 0x1p53);
  EXPECT_EQ(of_int(16777217, i32, f32).as_double(), 16777216);
  EXPECT_EQ(of_int(70000, i32, DType::f16).as_double(), kInf);
  EXPECT_EQ(of_int(INT64_MIN, i64, f32).as_double(), -0x1p63);
  EXPECT_EQ(of_int(1, DType::i1, DType::bf16).as_double(), 1);
  for (std::int64_t v = -70000; v <= 70000; v += 7) ASSERT_EQ(of_int(v, i32, f32).as_double(), double(v));
  std::uint64_t x = 1;
  for (int i = 0; i < 100000; ++i) {  // the host's own conversion is exact rounding
    x = x * 6364136223846793005u + 1442695040888963407u;
    const auto v = std::int64_t(x) >> (x % 60);
    ASSERT_EQ(of_int(v, i64, f32).as_double(), double(float(v))) << v;
    ASSERT_EQ(Literal({u64, x}).as_double(), double(x));
    ASSERT_EQ(eval_cast({u64, x}, f32, false).as_double(), double(float(x))) << x;
  }
}

TEST(Cast, FloatToFloatRoundsToNearestEvenOnce) {
  EXPECT_EQ(to_real(f64, 0.1, f32), double(0.1f));
  EXPECT_EQ(to_real(f32, 1.0625f, DType::f8e4m3), 1.0);  // tie to even
  EXPECT_EQ(to_real(f32, 1.0625001f, DType::f8e4m3),
            1.125);                           // docs/pitfalls.md A16: above the tie; through f16 it would be the tie
  const double above = 1 + 0x1p-8 + 0x1p-40;  // above a bf16 tie; through f32 it would be the tie
  EXPECT_EQ(to_real(f64, above, DType::bf16), 1 + 0x1p-7);
  EXPECT_EQ(to_real(f64, 1 + 0x1p-11 + 0x1p-40, DType::f16), 1 + 0x1p-10);
  EXPECT_EQ(to_real(f64, 1 + 0x1p-24 + 0x1p-50, f32), 1 + 0x1p-23);
  EXPECT_TRUE(std::signbit(to_real(f32, -0.0, DType::f8e5m2)));
  EXPECT_EQ(to_real(f32, 0x1p-149, f64), 0x1p-149);
  EXPECT_EQ(to_real(DType::bf16, 0x1p-133, f32), 0x1p-133);
}

TEST(Cast, OverflowOfFloatsIsInfinityUnlessSaturated) {  // docs/pitfalls.md A14
  EXPECT_EQ(to_real(DType::f16, kInf, DType::f8e5m2), kInf);
  EXPECT_EQ(to_real(DType::f16, -kInf, DType::f8e5m2), -kInf);
  EXPECT_EQ(to_real(DType::f16, 65504, DType::f8e5m2), kInf);
  EXPECT_EQ(to_real(f32, 70000, DType::f16), kInf);
  EXPECT_EQ(to_real(f32, std::numeric_limits<float>::max(), DType::bf16), kInf);
  EXPECT_EQ(to_real(f64, 1e300, f32), kInf);
  EXPECT_TRUE(std::isnan(to_real(f32, 500, DType::f8e4m3)));  // has no infinity
  EXPECT_TRUE(std::isnan(to_real(f32, kInf, DType::f8e4m3)));

  EXPECT_EQ(to_real(DType::f16, kInf, DType::f8e5m2, true), 57344);
  EXPECT_EQ(to_real(f32, -1e9, DType::f8e4m3, true), -448);
  EXPECT_EQ(to_real(f32, kInf, DType::f16, true), 65504);
  EXPECT_EQ(to_real(f32, -kInf, DType::bf16, true), -0x1.fep127);
  EXPECT_EQ(to_real(f64, 1e300, f32, true), double(std::numeric_limits<float>::max()));
  EXPECT_EQ(to_real(f32, kInf, f32, true), double(std::numeric_limits<float>::max()));
  EXPECT_EQ(eval_cast(Literal::of_int(i64, 1 << 20), DType::f16, true).as_double(), 65504);
  EXPECT_EQ(to_real(f32, 1.5, DType::f8e4m3, true), 1.5);
}

TEST(Cast, NaNStaysNaN) {
  for (DType from : all_dtypes())
    for (DType to : all_dtypes())
      if (is_float(from) && is_float(to))
        for (bool saturate : {false, true}) {
          EXPECT_TRUE(std::isnan(to_real(from, kNaN, to, saturate))) << name(from) << " " << name(to);
        }
  // docs/pitfalls.md A15: NaN payloads that rounding would carry into infinity or zero.
  for (std::uint64_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu})
    EXPECT_TRUE(std::isnan(eval_cast({f32, bits}, DType::bf16, false).as_double()));
}

TEST(Cast, WideningIsExactAndNarrowingBackIsTheIdentity) {
  for (DType narrow : {DType::f8e4m3, DType::f8e5m2, DType::f16, DType::bf16})
    for (DType wide : {f32, f64})
      for (std::uint64_t b = 0; b < (std::uint64_t(1) << bits(narrow)); ++b) {
        const Literal l{narrow, b};
        if (std::isnan(l.as_double())) continue;
        ASSERT_EQ(eval_cast(eval_cast(l, wide, false), narrow, false), l) << name(narrow) << " " << b;
      }
}

}  // namespace
}  // namespace kiln::ir::test

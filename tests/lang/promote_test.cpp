#include "dsl/lang/promote.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kiln::detail {
namespace {

const DType kAll[] = {
#define KILN_DTYPE(name, ...) DType::name,
#include "runtime/base/dtype.def"
};

TEST(Promote, IsSymmetricAndIdempotent) {
  for (DType a : kAll) {
    EXPECT_EQ(promote(a, a), a);
    for (DType b : kAll) EXPECT_EQ(promote(a, b), promote(b, a)) << name(a) << " " << name(b);
  }
}

TEST(Promote, GivesATypeThatMeetsBothAgain) {
  for (DType a : kAll)
    for (DType b : kAll)
      if (const auto c = promote(a, b)) {
        EXPECT_EQ(promote(*c, a), c);
        EXPECT_EQ(promote(*c, b), c);
      }
}

TEST(Promote, RulesOfThePage) {
  EXPECT_EQ(promote(DType::i32, DType::index), DType::index);
  EXPECT_EQ(promote(DType::u32, DType::index), DType::index);
  EXPECT_EQ(promote(DType::u64, DType::index), std::nullopt);
  EXPECT_EQ(promote(DType::f16, DType::bf16), DType::f32);
  EXPECT_EQ(promote(DType::f16, DType::f32), DType::f32);
  EXPECT_EQ(promote(DType::f64, DType::f32), DType::f64);
  EXPECT_EQ(promote(DType::i64, DType::f16), DType::f16);
  EXPECT_EQ(promote(DType::index, DType::f32), DType::f32);
  EXPECT_EQ(promote(DType::i1, DType::i32), std::nullopt);
  EXPECT_EQ(promote(DType::u8, DType::i16), DType::i16);
  EXPECT_EQ(promote(DType::u32, DType::i64), DType::i64);
  EXPECT_EQ(promote(DType::u32, DType::i32), std::nullopt);
  EXPECT_EQ(promote(DType::f8e4m3, DType::f32), std::nullopt);
  EXPECT_EQ(promote(DType::f8e4m3, DType::f8e5m2), std::nullopt);
}

template <class T>
std::optional<std::int64_t> int_of(T v, DType d) {
  const auto l = literal_of(Number::of(v), d);
  return l ? std::optional(l->as_int()) : std::nullopt;
}
template <class T>
std::optional<double> float_of(T v, DType d) {
  const auto l = literal_of(Number::of(v), d);
  return l ? std::optional(l->as_double()) : std::nullopt;
}

TEST(PromoteNumber, OwnTypeIsTheSmallestThatHoldsIt) {
  EXPECT_EQ(Number::of(1).own, DType::i32);
  EXPECT_EQ(Number::of(std::int8_t(-1)).own, DType::i32);
  EXPECT_EQ(Number::of(2147483647u).own, DType::i32);
  EXPECT_EQ(Number::of(2147483648u).own, DType::i64);
  EXPECT_EQ(Number::of(-2147483649ll).own, DType::i64);
  EXPECT_EQ(Number::of(~0ull).own, DType::u64);
  EXPECT_EQ(Number::of(true).own, DType::i1);
  EXPECT_EQ(Number::of(0.5).own, DType::f32);
}

TEST(PromoteNumber, RangesOfIntegersAreExact) {
  EXPECT_EQ(int_of(127, DType::i8), 127);
  EXPECT_EQ(int_of(128, DType::i8), std::nullopt);
  EXPECT_EQ(int_of(-128, DType::i8), -128);
  EXPECT_EQ(int_of(-129, DType::i8), std::nullopt);
  EXPECT_EQ(int_of(255, DType::u8), 255);
  EXPECT_EQ(int_of(256, DType::u8), std::nullopt);
  EXPECT_EQ(int_of(-1, DType::u32), std::nullopt);
  EXPECT_EQ(int_of(4294967295u, DType::u32), 4294967295ll);
  EXPECT_EQ(int_of(3000000000u, DType::i32), std::nullopt);
  EXPECT_EQ(int_of(3000000000u, DType::index), 3000000000ll);
  EXPECT_EQ(int_of(~0ull, DType::i64), std::nullopt);
  EXPECT_EQ(int_of(~0ull, DType::index), std::nullopt);
  EXPECT_EQ(int_of(-1, DType::u64), std::nullopt);
  EXPECT_EQ(literal_of(Number::of(~0ull), DType::u64)->bits, ~0ull);
}

TEST(PromoteNumber, FractionsDoNotBecomeIntegersSilently) {
  EXPECT_EQ(int_of(2.0, DType::i32), 2);
  EXPECT_EQ(int_of(2.5, DType::i32), std::nullopt);
  EXPECT_EQ(int_of(std::nan(""), DType::i32), std::nullopt);
  EXPECT_EQ(int_of(300.0, DType::u8), std::nullopt);
  EXPECT_EQ(number_dtype(Number::of(0.5), DType::i32), DType::f32);
  EXPECT_EQ(number_dtype(Number::of(1), DType::f16), DType::f16);
}

TEST(PromoteNumber, FloatsRoundOnceAndDoNotOverflow) {
  EXPECT_EQ(float_of(0.1, DType::f32), double(0.1f));
  EXPECT_EQ(float_of(65504, DType::f16), 65504);
  EXPECT_EQ(float_of(70000, DType::f16), std::nullopt);
  EXPECT_EQ(float_of(1e300, DType::f32), std::nullopt);
  EXPECT_EQ(float_of(std::numeric_limits<double>::infinity(), DType::f16), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*float_of(std::nan(""), DType::f16)));
  EXPECT_EQ(float_of((1ll << 53) + 1, DType::f64), double(1ll << 53));
}

}  // namespace
}  // namespace kiln::detail

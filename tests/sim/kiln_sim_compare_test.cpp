// The rule by which kiln-sim compares what a kernel left with what was wanted.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/tools/compare.h"
#include "runtime/tools/sim_case.h"

namespace kiln::test {
namespace {

using rt::tools::Bytes;
using rt::tools::Comparison;

template <class T>
Bytes bytes_of(const std::vector<T>& v) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(v.data());
  return {p, p + sizeof(T) * v.size()};
}

TEST(Compare, IntegersMustBeEqual) {
  const Comparison c = rt::tools::compare(DType::i32, bytes_of<int>({1, 2, 3}), bytes_of<int>({1, 3, 4}));
  EXPECT_EQ(c.wrong, 2u);
  EXPECT_EQ(c.first_wrong, 1u);
  EXPECT_EQ(c.got, "2");
  EXPECT_EQ(c.want, "3");
}

TEST(Compare, FloatsAreBoundedByTheirOwnSizeAndTheBuffers) {
  const auto wrong = [](float got, float want, float others) {
    return rt::tools::compare(DType::f32, bytes_of<float>({got, others, others, others}),
                              bytes_of<float>({want, others, others, others}))
        .wrong;
  };
  // rms of {1, 1, 1, 1} is 1, so 2e-5 is allowed at 1.
  EXPECT_EQ(wrong(1 + 1.9e-5f, 1, 1), 0u);
  EXPECT_EQ(wrong(1 + 2.2e-5f, 1, 1), 1u);
  EXPECT_EQ(wrong(1e-6f, 0, 1), 0u);
  EXPECT_EQ(wrong(1e-6f, 0, 0), 1u);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(wrong(inf, inf, 1), 0u);
  EXPECT_EQ(wrong(-nan, nan, 1), 0u);
  EXPECT_EQ(wrong(1, nan, 1), 1u);
  EXPECT_EQ(wrong(nan, 1, 1), 1u);
  EXPECT_EQ(wrong(inf, 1, 1), 1u);
  EXPECT_EQ(wrong(1e30f, inf, 1), 1u);
  EXPECT_EQ(wrong(inf, -inf, 1), 1u);
  EXPECT_EQ(wrong(0.0f, -0.0f, 1), 0u);
}

TEST(Compare, NarrowFloatsHaveAWiderBound) {
  using rt::tools::compare;
  const auto one = [](float v) { return bytes_of<f16>({f16(v), f16(1)}); };
  EXPECT_EQ(compare(DType::f16, one(1.015f), one(1)).wrong, 0u);
  EXPECT_EQ(compare(DType::f16, one(1.03f), one(1)).wrong, 1u);
}

}  // namespace
}  // namespace kiln::test

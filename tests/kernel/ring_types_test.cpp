// Types that units of a warpgroup multiply beside 16-bit floats: 8-bit floats, their sums added in parts, 8-bit
// integers, and f32 as tf32, which is rounded on its way into the ring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/kernel/operands.h"
#include "tests/kernel/ring_product.h"
#include "tests/support/knob.h"
#include "tests/support/ptxas.h"

namespace {
using namespace kiln;
using kiln::test::Blocks;
using kiln::test::buffer_of;
using kiln::test::Case;
using kiln::test::expect_product;
using kiln::test::matmul;
using kiln::test::numbers;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kF8 = 0x1p-12, kTf32 = 0x1p-10;
constexpr Precision tf32 = Precision::tf32;

TEST(RingTypes, ElementsOfOneByte) {
  for (const Device& d : kiln::test::devices())
    for (const Blocks& b : {Blocks{128, 128, 128}, {64, 256, 128}}) {
      const Case c{150, 140, 300, b, false, true};
      expect_product<std::int8_t, std::int8_t, std::int32_t, std::int32_t>(d, c, 0);
      expect_product<std::uint8_t, std::int8_t, std::int32_t, std::int32_t>(d, c, 0);
      expect_product<f8e4m3, f8e4m3, float>(d, c, kF8);
      expect_product<f8e4m3, f8e5m2, float>(d, c, kF8);
      expect_product<f8e5m2, f8e5m2, float>(d, c, kF8);
    }
}

TEST(RingTypes, SumsArePromoted) {
  for (const Device& d : kiln::test::devices())
    for (int promote : {32, 64, 128, 256})
      expect_product<f8e4m3, f8e4m3, float>(d, {128, 128, 300, {128, 128, 128, promote}, false, true}, kF8);
}

// The sums of a part stand beside those of the whole, so a block of many columns or rows goes in parts.
TEST(RingTypes, BlocksOfPromotedSumsOfEveryForm) {
  for (const Device& d : kiln::test::devices()) {
    for (const Blocks& b : {Blocks{128, 256, 128, 128},
                            {256, 128, 128, 128},
                            {256, 64, 128, 128},
                            {128, 192, 128, 64},
                            {128, 200, 128, 128},
                            {64, 248, 128, 128},
                            {64, 8, 128, 128}})
      expect_product<f8e4m3, f8e4m3, float>(d, {200, 260, 200, b, false, true}, kF8);
    for (int columns : {200, 256})  // cut between panels
      expect_product<bf16, bf16, float>(d, {130, 260, 200, {128, columns, 64, 32}}, 0x1p-14);
  }
}

TEST(RingTypes, F32AsTf32) {
  for (const Device& d : kiln::test::devices()) {
    for (const Blocks& b :
         {Blocks{128, 128, 32, 0, tf32}, {64, 64, 64, 0, tf32}, {128, 256, 32, 0, tf32}, {256, 128, 32, 64, tf32}})
      expect_product<float, float, float>(d, {200, 270, 190, b, false, true}, kTf32);
    const Blocks b{128, 128, 32, 0, tf32};
    for (const Case& c : {Case{1, 1, 1, b}, {129, 127, 65, b}, {2, 7, 63, b}, {64, 64, 4, b}}) {
      Case x = c;
      x.b_columns = true;
      expect_product<float, float, float>(d, x, kTf32);
    }
  }
}

// Times one, an element shows how it was rounded: to the nearest, wherever it lies between two.
TEST(RingTypes, Tf32IsTheNearest) {
  constexpr int kN = 128;
  std::vector<float> one(kN * kN, 0.f), b(kN * kN);
  for (int i = 0; i < kN; ++i) one[std::size_t(i * kN + i)] = 1.f;
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = std::ldexp(1.f + float(i * 2654435761u >> 9) * 0x1p-23f, int(i % 60) - 30);
  b[0] = -b[0];
  b[1] = 0x1p-130f;  // subnormal
  b[2] = -0.f;
  for (const Device& d : kiln::test::devices()) {
    Buffer<float> x = buffer_of(d, one), y = buffer_of(d, b), z(d, b.size());
    const Stream s(d);
    matmul<float, float, float, float>.launch(s, 1, {x, {kN, kN}}, {y, {kN, kN}, {1, kN}}, {z, {kN, kN}},
                                              {kN, kN, 32, 0, tf32});
    s.synchronize();
    const auto got = z.to_vector();
    for (std::size_t i = 0; i < b.size(); ++i) {
      const float want = b[(i % kN) * kN + i / kN];  // y's columns follow each other
      ASSERT_LE(std::abs(double(got[i]) - double(want)), 0x1p-11 * std::abs(double(want))) << d.name() << " " << i;
    }
  }
}

TEST(RingTypes, InfinityAndNanOfTf32) {
  constexpr int kN = 128;
  std::vector<float> a(kN * 32, 1.f), b(32 * kN, 1.f);
  a[5 * 32 + 3] = std::numeric_limits<float>::infinity();
  b[7 * 32 + 4] = std::numeric_limits<float>::quiet_NaN();
  for (const Device& d : kiln::test::devices()) {
    Buffer<float> x = buffer_of(d, a), y = buffer_of(d, b), z(d, kN * kN);
    const Stream s(d);
    matmul<float, float, float, float>.launch(s, 1, {x, {kN, 32}}, {y, {32, kN}, {1, 32}}, {z, {kN, kN}},
                                              {kN, kN, 32, 0, tf32});
    s.synchronize();
    const auto got = z.to_vector();
    for (int i = 0; i < kN; ++i)
      for (int j = 0; j < kN; ++j) {
        const float v = got[std::size_t(i * kN + j)];
        if (j == 7) ASSERT_TRUE(std::isnan(v)) << d.name() << " " << i;
        else if (i == 5) ASSERT_EQ(v, std::numeric_limits<float>::infinity()) << d.name() << " " << j;
        else ASSERT_EQ(v, 32.f) << d.name() << " " << i << ", " << j;
      }
  }
}

TEST(RingTypes, EveryScheduleOfTheSimulator) {
  for (const char* schedule : {"late", "early", "random:1", "random:2"}) {
    const kiln::test::Knob set("KILN_SIM_SCHEDULE", schedule);
    const Device d = Device::simulator("sm_90a");
    expect_product<f8e4m3, f8e4m3, float>(d, {128, 256, 640, {128, 256, 128, 128}, false, true}, kF8);
    expect_product<float, float, float>(d, {128, 256, 200, {128, 256, 32, 0, tf32}, false, true}, kTf32);
  }
}

// --- which way a program goes ----------------------------------------------------------------------------------------

template <class T, class S = float>
rt::KernelImage image_of(const Blocks& blocks, bool b_columns = true) {
  const Device d = Device::simulator("sm_90a");
  Buffer<T> a(d, 512 * 512);
  Buffer<S> c(d, 512 * 512);
  const std::array<std::int64_t, 2> strides =
      b_columns ? std::array<std::int64_t, 2>{1, 512} : std::array<std::int64_t, 2>{512, 1};
  return matmul<T, T, S, S>.image(d, {a, {512, 512}}, {a, {512, 512}, strides}, {c, {512, 512}}, blocks);
}

TEST(RingTypes, EachHasItsInstruction) {
  const auto ptx = [](const rt::KernelImage& image) { return image.ptx; };
  EXPECT_THAT(ptx(image_of<float>({128, 256, 32, 0, tf32})), HasSubstr("m64n256k8.f32.tf32.tf32"));
  EXPECT_THAT(ptx(image_of<f8e4m3>({128, 256, 128})), HasSubstr("m64n256k32.f32.e4m3.e4m3"));
  EXPECT_THAT(ptx(image_of<f8e4m3>({128, 256, 128, 128})), HasSubstr("m64n128k32.f32.e4m3.e4m3"));
  EXPECT_THAT(ptx(image_of<f8e5m2>({128, 128, 128, 128})), HasSubstr("m64n128k32.f32.e5m2.e5m2"));
  EXPECT_THAT((ptx(image_of<std::int8_t, std::int32_t>({128, 256, 128}))), HasSubstr("m64n256k32.s32.s8.s8"));
  EXPECT_THAT(ptx(image_of<f16>({128, 256, 64})), HasSubstr("m64n256k16.f32.f16.f16"));
  // Never f32 that nobody has asked to be rounded, nor what two parts stand for.
  EXPECT_THAT(ptx(image_of<float>({128, 128, 32})), Not(HasSubstr("tf32")));
  EXPECT_THAT(ptx(image_of<float>({128, 128, 32, 0, Precision::tf32x3})), Not(HasSubstr("wgmma")));
  EXPECT_THAT(ptx(image_of<float>({128, 128, 32, 0, Precision::bf16x3})), Not(HasSubstr("wgmma")));
}

TEST(RingTypes, TheReportSaysWhyThereIsNone) {
  const auto why = [](const rt::KernelImage& image) {
    for (const std::string& fact : image.report.facts)
      if (fact.find("no ring of tensor maps") != std::string::npos) return fact;
    return std::string();
  };
  EXPECT_EQ(why(image_of<float>({128, 128, 32, 0, tf32})), "");
  for (const std::string& fact :
       {why(image_of<float>({128, 128, 32, 0, tf32}, false)), why(image_of<f8e4m3>({128, 128, 128}, false)),
        (why(image_of<std::int8_t, std::int32_t>({128, 128, 128}, false)))}) {
    EXPECT_THAT(fact, HasSubstr("does not lie along k, as units of a warpgroup read it"));
    EXPECT_THAT(fact, HasSubstr("ring_product.h:"));
  }
}

TEST(RingTypes, TheAssemblerTakesThemWithoutSpilling) {
  const auto tool = kiln::test::ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  for (const rt::KernelImage& image :
       {image_of<f8e4m3>({128, 256, 128, 128}), image_of<f8e4m3>({256, 128, 128, 128}),
        image_of<f8e4m3>({64, 256, 128, 128}), image_of<f8e4m3>({128, 192, 128, 128}),
        image_of<f8e5m2>({128, 256, 128}), image_of<float>({128, 256, 32, 0, tf32}),
        image_of<float>({256, 128, 32, 0, tf32}), image_of<std::int8_t, std::int32_t>({128, 256, 128})}) {
    const kiln::test::Assembly a = kiln::test::assemble(*tool, image.ptx, "sm_90a");
    EXPECT_TRUE(a.accepted) << a.log;
    EXPECT_THAT(a.log, HasSubstr("0 bytes stack frame, 0 bytes spill stores")) << image.ptx.substr(image.ptx.find("wgmma.mma"), 80);
    for (const char* trouble : {"C75", "C76", "warning"}) EXPECT_THAT(a.log, Not(HasSubstr(trouble)));
  }
}

}  // namespace

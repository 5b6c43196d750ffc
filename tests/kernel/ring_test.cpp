// Products in loops over blocks of views, as one writes them: on targets with units of a warpgroup their operands
// travel through a ring that other warps fill. Every direction, ragged shape and number of trips, against f64.
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
#include "tests/support/expect_error.h"
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
using kiln::test::real;
using kiln::test::Stored;
using kiln::test::stored;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kBf16 = 0x1p-8, kSums = 0x1p-14;

TEST(Ring, WholeAndRaggedBlocks) {
  for (const Device& d : kiln::test::devices())
    for (const Case& c : {Case{128, 128, 64, {}},
                          {128, 128, 640, {}},
                          {300, 136, 200, {}},
                          {1, 1, 1, {}},
                          {129, 127, 65, {}},
                          {2, 7, 63, {}}})
      expect_product<bf16, bf16, float>(d, c, kSums);
}

TEST(Ring, BlocksOfEveryForm) {
  for (const Device& d : kiln::test::devices())
    for (const Blocks& b : {Blocks{64, 8, 64},
                            {64, 256, 64},
                            {128, 256, 64},
                            {256, 128, 64},
                            {128, 192, 64},
                            {64, 16, 128},
                            {128, 24, 128},
                            {256, 64, 64}})
      expect_product<bf16, bf16, bf16>(d, {260, 200, 150, b}, kBf16);
}

TEST(Ring, OperandsOfEitherDirection) {
  for (const Device& d : kiln::test::devices())
    for (int direction = 0; direction < 4; ++direction)
      for (const Blocks& b : {Blocks{128, 128, 64}, {64, 64, 128}, {128, 256, 64}, {256, 64, 64}})
        expect_product<f16, f16, float>(d, {200, 270, 190, b, direction % 2 == 1, direction > 1}, kSums);
}

TEST(Ring, NoTripsGiveZeros) {
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> a(d, 128), b(d, 128);
    Buffer<float> c(d, 128 * 128);
    c.fill_bytes(0xff);
    const Stream s(d);
    matmul<bf16, bf16, float, float>.launch(s, 1, {a, {128, 0}, {16, 1}}, {b, {0, 128}, {128, 1}}, {c, {128, 128}}, {});
    s.synchronize();
    for (float x : c.to_vector()) ASSERT_EQ(x, 0) << d.name();
  }
}

// Two runs give the same bits, and a row's do not depend on how many rows there are.
TEST(Ring, BitsDependOnTheRowAlone) {
  for (const Device& d : kiln::test::devices()) {
    const auto a = numbers<bf16>(300 * 256, 1), b = numbers<bf16>(256 * 128, 2);
    Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b);
    const Stream s(d);
    std::vector<std::vector<float>> results;
    for (int rows : {300, 300, 65}) {
      Buffer<float> c(d, std::size_t(rows * 128));
      matmul<bf16, bf16, float, float>.launch(s, Grid{(rows + 127) / 128, 1}, {x, {rows, 256}}, {y, {256, 128}},
                                              {c, {rows, 128}}, {});
      s.synchronize();
      results.push_back(c.to_vector());
    }
    EXPECT_EQ(results[0], results[1]);
    results[0].resize(results[2].size());
    EXPECT_EQ(results[0], results[2]);
  }
}

constinit auto two_products = kernel(
    "two_products", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c, View<float, 2> e, Int rounds) {
      Scalar m = program_id(0) * 64;
      Tile sum = zeros(DType::f32, {64, 64}), weighted = zeros(DType::f32, {64, 64});
      for (auto round : range(0, rounds))
        for (auto k : range(0, a.size(1), 64)) {
          Tile x = a.load({m, k}, {64, 64}), y = b.load({k, 0}, {64, 64});
          sum = dot(x, y, sum);
          weighted = dot(x, y, weighted * 0.5f + round.cast(DType::f32));
        }
      c.store({m, 0}, sum);
      e.store({m, 0}, weighted);
    });

// Two products share their operands, one of them looks at its sums in every trip, and the loop is inside another one.
TEST(Ring, SeveralProductsInNestedLoops) {
  constexpr int kM = 100, kK = 130, kRounds = 3;
  const auto a = numbers<bf16>(kM * kK, 1), b = numbers<bf16>(kK * 64, 2);
  const Stored<bf16> sa = stored(a, kM, kK, false);
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> x = buffer_of(d, sa.memory), y = buffer_of(d, b);
    Buffer<float> c(d, kM * 64), e(d, kM * 64);
    const Stream s(d);
    two_products.launch(s, 2, {x, {kM, kK}, sa.strides()}, {y, {kK, 64}}, {c, {kM, 64}}, {e, {kM, 64}}, kRounds);
    s.synchronize();
    const auto sums = c.to_vector(), weighted = e.to_vector();
    for (int i = 0; i < kM; ++i)
      for (int j = 0; j < 64; ++j) {
        double sum = 0, half = 0;
        for (int round = 0; round < kRounds; ++round)
          for (int k = 0; k < kK; k += 64) {
            double p = 0;
            for (int l = k; l < std::min(k + 64, kK); ++l)
              p += real(a[std::size_t(i * kK + l)]) * real(b[std::size_t(l * 64 + j)]);
            sum += p;
            half = half / 2 + round + p;
          }
        ASSERT_NEAR(sums[std::size_t(i * 64 + j)], sum, 0.05) << d.name();
        ASSERT_NEAR(weighted[std::size_t(i * 64 + j)], half, 0.05) << d.name();
      }
  }
}

constinit auto late_load = kernel("late_load", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c) {
  Tile left = zeros(DType::f32, {64, 64}), right = zeros(DType::f32, {64, 64});
  for (auto k : range(0, a.size(1), 64)) {
    Tile x = a.load({0, k}, {64, 64}), y = b.load({k, 0}, {64, 64});
    left = dot(x, y, left);
    Tile z = b.load({k, 64}, {64, 64});  // behind the first product
    right = dot(z, y, right);
  }
  c.store({0, 0}, left);
  c.store({0, 64}, right);
});

TEST(Ring, ALoadBehindAProduct) {
  const auto a = numbers<bf16>(64 * 128, 1), b = numbers<bf16>(128 * 128, 2);
  std::vector<float> first;
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b);
    Buffer<float> c(d, 64 * 128);
    const Stream s(d);
    late_load.launch(s, 1, {x, {64, 128}}, {y, {128, 128}}, {c, {64, 128}});
    s.synchronize();
    const auto got = c.to_vector();
    if (first.empty()) first = got;
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], first[i], 0.05) << d.name();
  }
}

constinit auto transposing =
    kernel("transposing", [](View<const f16, 2> a, View<const f16, 2> b, View<float, 2> c, Const<bool> turn_a) {
      const bool turn = turn_a;
      Scalar m = program_id(0) * 64;
      Tile sum = zeros(DType::f32, {64, 128});
      for (auto k : range(0, b.size(1), 64)) {
        Tile x = turn ? trans(a.load({k, m}, {64, 64})) : a.load({m, k}, {64, 64});
        sum = dot(x, trans(b.load({0, k}, {128, 64})), sum);
      }
      c.store({m, 0}, sum);
    });

// Operands that are turned after they are loaded, as in x wᵀ.
TEST(Ring, TransposesOfBlocks) {
  constexpr int kM = 72, kN = 120, kK = 200;
  const auto a = numbers<f16>(kM * kK, 1), b = numbers<f16>(kN * kK, 2);  // a [M, K], b [N, K]
  for (const Device& d : kiln::test::devices())
    for (bool turn : {false, true}) {
      std::vector<f16> stored_a = a;
      if (turn)
        for (int i = 0; i < kM; ++i)
          for (int k = 0; k < kK; ++k) stored_a[std::size_t(k * kM + i)] = a[std::size_t(i * kK + k)];
      Buffer<f16> x = buffer_of(d, stored_a), y = buffer_of(d, b);
      Buffer<float> c(d, kM * kN);
      const Stream s(d);
      std::array<std::int64_t, 2> shape{kM, kK};
      if (turn) shape = {kK, kM};
      transposing.launch(s, 2, {x, shape}, {y, {kN, kK}}, {c, {kM, kN}}, turn);
      s.synchronize();
      const auto got = c.to_vector();
      for (int i = 0; i < kM; ++i)
        for (int j = 0; j < kN; ++j) {
          double want = 0;
          for (int k = 0; k < kK; ++k) want += real(a[std::size_t(i * kK + k)]) * real(b[std::size_t(j * kK + k)]);
          ASSERT_NEAR(got[std::size_t(i * kN + j)], want, 0.05) << d.name() << " " << turn;
        }
      if (d.kind() == DeviceKind::Interpreter) continue;
      EXPECT_THAT(transposing.image(d, {x, shape}, {y, {kN, kK}}, {c, {kM, kN}}, turn).ptx, HasSubstr("wgmma"));
    }
}

constinit auto guarded =
    kernel("guarded", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c, Int most) {
      Scalar m = program_id(0) * 64;
      Tile sum = zeros(DType::f32, {64, 64});
      if_(program_id(0) < most, [&] {
        for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {64, 64}), b.load({k, 0}, {64, 64}), sum);
      });
      c.store({m, 0}, sum + 1.f);
    });

TEST(Ring, ALoopThatSomeProgramsSkip) {
  const std::vector<bf16> ones(128 * 128, bf16(1.f));
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> x = buffer_of(d, ones), y = buffer_of(d, ones);
    Buffer<float> c(d, 128 * 64);
    const Stream s(d);
    guarded.launch(s, 2, {x, {128, 128}}, {y, {128, 64}}, {c, {128, 64}}, 1);
    s.synchronize();
    const auto got = c.to_vector();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i < 64 * 64 ? 129 : 1) << d.name() << " " << i;
  }
}

constinit auto from_anywhere =
    kernel("from_anywhere", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c, Int begin, Int column) {
      Tile sum = zeros(DType::f32, {64, 64});
      for (auto k : range(begin, a.size(1), 64))
        sum = dot(a.load({0, k}, {64, 64}), b.load({k, column}, {64, 64}), sum);
      c.store({0, column}, sum);
    });

// Coordinates along lines that are no multiple of 16 bytes: those of the columns of both operands, and of the result.
TEST(Ring, BlocksBeginAnywhere) {
  constexpr int kK = 200, kN = 128;
  const auto a = numbers<bf16>(64 * kK, 1), b = numbers<bf16>(kK * kN, 2);
  for (const Device& d : kiln::test::devices())
    for (const auto& [begin, column] : {std::pair{0, 0}, {16, 0}, {3, 0}, {8, 16}, {0, 5}, {77, 61}, {-16, -16}}) {
      Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b);
      Buffer<float> c(d, 64 * kN);
      c.fill_bytes(0);
      const Stream s(d);
      from_anywhere.launch(s, 1, {x, {64, kK}}, {y, {kK, kN}}, {c, {64, kN}}, begin, column);
      s.synchronize();
      const auto got = c.to_vector();
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < kN; ++j) {
          double want = 0;
          if (j >= column && j < column + 64)
            for (int k = std::max(begin, 0); k < kK; ++k)
              want += real(a[std::size_t(i * kK + k)]) * real(b[std::size_t(k * kN + j)]);
          ASSERT_NEAR(got[std::size_t(i * kN + j)], want, 0.05) << d.name() << " " << begin << ", " << column;
        }
      if (d.kind() == DeviceKind::Interpreter) continue;
      const bool whole = begin % 16 == 0 && column % 16 == 0;
      const auto image = from_anywhere.image(d, {x, {64, kK}}, {y, {kK, kN}}, {c, {64, kN}}, begin, column);
      EXPECT_EQ(image.ptx.find("cp.async.bulk") != std::string::npos, whole) << begin << ", " << column;
    }
}

// Late, early and at random moments: whoever depends on luck differs in one of them.
TEST(Ring, EveryScheduleOfTheSimulator) {
  for (const char* schedule : {"late", "early", "random:1", "random:2", "random:3"}) {
    const kiln::test::Knob set("KILN_SIM_SCHEDULE", schedule);
    const Device d = Device::simulator("sm_90a");
    expect_product<bf16, bf16, float>(d, {200, 136, 640, {}}, kSums);
    expect_product<f8e4m3, f8e4m3, float>(d, {128, 128, 640, {128, 128, 128, 128}, false, true}, 0x1p-12);
  }
}

// --- which way a program goes ----------------------------------------------------------------------------------------

std::string ptx_of(const char* arch, std::array<std::int64_t, 2> strides = {256, 1}, Blocks blocks = {}) {
  const Device d = Device::simulator(arch);
  Buffer<bf16> a(d, 256 * 256), b(d, 256 * 256), c(d, 256 * 256);
  return matmul<bf16, bf16, bf16, float>
      .image(d, {a, {128, 128}, strides}, {b, {128, 128}, {256, 1}}, {c, {128, 128}}, blocks)
      .ptx;
}

TEST(Ring, IsThereWhereTheTargetHasIt) {
  const std::string hopper = ptx_of("sm_90a");
  for (const char* part : {"wgmma.mma_async", "cp.async.bulk.tensor", "setmaxnreg.inc", "setmaxnreg.dec",
                           "wgmma.wait_group.sync.aligned 1;"})  // one product goes on while the next is issued
    EXPECT_THAT(hopper, HasSubstr(part));
  for (const char* arch : {"sm_80", "sm_89", "sm_100a"}) EXPECT_THAT(ptx_of(arch), Not(HasSubstr("wgmma"))) << arch;
}

TEST(Ring, IsNotThereForWhatNoTensorMapTakes) {
  EXPECT_THAT(ptx_of("sm_90a", {249, 1}), Not(HasSubstr("wgmma")));                  // rows at no multiple of 16 bytes
  EXPECT_THAT(ptx_of("sm_90a", {2, 2}), Not(HasSubstr("wgmma")));                    // no axis is contiguous
  EXPECT_THAT(ptx_of("sm_90a", {256, 1}, {128, 128, 48}), Not(HasSubstr("wgmma")));  // no whole lines
  EXPECT_THAT(ptx_of("sm_90a", {256, 1}, {32, 128, 64}), Not(HasSubstr("wgmma")));   // no 64 rows
}

/// What the report says of a product that no tensor maps feed; empty: nothing.
template <class T = bf16>
std::string reason(std::array<std::int64_t, 2> strides, Blocks blocks, CompileOptions options = {}) {
  const Device d = Device::simulator("sm_90a");
  Buffer<T> a(d, 512 * 256);
  Buffer<float> c(d, 256 * 256);
  for (const std::string& fact : matmul<T, T, float, float>.with(options)
                                     .image(d, {a, {128, 128}, strides}, {a, {128, 128}, {256, 1}}, {c, {128, 128}}, blocks)
                                     .report.facts)
    if (fact.find("no ring of tensor maps") != std::string::npos) return fact;
  return "";
}

TEST(Ring, TheReportSaysWhyThereIsNone) {
  const char* begin = "ring_product.h:2";  // the line of the load or of the product
  const std::string what = "no ring of tensor maps feeds the product: ";
  EXPECT_EQ(reason({256, 1}, {}), "");
  const std::string pitch = reason({249, 1}, {});
  EXPECT_THAT(pitch, HasSubstr(begin));
  EXPECT_THAT(pitch,
              HasSubstr(what + "argument 1 (View<const bf16, 2>.stride(0)): not known to be a multiple of 16 bytes"));
  EXPECT_THAT(reason({2, 2}, {}),
              HasSubstr(what + "no axis of argument 1 (View<const bf16, 2>) is known to be contiguous"));
  EXPECT_THAT(reason({256, 1}, {128, 128, 48}), HasSubstr("lines must be whole 128 bytes"));
  EXPECT_THAT(reason({256, 1}, {32, 128, 64}),
              HasSubstr("the block is 32 x 128 x 64: it must have 64, 128 or 256 rows"));
  EXPECT_THAT(reason<float>({256, 1}, {}), HasSubstr("f32 by f32 is nothing that units of a warpgroup multiply"));
  EXPECT_THAT(reason({256, 1}, {}, {.debug = true}), HasSubstr(what + "the kernel is compiled for a debugger"));
  EXPECT_THAT(reason({256, 1}, {}, {.num_warps = 4}), HasSubstr("num_warps is 4, blocks of so many rows need 8"));
  EXPECT_THAT(reason({256, 1}, {}, {.max_registers = 128}), HasSubstr("max_registers is 128"));
}

TEST(Ring, TheAssemblerTakesItWithoutSpilling) {
  const auto tool = kiln::test::ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  for (const Blocks& b : {Blocks{128, 256, 64}, {256, 128, 64}, {64, 256, 64}, {128, 128, 64}}) {
    const kiln::test::Assembly a = kiln::test::assemble(*tool, ptx_of("sm_90a", {256, 1}, b), "sm_90a");
    EXPECT_TRUE(a.accepted) << a.log;
    EXPECT_THAT(a.log, HasSubstr("0 bytes stack frame, 0 bytes spill stores")) << b.m << "x" << b.n;
    for (const char* trouble : {"C75", "C76", "warning"})  // serialised products; ignored setmaxnreg
      EXPECT_THAT(a.log, Not(HasSubstr(trouble))) << b.m << "x" << b.n;
  }
}

}  // namespace

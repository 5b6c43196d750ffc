// Products in loops on targets without a ring of other warps: operands are copied to shared memory while earlier trips
// multiply (cp.async). Every type, direction, ragged shape and number of trips, against f64.
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
#include "tests/support/expect_error.h"
#include "tests/support/knob.h"
#include "tests/support/ptxas.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::numbers;
using kiln::test::real;
using kiln::test::Stored;
using kiln::test::stored;
using ::testing::HasSubstr;
using ::testing::Not;

struct Blocks {
  int m = 64, n = 64, k = 32;
  Precision precision = Precision::exact;
  int promote = 0;
};

template <class A, class B, class C, class S>
constinit auto matmul = kernel("matmul", [](View<const A, 2> a, View<const B, 2> b, View<C, 2> c, Tune<Blocks> t) {
  Scalar m = program_id(0) * t.m, n = program_id(1) * t.n;
  Tile acc = zeros(dtype_of<S>, {t.m, t.n});
  for (auto k : range(0, a.size(1), t.k))
    acc = dot(a.load({m, k}, {t.m, t.k}), b.load({k, n}, {t.k, t.n}), acc, {t.precision, t.promote});
  c.store({m, n}, acc.template cast<C>());
});

/// The targets whose threads copy for themselves.
const std::vector<Device>& targets() {
  static const std::vector<Device> all = [] {
    std::vector<Device> list;
    for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_100a", "sm_120a"}) list.push_back(Device::simulator(arch));
    return list;
  }();
  return all;
}

/// One of each kind of units.
const std::vector<Device>& few_targets() {
  static const std::vector<Device> few{targets()[0], targets()[2], targets()[4]};
  return few;
}

struct Case {
  int m, n, k;
  Blocks blocks = {};
  bool a_columns = false, b_columns = false;
  int warps = 0;
};

template <class A, class B, class C, class S = float>
void expect_product(const Device& d, const Case& x, double relative) {
  const auto a = numbers<A>(std::size_t(x.m * x.k), 1);
  const auto b = numbers<B>(std::size_t(x.k * x.n), 2);
  const Stored<A> sa = stored(a, x.m, x.k, x.a_columns);
  const Stored<B> sb = stored(b, x.k, x.n, x.b_columns);
  Buffer<A> da = buffer_of(d, sa.memory);
  Buffer<B> db = buffer_of(d, sb.memory);
  Buffer<C> dc(d, std::size_t(x.m * x.n));
  dc.fill_bytes(0xff);
  const Stream s(d);
  const Grid grid{(x.m + x.blocks.m - 1) / x.blocks.m, (x.n + x.blocks.n - 1) / x.blocks.n};
  matmul<A, B, C, S>.with({.num_warps = x.warps}).launch(s, grid, {da, {x.m, x.k}, sa.strides()}, {db, {x.k, x.n}, sb.strides()}, {dc, {x.m, x.n}}, x.blocks);
  s.synchronize();
  const std::vector<C> got = dc.to_vector();
  for (int i = 0; i < x.m; ++i)
    for (int j = 0; j < x.n; ++j) {
      double want = 0, magnitude = 0;
      for (int k = 0; k < x.k; ++k) {
        const double p = real(a[std::size_t(i * x.k + k)]) * real(b[std::size_t(k * x.n + j)]);
        want += p;
        magnitude += std::abs(p);
      }
      ASSERT_NEAR(real(got[std::size_t(i * x.n + j)]), want, relative * magnitude)
          << d.name() << " " << x.m << "x" << x.n << "x" << x.k << " at " << i << ", " << j << ", columns "
          << x.a_columns << x.b_columns;
    }
}

constexpr double kSums = 0x1p-14;

// Each number of trips around that of the slots, from none on.
TEST(Skew, AnyNumberOfTrips) {
  for (const Device& d : targets())
    for (int k : {16, 32, 48, 64, 96, 128, 144, 160, 400}) expect_product<bf16, bf16, float>(d, {64, 64, k}, kSums);
}

// Sizes that are a multiple of nothing keep one operand or both from being copied; no pair of them is left out.
TEST(Skew, AwkwardShapes) {
  constexpr int kSizes[] = {1, 2, 7, 63, 65, 127};
  for (const Device& d : targets())
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j) {
        expect_product<bf16, bf16, float>(d, {kSizes[i], kSizes[j], kSizes[(i + j) % 6]}, kSums);
        expect_product<f16, f16, float>(d, {kSizes[i], 16 * (j + 1), kSizes[(i + j) % 6]}, kSums);
        expect_product<bf16, bf16, float>(d, {kSizes[i], kSizes[j], 16 * ((i + j) % 6 + 1)}, kSums);
        expect_product<f16, f16, float>(d, {kSizes[i], kSizes[j], 16 * (j + 1), {}, false, true}, kSums);
      }
}

TEST(Skew, OperandsOfEitherDirection) {
  for (const Device& d : few_targets())
    for (int direction = 0; direction < 4; ++direction)
      for (const Blocks& b : {Blocks{128, 128, 32}, {64, 64, 64}, {128, 64, 16}, {32, 16, 48}, {96, 48, 32}})
        expect_product<f16, f16, float>(d, {144, 160, 176, b, direction % 2 == 1, direction > 1}, kSums);
}

TEST(Skew, EveryType) {
  for (const Device& d : few_targets())
    for (int direction : {0, 2, 3}) {
      Case c{80, 96, 144, {64, 64, 64}, direction % 2 == 1, direction > 1};
      expect_product<std::int8_t, std::int8_t, std::int32_t, std::int32_t>(d, c, 0);
      expect_product<std::uint8_t, std::int8_t, std::int32_t, std::int32_t>(d, c, 0);
      expect_product<f8e4m3, f8e5m2, float>(d, c, 0x1p-12);
      expect_product<bf16, f16, float>(d, c, kSums);
      expect_product<f8e4m3, bf16, float>(d, c, kSums);
      expect_product<double, double, double, double>(d, c, 0x1p-44);
      c.blocks.precision = Precision::tf32;
      expect_product<float, float, float>(d, c, 0x1p-9);
      c.blocks.precision = Precision::tf32x3;
      expect_product<float, float, float>(d, c, 0x1p-14);
      c.blocks.precision = Precision::exact;
      expect_product<float, float, float>(d, c, 0x1p-14);
    }
}

TEST(Skew, SumsArePromoted) {
  for (const Device& d : targets())
    expect_product<f8e4m3, f8e4m3, float>(d, {64, 64, 304, {64, 64, 64, Precision::exact, 32}, false, true}, 0x1p-12);
}

TEST(Skew, AnyNumberOfWarps) {
  for (const Device& d : few_targets())
    for (int warps : {1, 2, 4, 8, 16})
      for (const Blocks& b : {Blocks{64, 64, 32}, {16, 16, 32}, {128, 32, 16}})
        expect_product<bf16, bf16, float>(d, {80, 80, 112, b, false, warps % 4 == 0, warps}, kSums);
}

// On a target of tensor maps, too, where its ring does not take the blocks: no 64 rows, no whole lines.
TEST(Skew, WhatTheOtherRingDoesNotTake) {
  const Device d = Device::simulator("sm_90a");
  for (const Blocks& b : {Blocks{32, 128, 64}, {128, 128, 48}, {64, 64, 32}})
    for (bool columns : {false, true}) expect_product<bf16, bf16, float>(d, {144, 160, 208, b, false, columns}, kSums);
}

TEST(Skew, EverySchedule) {
  for (const char* schedule : {"late", "early", "random:1", "random:2"}) {
    const kiln::test::Knob set("KILN_SIM_SCHEDULE", schedule);
    for (const char* arch : {"sm_80", "sm_120a"}) {
      const Device d = Device::simulator(arch);
      expect_product<bf16, bf16, float>(d, {100, 144, 336, {128, 128, 32}}, kSums);
      expect_product<bf16, bf16, float>(d, {100, 144, 336, {64, 64, 64}, true, true}, kSums);
    }
  }
}

constinit auto rounds =
    kernel("rounds", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c, View<float, 2> e, Int count) {
      Scalar m = program_id(0) * 64;
      Tile sum = zeros(DType::f32, {64, 64}), weighted = zeros(DType::f32, {64, 64});
      for (auto round : range(0, count))
        for (auto k : range(0, a.size(1), 32)) {
          Tile x = a.load({m, k}, {64, 32}), y = b.load({k, 0}, {32, 64});
          sum = dot(x, y, sum);
          weighted = dot(x, y, weighted * 0.5f + round.cast(DType::f32));
        }
      c.store({m, 0}, sum);
      e.store({m, 0}, weighted);
    });

// Two products share their operands, one of them looks at its sums in every trip, and the loop is inside another one.
TEST(Skew, SeveralProductsInNestedLoops) {
  constexpr int kM = 100, kK = 144, kRounds = 3;
  const auto a = numbers<bf16>(kM * kK, 1), b = numbers<bf16>(kK * 64, 2);
  for (const Device& d : targets()) {
    Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b);
    Buffer<float> c(d, kM * 64), e(d, kM * 64);
    const Stream s(d);
    rounds.launch(s, 2, {x, {kM, kK}}, {y, {kK, 64}}, {c, {kM, 64}}, {e, {kM, 64}}, kRounds);
    s.synchronize();
    const auto sums = c.to_vector(), weighted = e.to_vector();
    for (int i = 0; i < kM; ++i)
      for (int j = 0; j < 64; ++j) {
        double sum = 0, half = 0;
        for (int round = 0; round < kRounds; ++round)
          for (int k = 0; k < kK; k += 32) {
            double p = 0;
            for (int l = k; l < std::min(k + 32, kK); ++l)
              p += real(a[std::size_t(i * kK + l)]) * real(b[std::size_t(l * 64 + j)]);
            sum += p;
            half = half / 2 + round + p;
          }
        ASSERT_NEAR(sums[std::size_t(i * 64 + j)], sum, 0.05) << d.name();
        ASSERT_NEAR(weighted[std::size_t(i * 64 + j)], half, 0.05) << d.name();
      }
  }
}

constinit auto scores =
    kernel("scores", [](View<const f16, 2> q, View<const f16, 2> k, View<const f16, 2> v, View<float, 2> o) {
      Scalar m = program_id(0) * 64;
      Tile x = q.load({m, 0}, {64, 64}), sum = zeros(DType::f32, {64, 64});
      for (auto j : range(0, k.size(0), 32)) {
        Tile p = dot(x, trans(k.load({j, 0}, {32, 64})));
        sum = dot(maximum(p, 0.f).cast(DType::f16), v.load({j, 0}, {32, 64}), sum);
      }
      o.store({m, 0}, sum);
    });

// The result of one product is an operand of the next: that one goes through shared memory in its trip, those that are
// loaded through the ring.
TEST(Skew, ChainedProducts) {
  constexpr int kM = 100, kT = 112;
  const auto q = numbers<f16>(kM * 64, 1), k = numbers<f16>(kT * 64, 2), v = numbers<f16>(kT * 64, 3);
  for (const Device& d : targets()) {
    Buffer<f16> x = buffer_of(d, q), y = buffer_of(d, k), z = buffer_of(d, v);
    Buffer<float> o(d, kM * 64);
    const Stream s(d);
    scores.launch(s, 2, {x, {kM, 64}}, {y, {kT, 64}}, {z, {kT, 64}}, {o, {kM, 64}});
    s.synchronize();
    const auto got = o.to_vector();
    for (int i = 0; i < kM; ++i) {
      std::vector<double> want(64, 0.0), magnitude(64, 0.0);
      for (int t = 0; t < kT; ++t) {
        double p = 0;
        for (int l = 0; l < 64; ++l) p += real(q[std::size_t(i * 64 + l)]) * real(k[std::size_t(t * 64 + l)]);
        p = std::max(p, 0.0);
        for (std::size_t j = 0; j < 64; ++j) {
          want[j] += p * real(v[std::size_t(t) * 64 + j]);
          magnitude[j] += std::abs(p * real(v[std::size_t(t) * 64 + j]));
        }
      }
      for (std::size_t j = 0; j < 64; ++j)
        ASSERT_NEAR(got[std::size_t(i) * 64 + j], want[j], 0x1p-9 * magnitude[j]) << d.name();
    }
    EXPECT_THAT(scores.image(d, {x, {kM, 64}}, {y, {kT, 64}}, {z, {kT, 64}}, {o, {kM, 64}}).ptx,
                HasSubstr("cp.async.cg"));
  }
}

constinit auto by_pointers = kernel("by_pointers", [](In<f16> a, In<f16> b, Out<float> o, Int K) {
  Tile i = expand(arange(64), 1), j = arange(64), sum = zeros(DType::f32, {64, 64});
  for (auto k : range(0, K, 32)) {
    Tile depth = arange(32) + k;
    Tile x = load(a + (i * K + depth), depth < K);
    Tile y = load(b + (expand(depth, 1) * 64 + j), expand(depth, 1) < K);
    sum = dot(x, y, sum);
  }
  store(o + (i * 64 + j), sum);
});

// Loads of plain pointers with masks; memory beyond the bound holds NaN.
TEST(Skew, PointersWithMasks) {
  for (const Device& d : targets())
    for (int K : {16, 48, 160}) {
      auto a = numbers<f16>(std::size_t(64 * K), 1), b = numbers<f16>(std::size_t(K * 64), 2);
      std::vector<float> want(64 * 64, 0.f);
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 64; ++j)
          for (int k = 0; k < K; ++k)
            want[std::size_t(i * 64 + j)] += float(a[std::size_t(i * K + k)]) * float(b[std::size_t(k * 64 + j)]);
      a.resize(a.size() + 64, f16(std::numeric_limits<float>::quiet_NaN()));
      b.resize(b.size() + 64 * 64, f16(std::numeric_limits<float>::quiet_NaN()));
      Buffer<f16> x = buffer_of(d, a), y = buffer_of(d, b);
      Buffer<float> o(d, 64 * 64);
      const Stream s(d);
      by_pointers.launch(s, 1, x, y, o, K);
      s.synchronize();
      const auto got = o.to_vector();
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 0.02) << d.name() << " " << K;
      EXPECT_THAT(by_pointers.image(d, x, y, o, K).ptx, HasSubstr("cp.async.cg")) << K;
    }
}

constinit auto in_place = kernel("in_place", [](InOut<f16> a, In<f16> b, Int K) {
  Tile i = expand(arange(16), 1), j = arange(16);
  for (auto k : range(0, K, 16)) {
    Tile x = load(a + (i * K + (arange(16) + k)));
    Tile y = load(b + (expand(arange(16) + k, 1) * 16 + j));
    store(a + (i * K + (j + k)), dot(x, y).cast(DType::f16));
  }
});

// What the loop writes is not read ahead of it.
TEST(Skew, MemoryThatTheLoopWrites) {
  constexpr int K = 64;
  const auto a = numbers<f16>(16 * K, 1), b = numbers<f16>(K * 16, 2);
  for (const Device& d : targets()) {
    Buffer<f16> x = buffer_of(d, a), y = buffer_of(d, b);
    const Stream s(d);
    in_place.launch(s, 1, x, y, K);
    in_place.launch(s, 1, x, x, K);  // both operands are what is written
    s.synchronize();
    Buffer<f16> z = buffer_of(d, a);
    in_place.launch(s, 1, z, y, K);
    s.synchronize();
    const auto got = z.to_vector();
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < K; k += 16)
        for (int j = 0; j < 16; ++j) {
          double want = 0;
          for (int l = 0; l < 16; ++l)
            want += real(a[std::size_t(i * K + k + l)]) * real(b[std::size_t((k + l) * 16 + j)]);
          ASSERT_NEAR(real(got[std::size_t(i * K + k + j)]), want, 0.05) << d.name();
        }
  }
}

// --- which way a program goes ----------------------------------------------------------------------------------------

std::string ptx_of(const char* arch, Blocks blocks, int warps = 0, bool a_columns = false, bool b_columns = false) {
  const Device d = Device::simulator(arch);
  Buffer<bf16> a(d, 256 * 256), b(d, 256 * 256), c(d, 256 * 256);
  const auto strides = [](bool columns) {
    return columns ? std::array<std::int64_t, 2>{1, 256} : std::array<std::int64_t, 2>{256, 1};
  };
  return matmul<bf16, bf16, bf16, float>.with({.num_warps = warps})
      .image(d, {a, {256, 256}, strides(a_columns)}, {b, {256, 256}, strides(b_columns)}, {c, {256, 256}}, blocks)
      .ptx;
}

template <class T, class S>
void expect_no_conflicts(const Device& d, const Blocks& blocks, bool a_columns, bool b_columns) {
  const std::uint64_t before = d.counters().bank_conflicts;
  Buffer<T> x(d, 128 * 128), y(d, 128 * 128);
  Buffer<S> c(d, 128 * 128);
  x.fill_bytes(0), y.fill_bytes(0);
  const auto strides = [](bool columns) {
    return columns ? std::array<std::int64_t, 2>{1, 128} : std::array<std::int64_t, 2>{128, 1};
  };
  const Stream s(d);
  matmul<T, T, S, S>.launch(s, Grid{128 / blocks.m, 128 / blocks.n}, {x, {128, 128}, strides(a_columns)},
                            {y, {128, 128}, strides(b_columns)}, {c, {128, 128}}, blocks);
  s.synchronize();
  EXPECT_EQ(d.counters().bank_conflicts, before)
      << d.name() << " " << a_columns << b_columns << " " << blocks.m << "x" << blocks.n << "x" << blocks.k;
}

TEST(Skew, NoBankConflicts) {
  for (const Device& d : few_targets())
    for (int direction = 0; direction < 4; ++direction) {
      const bool a = direction % 2 == 1, b = direction > 1;
      for (const Blocks& blocks : {Blocks{128, 128, 32}, {128, 128, 64}, {64, 128, 64}})
        expect_no_conflicts<bf16, float>(d, blocks, a, b);
      expect_no_conflicts<float, float>(d, {64, 64, 32, Precision::tf32}, a, b);
      if (d.target() == "sm_80") expect_no_conflicts<double, double>(d, {64, 64, 16}, a, b);
    }
  expect_no_conflicts<std::int8_t, std::int32_t>(targets()[0], {64, 64, 64}, false, true);
}

TEST(Skew, TheAssemblerTakesItWithoutSpilling) {
  const auto tool = kiln::test::ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_100a", "sm_120a"})
    for (int warps : {4, 8})
      for (const Blocks& b : {Blocks{128, 128, 32}, {128, 128, 64}})
        for (int direction : {0, 2}) {
          const std::string ptx = ptx_of(arch, b, warps, false, direction == 2);
          EXPECT_THAT(ptx, HasSubstr("cp.async.cg.shared.global"));
          EXPECT_THAT(ptx, HasSubstr("ldmatrix"));
          const kiln::test::Assembly a = kiln::test::assemble(*tool, ptx, arch);
          EXPECT_TRUE(a.accepted) << a.log;
          EXPECT_THAT(a.log, HasSubstr("0 bytes stack frame, 0 bytes spill stores"))
              << arch << " " << warps << " " << b.k << a.log;
        }
}

// --- hints -----------------------------------------------------------------------------------------------------------

struct Hints {
  int stages = 0, k = 32, rows = 64;
  bool roles = false;
};
constinit auto hinted =
    kernel("hinted", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c, Tune<Hints> t) {
      Tile sum = zeros(DType::f32, {t.rows, 64});
      const auto trips = [&] { return range(0, a.size(1), t.k); };
      for (auto k : t.roles ? trips().warp_specialize() : t.stages > 0 ? trips().stages(t.stages) : trips())
        sum = dot(a.load({0, k}, {t.rows, t.k}), b.load({k, 0}, {t.k, 64}), sum);
      c.store({0, 0}, sum);
    });

std::string hinted_ptx(const char* arch, Hints hints, CompileOptions options = {}) {
  const Device d = Device::simulator(arch);
  Buffer<bf16> a(d, 64 * 256), b(d, 256 * 64);
  Buffer<float> c(d, 64 * 64);
  return hinted.with(options).image(d, {a, {64, 256}}, {b, {256, 64}}, {c, {64, 64}}, hints).ptx;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(SkewHints, AsManySlotsAsWanted) {
  EXPECT_THAT(hinted_ptx("sm_80", {.stages = 1}), Not(HasSubstr("cp.async")));
  EXPECT_THAT(hinted_ptx("sm_80", {}, {.stages = 1}), Not(HasSubstr("cp.async")));
  for (int n : {2, 3, 6, 9}) {
    const std::string waits = "cp.async.wait_group " + std::to_string(n - 2) + ";";
    EXPECT_THAT(hinted_ptx("sm_80", {.stages = n}), HasSubstr(waits));
    EXPECT_THAT(hinted_ptx("sm_120a", {}, {.stages = n}), HasSubstr(waits));
    EXPECT_THAT(hinted_ptx("sm_80", {.stages = n}, {.stages = 4}), HasSubstr(waits));  // the loop's own counts
    EXPECT_EQ(count(hinted_ptx("sm_90a", {.stages = n, .k = 64}), "mbarrier.init"), 2 * n);
  }
  EXPECT_THAT(hinted_ptx("sm_90a", {.k = 64, .roles = true}), HasSubstr("wgmma"));
}

TEST(SkewHints, ResultsDoNotDependOnThem) {
  constexpr int kK = 176;
  const auto a = numbers<bf16>(64 * kK, 1), b = numbers<bf16>(kK * 64, 2);
  for (const char* arch : {"sm_80", "sm_90a"})
    for (int k : {16, 64}) {
      const Device d = Device::simulator(arch);
      std::vector<float> first;
      for (int stages : {0, 1, 2, 3, 7}) {
        Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b);
        Buffer<float> c(d, 64 * 64);
        const Stream s(d);
        hinted.launch(s, 1, {x, {64, kK}}, {y, {kK, 64}}, {c, {64, 64}}, {.stages = stages, .k = k});
        s.synchronize();
        if (first.empty()) first = c.to_vector();
        const auto got = c.to_vector();
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], first[i], 0.02) << arch << " " << stages;
      }
    }
}

std::string refusal(const char* arch, Hints hints, CompileOptions options = {}) {
  return kiln::test::error_of<UserError>([&] { (void)hinted_ptx(arch, hints, options); });
}

TEST(SkewHints, ThatCannotBeMet) {
  EXPECT_THAT(refusal("sm_80", {.roles = true}),
              HasSubstr("hinted: warp_specialize() cannot be met for this loop: sm_80 has no units of a warpgroup"));
  EXPECT_THAT(refusal("sm_90a", {.k = 64, .rows = 32, .roles = true}),
              HasSubstr("with 4 warps no product of it takes blocks"));
  EXPECT_THAT(refusal("sm_90a", {.k = 64, .roles = true}, {.max_registers = 128}),
              HasSubstr("max_registers is 128, must be left out"));
  EXPECT_THAT(refusal("sm_89", {.stages = 40}),
              HasSubstr("hinted: stages(40) cannot be met for this loop: 40 slots of 8192 bytes"));
  EXPECT_THAT(refusal("sm_90a", {.stages = 40, .k = 64}),
              HasSubstr("hinted: stages(40): as many slots of 16384 bytes"));
  EXPECT_THAT(refusal("sm_80", {.stages = 3, .k = 8}),
              HasSubstr("stages(3) cannot be met for this loop: positions along k are no multiple of 16"));
  EXPECT_THAT(refusal("sm_80", {}, {.stages = 65}), HasSubstr("hinted: stages is 65, must be 0 to 64"));
  EXPECT_THAT(refusal("sm_80", {.k = 8}, {.stages = 3}),
              HasSubstr("hinted: stages is 3, but no loop of the kernel has a ring: positions along k"));
  EXPECT_THAT(refusal("sm_80", {.stages = 3, .k = 8}), HasSubstr("skew_test.cpp:"));
}

constinit auto summing = kernel("summing", [](In<float> x, Out<float> y, Int n) {
  Tile sum = zeros(DType::f32, {128});
  for (auto i : range(0, n, 128).stages(2)) sum = sum + load(x + (arange(128) + i));
  store(y + arange(128), sum);
});

TEST(SkewHints, LoopsWithoutProductsHaveNoRing) {
  const Device d = Device::simulator("sm_80");
  Buffer<float> x(d, 256), y(d, 128);
  EXPECT_THAT(kiln::test::error_of<UserError>([&] { (void)summing.image(d, x, y, 256); }),
              HasSubstr("summing: stages(2) cannot be met for this loop: no product stands in it"));
}

}  // namespace

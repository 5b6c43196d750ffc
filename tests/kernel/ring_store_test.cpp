// Results of a program with a ring on their way to memory: through shared memory and a tensor map, or as vectors where
// the array can be no map. Several results and fused epilogues, against the interpreter, whose bits they must equal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/kernel/operands.h"
#include "tests/support/knob.h"
#include "tests/support/ptxas.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::whole_numbers;
using ::testing::HasSubstr;
using ::testing::Not;

struct Blocks {
  int m = 128, n = 128;
};
constexpr int kK = 96;

// relu(a b + bias + residual) in one type, and the sums before in another.
template <class Y, class Z>
constinit auto fused = kernel("fused", [](View<const bf16, 2> a, View<const bf16, 2> b, In<float> bias,
                                          View<const bf16, 2> residual, View<Y, 2> y, View<Z, 2> z, Tune<Blocks> t) {
  Scalar m = program_id(0) * t.m, n = program_id(1) * t.n;
  Tile sum = zeros(f32, {t.m, t.n});
  for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {t.m, 64}), b.load({k, n}, {64, t.n}), sum);
  Tile columns = n + arange(t.n);
  Tile x = sum + expand(load(bias + columns, columns < b.size(1)), 0) + residual.load({m, n}, {t.m, t.n}).cast(f32);
  y.store({m, n}, relu(x).template cast<Y>());
  z.store({m, n}, sum.template cast<Z>());
});

/// An array of rows `pitch` elements apart, of which the first is `offset` elements behind the start of the memory.
struct Place {
  std::int64_t pitch, offset;
};

template <class T>
auto behind(const Buffer<T>& b, std::int64_t elements) {
  const std::size_t n = std::size_t(elements);
  return device_ptr<T>(b.ptr() + n * sizeof(T), b.size() - n);
}

template <class Y, class Z>
std::pair<std::vector<Y>, std::vector<Z>> run_fused(const Device& d, int m, int n, Blocks blocks, Place yp, Place zp) {
  const auto a = whole_numbers(std::size_t(m * kK), 1), b = whole_numbers(std::size_t(kK * 264), 2),
             r = whole_numbers(std::size_t(m * n), 3);
  std::vector<float> bias(std::size_t(n), 1.f);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = float(i % 5);
  Buffer<bf16> da = buffer_of(d, a), db = buffer_of(d, b), dr = buffer_of(d, r);
  Buffer<float> dbias = buffer_of(d, bias);
  Buffer<Y> y(d, std::size_t(m * yp.pitch + yp.offset));
  Buffer<Z> z(d, std::size_t(m * zp.pitch + zp.offset));
  y.fill_bytes(0x3c);
  z.fill_bytes(0x3c);
  const Stream s(d);
  const Grid grid{(m + blocks.m - 1) / blocks.m, (n + blocks.n - 1) / blocks.n};
  fused<Y, Z>.launch(s, grid, {da, {m, kK}}, {db, {kK, n}, {264, 1}}, dbias, {dr, {m, n}},
                     {behind(y, yp.offset), {m, n}, {yp.pitch, 1}}, {behind(z, zp.offset), {m, n}, {zp.pitch, 1}},
                     blocks);
  s.synchronize();
  return {y.to_vector(), z.to_vector()};
}

template <class Y, class Z>
void expect_as_interpreted(int m, int n, Blocks blocks, Place y, Place z) {
  const auto want = run_fused<Y, Z>(kiln::test::devices()[0], m, n, blocks, y, z);
  for (const Device& d : kiln::test::devices()) {
    if (d.kind() == DeviceKind::Interpreter) continue;
    const std::uint64_t before = d.counters().bank_conflicts;
    const auto got = run_fused<Y, Z>(d, m, n, blocks, y, z);
    const auto same = [](const auto& p, const auto& q) {
      return std::memcmp(p.data(), q.data(), p.size() * sizeof p[0]) == 0;
    };
    EXPECT_TRUE(same(got.first, want.first)) << d.name() << " " << m << "x" << n;
    EXPECT_TRUE(same(got.second, want.second)) << d.name() << " " << m << "x" << n;
    if (d.kind() == DeviceKind::Simulator) {
      EXPECT_EQ(d.counters().bank_conflicts, before) << m << "x" << n;
    }
  }
}

TEST(RingStore, SeveralResultsOfPartialTiles) {
  for (const Blocks& b : {Blocks{128, 128}, {64, 64}, {256, 64}, {128, 256}}) {
    expect_as_interpreted<bf16, float>(150, 200, b, {208, 0}, {208, 0});
    expect_as_interpreted<f16, bf16>(300, 264, b, {264, 0}, {264, 0});
  }
  expect_as_interpreted<float, f8e4m3>(130, 160, {128, 128}, {160, 0}, {160, 0});
  expect_as_interpreted<f8e5m2, float>(1, 1, {64, 128}, {16, 0}, {16, 0});
}

// The copy engine writes whole units of 16 bytes, also where the array ends within one.
TEST(RingStore, NothingIsWrittenBehindRows) {
  for (int n : {1, 7, 201, 263}) {
    expect_as_interpreted<bf16, float>(150, n, {128, 128}, {264, 0}, {264, 0});
    expect_as_interpreted<f8e4m3, f16>(70, n, {64, 128}, {272, 0}, {264, 0});
  }
}

constinit auto beyond = kernel("beyond", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> y, Int step) {
  Scalar m = program_id(0) * 64, n = program_id(1) * 64 * step;
  Tile sum = zeros(f32, {64, 64});
  for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {64, 64}), b.load({k, 0}, {64, 64}), sum);
  y.store({m, n}, sum);
});

// Programs of which nothing lies inside, near and far, and those whose columns may be negative.
TEST(RingStore, BlocksOutsideAreLeftOut) {
  const auto a = whole_numbers(64 * 64, 1), b = whole_numbers(64 * 64, 2);
  for (const std::int64_t step : {std::int64_t(1), std::int64_t(1) << 24, std::int64_t(1) << 40, std::int64_t(-1)}) {
    std::vector<float> want;
    for (const Device& d : kiln::test::devices()) {
      Buffer<bf16> x = buffer_of(d, a), w = buffer_of(d, b);
      Buffer<float> y(d, 64 * 64);
      y.fill_bytes(0x3c);
      const Stream s(d);
      beyond.launch(s, Grid{3, 5}, {x, {64, 64}}, {w, {64, 64}}, {y, {64, 64}}, step);
      s.synchronize();
      const auto got = y.to_vector();
      if (want.empty()) want = got;
      EXPECT_EQ(got, want) << d.name() << " " << step;
    }
  }
}

// Rows at no multiple of 16 bytes, or none of them aligned: elements at the edges of what vectors hold.
TEST(RingStore, ArraysThatNoTensorMapTakes) {
  expect_as_interpreted<bf16, float>(150, 200, {128, 128}, {203, 0}, {201, 0});
  expect_as_interpreted<bf16, bf16>(70, 130, {64, 128}, {136, 3}, {133, 5});
  expect_as_interpreted<f8e4m3, float>(70, 130, {64, 128}, {144, 1}, {136, 3});
}

TEST(RingStore, EveryScheduleOfTheSimulator) {
  const auto want = run_fused<bf16, float>(kiln::test::devices()[0], 200, 200, {128, 128}, {200, 0}, {203, 0});
  for (const char* schedule : {"late", "early", "random:1", "random:2", "random:3"}) {
    const kiln::test::Knob set("KILN_SIM_SCHEDULE", schedule);
    const auto got = run_fused<bf16, float>(Device::simulator("sm_90a"), 200, 200, {128, 128}, {200, 0}, {203, 0});
    EXPECT_EQ(std::memcmp(got.first.data(), want.first.data(), 2 * want.first.size()), 0) << schedule;
    EXPECT_EQ(got.second, want.second) << schedule;
  }
}

constinit auto in_place =
    kernel("in_place", [](View<const bf16, 2> a, View<const bf16, 2> b, View<const bf16, 2> residual, View<bf16, 2> y) {
      Scalar m = program_id(0) * 128, n = program_id(1) * 128;
      Tile sum = zeros(f32, {128, 128});
      for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {128, 64}), b.load({k, n}, {64, 128}), sum);
      y.store({m, n}, (sum + residual.load({m, n}, {128, 128}).cast(f32)).cast<bf16>());
    });

TEST(RingStore, TheResidualIsTheResult) {
  constexpr int kM = 200, kN = 264;
  const auto a = whole_numbers(kM * kK, 1), b = whole_numbers(kK * kN, 2), r = whole_numbers(kM * kN, 3);
  std::vector<bf16> want;
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> da = buffer_of(d, a), db = buffer_of(d, b), y = buffer_of(d, r);
    const Stream s(d);
    in_place.launch(s, Grid{2, 3}, {da, {kM, kK}}, {db, {kK, kN}}, {y, {kM, kN}}, {y, {kM, kN}});
    s.synchronize();
    const std::vector<bf16> got = y.to_vector();
    if (want.empty()) want = got;
    EXPECT_EQ(std::memcmp(got.data(), want.data(), 2 * want.size()), 0) << d.name();
  }
}

constinit auto written_and_read =
    kernel("written_and_read", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> y, View<float, 2> z) {
      Scalar m = program_id(0) * 64;
      Tile sum = zeros(f32, {64, 128});
      for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {64, 64}), b.load({k, 0}, {64, 128}), sum);
      y.store({m, 0}, sum);
      Tile back = y.load({m, 1}, {64, 128});  // what other threads have written
      y.store({m, 0}, sum * 2.f);
      z.store({m, 0}, back);
    });

TEST(RingStore, WhatTheProgramReadsAgain) {
  const auto a = whole_numbers(100 * kK, 1), b = whole_numbers(kK * 128, 2);
  std::vector<float> want_y, want_z;
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> da = buffer_of(d, a), db = buffer_of(d, b);
    Buffer<float> y(d, 100 * 128), z(d, 100 * 128);
    const Stream s(d);
    written_and_read.launch(s, 2, {da, {100, kK}}, {db, {kK, 128}}, {y, {100, 128}}, {z, {100, 128}});
    s.synchronize();
    if (want_y.empty()) {
      want_y = y.to_vector();
      want_z = z.to_vector();
    }
    EXPECT_EQ(y.to_vector(), want_y) << d.name();
    EXPECT_EQ(z.to_vector(), want_z) << d.name();
  }
}

// --- which way a result goes -----------------------------------------------------------------------------------------

template <class Y, class Z>
std::string ptx_of(Place y, Place z, Blocks blocks = {}) {
  const Device d = Device::simulator("sm_90a");
  Buffer<bf16> a(d, 512 * 512);
  Buffer<float> bias(d, 512);
  Buffer<Y> dy(d, 512 * 512);
  Buffer<Z> dz(d, 512 * 512);
  return fused<Y, Z>.image(d, {a, {256, kK}}, {a, {kK, 256}}, bias, {a, {256, 256}},
                           {behind(dy, y.offset), {256, 256}, {y.pitch, 1}},
                           {behind(dz, z.offset), {256, 256}, {z.pitch, 1}}, blocks).ptx;
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(RingStore, GoesByATensorMapWhereItCan) {
  const std::string both = ptx_of<bf16, float>({256, 0}, {256, 0});
  EXPECT_EQ(count(both, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"), 2u + 4u);  // a line of 64 rows each
  EXPECT_EQ(count(both, "stmatrix.sync.aligned.m8n8.x4.shared.b16"), 8u);
  EXPECT_THAT(both, Not(HasSubstr("st.global")));
  EXPECT_THAT(both, HasSubstr("cp.async.bulk.wait_group.read 0;"));
  const std::string one = ptx_of<bf16, float>({256, 0}, {257, 0});  // rows of z are aligned to 4 bytes
  EXPECT_EQ(count(one, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"), 2u);
  EXPECT_THAT(one, HasSubstr("st.global.v4.b32"));
}

// 64 sums a thread leave registers for a row of biases and a block of residuals, 128 for the biases alone.
TEST(RingStore, OperandsOfTheEndAreLoadedBeforeTheLoop) {
  const auto early_and_late = [](Blocks blocks) {
    const std::string text = ptx_of<bf16, float>({256, 0}, {256, 0}, blocks);
    const std::size_t early = count(text.substr(0, text.find("wgmma.mma_async")), "ld.global");
    return std::pair{early, count(text, "ld.global") - early};
  };
  EXPECT_EQ(early_and_late({128, 128}), (std::pair<std::size_t, std::size_t>{16 + 32, 0}));  // pairs of columns
  EXPECT_EQ(early_and_late({128, 256}), (std::pair<std::size_t, std::size_t>{32, 64}));
}

TEST(RingStore, TheAssemblerTakesItWithoutSpilling) {
  const auto tool = kiln::test::ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  const std::vector<std::string> texts{ptx_of<bf16, bf16>({256, 0}, {256, 0}), ptx_of<bf16, float>({256, 0}, {257, 0}),
                                       ptx_of<f8e4m3, float>({256, 0}, {256, 0}),
                                       ptx_of<bf16, float>({256, 0}, {256, 0}, {64, 128}),
                                       ptx_of<bf16, bf16>({257, 0}, {257, 0})};
  for (const std::string& text : texts) {
    const kiln::test::Assembly a = kiln::test::assemble(*tool, text, "sm_90a");
    EXPECT_TRUE(a.accepted) << a.log;
    EXPECT_THAT(a.log, HasSubstr("0 bytes stack frame, 0 bytes spill stores"));
    for (const char* trouble : {"C75", "C76", "warning"}) EXPECT_THAT(a.log, Not(HasSubstr(trouble)));
  }
}

}  // namespace

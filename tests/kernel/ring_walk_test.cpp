// Programs with a ring that run one after the other on a team, and pairs of blocks that share an operand: more programs
// than run at once, odd numbers of them, every order; against f64 sums of small whole numbers, which are exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
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
using kiln::test::whole_numbers;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Blocks {
  int m = 128, n = 64;
};

// The grid's third axis repeats the product with another factor.
constinit auto matmul =
    kernel("matmul", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 3> c, Tune<Blocks> t) {
      Scalar m = program_id(0) * t.m, n = program_id(1) * t.n;
      Tile sum = zeros(f32, {t.m, t.n});
      for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {t.m, 64}), b.load({k, n}, {64, t.n}), sum);
      c.slice(program_id(2)).store({m, n}, sum * (program_id(2) + 1).cast(f32));
    });

struct Problem {
  int m, n, k;
  Blocks blocks = {};
  int layers = 1;
};

/// The product as every program of the grid stores it.
std::vector<float> run(const Device& d, const Problem& p) {
  const int pitch = (p.n + 7) / 8 * 8, depth = (p.k + 7) / 8 * 8;
  const auto a = whole_numbers(std::size_t(p.m * depth), 1), b = whole_numbers(std::size_t(p.k * pitch), 2);
  Buffer<bf16> da = buffer_of(d, a), db = buffer_of(d, b);
  Buffer<float> c(d, std::size_t(p.layers * p.m * pitch));
  c.fill_bytes(0xff);
  const Stream s(d);
  const Grid grid{(p.m + p.blocks.m - 1) / p.blocks.m, (p.n + p.blocks.n - 1) / p.blocks.n, p.layers};
  matmul.launch(s, grid, {da, {p.m, p.k}, {depth, 1}}, {db, {p.k, p.n}, {pitch, 1}},
                {c, {p.layers, p.m, p.n}, {p.m * pitch, pitch, 1}}, p.blocks);
  s.synchronize();
  return c.to_vector();
}

void expect_product(const Device& d, const Problem& p) {
  const int pitch = (p.n + 7) / 8 * 8, depth = (p.k + 7) / 8 * 8;
  const auto a = whole_numbers(std::size_t(p.m * depth), 1), b = whole_numbers(std::size_t(p.k * pitch), 2);
  std::vector<float> want(std::size_t(p.m * pitch)), x(std::size_t(p.m * depth)), y(std::size_t(p.k * pitch));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(a[i]);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = float(b[i]);
  for (int i = 0; i < p.m; ++i)
    for (int k = 0; k < p.k; ++k)
      for (int j = 0; j < p.n; ++j)
        want[std::size_t(i * pitch + j)] += x[std::size_t(i * depth + k)] * y[std::size_t(k * pitch + j)];
  const std::vector<float> got = run(d, p);
  for (int layer = 0; layer < p.layers; ++layer)
    for (int i = 0; i < p.m; ++i)
      for (int j = 0; j < p.n; ++j)
        ASSERT_EQ(got[std::size_t((layer * p.m + i) * pitch + j)], float(layer + 1) * want[std::size_t(i * pitch + j)])
            << d.name() << " " << p.m << "x" << p.n << "x" << p.k << " at " << layer << ", " << i << ", " << j;
}

TEST(RingWalk, MorePrograms) {
  for (const Device& d : kiln::test::devices()) {
    if (d.kind() == DeviceKind::Interpreter) continue;
    for (const Problem& p : {Problem{2048, 1600, 64}, {130, 9600, 64}, {19200, 128, 64}, {1, 19000, 72}})
      expect_product(d, p);
  }
}

// One, two, three, eleven along the axis of pairs; with layers; and both directions of sharing.
TEST(RingWalk, NeighboursThatAreMissing) {
  for (const Device& d : kiln::test::devices())
    for (const Problem& p : {Problem{128, 64, 200},
                             {256, 192, 64},
                             {300, 200, 130},
                             {1300, 64, 64},
                             {1408, 130, 64},
                             {300, 130, 64, {}, 3},
                             {300, 520, 64, {256, 128}},
                             {200, 300, 64, {256, 128}},
                             {300, 300, 64, {128, 128}},
                             {300, 300, 64, {128, 256}}})
      expect_product(d, p);
}

TEST(RingWalk, EveryScheduleOfTheSimulator) {
  for (const char* schedule : {"late", "early", "random:1", "random:2", "random:3"}) {
    const kiln::test::Knob set("KILN_SIM_SCHEDULE", schedule);
    const Device d = Device::simulator("sm_90a");
    expect_product(d, {1500, 1600, 192});
    expect_product(d, {400, 300, 640, {128, 256}});
    expect_product(d, {300, 520, 640, {256, 128}});
  }
}

constinit auto in_place = kernel("in_place", [](View<const bf16, 2> a, View<const bf16, 2> b, View<bf16, 2> y) {
  Scalar m = program_id(0) * 128, n = program_id(1) * 128;
  Tile sum = zeros(f32, {128, 128});
  for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {128, 64}), b.load({k, n}, {64, 128}), sum);
  y.store({m, n}, (sum + y.load({m, n}, {128, 128}).cast(f32)).cast<bf16>());
});

// A block that keeps its neighbour company must not add twice.
TEST(RingWalk, ResultsAreAddedOnce) {
  constexpr int kM = 1350, kN = 1600, kK = 64;  // eleven rows of blocks, and more blocks than run at once
  const auto a = whole_numbers(kM * kK, 1), b = whole_numbers(kK * kN, 2), r = whole_numbers(kM * kN, 3);
  std::vector<bf16> want;
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> da = buffer_of(d, a), db = buffer_of(d, b), y = buffer_of(d, r);
    const Stream s(d);
    in_place.launch(s, Grid{11, 13}, {da, {kM, kK}}, {db, {kK, kN}}, {y, {kM, kN}});
    s.synchronize();
    const std::vector<bf16> got = y.to_vector();
    if (want.empty()) want = got;
    EXPECT_EQ(std::memcmp(got.data(), want.data(), 2 * want.size()), 0) << d.name();
  }
}

constinit auto counting = kernel("counting", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c) {
  Scalar m = program_id(0) * 128;
  Tile sum = zeros(f32, {128, 64});
  for (auto k : range(0, a.size(1), 64)) sum = dot(a.load({m, k}, {128, 64}), b.load({k, 0}, {64, 64}), sum);
  c.store({m, 0}, sum + num_programs(0).cast(f32));
});

TEST(RingWalk, ProgramsThatAskHowManyTheyAre) {
  for (const Device& d : kiln::test::devices()) {
    Buffer<bf16> a(d, 300 * 64), b(d, 64 * 64);
    Buffer<float> c(d, 300 * 64);
    a.fill_bytes(0);
    b.fill_bytes(0);
    const Stream s(d);
    counting.launch(s, 3, {a, {300, 64}}, {b, {64, 64}}, {c, {300, 64}});
    s.synchronize();
    for (float x : c.to_vector()) ASSERT_EQ(x, 3) << d.name();
  }
}

// --- which programs walk ---------------------------------------------------------------------------------------------

rt::KernelImage image_of(Blocks blocks, CompileOptions options = {}) {
  const Device d = Device::simulator("sm_90a");
  Buffer<bf16> a(d, 256 * 256);
  Buffer<float> c(d, 256 * 256);
  return matmul.with(options).image(d, {a, {256, 256}}, {a, {256, 256}}, {c, {1, 256, 256}}, blocks);
}

TEST(RingWalk, IsInTheLaunchRecipe) {
  const rt::KernelImage two = image_of({128, 128}), one = image_of({64, 128}),
                        alone = image_of({128, 128}, {.cluster = 1});
  EXPECT_EQ(two.recipe().grid, rt::GridRule::Persistent);
  EXPECT_EQ(two.recipe().cluster[0], 2u);
  EXPECT_THAT(two.ptx, HasSubstr("multicast::cluster"));
  EXPECT_THAT(two.ptx, HasSubstr("barrier.cluster.arrive.relaxed.aligned"));
  EXPECT_THAT(two.ptx, Not(HasSubstr("arrive.release.cluster")));
  EXPECT_EQ(one.recipe().grid, rt::GridRule::Identity);
  EXPECT_EQ(alone.recipe().grid, rt::GridRule::Persistent);
  EXPECT_EQ(alone.recipe().cluster[0], 1u);
  EXPECT_THAT(alone.ptx, Not(HasSubstr("multicast::cluster")));
}

TEST(RingWalk, TheReportSaysHowOperandsTravel) {
  const auto facts = [](const CompileOptions& options) { return image_of({128, 128}, options).report.facts; };
  EXPECT_THAT(facts({}), AllOf(Contains(HasSubstr("the two blocks of a cluster run programs beside each other along "
                                                  "axis 0, and bring 16384 bytes that both need by halves")),
                               Contains(HasSubstr("slots of 32768 bytes feeds the product: as many as fit 232448"))));
  EXPECT_THAT(facts({.cluster = 1}), Contains(HasSubstr("each block runs programs of its own: cluster is 1")));
  EXPECT_THAT(facts({.stages = 3}), Contains(HasSubstr("a ring of 3 slots of 32768 bytes feeds the product: as the "
                                                       "kernel or its options ask")));
  EXPECT_THAT(image_of({64, 128}).report.facts, Contains(HasSubstr("blocks of 64 rows run one program each")));
}

TEST(RingWalk, RingsAreSetUpBeforeTheLaunchesBeforeAreAwaited) {
  const std::string text = image_of({128, 128}).ptx;
  const std::size_t init = text.find("fence.mbarrier_init"), wait = text.find("griddepcontrol.wait");
  ASSERT_NE(init, std::string::npos);
  ASSERT_NE(wait, std::string::npos);
  EXPECT_LT(init, wait);
  EXPECT_LT(wait, text.find("cp.async.bulk.tensor"));
  EXPECT_EQ(text.find("griddepcontrol.wait", wait + 1), std::string::npos);
}

TEST(RingWalk, AClusterThatCannotBeIsRefused) {
  EXPECT_THAT(kiln::test::error_of<UserError>([] {
                (void)image_of({64, 128}, {.cluster = 2});
              }),
              HasSubstr("matmul: cluster is 2, but blocks of 64 rows run one program each: it must be 1"));
  EXPECT_THAT(kiln::test::error_of<UserError>([] {
                (void)image_of({128, 128}, {.cluster = 4});
              }),
              HasSubstr("matmul: cluster is 4, but dot works inside one block: it must be 1"));
  const std::string what = kiln::test::error_of<UserError>([] {
    const Device d = Device::simulator("sm_90a");
    Buffer<bf16> a(d, 256 * 256);
    Buffer<float> c(d, 256 * 256);
    (void)counting.with({.cluster = 2}).image(d, {a, {256, 256}}, {a, {256, 256}}, {c, {256, 256}});
  });
  EXPECT_THAT(what, HasSubstr("counting: cluster is 2, but num_programs sees how programs are run: it must be 1"));
}

TEST(RingWalk, ProgramsFit31Bits) {
  const Device d = Device::simulator("sm_90a");
  Buffer<bf16> a(d, 256 * 256);
  Buffer<float> c(d, 256 * 256);
  const Stream s(d);
  const std::string what = kiln::test::error_of<UserError>([&] {
    matmul.launch(s, Grid{1 << 20, 1 << 12}, {a, {256, 256}}, {a, {256, 256}}, {c, {1, 256, 256}}, {128, 128});
  });
  EXPECT_THAT(what, HasSubstr("matmul: grid [1048576, 4096, 1]: at most 2147483647 programs are possible in all"));
}

TEST(RingWalk, TheAssemblerTakesItWithoutSpilling) {
  const auto tool = kiln::test::ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  for (const Blocks& b : {Blocks{128, 256}, {256, 128}, {128, 128}, {256, 64}})
    for (int cluster : {0, 1}) {
      const kiln::test::Assembly a = kiln::test::assemble(*tool, image_of(b, {.cluster = cluster}).ptx, "sm_90a");
      EXPECT_TRUE(a.accepted) << a.log;
      EXPECT_THAT(a.log, HasSubstr("0 bytes stack frame, 0 bytes spill stores")) << b.m << "x" << b.n;
      for (const char* trouble : {"C75", "C76", "warning"})
        EXPECT_THAT(a.log, Not(HasSubstr(trouble))) << b.m << "x" << b.n << " " << cluster;
    }
}

}  // namespace

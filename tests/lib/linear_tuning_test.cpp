// Which plans linear measures, and that run() takes the one found.
#include "dsl/lib/linear_tuning.h"

#include <set>

#include "tests/lib/products.h"
#include "tests/support/expect_error.h"
#include "tests/support/knob.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

using lib::LinearPlan;
using lib::LinearShape;
using ::testing::HasSubstr;

class LinearTuning : public ::testing::Test {
  const TemporaryFolder folder_;
  const Knob cache_{"KILN_CACHE_DIR", folder_.path().string()};
};

TEST_F(LinearTuning, CandidatesAreFewDifferentAndBeginWithTheTable) {
  for (const LinearShape& s : {LinearShape{4096, 4096, 4096, DType::bf16, DType::bf16, "sm_90a"},
                               {1, 8192, 8192, DType::bf16, DType::bf16, "sm_90a"},
                               {100, 100, 100, f32, f32, "sm_80"},
                               {7, 5, 3, f64, f64, "sm_80"},
                               {64, 64, 64, i8, i8, "sm_89"}}) {
    const std::vector<LinearPlan> plans = lib::linear_candidates(s);
    std::set<std::string> names;
    for (const LinearPlan& p : plans) names.insert(name(p));
    EXPECT_EQ(names.size(), plans.size());
    EXPECT_LE(plans.size(), 24u);
    EXPECT_EQ(name(plans[0]), name(lib::linear_plan(s, false)));
  }
}

// The shapes of docs/benchmarks.md, on 132 multiprocessors.
TEST_F(LinearTuning, ProgramsFillTheMultiprocessors) {
  const auto plan = [](std::int64_t M, std::int64_t N, std::int64_t K) {
    return name(lib::linear_plan({M, N, K, DType::bf16, DType::bf16, "sm_90a", 132, true}, false));
  };
  EXPECT_EQ(plan(256, 512, 512), "64x16x64 num_warps=4");
  EXPECT_EQ(plan(1024, 1024, 1024), "128x64x64 num_warps=8");
  EXPECT_EQ(plan(2048, 2048, 2048), "128x256x64 num_warps=8");
  EXPECT_EQ(plan(4096, 4096, 4096), "128x256x64 num_warps=8");
  EXPECT_EQ(plan(4096, 14336, 4096), "128x256x64 num_warps=8");
  EXPECT_EQ(plan(8192, 8192, 8192), "128x256x64 num_warps=8");
  EXPECT_EQ(plan(256, 4096, 4096), "128x64x64 num_warps=8");
  EXPECT_EQ(plan(1, 8192, 8192), "8x64x128 num_warps=4 weights first");
  EXPECT_EQ(plan(16, 8192, 8192), "16x64x128 num_warps=4 weights first");
  EXPECT_EQ(plan(64, 8192, 8192), "64x64x64 num_warps=4 weights first");
}

TEST_F(LinearTuning, BatchInvariantPlansDependOnTheWeightsAlone) {
  for (bool direct : {false, true})
    for (std::int64_t M : {1, 8, 64, 1000, 8192}) {
      const LinearShape s{M, 8192, 8192, DType::bf16, DType::bf16, "sm_90a", 132, direct};
      EXPECT_EQ(name(lib::linear_plan(s, true)),
                name(lib::linear_plan({4096, 8192, 8192, DType::bf16, DType::bf16, "sm_90a", 132, direct}, true)));
    }
}

/// The candidates' times: `fastest` takes 1 us, all others 2.
rt::Stopwatch prefers(const std::string& fastest, int* asked) {
  return [=](const Stream&, const rt::Candidate& c, int) {
    ++*asked;
    return c.name == fastest ? 1.0 : 2.0;
  };
}

TEST_F(LinearTuning, RunTakesTheFastestForItsClass) {
  const Device d = Device::simulator("sm_80");
  const Stream s(d);
  const std::vector<double> a = elements_of<bf16>(40 * 64, 1), b = elements_of<bf16>(48 * 64, 2);
  const Operand<bf16> x(d, 40, 64, a), w(d, 48, 64, b);
  Operand<bf16> y(d, 40, 48);
  const auto work_of = [&](const lib::LinearOptions& options) {
    d.reset_counters();
    lib::linear<bf16>(x, w, options).run(s, y);
    s.synchronize();
    return d.counters().instructions;
  };
  const std::uint64_t by_table = work_of({});
  const LinearShape shape{40, 48, 64, DType::bf16, DType::bf16, d.target(), d.sm_count(), true};
  const std::vector<LinearPlan> plans = lib::linear_candidates(shape);
  const auto work_by = [&](const LinearPlan& p) { return work_of({.blocks = p.blocks, .num_warps = p.num_warps}); };
  const auto other =
      std::find_if(plans.begin(), plans.end(), [&](const LinearPlan& p) { return work_by(p) != by_table; });
  ASSERT_NE(other, plans.end());
  int asked = 0;
  const std::vector<bf16> before = y.elements();
  const Tuning t = lib::linear<bf16>(x, w).measured_by(prefers(name(*other), &asked)).tune(s, y);
  EXPECT_GT(asked, 0);
  EXPECT_TRUE(t.measured) << t.table();
  EXPECT_EQ(t.rows[t.chosen].name, name(*other));
  EXPECT_EQ(std::memcmp(before.data(), y.elements().data(), before.size() * sizeof(bf16)), 0) << "put back";
  EXPECT_EQ(work_of({}), work_by(*other));
  EXPECT_EQ(work_of({.batch_invariant = true}), work_by(lib::linear_plan(shape, true)));
  EXPECT_EQ(
      name(lib::tuned_linear_plan(d, "linear", {33, 48, 64, DType::bf16, DType::bf16, d.target(), d.sm_count(), true})),
      name(*other));
  EXPECT_NE(
      name(lib::tuned_linear_plan(d, "linear", {32, 48, 64, DType::bf16, DType::bf16, d.target(), d.sm_count(), true})),
      name(*other));
  EXPECT_NE(name(lib::tuned_linear_plan(d, "linear_batched", shape)), name(*other));
}

TEST_F(LinearTuning, WhatIsInPlaceIsPutBack) {
  const Device d = Device::simulator("sm_80");
  const Stream s(d);
  const Operand<float> x(d, 16, 16, elements_of<float>(256, 1)), w(d, 16, 16, elements_of<float>(256, 2));
  Operand<float> y(d, 16, 16, std::vector<double>(256, 1));
  int asked = 0;
  const auto product = lib::linear<float>(x, w).then(lib::epilogue::residual<float>(y));
  (void)product.measured_by(prefers("", &asked)).tune(s, y);
  EXPECT_EQ(y.values(), std::vector<double>(256, 1));
}

TEST_F(LinearTuning, EveryPlanGivesTheSameSums) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    const Operand<float> x(d, 70, 40, elements_of<float>(70 * 40, 1)), w(d, 130, 40, elements_of<float>(130 * 40, 2));
    Operand<float> y(d, 70, 130);
    lib::linear<float>(x, w).run(s, y);
    const std::vector<double> want = y.values();
    for (const LinearPlan& p : lib::linear_candidates({70, 130, 40, f32, f32, d.target()})) {
      SCOPED_TRACE(name(p));
      Operand<float> z(d, 70, 130);
      lib::linear<float>(x, w, {.blocks = p.blocks, .num_warps = p.num_warps}).run(s, z);
      EXPECT_EQ(z.values(), want);
    }
  });
}

TEST_F(LinearTuning, AWrongNumberOfWarpsNamesTheCallersLine) {
  const Device d = Device::simulator("sm_80");
  const Stream s(d);
  const Operand<float> x(d, 16, 16, elements_of<float>(256, 1)), w(d, 16, 16, elements_of<float>(256, 2));
  Operand<float> y(d, 16, 16);
  for (int warps : {-1, 3, 64})
    expect_user_error([&] { lib::linear<float>(x, w, {.num_warps = warps}).run(s, y); },
                      "linear: num_warps is " + std::to_string(warps) + ", must be a power of two up to 32", __FILE__,
                      __LINE__ - 2);
}

TEST_F(LinearTuning, ACaptureIsRefused) {
  const Device d = Device::simulator("sm_80");
  const Stream s(d);
  const Operand<float> x(d, 16, 16, elements_of<float>(256, 1)), w(d, 16, 16, elements_of<float>(256, 2));
  Operand<float> y(d, 16, 16);
  std::string what;
  (void)Graph::capture(s, [&] { what = error_of<UserError>([&] { (void)lib::linear<float>(x, w).tune(s, y); }); });
  EXPECT_THAT(what, HasSubstr("captured"));
}

}  // namespace
}  // namespace kiln::test

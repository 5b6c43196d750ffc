// Every case of the benchmarks runs, at a small shape, on the simulator.
#include "bench/cases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kiln/kiln.h>
#include <kiln/lib.h>

#include <fstream>
#include <iterator>
#include <ostream>

#include "bench/compile_latency.h"
#include "bench/launch.h"
#include "tests/support/build_tree.h"
#include "tests/support/expect_error.h"

namespace kiln::bench {

void PrintTo(const CaseRow& row, std::ostream* out) { *out << row.name; }

namespace {

Device simulator() {
  static const Device device = Device::simulator();
  return device;
}

Shape small(const CaseRow& row) {
  const std::vector<Shape> of_rank{{3000}, {8, 4104}, {8, 32, 128}};
  return of_rank.at(row.shapes.front().size() - 1);
}

class EveryCase : public testing::TestWithParam<CaseRow> {};

TEST_P(EveryCase, MovesTheBytesItClaims) {
  const Device device = simulator();
  const Stream stream(device);
  Workload w = prepare(device, {GetParam().name, small(GetParam()), GetParam().dtype});
  EXPECT_GE(w.launches, 8) << "too few launches hide the gaps between them";
  device.reset_counters();
  for (int i = 0; i < w.launches; ++i) w.launch(stream, i);
  stream.synchronize();
  const Counters c = device.counters();
  EXPECT_GE(c.launches, static_cast<std::uint64_t>(w.launches));
  const double moved = static_cast<double>(c.global_bytes_read + c.global_bytes_written) / w.launches;
  EXPECT_GE(moved, w.bytes) << "the bandwidth would be overstated";
  // Weights are asked for once a row, which costs the memory nothing: two of them as much again as one read and write.
  EXPECT_LE(moved, 2.1 * w.bytes) << "the bandwidth would be understated";
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryCase, testing::ValuesIn(case_rows()),
                         [](const auto& row) { return std::string(row.param.name); });

std::string refusal(const Case& what) {
  return test::error_of<UserError>([&] { prepare(simulator(), what); });
}

TEST(Cases, KnowsWhichThereAre) {
  const std::string message = refusal({"softmix", {8, 8}, "bf16"});
  EXPECT_THAT(message, testing::HasSubstr("case 'softmix' is not known; known: "));
  for (const CaseRow& row : case_rows()) EXPECT_THAT(message, testing::HasSubstr(std::string(row.name) + " ("));
}

TEST(Cases, RefuseOtherDtypesAndShapes) {
  EXPECT_EQ(refusal({"softmax", {8, 8}, "f32"}), "softmax: measured for bf16 alone, got 'f32'");
  for (const Shape& shape : {Shape{}, Shape{8}, Shape{8, 8, 8}, Shape{8, 0}, Shape{-8, 8}, Shape{1ll << 40, 1ll << 40}})
    EXPECT_THAT(refusal({"softmax", shape, "bf16"}), testing::HasSubstr("the shape must be 2 positive numbers"));
  EXPECT_THAT(refusal({"add_relu", {8, 8}, "f32"}), testing::HasSubstr("must be 1 positive number, "));
}

TEST(Cases, AreAskedForByThePeersScript) {
  const auto root = test::source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  std::ifstream in(*root / "bench" / "peers" / "peers.py");
  const std::string script{std::istreambuf_iterator<char>(in), {}};
  for (const CaseRow& row : case_rows())
    EXPECT_THAT(script, testing::HasSubstr(fmt::format(R"("{}", "{}", )", row.name, row.dtype)));
}

TEST(LatencyCases, AreCasesAndLaunch) {
  const Stream stream(simulator());
  for (const auto& list : {add_relu_latency(), library_latency(simulator())})
    for (const LatencyCase& c : list) {
      SCOPED_TRACE(to_json(c.first));
      prepare(simulator(), c.first).launch(stream, 0);
      if (!c.variant.name.empty()) prepare(simulator(), c.variant).launch(stream, 0);
      stream.synchronize();
    }
}

/// What linear with bias and relu is on the simulator: its plan and its kernel.
std::string product_of(const Shape& shape) {
  const auto at = [](std::uint64_t n) { return device_ptr<bf16>(n << 40, std::size_t{1} << 26); };
  const auto e = lib::linear<bf16>({at(1), {shape[0], shape[2]}}, {at(2), {shape[1], shape[2]}})
                     .then(lib::epilogue::bias<bf16>({at(3), {shape[1]}}))
                     .then(lib::epilogue::relu)
                     .explain(simulator(), {at(4), {shape[0], shape[1]}});
  return e.plan + e.kernels.at(0).json();
}

TEST(LatencyCases, HaveTheKernelOfTheLargeProductOnTheSimulator) {
  for (const LatencyCase& c : library_latency(simulator())) {
    if (c.first.name != "linear_relu") continue;
    EXPECT_EQ(product_of(c.first.shape), product_of({4096, 4096, 4096}));
    EXPECT_NE(product_of(c.first.shape), product_of({64, 64, 64}));
    return;
  }
  FAIL() << "linear is not measured";
}

TEST(Cases, HaveTheShapesOfTheirSections) {
  for (const CaseRow& row : case_rows()) {
    SCOPED_TRACE(row.name);
    ASSERT_FALSE(row.shapes.empty());
    for (const Shape& shape : row.shapes) EXPECT_EQ(shape.size(), row.shapes.front().size());
  }
}

TEST(CallOverhead, EachKernelRuns) {
  const Device device = simulator();
  device.reset_counters();
  launch_each(Stream(device));
  device.synchronize();
  EXPECT_EQ(device.counters().launches, 3u);
}

}  // namespace
}  // namespace kiln::bench

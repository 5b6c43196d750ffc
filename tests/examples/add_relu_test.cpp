// examples/01_add_relu, run as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/device.h"
#include "tests/support/build_tree.h"
#include "tests/support/process.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

ProcessResult run_example(const std::string& device, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), (bin_dir() / "01_add_relu").string());
  return run_program(arguments, {"KILN_DEVICE=" + device, "KILN_LOG=0"});
}

void expect_rows(const std::string& device, const std::vector<std::int64_t>& sizes, bool timed) {
  const ProcessResult r = run_example(device, {"--json"});
  ASSERT_EQ(r.status, 0) << r.output;
  std::map<std::pair<std::string, std::int64_t>, nlohmann::json> rows;
  std::istringstream lines(r.output);
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row.size(), 7u) << row;
    rows[{row.at("variant"), row.at("n")}] = row;
  }
  EXPECT_EQ(rows.size(), 2 * sizes.size()) << r.output;
  for (std::int64_t n : sizes)
    for (const auto& [variant, launches, transfers] : {std::tuple("eager", 2, 5), std::tuple("fused", 1, 3)}) {
      const auto& row = rows[{variant, n}];
      ASSERT_FALSE(row.is_null()) << variant << " " << n;
      EXPECT_EQ(row.at("launches"), launches) << row;
      EXPECT_EQ(row.at("transfers"), transfers) << row;
      EXPECT_EQ(row.at("bytes"), 4 * transfers * n) << row;
      EXPECT_EQ(row.at("ok"), true) << row;
      EXPECT_EQ(row.at("us").is_null(), !timed) << row;
    }
  for (std::int64_t n : sizes) {
    if (!timed || n < 10'000'000) continue;
    const double eager = rows[{"eager", n}].at("us"), fused = rows[{"fused", n}].at("us");
    EXPECT_LT(fused, eager) << n;
  }
}

TEST(AddRelu, CountsLaunchesAndTransfersOnTheSimulator) { expect_rows("sim", {100, 1'000'000, 10'000'000}, false); }

TEST(AddRelu, IsFasterFusedOnAGpu) {
  if (Device::cuda_count() == 0) GTEST_SKIP() << "no GPU";
  expect_rows("cuda:0", {100, 1'000'000, 10'000'000, 100'000'000}, true);
}

TEST(AddRelu, RefusesAnUnknownOption) { EXPECT_EQ(run_example("sim", {"--csv"}).status, 2); }

}  // namespace
}  // namespace kiln::test

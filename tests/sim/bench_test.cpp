// The program bench-simulator: that it runs, and what it writes. Its products are compared with sums in f64 by itself.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/sim/data_files.h"
#include "tests/support/build_tree.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

TEST(BenchSimulator, MeasuresEveryCaseWithAndWithoutChecks) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "figures.jsonl";
  const ProcessResult r = run_program({(bin_dir() / "bench-simulator").string(), "--small", file.string()});
  ASSERT_EQ(r.status, 0) << r.output;
  std::set<std::pair<std::string, std::string>> cases;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const auto j = nlohmann::json::parse(line);
    if (j["case"] == "env") continue;
    EXPECT_GT(j["us"].get<double>(), 0) << line;
    EXPECT_GT(j["glanes"].get<double>(), 0) << line;
    cases.insert({j["case"].get<std::string>(), j["state"].get<std::string>()});
    EXPECT_THAT(r.output, ::testing::HasSubstr(j["case"].get<std::string>()));
  }
  std::set<std::pair<std::string, std::string>> want;
  for (const char* name : {"simulator_pointwise", "simulator_gemm_mma", "simulator_gemm_wgmma"})
    for (const char* state : {"checks: bounds", "checks: all"}) want.insert({name, state});
  EXPECT_EQ(cases, want);
}

TEST(BenchSimulator, RefusesOtherArguments) {
  EXPECT_EQ(run_program({(bin_dir() / "bench-simulator").string(), "a", "b"}).status, 1);
  EXPECT_EQ(run_program({(bin_dir() / "bench-simulator").string(), "/nowhere/figures.jsonl"}).status, 1);
}

}  // namespace
}  // namespace kiln::test

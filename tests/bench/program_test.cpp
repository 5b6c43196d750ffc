// The program `kiln`: what it prints, refuses and survives. Everything here runs on the simulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/build_tree.h"
#include "tests/support/process.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

std::string program() { return (bin_dir() / "kiln").string(); }

ProcessResult kiln_on_simulator(std::vector<std::string> words) {
  words.insert(words.begin(), program());
  return run_program(words, {"KILN_DEVICE=sim"});
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{")) out.push_back(nlohmann::json::parse(line));
  return out;
}

TEST(KilnProgram, NamesItsVerbs) {
  EXPECT_NE(kiln_on_simulator({}).status, 0);
  const ProcessResult unknown = kiln_on_simulator({"bake"});
  EXPECT_NE(unknown.status, 0);
  EXPECT_THAT(unknown.output, HasSubstr("bake"));
  const ProcessResult help = kiln_on_simulator({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* verb : {"bench", "devices", "dump", "env", "explain", "version"})
    EXPECT_THAT(help.output, HasSubstr(verb));
}

TEST(KilnProgram, PrintsEnvironmentDevicesAndVersion) {
  const ProcessResult env = kiln_on_simulator({"env"});
  EXPECT_EQ(env.status, 0);
  EXPECT_THAT(env.output, HasSubstr("KILN_CACHE_DIR"));
  EXPECT_THAT(env.output, HasSubstr("set now: KILN_DEVICE=sim"));
  const ProcessResult devices = kiln_on_simulator({"devices"});
  EXPECT_EQ(devices.status, 0) << devices.output;
  EXPECT_THAT(devices.output, HasSubstr("simulator"));
  const ProcessResult version = kiln_on_simulator({"version"});
  EXPECT_EQ(version.status, 0) << version.output;
  EXPECT_THAT(version.output, HasSubstr("compiler "));
}

TEST(Bench, RefusesToTimeTheSimulator) {
  for (const char* section : {"pointwise", "rows", "library", "overhead"}) {
    const ProcessResult r = kiln_on_simulator({"bench", section});
    EXPECT_EQ(r.status, 1);
    EXPECT_THAT(r.output, HasSubstr(section + std::string(" measures GPU time")));
  }
}

TEST(Bench, SaysThatItsFileCannotBeWritten) {
  const ProcessResult r = kiln_on_simulator({"bench", "--json", "/dev/full", "compile_latency"});
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.output, HasSubstr("cannot write /dev/full"));
}

TEST(Bench, NamesItsSectionsWhenOneIsUnknown) {
  const ProcessResult r = kiln_on_simulator({"bench", "pointwize"});
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.output, HasSubstr("no section 'pointwize'"));
  EXPECT_THAT(r.output, HasSubstr("compile_latency"));
}

TEST(Bench, MeasuresCompileLatencyByStageAndByWhatIsCached) {
  const auto file = std::filesystem::path(testing::TempDir()) / "kiln_bench_test.jsonl";
  const ProcessResult r = kiln_on_simulator({"bench", "--json", file.string(), "compile_latency"});
  EXPECT_EQ(r.status, 0) << r.output;
  std::ifstream in(file);
  std::map<std::string, double> ms;
  for (const auto& line : json_lines({std::istreambuf_iterator<char>(in), {}})) {
    if (line.at("case") == "env") continue;
    EXPECT_EQ(line.at("case"), "compile_latency");
    const std::string state = line.at("state"), stage = line.value("stage", "");
    if (line.at("peer") == "kiln add_relu first") ms[state + "/" + stage] = line.at("ms");
  }
  std::filesystem::remove(file);
  for (const char* figure :
       {"cold/", "cold/trace", "cold/passes", "cold/llvm", "cold/driver", "disk cache/", "memory cache/"})
    EXPECT_GT(ms[figure], 0) << figure << "\n" << r.output;
  EXPECT_LT(ms["disk cache/"], ms["cold/"]) << "a launch from the disk cache costs as much as a compilation";
  EXPECT_LT(ms["memory cache/"], ms["cold/"]) << "a second launch costs as much as the first";
}

TEST(BenchServe, AnswersEveryLineAndSurvivesBadOnes) {
  std::string input;
  for (const char* line :
       {"no json", R"({"shape":[1]})", "", "[1]", R"({"case":3})", R"({"case":"add_relu","shape":[100],"dtype":"f32"})",
        R"({"case":"add_relu","shape":[1e30],"dtype":"f32"})"})
    input += " " + shell_quote(line);
  const ProcessResult r =
      run_shell("printf '%s\\n'" + input + " | env KILN_DEVICE=sim " + shell_quote(program()) + " bench --serve");
  EXPECT_EQ(r.status, 0) << r.output;
  const auto lines = json_lines(r.output);
  ASSERT_EQ(lines.size(), 6u) << r.output;
  for (const auto& line : lines) EXPECT_TRUE(line.contains("error")) << line;
  EXPECT_THAT(lines[0].at("error").get<std::string>(), HasSubstr("cannot read the line"));
  EXPECT_THAT(lines[4].at("error").get<std::string>(), HasSubstr("measures GPU time"));
  EXPECT_EQ(lines[4].at("case"), "add_relu");
  EXPECT_THAT(lines[5].at("error").get<std::string>(), HasSubstr("expected whole numbers, got 1e+30"));
}

}  // namespace
}  // namespace kiln::test

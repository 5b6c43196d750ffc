// NVIDIA's assembler accepts the PTX of every kernel that the other programs of the test run compile. They run again
// here with KILN_DUMP=ptx, each in a process of its own, and each text goes to ptxas once. Skipped where there is no
// ptxas. (Tests of the disk cache are left out: whoever dumps compiles anew.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/support/build_tree.h"
#include "tests/support/process.h"
#include "tests/support/ptxas.h"

namespace {
namespace fs = std::filesystem;
using namespace kiln::test;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// "sm_90a" of the line `.target sm_90a`.
std::string target_of(const std::string& ptx) {
  const auto at = ptx.find("\n.target ");
  if (at == std::string::npos) return {};
  const auto begin = at + 9;
  return ptx.substr(begin, ptx.find_first_of(", \n", begin) - begin);
}

class Assembled : public testing::TestWithParam<const char*> {};

TEST_P(Assembled, EveryKernelOf) {
  const auto tool = ptxas();
  if (!tool) GTEST_SKIP() << "no ptxas in PATH or /usr/local/cuda/bin";
  const fs::path program = program_dir() / GetParam();
  ASSERT_TRUE(fs::exists(program)) << program;
  const TemporaryFolder folder;
  const ProcessResult run = run_program(
      {program.string(), "--gtest_filter=-LangCache.*:ShapeRandom.*"},
      {"KILN_DUMP=ptx", "KILN_CACHE_DIR=off", "KILN_DEVICE=sim", "KILN_DUMP_DIR=" + folder.path().string()});
  ASSERT_EQ(run.status, 0) << run.output;
  std::set<std::string> seen;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.path().extension() != ".ptx") continue;
    const std::string ptx = text_of(entry.path());
    if (!seen.insert(ptx).second) continue;
    const Assembly result = assemble(*tool, ptx, target_of(ptx));
    EXPECT_TRUE(result.accepted) << entry.path() << "\n" << result.log << ptx;
  }
  EXPECT_FALSE(seen.empty()) << "no kernel was compiled";
}

INSTANTIATE_TEST_SUITE_P(Programs, Assembled,
                         testing::Values("kernel_cluster", "kernel_dot", "kernel_edges", "kernel_overlap",
                                         "kernel_pitfalls", "kernel_random_numbers", "kernel_refusals", "kernel_shape",
                                         "kernel_sort", "kernel_stage_lambda", "kernel_view", "lang"),
                         [](const auto& program) { return std::string(program.param); });

}  // namespace

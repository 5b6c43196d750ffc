// kiln explain: what it says of library kernels and of programs, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/device.h"
#include "tests/support/build_tree.h"
#include "tests/support/process.h"

namespace kiln::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// stdout of `kiln explain` alone.
ProcessResult explain(const std::string& words) {
  return run_shell(shell_quote((bin_dir() / "kiln").string()) + " explain " + words + " 2>/dev/null");
}
ProcessResult explain_with_errors(const std::string& words) {
  return run_shell(shell_quote((bin_dir() / "kiln").string()) + " explain " + words + " 2>&1");
}

bool gpu_of(const std::string& target) {
  for (int i = 0; i < Device::cuda_count(); ++i)
    if (Device::cuda(i).target() == target) return true;
  return false;
}

TEST(ExplainVerb, SaysWhatALibraryKernelIs) {
  const ProcessResult r = explain("softmax --target sm_80");
  ASSERT_EQ(r.status, 0);
  EXPECT_THAT(r.output, AllOf(StartsWith("softmax for sm_80 ("), HasSubstr("  threads        128 a block\n"),
                              HasSubstr("ld.global by vectors of 4"), HasSubstr("is aligned to 16 bytes")));
  const bool assembled = gpu_of("sm_80");
  EXPECT_EQ(r.output.find("is known once a GPU has assembled it") == r.output.npos, assembled);
  EXPECT_EQ(r.output.find("at most 64 a thread") == r.output.npos, assembled);
}

TEST(ExplainVerb, SaysWhyAProductIsCutAsItIs) {
  const ProcessResult r = explain("linear");
  ASSERT_EQ(r.status, 0);
  EXPECT_THAT(r.output,
              AllOf(StartsWith("blocks 128x256x64 num_warps=8\n"), HasSubstr("512 programs, 3.88 for each of 132"),
                    HasSubstr("bound by the matrix units"), HasSubstr("linear for sm_90a ("),
                    HasSubstr("a cluster of 2 blocks"), HasSubstr("wgmma m64n256k16 f32.bf16.bf16"),
                    HasSubstr("a ring of 4 slots of 49152 bytes feeds the product"), HasSubstr("by halves")));
  EXPECT_THAT(explain("linear --target sm_80").output, HasSubstr("cp.async fills a ring of 3 slots of 32768 bytes"));
}

TEST(ExplainVerb, JsonIsOneObject) {
  const auto product = nlohmann::json::parse(explain("linear --json").output);
  EXPECT_EQ(product.at("plan"), "128x256x64 num_warps=8");
  EXPECT_EQ(product.at("flop"), 2.0 * 4096 * 4096 * 4096);
  ASSERT_EQ(product.at("kernels").size(), 1u);
  EXPECT_EQ(product["kernels"][0].at("kernel"), "linear");
  EXPECT_EQ(product["kernels"][0].at("cluster"), 2);
  const auto row = nlohmann::json::parse(explain("softmax --target sm_120a --json").output);
  EXPECT_FALSE(row.contains("plan"));
  const auto kernel = row.at("kernels").at(0);
  EXPECT_EQ(kernel.at("target"), "sm_120a");
  EXPECT_EQ(kernel.at("registers_known"), gpu_of("sm_120a"));
  EXPECT_EQ(kernel.at("spill_bytes") == -1, !gpu_of("sm_120a"));
}

TEST(ExplainVerb, KnowsTheKernelsOfDump) {
  const auto names = [](const std::string& help) { return help.substr(help.find("Kernels of the library:")); };
  const std::string kiln = shell_quote((bin_dir() / "kiln").string());
  const std::string list = names(explain("--help").output);
  EXPECT_EQ(list, names(run_shell(kiln + " dump --help").output));
  std::istringstream lines(list);
  int known = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    const ProcessResult r = explain(name);
    EXPECT_EQ(r.status, 0) << name;
    EXPECT_THAT(r.output, HasSubstr(" for sm_90a (")) << name;
    ++known;
  }
  EXPECT_GE(known, 18);
}

TEST(ExplainVerb, SaysWhatAKernelOfAProgramIs) {
  const std::string program = shell_quote((bin_dir() / "01_add_relu").string());
  const ProcessResult r = explain("--program " + program + " add_relu --target sm_80");
  ASSERT_EQ(r.status, 0);
  EXPECT_THAT(r.output, AllOf(StartsWith("add_relu for sm_80 ("), HasSubstr("01_add_relu.cpp:")));
  const ProcessResult unknown = explain_with_errors("--program " + program + " gemm");
  EXPECT_NE(unknown.status, 0);
  EXPECT_THAT(unknown.output,
              AllOf(HasSubstr("explain: "), HasSubstr("did not compile 'gemm'; it compiled: "), HasSubstr("add_relu")));
  const ProcessResult missing = explain_with_errors("--program /nowhere add_relu");
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.output, AllOf(HasSubstr("cannot run /nowhere"), HasSubstr("it compiled: nothing")));
}

TEST(ExplainVerb, UnknownNamesListWhatThereIs) {
  const ProcessResult kernel = explain_with_errors("gemm");
  EXPECT_NE(kernel.status, 0);
  EXPECT_THAT(kernel.output, AllOf(HasSubstr("explain: the library has no kernel 'gemm'"), HasSubstr("  softmax ")));
  const ProcessResult target = explain_with_errors("softmax --target sm_75");
  EXPECT_NE(target.status, 0);
  EXPECT_THAT(target.output, AllOf(HasSubstr("sm_80"), Not(HasSubstr("without being compiled"))));
}

}  // namespace
}  // namespace kiln::test

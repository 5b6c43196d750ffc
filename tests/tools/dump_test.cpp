// kiln dump: what it prints of library kernels and of programs, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/build_tree.h"
#include "tests/support/process.h"
#include "tests/support/ptxas.h"

namespace kiln::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// stdout of `kiln dump` alone.
ProcessResult dump(const std::string& words) {
  return run_shell(shell_quote((bin_dir() / "kiln").string()) + " dump " + words + " 2>/dev/null");
}
ProcessResult dump_with_errors(const std::string& words) {
  return run_shell(shell_quote((bin_dir() / "kiln").string()) + " dump " + words + " 2>&1");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The kernels that the help lists, one a line behind its heading.
std::vector<std::string> listed() {
  std::istringstream help(run_shell(shell_quote((bin_dir() / "kiln").string()) + " dump --help").output);
  std::vector<std::string> names;
  bool inside = false;
  for (std::string line; std::getline(help, line);) {
    if (inside && line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    inside = inside || line == "Kernels of the library:";
  }
  return names;
}

TEST(Dump, PrintsOneEntryOfALibraryKernelAndNothingElse) {
  const ProcessResult ptx = dump("softmax --target sm_80 --stage ptx");
  ASSERT_EQ(ptx.status, 0);
  EXPECT_THAT(ptx.output, AllOf(HasSubstr(".target sm_80"), HasSubstr(".visible .entry softmax")));
  EXPECT_EQ(count(ptx.output, ".entry"), 1u);
  if (const auto tool = ptxas()) {
    const Assembly a = assemble(*tool, ptx.output, "sm_80");
    EXPECT_TRUE(a.accepted) << a.log;
  }
}

TEST(Dump, PrintsEachStage) {
  const std::string tile = dump("softmax --stage tile").output, llvm = dump("softmax --stage llvm").output;
  EXPECT_THAT(tile,
              AllOf(StartsWith("kernel \"softmax\" stage="), Not(HasSubstr("stage=traced")), HasSubstr("layout #0")));
  EXPECT_THAT(llvm, AllOf(HasSubstr("define "), HasSubstr("@softmax")));
  EXPECT_THAT(dump("softmax").output, HasSubstr(".target sm_90a"));  // the defaults
}

TEST(Dump, KnowsEveryKernelThatItLists) {
  const std::vector<std::string> names = listed();
  EXPECT_THAT(names, testing::IsSupersetOf({"softmax", "layernorm", "rmsnorm", "add_relu", "linear", "transpose"}));
  for (const std::string& name : names) {
    const ProcessResult r = dump(name + " --stage tile");
    EXPECT_EQ(r.status, 0) << name;
    EXPECT_THAT(r.output, StartsWith("kernel \"")) << name;
  }
}

TEST(Dump, PrintsAKernelOfAProgram) {
  const std::string program = shell_quote((bin_dir() / "01_add_relu").string());
  const ProcessResult r = dump("--program " + program + " add_relu --target sm_80");
  ASSERT_EQ(r.status, 0);
  EXPECT_THAT(r.output, AllOf(HasSubstr(".target sm_80"), HasSubstr(".visible .entry add_relu")));
  EXPECT_EQ(count(r.output, ".entry"), 1u);
  const ProcessResult unknown = dump_with_errors("--program " + program + " gemm");
  EXPECT_NE(unknown.status, 0);
  EXPECT_THAT(unknown.output, AllOf(HasSubstr("did not compile 'gemm'; it compiled: "), HasSubstr("add_relu")));
  const ProcessResult missing = dump_with_errors("--program /nowhere add_relu");
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.output, AllOf(HasSubstr("cannot run /nowhere"), HasSubstr("it compiled: nothing")));
}

TEST(Dump, UnknownNamesListWhatThereIs) {
  const ProcessResult kernel = dump_with_errors("gemm");
  EXPECT_NE(kernel.status, 0);
  EXPECT_THAT(kernel.output, AllOf(HasSubstr("the library has no kernel 'gemm'"), HasSubstr("  softmax ")));
  EXPECT_NE(dump("softmax --stage cubin").status, 0);
  const ProcessResult target = dump_with_errors("softmax --target sm_75");
  EXPECT_NE(target.status, 0);
  EXPECT_THAT(target.output, HasSubstr("sm_80"));
}

}  // namespace
}  // namespace kiln::test

// Kiln's LLVM is its own: another LLVM in the process, loaded with global symbols, changes nothing for either.
#include <gtest/gtest.h>

#include "tests/support/build_tree.h"
#include "tests/support/process.h"

namespace kiln::test {
namespace {

class OtherLlvm : public testing::TestWithParam<const char*> {};

TEST_P(OtherLlvm, WorksBesideKilnInOneProcess) {
  int found = 0;
  std::string looked_for;
  for (const char* library : {"libLLVM.so.22.1", "libLLVM.so.21.1", "libLLVM.so.20.1", "libLLVM.so.19.1",
                              "libLLVM-17.so.1", "libLLVM-15.so.1", "libLLVM-14.so.1"}) {
    const ProcessResult r =
        run_program({(program_dir() / "deploy" / "other_llvm").string(), library, GetParam()}, {"KILN_CACHE_DIR=off"});
    looked_for += std::string(" ") + library;
    if (r.status == 77) continue;
    ++found;
    EXPECT_EQ(r.status, 0) << library << ": " << r.output;
  }
  if (found == 0) GTEST_SKIP() << "no other LLVM on this machine:" << looked_for;
}

INSTANTIATE_TEST_SUITE_P(Loaded, OtherLlvm, testing::Values("before", "after"),
                         [](const auto& i) { return std::string(i.param) + "KilnCompiles"; });

}  // namespace
}  // namespace kiln::test

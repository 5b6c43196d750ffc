// Compiled kernels run with the runtime alone: no compiler, no LLVM and no driver in the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/deploy/elf.h"
#include "tests/deploy/hand_written.h"
#include "tests/support/build_tree.h"
#include "tests/support/process.h"

namespace kiln::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string app() { return (program_dir() / "deploy" / "runtime_app").string(); }

TEST(RuntimeApp, NeedsTheRuntimeAlone) {
  for (const std::string& needed : read_elf(app()).needed)
    EXPECT_THAT(needed, AllOf(Not(HasSubstr("LLVM")), Not(HasSubstr("libcuda")), Not(EndsWith("libkiln.so"))));
}

TEST(RuntimeApp, RunsAHandWrittenImageAndLoadsNoCompilerAndNoDriver) {
  const auto image = std::filesystem::path(testing::TempDir()) / "kiln_hand_written.kimg";
  std::ofstream(image, std::ios::binary) << rt::serialise(hand_written_image());
  const ProcessResult r = run_program({app(), image.string(), std::to_string(kHandWrittenBlock)});
  std::filesystem::remove(image);
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("libkiln_runtime.so"), EndsWith("ok\n")));
  EXPECT_THAT(r.output, AllOf(Not(HasSubstr("libkiln.so")), Not(HasSubstr("libkiln_testing")), Not(HasSubstr("LLVM")),
                              Not(HasSubstr("libcuda"))));
}

TEST(RuntimeApp, NamesTheFileThatIsNoImage) {
  const auto image = std::filesystem::path(testing::TempDir()) / "kiln_no_image.kimg";
  std::ofstream(image) << "not an image";
  const ProcessResult r = run_program({app(), image.string(), "128"});
  std::filesystem::remove(image);
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.output, HasSubstr("kiln_no_image.kimg"));
}

#ifdef KILN_WITH_LLVM
TEST(RuntimeApp, RunsWhatTheCompilerWroteForEveryTarget) {
  int images = 0;
  for (const auto& entry : std::filesystem::directory_iterator(program_dir() / "deploy" / "images" / "kimg")) {
    ++images;
    const ProcessResult r = run_program({app(), entry.path().string(), "256"});
    EXPECT_EQ(r.status, 0) << entry.path() << ": " << r.output;
    EXPECT_THAT(r.output, AllOf(EndsWith("ok\n"), Not(HasSubstr("libkiln.so")), Not(HasSubstr("LLVM"))));
  }
  EXPECT_GE(images, 6);
}
#endif

}  // namespace
}  // namespace kiln::test

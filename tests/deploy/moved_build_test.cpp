// A build folder that was copied elsewhere still runs: nothing in it points back to where it was made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/build_tree.h"
#include "tests/support/process.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MovedBuild : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_ / "bin");
    fs::copy(lib_dir(), root_ / "lib");
    fs::copy(bin_dir() / "01_add_relu", root_ / "bin");
    fs::copy(bin_dir() / "kiln", root_ / "bin");
  }
  void TearDown() override { fs::remove_all(root_); }
  const fs::path root_ = fs::path(testing::TempDir()) / "kiln_moved_build";
};

TEST_F(MovedBuild, FindsItsLibrariesBesideItself) {
  const ProcessResult r = run_program({"ldd", (root_ / "bin" / "01_add_relu").string()});
  if (r.status == 127) GTEST_SKIP() << "no ldd on this machine";
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr((root_ / "bin").string()), Not(HasSubstr("not found")),
                              Not(HasSubstr(lib_dir().string() + "/"))));
}

TEST_F(MovedBuild, CompilesAndRuns) {
  const ProcessResult r = run_program({(root_ / "bin" / "kiln").string(), "version"}, {"KILN_CACHE_DIR=off"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("kiln "));
}

}  // namespace
}  // namespace kiln::test

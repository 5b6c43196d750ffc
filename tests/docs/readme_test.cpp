// README's first program, built with README's command line and run, as a reader would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/build_tree.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

/// The fenced block of `page` whose first line begins with `start`.
std::string block(const std::string& page, const std::string& start) {
  const std::size_t from = page.find("\n" + start);
  return from == page.npos ? "" : page.substr(from + 1, page.find("\n```", from + 1) - from);
}

TEST(Readme, ItsFirstProgramBuildsWithItsCommandAndRuns) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  if (run_shell("g++ --version > /dev/null 2>&1").status != 0) GTEST_SKIP() << "no g++";
  std::ifstream in(*root / "README.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string program = block(page, "// first.cpp"), commands = block(page, "g++ ");
  ASSERT_FALSE(program.empty() || commands.empty());

  const TemporaryFolder folder;
  std::ofstream(folder.path() / "first.cpp") << program;
  std::filesystem::create_directory(folder.path() / "kiln");
  for (const char* part : {"dsl", "backend", "runtime"})
    std::filesystem::create_directory_symlink(*root / part, folder.path() / "kiln" / part);
  std::filesystem::create_directory_symlink(bin_dir().parent_path(), folder.path() / "kiln" / "build");
  const ProcessResult r = run_shell("cd " + shell_quote(folder.path().string()) +
                                    " && export KILN_DEVICE=sim KILN_LOG=0 && set -e\n" + commands);
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(r.output, "row 0: 5 at 4\nrow 1: 9 at 0\nrow 2: 9 at 2\n");
}

}  // namespace
}  // namespace kiln::test

// House rules that a machine can check: header guards, file sizes, nothing in the tree that belongs to one machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "tests/layering/source_tree.h"
#include "tests/support/build_tree.h"

namespace kiln::test {
namespace {

class Sources : public testing::Test {
 protected:
  void SetUp() override {
    const auto root = source_dir();
    if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
    sources_ = read_sources(root->string());
  }
  std::vector<SourceFile> sources_;
};

TEST_F(Sources, EveryFolderOfTestsIsBuilt) {
  const std::filesystem::path tests = *source_dir() / "tests";
  std::ifstream in(tests / "CMakeLists.txt");
  const std::string list{std::istreambuf_iterator<char>(in), {}};
  for (const auto& entry : std::filesystem::directory_iterator(tests)) {
    const std::string folder = entry.path().filename().string();
    const bool listed = list.find("add_subdirectory(" + folder + ")") != list.npos;
    EXPECT_TRUE(listed || !std::filesystem::exists(entry.path() / "CMakeLists.txt"))
        << "tests/CMakeLists.txt does not add " << folder;
  }
}

TEST_F(Sources, HeadersOpenWithTheirPurposeAndAGuard) {
  for (const SourceFile& s : sources_)
    if (s.is_header()) {
      EXPECT_TRUE(!s.lines.empty() && s.lines[0].starts_with("//")) << s.path << ": no file head";
      EXPECT_TRUE(std::count(s.lines.begin(), s.lines.end(), "#pragma once") == 1) << s.path << ": no #pragma once";
    }
}

TEST_F(Sources, StayBelowTheSizeAtWhichAFileIsSplit) {
  for (const SourceFile& s : sources_) {
    const std::size_t limit = s.path.starts_with("tests/") || s.path.ends_with(".def") ? 1500 : 800;
    EXPECT_LE(s.lines.size(), limit) << s.path;
  }
}

TEST_F(Sources, SpeakOfNoMachineAndLeaveNothingForLater) {
  // Spelled in halves, so that this file does not name them.
  const std::array<std::string, 6> banned{
      "/wo"
      "rk/",
      "/ro"
      "ot/",
      "/ho"
      "me/",
      "/t"
      "mp/",
      "TO"
      "DO",
      "FIX"
      "ME"};
  for (const SourceFile& s : sources_)
    for (std::size_t i = 0; i < s.lines.size(); ++i)
      for (const std::string& word : banned)
        EXPECT_EQ(s.lines[i].find(word), std::string::npos) << s.path << ":" << i + 1 << ": " << word;
}

}  // namespace
}  // namespace kiln::test

// The library is plain tile code: no PTX, no shared memory or barrier by hand, in short files.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/build_tree.h"

namespace kiln::test {
namespace {

struct Source {
  std::string name;
  std::vector<std::string> lines;
};

std::vector<Source> sources(const std::filesystem::path& folder) {
  std::vector<Source> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    Source s{entry.path().filename().string(), {}};
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) s.lines.push_back(line);
    all.push_back(std::move(s));
  }
  return all;
}

TEST(LibrarySources, AreShortAndPlainTileCode) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  const std::vector<Source> all = sources(*root / "dsl" / "lib");
  EXPECT_GT(all.size(), 10u);
  for (const Source& s : all) {
    EXPECT_LE(s.lines.size(), 300u) << s.name;
    for (std::size_t i = 0; i < s.lines.size(); ++i)
      for (const char* word : {"inline_ptx", "barrier(", "shared<"})
        EXPECT_EQ(s.lines[i].find(word), std::string::npos) << s.name << ":" << i + 1 << ": " << s.lines[i];
  }
}

}  // namespace
}  // namespace kiln::test

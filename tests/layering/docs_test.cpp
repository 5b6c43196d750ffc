// Pages that repeat what code declares are compared with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "runtime/base/env.h"
#include "tests/support/build_tree.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

std::string read_page(const std::filesystem::path& page) {
  std::ifstream in(page);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A cell of a Markdown table: a bar would end it.
std::string cell(std::string s) {
  for (std::size_t at = 0; (at = s.find('|', at)) != s.npos; at += 2) s.insert(at, "\\");
  return s;
}

std::string text(env::Bool v) { return v ? "true" : "false"; }
std::string text(env::Int v) { return std::to_string(v); }
std::string text(const env::String& v) { return v; }

TEST(EnvironmentPage, HasOneRowForEachVariable) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  const std::string page = read_page(*root / "docs" / "env.md");
  std::size_t variables = 0;
  const auto check = [&](const std::string& name, const std::string& type, const std::string& fallback,
                         const std::string& doc) {
    ++variables;
    const std::string shown = fallback.empty() ? "empty" : "`" + fallback + "`";
    EXPECT_THAT(page, HasSubstr("| `" + name + "` | " + type + " | " + shown + " | " + cell(doc) + " |\n"));
  };
#define KILN_ENV(NAME, type, fallback, doc) check(#NAME, #type, text(env::type(fallback)), doc);
#include "runtime/base/env.def"
  std::size_t rows = 0;
  for (auto at = page.find("\n| `KILN_"); at != page.npos; at = page.find("\n| `KILN_", at + 1)) ++rows;
  EXPECT_EQ(rows, variables) << "docs/env.md has a row for a variable that env.def does not declare";
}

TEST(SimulatorPage, ListsEveryInstruction) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  std::string page = read_page(*root / "docs" / "simulator.md");
  const std::size_t begin = page.find("<!-- rows -->"), end = page.find("<!-- end of rows -->");
  ASSERT_LT(begin, end);
  ASSERT_NE(end, page.npos);
  page = page.substr(begin, end - begin);
  std::set<std::string> listed, declared;
  static const std::regex kName("`([^`]+)`");
  for (std::sregex_iterator i(page.begin(), page.end(), kName), none; i != none; ++i) listed.insert((*i)[1]);
#define KILN_PTX(name, modifiers, operands, maker) declared.insert(name);
#include "runtime/sim/insts.def"
  EXPECT_EQ(listed, declared) << "docs/simulator.md and runtime/sim/insts.def";
}

// Lines without indentation and blank lines; a line "```" is kept.
std::vector<std::string> stripped_lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find_first_not_of(' '); at != line.npos) out.push_back(line.substr(at));
  return out;
}

// The ```cpp blocks of a page.
std::vector<std::vector<std::string>> cpp_blocks(const std::string& page) {
  std::vector<std::vector<std::string>> blocks;
  bool inside = false;
  for (const std::string& line : stripped_lines(page)) {
    if (line == "```cpp") {
      inside = true;
      blocks.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back().push_back(line);
    }
  }
  return blocks;
}

void expect_only_compiled_code(const char* page, const char* test, std::size_t least) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  const auto blocks = cpp_blocks(read_page(*root / "docs" / page));
  const auto code = stripped_lines(read_page(*root / "tests" / "docs" / test));
  ASSERT_GE(blocks.size(), least);
  for (const auto& block : blocks) {
    EXPECT_NE(std::search(code.begin(), code.end(), block.begin(), block.end()), code.end())
        << "not in tests/docs/" << test << ":\n"
        << testing::PrintToString(block);
  }
}

TEST(LanguagePage, ShowsOnlyCodeThatTheTestsCompile) {
  expect_only_compiled_code("language.md", "language_test.cpp", 6);
}

TEST(LibraryPage, ShowsOnlyCodeThatTheTestsCompile) { expect_only_compiled_code("library.md", "library_test.cpp", 3); }

// Each function that a header of dsl/lib declares for users has a row in the table.
TEST(LibraryPage, HasARowForEachFunction) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  const std::string page = read_page(*root / "docs" / "library.md");
  std::size_t functions = 0;
  for (const std::string& include : stripped_lines(read_page(*root / "dsl" / "lib" / "lib.h"))) {
    if (!include.starts_with("#include \"")) continue;
    std::istringstream header(read_page(*root / include.substr(10, include.size() - 11)));
    static const std::regex declared("void (\\w+)\\(On");
    for (std::string line; std::getline(header, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, declared)) continue;
      ++functions;
      EXPECT_THAT(page, HasSubstr("| `" + found[1].str() + "(")) << include;
    }
  }
  EXPECT_GE(functions, 5u);
}

/// Every `TEST(Suite, Name)` of the tree, as Suite.Name.
std::set<std::string> tests_of(const std::filesystem::path& folder) {
  std::set<std::string> all;
  const std::regex declared(R"((?:^|\n)(?:TYPED_)?TEST(?:_F|_P)?\((\w+), (\w+)\))");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read_page(entry.path());
    for (std::sregex_iterator m(text.begin(), text.end(), declared), end; m != end; ++m)
      all.insert((*m)[1].str() + "." + (*m)[2].str());
  }
  return all;
}

TEST(Pages, NameTestsThatExist) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  const std::set<std::string> tests = tests_of(*root / "tests");
  const std::regex name("`([A-Z]\\w*\\.[A-Z]\\w*)`");
  int names = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*root / "docs")) {
    const std::string page = read_page(entry.path());
    for (std::sregex_iterator n(page.begin(), page.end(), name), end; n != end; ++n, ++names)
      EXPECT_TRUE(tests.contains((*n)[1].str())) << entry.path().filename() << ": there is no test " << (*n)[1];
  }
  EXPECT_GT(names, 80);
}

TEST(PitfallsPage, ShowsEachRowByATest) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  const std::string page = read_page(*root / "docs" / "pitfalls.md");
  const std::regex row(R"(\n\| (A\d+) \|[^\n]*\| ([^|\n]*) \|)"), name("`\\w+\\.\\w+`");
  int rows = 0;
  for (std::sregex_iterator r(page.begin(), page.end(), row), end; r != end; ++r, ++rows)
    EXPECT_TRUE(std::regex_search((*r)[2].str(), name)) << (*r)[1] << " is shown by no test";
  EXPECT_GT(rows, 30);
}

}  // namespace
}  // namespace kiln::test

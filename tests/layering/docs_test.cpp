// Pages that repeat what code declares are compared with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

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

}  // namespace
}  // namespace kiln::test

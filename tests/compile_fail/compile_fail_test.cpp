// Runs the compiler on each case of cases.cpp: it must fail with the expected text, in few lines, and case 0 must
// compile. The compiler is found when the test runs (CXX, else c++, g++, clang++ on the PATH); without one the test is
// skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/build_tree.h"

namespace kiln::test {
namespace {

constexpr int kMostLines = 48;

struct Output {
  int status = 0;
  std::string text;
};

Output run(const std::string& command) {
  Output o;
  FILE* pipe = popen(("LC_ALL=C " + command + " 2>&1").c_str(), "r");  // messages as they are, quotes in ASCII
  if (!pipe) return {-1, "popen failed"};
  std::array<char, 4096> chunk;
  while (std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) o.text.append(chunk.data(), n);
  o.status = pclose(pipe);
  return o;
}

std::string find_compiler() {
  const char* named = std::getenv("CXX");
  for (const std::string& c :
       {std::string(named ? named : ""), std::string("c++"), std::string("g++"), std::string("clang++")})
    if (!c.empty() && run(c + " --version").status == 0) return c;
  return {};
}

struct Case {
  int number = 0;
  std::vector<std::string> expected;  // one of these
};

std::vector<Case> read_cases(const std::filesystem::path& file) {
  std::vector<Case> cases;
  std::ifstream in(file);
  const std::regex row("#(?:el)?if CASE == ([0-9]+)  // EXPECT: (.*)");
  std::smatch m;
  for (std::string line; std::getline(in, line);) {
    if (!std::regex_match(line, m, row)) continue;
    Case c{std::stoi(m[1]), {}};
    const std::string texts = m[2];
    for (std::size_t at = 0; at <= texts.size();) {
      const std::size_t bar = std::min(texts.find('|', at), texts.size());
      c.expected.push_back(texts.substr(at, bar - at));
      at = bar + 1;
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

class CompileFail : public testing::Test {
 protected:
  void SetUp() override {
    if (compiler_.empty()) GTEST_SKIP() << "no C++ compiler found (CXX, c++, g++, clang++)";
    if (!source_) GTEST_SKIP() << "the source tree is not where this build was made from it";
  }
  Output compile(int number) const {
    const auto include = lib_dir().parent_path() / "include";
    return run(compiler_ + " -std=c++20 -fsyntax-only -Wall -I'" + source_->string() + "' -I'" + include.string() +
               "' -DCASE=" + std::to_string(number) + " '" + cases_file().string() + "'");
  }
  /// As many compilers at a time as there are cores.
  std::vector<Output> compile_all(const std::vector<Case>& cases) const {
    std::vector<Output> outputs(cases.size());
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> workers;
    for (unsigned w = 0; w < std::max(1u, std::thread::hardware_concurrency()); ++w)
      workers.emplace_back([&] {
        for (std::size_t i; (i = next++) < cases.size();) outputs[i] = compile(cases[i].number);
      });
    for (std::thread& w : workers) w.join();
    return outputs;
  }
  std::filesystem::path cases_file() const { return *source_ / "tests" / "compile_fail" / "cases.cpp"; }

  const std::string compiler_ = find_compiler();
  const std::optional<std::filesystem::path> source_ = source_dir();
};

TEST_F(CompileFail, ControlCompiles) {
  const Output o = compile(0);
  EXPECT_EQ(o.status, 0) << o.text;
}

TEST_F(CompileFail, EveryCaseFailsWithItsText) {
  const std::vector<Case> cases = read_cases(cases_file());
  ASSERT_GT(cases.size(), 40u);
  const std::vector<Output> outputs = compile_all(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const Output& o = outputs[i];
    EXPECT_NE(o.status, 0) << "case " << c.number << " compiles";
    const bool found = std::any_of(c.expected.begin(), c.expected.end(),
                                   [&](const std::string& e) { return o.text.find(e) != std::string::npos; });
    EXPECT_TRUE(found) << "case " << c.number << " says:\n" << o.text;
    EXPECT_LE(std::count(o.text.begin(), o.text.end(), '\n'), kMostLines) << "case " << c.number << ":\n" << o.text;
  }
}

}  // namespace
}  // namespace kiln::test

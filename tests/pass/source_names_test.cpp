// Which variable a place in a C++ file gives its value to.
#include "backend/pass/source_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::ir {
namespace {

using testing::ElementsAre;

/// Names of the statement around each '^' of the text, which is taken out; - where there are none.
std::vector<std::string> names(std::string text) {
  std::vector<std::pair<unsigned, unsigned>> places;
  unsigned line = 1, column = 1;
  std::string source;
  for (char c : text) {
    if (c == '^') {
      places.emplace_back(line, column);
      continue;
    }
    source += c;
    ++column;
    if (c == '\n') ++line, column = 1;
  }
  const SourceNames found(source);
  std::vector<std::string> out;
  for (const auto& [l, c] : places) {
    const std::size_t s = found.at(l, c);
    std::string all;
    if (s != SourceNames::npos)
      for (const std::string& name : found.statement(s).names) all += (all.empty() ? "" : " ") + name;
    out.push_back(all.empty() ? "-" : all);
  }
  return out;
}

TEST(SourceNames, DeclarationsAndAssignments) {
  EXPECT_THAT(names(R"(void f() {
  Tile x = ^load(a);
  const kiln::Tile& y = ^x;
  auto z{^load(b)};
  std::vector<float> w(^x);
  Scalar m = ^program_id(0) * 4, n = ^program_id(1),
         k = 3 + ^n;
  x = ^x + 1;
  x += ^y;
  store(^c, x);
  return ^x;
})"),
              ElementsAre("x", "y", "z", "w", "m", "n", "k", "x", "x", "-", "-"));
}

TEST(SourceNames, StatementsInsideOfOthers) {
  EXPECT_THAT(names(R"(constinit auto k = kernel("k{", [](In<float> a, Const<int> N) {
  Tile x = ^load(a + arange(N), {^N, 3});  // a comment: y = {
  if_(^x > 1, [&] { x = ^x * 2; }, [&] {
    store(^a, x);
  });
  Tile r = ^reduce(x, 0, [](Scalar p, Scalar q) { return ^p + q; });
});
auto next = ^kernel("n", [] {});)"),
              ElementsAre("x", "-", "-", "x", "-", "r", "-", "next"));
}

TEST(SourceNames, LoopsAndBranches) {
  EXPECT_THAT(names(R"(void f() {
  for (auto k : ^range(0, n)) acc = dot(^a, b, acc);
  for (int u = ^0; u < 4; ++u) {
    if (u == 2) y = ^exp(x);
    else z = ^exp(x);
  }
  Tile t = ^x;
}
int g(int a) { return ^a; }
Tile h = ^2;)"),
              ElementsAre("k", "acc", "-", "y", "z", "t", "-", "h"));
}

TEST(SourceNames, StructuredBindings) {
  EXPECT_THAT(names("auto [low, high] = ^split(x);\nconst auto& [a] = ^b;"), ElementsAre("low high", "a"));
}

TEST(SourceNames, WhateverElseIsInAFile) {
  EXPECT_THAT(names(R"x(#include <a>
#define M(x) { x = 1; \
  (
char c = '{'; const char* s = "\"{"; auto raw = R"({(")"; int i = 1'000 + ^2;
/* { */ Tile x = ^load(a);
namespace n { class C { Tile y = ^z; void f() { w = ^1; } }; } Tile v = ^1;
Tile open = f(^1, {)x"),
              ElementsAre("i", "x", "y", "w", "v", "open"));
  EXPECT_THAT(names("}}} Tile x = ^1; ) ] Tile y = ^1;"), ElementsAre("x", "-"));
}

TEST(SourceNames, NamesParametersOfALambda) {
  const SourceNames s(
      "auto a = kernel(\"a\", [](In<float> x, View<const bf16, 2> y, Int n, Const<int>,\n"
      "    kiln::Int k = 3, float* p, In<float>) { f([](int z) {}); });\n");
  EXPECT_THAT(s.parameters(1, 10), ElementsAre("x", "y", "n", "", "k", "p", ""));
  EXPECT_THAT(s.parameters(3, 1), ElementsAre());
}

}  // namespace
}  // namespace kiln::ir

// Every instruction knows the user's line, however it came to be.
#include <gtest/gtest.h>

#include <set>

#include "backend/ir/function.h"
#include "dsl/kiln.h"

namespace kiln::test {
namespace {

// clang-format off: each expectation counts lines

/// Lines of the instructions of `op`, from this file.
std::multiset<int> lines_of(const Trace& t, ir::Op op) {
  std::multiset<int> lines;
  ir::walk(t.function(), [&](ir::InstId i) {
    const ir::Inst& inst = t.function().inst(i);
    if (inst.op != op) return;
    EXPECT_STREQ(inst.loc.file, __FILE__);
    lines.insert(int(inst.loc.line));
  });
  return lines;
}

Tile helper(const Tile& x) {
  return x * x;
}
constexpr int kHelperLine = __LINE__ - 2;

TEST(LangLocation, OperatorsOfAnExpressionOverSeveralLines) {
  auto k = kernel("lines", [](Out<float> o, Int n) {
    Tile x = arange(4).cast(f32);
    Tile y = x
             + 1.f
             - n.cast(f32);
    y *= 2;
    y = helper(y);
    store(o + arange(4), y);
  });
  constexpr int kLast = __LINE__ - 2;
  const Trace t = k.trace(device_ptr<float>(0), 3);
  EXPECT_EQ(lines_of(t, ir::Op::Add), std::multiset<int>{kLast - 4});
  EXPECT_EQ(lines_of(t, ir::Op::Sub), std::multiset<int>{kLast - 3});
  EXPECT_EQ(lines_of(t, ir::Op::Mul), (std::multiset<int>{kLast - 2, kHelperLine}));
  EXPECT_EQ(lines_of(t, ir::Op::Store), std::multiset<int>{kLast});
}

TEST(LangLocation, LogicTakesTheLineOfAnOperand) {
  auto k = kernel("logic", [](Out<bool> o, Int n) {
    Scalar a = 0 <= n;
    Scalar b = n < 8;
    store(o, a && b);
  });
  constexpr int kFirst = __LINE__ - 4;
  EXPECT_EQ(lines_of(k.trace(device_ptr<bool>(0), 3), ir::Op::And), std::multiset<int>{kFirst});
}

TEST(LangLocation, KernelKnowsWhereItWasDefined) {
  auto k = kernel("defined", [](Out<float> o) { store(o, 1.f); });
  EXPECT_EQ(int(k.trace(device_ptr<float>(0)).function().loc.line), __LINE__ - 1);
}

// clang-format on

}  // namespace
}  // namespace kiln::test

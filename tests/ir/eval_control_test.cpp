// Control flow on the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ir/run.h"

namespace kiln::ir::test {
namespace {

using testing::ElementsAre;

/// A kernel that stores two i64 results of `body`, which defines %a and %b from parameters %lo, %hi, %step.
std::vector<std::int64_t> run(const std::string& body, std::int64_t lo = 0, std::int64_t hi = 0,
                              std::int64_t step = 1) {
  std::vector<std::int64_t> out(2, -99);
  Launch(R"(kernel "k" stage=traced
param "out" : ptr<index> access=write
param "lo" : index access=read
param "hi" : index access=read
param "step" : index access=read
{
  %out = param index=0 : ptr<index>
  %lo = param index=1 : index
  %hi = param index=2 : index
  %step = param index=3 : index
  %zero = constant value=index(0) : index
  %one = constant value=index(1) : index
)" + body +
         R"(
  store %out, %a
  %next = ptr_add %out, %one : ptr<index>
  store %next, %b
})")
      .array(out)
      .index(lo)
      .index(hi)
      .index(step)();
  return out;
}

// a: sum of the induction variable; b: trips.
const std::string kSum = R"(
  %a, %b = for %lo, %hi, %step, %zero, %zero : index, index loc("k.cpp":7:1) {(%i : index, %s : index, %n : index)
    %s1 = add %s, %i : index
    %n1 = add %n, %one : index
    yield %s1, %n1
  })";

TEST(EvalFor, CountsUpAndDown) {
  EXPECT_THAT(run(kSum, 0, 5, 1), ElementsAre(10, 5));
  EXPECT_THAT(run(kSum, 1, 10, 4), ElementsAre(1 + 5 + 9, 3));
  EXPECT_THAT(run(kSum, 4, -1, -1), ElementsAre(10, 5));
  EXPECT_THAT(run(kSum, 9, 0, -4), ElementsAre(9 + 5 + 1, 3));
}

TEST(EvalFor, OfZeroTripsKeepsTheInitialValues) {
  EXPECT_THAT(run(kSum, 5, 5, 1), ElementsAre(0, 0));
  EXPECT_THAT(run(kSum, 6, 5, 1), ElementsAre(0, 0));
  EXPECT_THAT(run(kSum, 5, 6, -1), ElementsAre(0, 0));
}

TEST(EvalFor, StopsWhereTheInductionVariableWouldWrap) {
  EXPECT_THAT(run(kSum, INT64_MAX - 1, INT64_MAX, 1), ElementsAre(INT64_MAX - 1, 1));
  EXPECT_EQ(run(kSum, INT64_MAX - 3, INT64_MAX, 2)[1], 2);
  EXPECT_EQ(run(kSum, INT64_MIN + 1, INT64_MIN, -5)[1], 1);
}

TEST(EvalFor, OfStepZeroNeverRuns) { EXPECT_THAT(run(kSum, 0, 1, 0), ElementsAre(0, 0)); }

// The i1 tells after which trip to stop; what that trip computed counts.
TEST(EvalFor, EndsAfterTheTripThatSetsStop) {
  const std::string loop = R"(
  %no = constant value=i1(0) : i1
  %five = constant value=index(5) : index
  %a, %s = for stop=2 %lo, %hi, %step, %zero, %no : index, i1 {(%i : index, %x : index, %q : i1)
    %y = add %x, %i : index
    %stop = ge %y, %five : i1
    yield %y, %stop
  }
  %b = cast %s : index)";
  EXPECT_THAT(run(loop, 0, 9, 1), ElementsAre(6, 1));
  EXPECT_THAT(run(loop, 0, 3, 1), ElementsAre(3, 0));
}

TEST(EvalFor, CarriedValuesMayBeExchanged) {  // Fibonacci: (a, b) = (b, a + b)
  EXPECT_THAT(run(R"(
  %a, %b = for %lo, %hi, %step, %zero, %one : index, index {(%i : index, %x : index, %y : index)
    %z = add %x, %y : index
    yield %y, %z
  })",
                  0, 10),
              ElementsAre(55, 89));
  EXPECT_THAT(run(R"(
  %a, %b = for %lo, %hi, %step, %zero, %one : index, index {(%i : index, %x : index, %y : index)
    yield %y, %x
  })",
                  0, 3),
              ElementsAre(1, 0));
}

TEST(EvalFor, Nests) {  // a: sum over i < 4 of sum over j < i of j
  EXPECT_THAT(run(R"(
  %a = for %zero, %hi, %one, %zero : index {(%i : index, %s : index)
    %t = for %zero, %i, %one, %s : index {(%j : index, %u : index)
      %v = add %u, %j : index
      yield %v
    }
    yield %t
  }
  %b = add %zero, %one : index)",
                  0, 4),
              ElementsAre(0 + 0 + 1 + 3, 1));
}

TEST(EvalFor, CarriesTilesAndRunsEffectsInOrder) {
  std::vector<float> data{1, 2, 3, 4};
  Launch(R"(kernel "k" stage=traced
param "p" : ptr<f32> access=readwrite
{
  %p = param index=0 : ptr<f32>
  %zero = constant value=i32(0) : i32
  %three = constant value=i32(3) : i32
  %one = constant value=i32(1) : i32
  %ps = splat %p : tile<4xptr<f32>>
  %i = arange start=0 end=4 : tile<4xindex>
  %at = ptr_add %ps, %i : tile<4xptr<f32>>
  %x = load %at : tile<4xf32>
  %r = for %zero, %three, %one, %x : tile<4xf32> {(%k : i32, %t : tile<4xf32>)
    %old = load %at : tile<4xf32>
    %u = add %t, %old : tile<4xf32>
    store %at, %u
    yield %u
  }
})")
      .array(data)();
  EXPECT_THAT(data, ElementsAre(8, 16, 24, 32));  // 1: t = 2, 4, 8
}

TEST(EvalFor, OfUnsignedBoundsCountsUnsigned) {
  std::vector<std::int32_t> out(1);
  Launch(R"(kernel "k" stage=traced
param "p" : ptr<i32> access=write
{
  %p = param index=0 : ptr<i32>
  %lo = constant value=u8(200) : u8
  %hi = constant value=u8(255) : u8
  %step = constant value=u8(200) : u8
  %zero = constant value=i32(0) : i32
  %one = constant value=i32(1) : i32
  %n = for %lo, %hi, %step, %zero : i32 {(%i : u8, %k : i32)
    %m = add %k, %one : i32
    yield %m
  }
  store %p, %n
})")
      .array(out)();
  EXPECT_EQ(out[0], 1);  // 200, then 400 wraps: the bound is passed
}

const std::string kDouble = R"(
  %a, %b = while %lo, %zero : index, index {(%x : index, %n : index)
    %more = lt %x, %hi : i1
    yield %more
  } {(%y : index, %m : index)
    %two = add %y, %y : index
    %m1 = add %m, %one : index
    yield %two, %m1
  })";

TEST(EvalWhile, TestsBeforeEveryTrip) {
  EXPECT_THAT(run(kDouble, 1, 100), ElementsAre(128, 7));
  EXPECT_THAT(run(kDouble, 100, 100), ElementsAre(100, 0));
}

const std::string kBranch = R"(
  %c = lt %lo, %hi : i1
  %a, %b = if %c : index, index {
    %s = sub %hi, %lo : index
    yield %s, %one
  } {
    %d = if %c : index {
      yield %lo
    } {
      %t = sub %lo, %hi : index
      yield %t
    }
    yield %d, %zero
  })";

TEST(EvalIf, RunsOneRegion) {
  EXPECT_THAT(run(kBranch, 2, 9), ElementsAre(7, 1));
  EXPECT_THAT(run(kBranch, 9, 2), ElementsAre(7, 0));
}

TEST(EvalIf, HasEffectsOnlyOfTheRegionTaken) {
  const std::string text = R"(kernel "k" stage=traced
param "p" : ptr<i32> access=write
param "c" : i1 access=read
{
  %p = param index=0 : ptr<i32>
  %c = param index=1 : i1
  %1 = constant value=i32(1) : i32
  %2 = constant value=i32(2) : i32
  if %c {
    store %p, %1
    yield
  } {
    store %p, %2
    yield
  }
})";
  for (const std::uint64_t taken : {1, 0}) {
    std::vector<std::int32_t> out(1);
    Launch(text).array(out).arg({DType::i1, taken})();
    EXPECT_EQ(out[0], taken ? 1 : 2);
  }
}

TEST(EvalControl, LaterStagesMeanTheSame) {  // layouts, exec and convert change nothing
  std::vector<std::int64_t> out(64);
  Launch(R"(kernel "k" stage=laid
exec team=cta warps=2 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0
param "p" : ptr<index> access=write
layout #0 = [lane=(1)(2)(4)(8)(16) warp=(32)] -> 64
layout #1 = [register=(1) lane=(2)(4)(8)(16)(32) warp=(0)] -> 64
{
  %0 = arange start=0 end=64 : tile<64xindex, #0>
  %1 = convert %0 : tile<64xindex, #1>
  %2 = param index=0 : ptr<index>
  %3 = splat %2 : tile<64xptr<index>, #1>
  %4 = ptr_add %3, %1 : tile<64xptr<index>, #1>
  store %4, %1
})")
      .array(out)();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[std::size_t(i)], i);
}

}  // namespace
}  // namespace kiln::ir::test

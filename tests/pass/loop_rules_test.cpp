// What canonicalise and unroll-loops do with control flow.
#include "tests/pass/pass_fixture.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

using enum ir::Pass;
using testing::HasSubstr;
using testing::Not;

const std::string kParams = "param : ptr<f32> access=readwrite\nparam : index access=read\n";
const std::string kHead = R"(
  %p = param index=0 : ptr<f32>
  %n = param index=1 : index
  %zero = constant value=index(0) : index
  %one = constant value=index(1) : index
)";

TEST(LoopRules, InvariantsLeaveLoopsBranchesInThemIncluded) {
  EXPECT_PASS(kernel(kParams, kHead + R"(
  for %zero, %n, %one {(%i : index)
    for %zero, %i, %one {(%j : index)
      %two = constant value=index(2) : index
      %m = mul %n, %two : index
      %c = lt %j, %m : i1
      if %c {
        %a = sub %m, %n : index
        %q = ptr_add %p, %a : ptr<f32>
        %x = load %q : f32
        store %q, %x
        yield
      } {
        yield
      }
      %k = mul %i, %m : index
      %r = ptr_add %p, %k : ptr<f32>
      %y = load %r : f32
      store %r, %y
      yield
    }
    yield
  }
  // CHECK: {
  // CHECK: mul
  // CHECK: sub
  // CHECK: ptr_add
  // CHECK: for
  // CHECK-NEXT: mul
  // CHECK-NEXT: ptr_add
  // CHECK-NEXT: for
  // CHECK-NEXT: lt
  // CHECK-NEXT: if
  // CHECK-NEXT: load
  // CHECK-NEXT: store
  // CHECK-NEXT: yield
)"),
              canonicalise);
}

TEST(LoopRules, CarriedValuesThatNothingNeedsGo) {
  // a: unused; b: unused, but it decides what is stored; c: never changes; d: only for itself and a.
  const std::string text = after({canonicalise}, kernel(kParams, kHead + R"(
  %a, %b, %c, %d = for %zero, %n, %one, %one, %one, %n, %zero : index, index, index, index {(%i : index, %a0 : index, %b0 : index, %c0 : index, %d0 : index)
    %a1 = add %a0, %d0 : index
    %b1 = add %b0, %c0 : index
    %d1 = mul %d0, %c0 : index
    %q = ptr_add %p, %b1 : ptr<f32>
    %x = load %q : f32
    store %p, %x
    yield %a1, %b1, %c0, %d1
  }
  %e = ptr_add %p, %c : ptr<f32>
  %y = load %e : f32
  store %p, %y
)"));
  EXPECT_THAT(text, HasSubstr("= for %2, %1, %3, %3 : index {"));
  EXPECT_THAT(text, Not(HasSubstr("mul")));
}

TEST(LoopRules, DeadResultsOfBranchesAndWhileGo) {
  const std::string text = after({canonicalise}, kernel(kParams, kHead + R"(
  %c = lt %n, %one : i1
  %a, %b = if %c : index, index {
    %x = add %n, %one : index
    yield %x, %n
  } {
    yield %one, %n
  }
  %u, %v = while %b, %zero : index, index {(%w : index, %s : index)
    %again = lt %w, %one : i1
    yield %again
  } {(%w2 : index, %s2 : index)
    %w3 = add %w2, %one : index
    %s3 = add %s2, %w2 : index
    yield %w3, %s3
  }
  %q = ptr_add %p, %u : ptr<f32>
  %y = load %q : f32
  store %p, %y
)"));
  EXPECT_THAT(text, Not(HasSubstr("if ")));
  EXPECT_THAT(text, HasSubstr("= while %1 : index {"));
}

TEST(LoopRules, StopIsKeptAndRenumbered) {
  const std::string text = after({canonicalise}, kernel(kParams, kHead + R"(
  %no = constant value=i1(0) : i1
  %a, %s = for stop=2 %zero, %n, %one, %zero, %no : index, i1 {(%i : index, %a0 : index, %s0 : i1)
    %a1 = add %a0, %i : index
    %q = ptr_add %p, %i : ptr<f32>
    %x = load %q : f32
    store %p, %x
    %s1 = gt %i, %one : i1
    yield %a1, %s1
  }
)"));
  EXPECT_THAT(text, HasSubstr("for stop=1 "));
}

TEST(UnrollLoops, HeadOfThePassFile) {
  EXPECT_PASS(kernel(kParams, kHead + R"(
  %five = constant value=index(5) : index
  %s = for unroll=2 %zero, %five, %one, %zero : index {(%i : index, %a : index)
    %b = sub %i, %a : index
    yield %b
  }
  %q = ptr_add %p, %s : ptr<f32>
  %y = load %q : f32
  store %p, %y
  // CHECK: for
  // CHECK-NEXT: sub
  // CHECK-NEXT: add
  // CHECK-NEXT: sub
  // CHECK-NEXT: yield
  // CHECK: constant value=index(4)
  // CHECK-NEXT: sub
  // CHECK-NEXT: ptr_add
)"),
              canonicalise);
}

TEST(UnrollLoops, LoopsOfUnknownTripsStayAndTooManyCopiesAreRefused) {
  const auto unrolled = [](const std::string& hint) {
    return after({canonicalise}, kernel(kParams, kHead + "  %big = constant value=index(100000) : index\n  for " + hint +
                                                     " loc(\"k.cpp\":3:1) {(%i : index)\n    %x = load %p : f32\n"
                                                     "    store %p, %x\n    yield\n  }\n"));
  };
  EXPECT_THAT(unrolled("unroll=4 %zero, %n, %one"), HasSubstr("for %"));
  EXPECT_EQ(error_of<UserError>([&] { (void)unrolled("unroll=-1 %zero, %big, %one"); }),
            "k.cpp:3: error: range: unroll(): 100000 copies of 3 operations are more than 65536");
}

}  // namespace
}  // namespace kiln::test

// Control flow that must be refused while it is traced, each at the user's line.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "dsl/kiln.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

// clang-format off: each expectation counts lines

/// Tracing `f`(o, n) fails with `part` at `line` of this file.
template <class F>
void expect_refused(const char* part, int line, F f) {
  auto k = kernel("bad", f);
  expect_user_error([&] { (void)k.trace(device_ptr<float>(256), 5); }, part, __FILE__, line);
}

void put(const Scalar& p, const Scalar& x) { store(p, x.cast(f32)); }

// --- leaving a body ---------------------------------------------------------------------------------------------------

TEST(ControlError, BodiesAreLeftAtTheirEnd) {
  expect_refused("break, return or goto left this traced loop", __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar s = n;
    for (auto i : range(n)) { s += i; break; }
    put(o, s);
  });
  expect_refused("break, return or goto left this traced loop", __LINE__ + 2, [](Out<float> o, Int n) {
    auto f = [&]() -> Scalar {
      for (auto i : range(n)) return i + 1;
      return n;
    };
    put(o, f());
  });
  expect_refused("an exception left this traced loop", __LINE__ + 2, [](Out<float> o, Int n) {
    try {
      for (auto i : range(n)) { (void)i; throw 1; }
    } catch (int) {}
    store(o, 1.f);
  });
  expect_refused("an exception left this traced branch", __LINE__ + 2, [](Out<float> o, Int n) {
    try {
      if_(n > 3, [&] { store(o, 1.f); throw 1; });
    } catch (int) {}
    store(o, 1.f);
  });
  expect_refused("an exception left this traced loop", __LINE__ + 2, [](Out<float> o, Int n) {
    try {
      while_([&] { return n > 3; }, [&] { n -= 1; throw 1; });
    } catch (int) {}
    store(o, 1.f);
  });
}

// --- C++ state --------------------------------------------------------------------------------------------------------

TEST(ControlError, CppStateChangedInALoop) {
  expect_refused("depends on C++ state that a traced loop or branch changes", __LINE__ + 3, [](Out<float> o, Int n) {
    int count = 0;
    for (auto i : range(n)) { (void)i; ++count; }
    store(o, float(count));
  });
  expect_refused("depends on C++ state", __LINE__ + 3, [](Out<float> o, Int n) {
    Scalar s = n; bool first = true;
    for (auto i : range(n)) {
      if (first) s = i + 2; else s += i;
      first = false;
    }
    put(o, s);
  });
  expect_refused("depends on C++ state", __LINE__ + 3, [](Out<float> o, Int n) {
    float k = 0;
    for (auto i : range(n)) { (void)i; k = 3; }
    store(o, k);
  });
  expect_refused("depends on C++ state", __LINE__ + 7, [](Out<float> o, Int n) {
    Scalar a = n, b = n;
    Scalar* p = &a;
    for (auto i : range(n)) {
      *p += i;
      p = &b;
    }
    put(o, a + b);
  });
  expect_refused("depends on C++ state", __LINE__ + 3, [](Out<float> o, Int n) {
    static int calls = 0;
    ++calls;
    for (auto i : range(n)) { (void)i; store(o, float(calls)); }
  });
  expect_refused("depends on C++ state", __LINE__ + 3, [](Out<float> o, Int n) {  // in the second of two levels
    int count = 0;
    for (auto i : range(n)) for (auto j : range(i)) { (void)j; ++count; }
    store(o, float(count));
  });
  expect_refused("depends on C++ state", __LINE__ + 3, [](Out<float> o, Int n) {  // toggled: two runs look like none
    bool odd = false;
    while_([&] { return n > 0; }, [&] { n -= 1; odd = !odd; });
    store(o, odd ? 1.f : 0.f);
  });
}

TEST(ControlError, CppStateChangedInABranch) {
  expect_refused("depends on C++ state", __LINE__ + 3, [](Out<float> o, Int n) {
    float k = 0;
    if_(n > 7, [&] { k = 3; store(o, 1.f); });
    store(o, k);
  });
  expect_refused("depends on C++ state", __LINE__ + 4, [](Out<float> o, Int n) {
    for (auto i : range(n)) {
      float k = 0;
      if_(i > 7, [&] { k = 3; store(o, 1.f); });
      store(o, k);
    }
  });
  expect_refused("depends on C++ state", __LINE__ + 2, [](Out<float> o, Int n) {
    float k = 0;
    if_(n > 7, [&] { k = 3; store(o, 1.f); }, [&] { store(o, k); });
  });
  expect_refused("depends on C++ state", __LINE__ + 2, [](Out<float> o, Int n) {
    float k = 0;
    for (auto i : range(n)) if_(i > 7, [&] { store(o, k); }, [&] { k = 3; store(o, 1.f); });
  });
}

// --- handles and bodies -----------------------------------------------------------------------------------------------

TEST(ControlError, HandlesMadeInABodyDieInIt) {
  expect_refused("made inside this traced body outlives it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::vector<Scalar> v; v.reserve(100);
    for (auto i : range(n)) v.push_back(i);
    put(o, v[0]);
  });
  expect_refused("made inside this traced body outlives it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::optional<Scalar> v;
    for (auto i : range(n)) v = i;
    put(o, *v);
  });
  expect_refused("made inside this traced body outlives it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::function<Scalar()> f;
    for (auto i : range(n)) f = [i] { return i + 1; };
    put(o, f());
  });
  expect_refused("made inside this traced body outlives it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::vector<Scalar> v; v.reserve(4);
    if_(n > 3, [&] { v.push_back(n); });
    put(o, v[0]);
  });
  expect_refused("made inside this traced body outlives it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::optional<Range> r;
    if_(n > 3, [&] { r.emplace(range(n + 1)); store(o, 1.f); });
    for (auto i : *r) put(o, i);
  });
  static std::optional<Scalar> kept;
  expect_refused("made inside this traced body outlives it", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n)) {
      kept = i;
      put(o, i);
    }
  });
  kept.reset();
}

TEST(ControlError, HandlesMadeOutsideDoNotDieInABody) {
  expect_refused("made outside this traced loop or branch is destroyed inside it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::vector<Scalar> v{1}; v.shrink_to_fit();
    for (auto i : range(n)) v.push_back(i);
    put(o, v[0]);
  });
  expect_refused("made outside this traced loop or branch is destroyed inside it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::optional<Scalar> v = Scalar(1);
    for (auto i : range(n)) { (void)i; v.reset(); }
    store(o, 1.f);
  });
  expect_refused("made outside this traced loop or branch is destroyed inside it", __LINE__ + 2, [](Out<float> o, Int n) {
    std::optional<Scalar> v = Scalar(1);
    if_(n > 3, [&] { v.reset(); store(o, 1.f); });
    store(o, 1.f);
  });
}

// --- types ------------------------------------------------------------------------------------------------------------

TEST(ControlError, TypesAreFixedOverALoop) {
  const std::string before = std::string(__FILE__) + ":" + std::to_string(__LINE__ + 2);
  expect_refused(("changes the type of a variable: i32 before it (" + before + "), f32 after one iteration").c_str(), __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar s = 0; for (auto i : range(n)) { (void)i;
      s = s + 1.5f;
    }
    put(o, s);
  });
  expect_refused("changes the type of a variable: tile<1xf32> before it", __LINE__ + 3, [](Out<float> o, Int n) {
    Tile t = zeros(f32, {1});
    for (auto i : range(n)) { (void)i;
      t = t + arange(4).cast(f32);
    }
    store(o + arange(4), t);
  });
  expect_refused("changes the type of a variable: i32 before it", __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar s = 0;
    while_([&] { return s < n; }, [&] { s = s + n; });
    put(o, s);
  });
  expect_refused("a variable changes its type after the continue_if or break_if", __LINE__ + 4, [](Out<float> o, Int n) {
    Scalar s = 0;
    for (auto i : range(n)) {
      continue_if(i > 3);
      s = s + i;
    }
    put(o, s);
  });
}

// Indices have 64 bits, and a C++ 0 is an i32: the message says what to write.
TEST(ControlError, ASumOfIndicesIsToldHowToBegin) {
  expect_refused("i32 before it", __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar s = 0;
    for (auto i : range(n)) s += i;
    put(o, s);
  });
  expect_refused("index after one iteration", __LINE__ + 1, [](Out<float> o, Int n) {
    Scalar s = 7; for (auto i : range(n)) s += i;
    put(o, s);
  });
  const auto told = [](auto f) {
    const auto k = kernel("bad", f);
    return error_of<UserError>([&] { (void)k.trace(device_ptr<float>(256), 5); });
  };
  EXPECT_THAT(told([](Out<float> o, Int n) { Scalar s = -7; for (auto i : range(n)) s += i; put(o, s); }),
              testing::HasSubstr("; start it as Scalar(-7).cast(DType::index)"));
  EXPECT_THAT(told([](Out<float> o, Int n) { Scalar s = 0.5f; for (auto i : range(n)) { (void)i; s += Scalar(1).cast(f64); } put(o, s); }),
              testing::HasSubstr("; start it as Scalar(0.5).cast(DType::f64)"));
  EXPECT_THAT(told([](Out<float> o, Int n) { Scalar s = load(o).cast(i32); for (auto i : range(n)) s += i; put(o, s); }),
              testing::HasSubstr("; give it the latter type before the loop with .cast(DType::index), or cast what the body gives it"));
  EXPECT_THAT(told([](Out<float> o, Int n) { Scalar s = 0; for (auto i : range(n)) { continue_if(i > 2); s += i; } put(o, s); }),
              testing::HasSubstr("; give it the latter type before the loop with .cast(DType::index), or cast what the body gives it"));
  EXPECT_THAT(told([](Out<float> o, Int n) { Tile t = zeros(f32, {1}); for (auto i : range(n)) { (void)i; t = t + arange(4).cast(f32); } store(o + arange(4), t); }),
              testing::HasSubstr("; a loop keeps the shapes of its tiles: give it the latter shape before"));
}

TEST(ControlError, BranchesAgreeInType) {
  expect_refused("the branches of this if_ give a variable different types: i32", __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar s;
    if_(n > 3, [&] { s = 1; }, [&] { s = 2.f; });
    put(o, s);
  });
  expect_refused("the branches of this if_ give its results different types: index", __LINE__ + 1, [](Out<float> o, Int n) {
    put(o, if_(n > 3, [&] { return n + 0; }, [&] { return Scalar(2.f); }));
  });
}

// --- values that may be missing ---------------------------------------------------------------------------------------

TEST(ControlError, UsedBeforeItIsSurelyAssigned) {
  expect_refused("this variable is used before it is assigned", __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar s;
    for (auto i : range(n)) { s = s + i; }
    put(o, s);
  });
  const auto names_the_loop = std::string("assigned only inside the loop or branch at ") + __FILE__ + ":" + std::to_string(__LINE__ + 3) + ", which may not run";
  expect_refused(names_the_loop.c_str(), __LINE__ + 3, [](Out<float> o, Int n) {
    Scalar s;
    for (auto i : range(n)) s = i;
    store(o, (s + 1).cast(f32));
  });
  expect_refused("which may not run; give it a value before", __LINE__ + 3, [](Out<float> o, Int n) {
    Scalar s;
    if_(n > 3, [&] { s = 1; });
    store(o, (s + 1).cast(f32));
  });
  expect_refused("which may not run", __LINE__ + 3, [](Out<float> o, Int n) {
    Scalar t;
    for (auto i : range(n)) { continue_if(i > 2); t = i; }
    store(o, (t + 1).cast(f32));
  });
}

// --- conditions -------------------------------------------------------------------------------------------------------

TEST(ControlError, EmptyBranches) {
  expect_refused("the then branch of this if_ does nothing; `return` inside it leaves only the lambda", __LINE__ + 1, [](Out<float> o, Int n) {
    if_(n > 3, [&] { return; });
    store(o, 1.f);
  });
  expect_refused("the else branch of this if_ does nothing", __LINE__ + 1, [](Out<float> o, Int n) {
    if_(n > 3, [&] { store(o, 1.f); }, [&] {});
  });
}

TEST(ControlError, ConditionsAreScalarI1) {
  expect_refused("the condition must be a scalar i1, not index; compare it with something", __LINE__ + 1, [](Out<float> o, Int n) {
    if_(n, [&] { store(o, 1.f); });
  });
  expect_refused("the condition must be a scalar i1, not i32", __LINE__ + 1, [](Out<float> o, Int n) {
    if_(n.cast(i32), [&] { store(o, 1.f); });
  });
  expect_refused("the condition must be a scalar i1, not tile<4xi1>; use select(cond, a, b) on tiles", __LINE__ + 1, [](Out<float> o, Int n) {
    if_(arange(4) < n, [&] { store(o, 1.f); });
  });
  expect_refused("the condition must be a scalar i1, not index", __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar m = 1;
    if_(m = n, [&] { store(o, 1.f); });
  });
  expect_refused("the condition must be a scalar i1, not index", __LINE__ + 1, [](Out<float> o, Int n) {
    while_([&] { return n; }, [&] { store(o, 1.f); });
  });
  expect_refused("the condition must be a scalar i1, not index", __LINE__ + 1, [](Out<float> o, Int n) {
    return_if(n);
    store(o, 1.f);
  });
  expect_refused("the condition must be a scalar i1, not index", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n)) { break_if(i); store(o, 1.f); }
  });
}

TEST(ControlError, WhereTheyMayStand) {
  expect_refused("the condition of while_ assigns a variable of the outside", __LINE__ + 2, [](Out<float> o, Int n) {
    Scalar i = n;
    while_([&] { i += 1; return i < n; }, [&] { store(o, 1.f); });
  });
  expect_refused("return_if must stand at the top level of the kernel", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n)) { return_if(i > 2); store(o, 1.f); }
  });
  expect_refused("continue_if and break_if must stand directly in the body of a traced loop", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n)) if_(i > 1, [&] { continue_if(i > 2); store(o, 1.f); });
  });
  expect_refused("continue_if and break_if must stand directly in the body of a traced loop", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n)) if_(i > 1, [&] { break_if(i > 2); store(o, 1.f); });
  });
  expect_refused("continue_if and break_if must stand directly in the body of a traced loop", __LINE__ + 1, [](Out<float> o, Int n) {
    continue_if(n > 1);
    store(o, 1.f);
  });
  expect_refused("break_if in while_ is not supported; put the condition into while_", __LINE__ + 1, [](Out<float> o, Int n) {
    while_([&] { return n > 0; }, [&] { break_if(n > 3); n -= 1; });
    store(o, 1.f);
  });
}

// --- ranges -----------------------------------------------------------------------------------------------------------

TEST(ControlError, Bounds) {
  expect_refused("range: bounds must be integers, not 1.5", __LINE__ + 1, [](Out<float> o, Int) {
    for (auto i : range(0, 1.5f)) put(o, i);
  });
  expect_refused("range: bounds must be integer scalars, not f32", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n.cast(f32))) put(o, i);
  });
  expect_refused("range: step is 0", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(0, n, 0)) put(o, i);
  });
  expect_refused("range: the constant -1 does not fit u32", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n.cast(u32), 0, -1)) put(o, i);
  });
  expect_refused("range: no dtype holds both u64 and index; cast one of them", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n.cast(u64), n)) put(o, i);
  });
}

TEST(ControlError, RangesAreIteratedByTheirLoop) {
  expect_refused("this range is already being iterated", __LINE__ + 1, [](Out<float> o, Int n) {
    auto r = range(n);
    for (auto i : r) for (auto j : r) put(o, i + j);
  });
  expect_refused("the iterator of a traced range may be dereferenced once per step", __LINE__ + 1, [](Out<float> o, Int n) {
    auto r = range(n);
    for (auto it = r.begin(); it != r.end(); ++it) { put(o, *it + *it); }
  });
  expect_refused("while another traced loop is open inside it", __LINE__ + 1, [](Out<float> o, Int n) {
    auto r = range(n); auto q = range(n);
    auto a = r.begin(); auto b = q.begin();
    put(o, *b + *a);
    ++a; ++b;
  });
  expect_refused("this traced range is advanced while another traced loop or branch is open inside it", __LINE__ + 1, [](Out<float> o, Int n) {
    auto r = range(n); auto q = range(n + 1);
    auto a = r.begin(); Scalar i = *a;
    auto b = q.begin(); put(o, i + *b);
    ++a; ++b;
  });
  expect_refused("this traced range is advanced while another traced loop or branch is open inside it", __LINE__ + 1, [](Out<float> o, Int n) {
    auto r = range(n); auto a = r.begin();
    put(o, *a);
    if_(n > 3, [&] { ++a; });
  });
}

TEST(ControlError, HintsThatCannotBeMet) {
  expect_refused("range: stages(0): 1 to 64 are possible", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n).stages(0)) put(o, i);
  });
  expect_refused("range: unroll: the number of trips must be known when the kernel is compiled", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n).unroll(4)) put(o, i);
  });
  expect_refused("break_if in a loop with unroll: its number of trips is not known", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(8).unroll(4)) { break_if(i > n); put(o, i); }
  });
  expect_refused("range: unroll(0): at least 1 is needed", __LINE__ + 1, [](Out<float> o, Int n) {
    for (auto i : range(n).unroll(0)) put(o, i);
  });
}

// --- size -------------------------------------------------------------------------------------------------------------

Scalar factorial(const Scalar& n) { return if_(n > 1, [&] { return n * factorial(n - 1); }, [&] { return Scalar(1).cast(DType::index); }); }

TEST(ControlError, RecursionOnATracedCondition) {
  expect_refused("traced control flow is nested more than 64 deep; is a C++ function recursing on a traced condition?", __LINE__ - 3, [](Out<float> o, Int n) {
    put(o, factorial(n));
  });
}

// clang-format on

}  // namespace
}  // namespace kiln::test

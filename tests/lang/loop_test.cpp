// range loops and while_: values on every device, zero trips, steps, dtypes, and variables of every kind carried.
//
// The table of programs that the language promises, and where each is tested (LangLoop and LangValues are in this
// folder, ControlError and LangError in tests/error, numbers are cases of tests/compile_fail):
//
//   sums, steps, zero and one trip, nests            SumsOfTheInductionVariable, StepsThatMissTheBound,
//                                                    ZeroAndOneTripAndTheLastIndex, NestsAndTheOuterIndexBoundsTheInner
//   variables of the body, copies, references        VariablesOfTheBodyAndCopies, LangValues.ReferencesAndPointers…
//   swap, rotation, tie; containers; structs         SwapRotateAndTie, ContainersOfVariables, StructsAndBindingsOfTheBody
//   lambdas, functions, one Range twice              LambdasAndFunctions, LangValues.FunctionsTakeFreshCopies
//   C++ values decide; recursion, algorithms         CppValuesDecideInTheBody, LangValues.CppLoopsRecursionAndAlgorithmsUnroll
//   pointers advance, order of memory, atomics       PointersAdvanceAndParametersAreAssigned, StoresAndLoadsKeepTheirOrder,
//                                                    AtomicsOfIgnoredResultsCountEachTrip
//   if_ of every form                                LangBranch.*
//   while_, break_if, return_if, continue_if         WhileRunsUntilItsConditionFails, BreakIf, LangBranch.ReturnIf, ContinueIf
//   nothing carried in vain                          InvariantVariablesAreNotCarried
//   captures, keys, templates, threads, tuning       LangKernel.*;  views: LangView.*
//   lambdas over tiles in a kernel (epilogues)       StageLambdas.* (tests/kernel); what they may not capture: 43, 44
//   break, return, exceptions out of a body          ControlError.BodiesAreLeftAtTheirEnd
//   C++ state changed in a body                      ControlError.CppStateChangedInALoop, CppStateChangedInABranch
//   handles that outlive or die in a body            ControlError.HandlesMadeInABodyDieInIt, HandlesMadeOutsideDoNotDieInABody
//   handles of no or another kernel                  LangError.HandleKeptAfterItsKernel, HandleMadeOutsideAnyKernel
//   types and shapes that change                     ControlError.TypesAreFixedOverALoop, BranchesAgreeInType,
//                                                    ASumOfIndicesIsToldHowToBegin
//   values that may be missing                       ControlError.UsedBeforeItIsSurelyAssigned
//   empty branches, conditions, places               ControlError.EmptyBranches, ConditionsAreScalarI1, WhereTheyMayStand
//   0 <= n < 7                                       LangError.TruthValuesTakePartInNoArithmetic
//   recursion, endless unrolling                     ControlError.RecursionOnATracedCondition, LangError.EndlessUnrolling
//   bounds, iterators used by hand                   ControlError.Bounds, RangesAreIteratedByTheirLoop
//   numbers that do not fit, wrong stores            LangError.NumberThatDoesNotFit, StoreOfAnotherType, StoreThroughIn
//   a global that changes between launches           LangKernel.ChangedGlobalIsFoundWhenItIsTracedAgain
//   truth values, switch, int from a Scalar          1 to 9, 62, 63, 75
//   assigning an Index, copying a Range              60, 61, 73
//   if_ and while_ misused                           64 to 71, 74
//   assigning what is none; shapes and coordinates   10 to 19
//   discarded results                                20, 21, 72
//   arguments and signatures                         30 to 52
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>

#include "tests/lang/run_kernel.h"

namespace kiln::test {
namespace {

Scalar index(int v) { return Scalar(v).cast(DType::index); }
void put(const Scalar& p, const Scalar& x) { store(p, x.cast(f32)); }

struct Stats {
  Scalar sum = index(0), count = 0;
  void add(const Scalar& x) {
    sum += x;
    count += 1;
  }
};

TEST(LangLoop, SumsOfTheInductionVariable) {
  expect_output({10, 10, 6, 10}, 5, [](Out<float> o, Int n) {
    Scalar a = index(0), b = index(0), c = index(0), d = index(0);
    for (auto i : range(n)) a = a + i;
    for (auto i : range(0, n, 1)) b += i;
    for (auto i : range(0, n, 2)) c += i;
    for (auto i : range(n - 1, -1, -1)) d += i;
    put(o, a);
    put(o + 1, b);
    put(o + 2, c);
    put(o + 3, d);
  });
}

TEST(LangLoop, StepsThatMissTheBound) {
  expect_output({0 + 3, 4 + 1, 7, 9 + 5 + 1, 9 + 5}, 4, [](Out<float> o, Int n) {
    const auto sum = [](Range&& r) {
      Scalar s = index(0);
      for (auto i : r) s += i;
      return s;
    };
    put(o, sum(range(0, n, 3)));
    put(o + 1, sum(range(n, 0, -3)));
    put(o + 2, sum(range(7, 8, 100)));
    put(o + 3, sum(range(9, 0, -4)));
    put(o + 4, sum(range(9, 1, -4)));
  });
}

TEST(LangLoop, RunTimeStepsCountBothWaysAndZeroNeverRuns) {
  auto k = kernel("steps", [](Out<float> o, Int lo, Int hi, Int step) {
    Scalar trips = 0, last = lo - 1000;
    for (auto i : range(lo, hi, step)) {
      trips += 1;
      last = i;
    }
    put(o, trips);
    put(o + 1, last);
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    const auto run = [&](int lo, int hi, int step) {
      Buffer<float> o(d, 2);
      k.launch(s, 1, o, lo, hi, step);
      s.synchronize();
      return o.to_vector();
    };
    EXPECT_EQ(run(2, 9, 3), (std::vector<float>{3, 8}));
    EXPECT_EQ(run(9, 2, -3), (std::vector<float>{3, 3}));
    EXPECT_EQ(run(2, 9, -3), (std::vector<float>{0, -998}));
    EXPECT_EQ(run(2, 9, 0), (std::vector<float>{0, -998}));
  });
}

TEST(LangLoop, BoundsAreReadOnce) {
  expect_output({5, 10}, 5, [](Out<float> o, Int n) {
    Scalar bound = n, step = n / 5, trips = 0;
    for (auto i : range(0, bound, step)) {
      (void)i;
      bound += 1;
      step += 1;
      trips += 1;
    }
    put(o, trips);
    put(o + 1, bound);
  });
}

TEST(LangLoop, ZeroAndOneTripAndTheLastIndex) {
  for (const int m : {0, 1, 5, -3})
    expect_output({m > 0 ? float(m - 1) : 7.f, m > 0 ? 1.f : 0.f}, m, [](Out<float> o, Int n) {
      Scalar last = index(7), ran = 0;
      for (auto i : range(n)) {
        last = i;
        ran = 1;
      }
      put(o, last);
      put(o + 1, ran);
    });
}

TEST(LangLoop, NestsAndTheOuterIndexBoundsTheInner) {
  expect_output({30, 10, 3 * 2 * 2 * 2}, 3, [](Out<float> o, Int n) {
    Scalar s = index(0), t = 0, u = 0;
    for (auto i : range(n))
      for (auto j : range(4)) s += i * 2 + j - 1;
    for (auto i : range(n + 2))
      for (auto j : range(i)) {
        (void)j;
        t += 1;
      }
    for (auto i : range(n))
      for (auto j : range(2))
        for (auto k : range(2))
          for (auto l : range(2)) {
            (void)(i + j + k + l);
            u += 1;
          }
    put(o, s);
    put(o + 1, t);
    put(o + 2, u);
  });
}

TEST(LangLoop, VariablesOfTheBodyAndCopies) {
  expect_output({20, 3, 8, 8, 20, 0}, 5, [](Out<float> o, Int n) {
    Scalar s = index(0);
    for (auto i : range(n)) {
      Scalar t = i;
      t += i;
      s += t;
    }
    put(o, s);
    Scalar x = 3, y = x;
    for (auto i : range(n)) {
      (void)i;
      y += 1;
    }
    put(o + 1, x);
    put(o + 2, y);
    Scalar& same = x;
    const Scalar& seen = x;
    Scalar* p = &x;
    for (auto i : range(n)) {
      (void)i;
      same = seen + 2;
      *p -= 1;
    }
    put(o + 3, x);
    Scalar sum = index(0), only_inside;
    for (auto i : range(n)) {
      only_inside = i * 2;
      sum += only_inside;
    }
    put(o + 4, sum);
    Scalar late;
    late = 0;
    for (auto i : range(n)) {
      (void)i;
      late = late * 2;
    }
    put(o + 5, late);
  });
}

TEST(LangLoop, SwapRotateAndTie) {
  expect_output({2, 1, 5, 8, 3, 1, 2}, 5, [](Out<float> o, Int n) {
    Scalar a = 1, b = 2;
    for (auto i : range(n)) {
      (void)i;
      std::swap(a, b);
    }
    put(o, a);
    put(o + 1, b);
    Scalar f = 0, g = 1;
    for (auto i : range(n)) {
      (void)i;
      std::tie(f, g) = std::pair<Scalar, Scalar>(g, f + g);
    }
    put(o + 2, f);
    put(o + 3, g);
    Scalar x = 1, y = 2, z = 3;
    for (auto i : range(2)) {
      (void)i;
      Scalar t = x;
      x = y;
      y = z;
      z = t;
    }
    put(o + 4, x);
    put(o + 5, y);
    put(o + 6, z);
  });
}

TEST(LangLoop, ContainersOfVariables) {
  expect_output({5, 10, 15, 5, 10, 4, 10, 13, 10, 5}, 5, [](Out<float> o, Int n) {
    std::array<Scalar, 3> a{0, 0, 0};
    std::vector<Scalar> v, w(2);
    for (int k = 0; k < 9; ++k) v.push_back(0);
    w[1] = 4;
    w.resize(40);
    std::map<std::string, Scalar> m;
    m["a"] = index(0);
    std::optional<Scalar> maybe = index(1);
    auto owned = std::make_unique<Scalar>(2);
    Stats stats;
    for (auto i : range(n)) {
      for (int k = 0; k < 3; ++k) a[std::size_t(k)] += k + 1;
      for (int k = 0; k < 2; ++k) v[std::size_t(k)] += k + 1;
      m["a"] += i;
      *maybe += i;
      stats.add(i);
    }
    for (int k = 0; k < 3; ++k) put(o + k, a[std::size_t(k)]);
    put(o + 3, v[0]);
    put(o + 4, v[1]);
    put(o + 5, w[1]);
    put(o + 6, m["a"]);
    put(o + 7, *maybe + *owned);
    put(o + 8, stats.sum);
    put(o + 9, stats.count);
  });
}

TEST(LangLoop, StructsAndBindingsOfTheBody) {
  expect_output({6, 6}, 5, [](Out<float> o, Int n) {
    Stats s;
    for (auto i : range(n)) {
      Stats t = s;
      t.add(i);
      s.sum = t.sum - s.sum;
    }
    put(o, s.sum + 2);
    Scalar q_and_r = index(0);
    for (auto i : range(n)) {
      auto [q, r] = divmod(i, 2);
      q_and_r += q + r;
    }
    put(o + 1, q_and_r);
  });
}

TEST(LangLoop, LambdasAndFunctions) {
  expect_output({10, 25, 12, 3, 81, 30, 20}, 5, [](Out<float> o, Int n) {
    Scalar s = index(0), k = 5, frozen = 0;
    auto add = [&](const Scalar& x) { s += x; };
    auto get = [k] { return k + 0; };
    k = 100;
    for (auto i : range(n)) {
      add(i);
      frozen += get();
    }
    put(o, s);
    put(o + 1, frozen);
    const auto triangle = [](Scalar m) {
      Scalar sum = index(0);
      for (auto i : range(m + 1)) sum += i;
      return sum;
    };
    put(o + 2, triangle(n - 2) + triangle(n - 2));
    const auto twice = [](Scalar m) { return m * 2; };
    Scalar trips = 0;
    for (auto i : range(n - 2, twice(n - 2)).stages(1)) {
      (void)i;
      trips += 1;
    }
    put(o + 3, trips);
    Scalar power = 1;
    for (int r = 0; r < 4; ++r) power *= 3;  // C++ values: unrolls
    put(o + 4, power);
    Scalar around = index(0);
    for (int r = 0; r < 3; ++r)
      for (auto i : range(n)) around += i;
    put(o + 5, around);
    Scalar again = index(0);
    auto r = range(n);  // one Range, used twice in sequence
    for (auto i : r) again += i;
    for (auto i : r) again += i;
    put(o + 6, again);
  });
}

TEST(LangLoop, CppValuesDecideInTheBody) {
  expect_output({10, 500}, 5, [](Out<float> o, Int n) {
    Scalar s = index(0), t = 0;
    const bool fast = true;
    for (auto i : range(n)) {
      s += i;
      if (fast) continue;
      s += 100;
    }
    put(o, s);
    for (auto i : range(n)) {
      (void)i;
      for (int k = 0; k < 4; ++k) {
        if (k == 2) continue;
        t += fast ? 25 : 1;
      }
      t += 25;
    }
    put(o + 1, t);
  });
}

TEST(LangLoop, PointersAdvanceAndParametersAreAssigned) {
  expect_output({0, 10, 20, -1, 6}, 3, [](Out<float> o, Int n) {
    auto p = o;
    for (auto i : range(n)) {
      put(p, i * 10);
      p += 1;
    }
    n += 3;
    put(o + 4, n);
  });
}

TEST(LangLoop, StoresAndLoadsKeepTheirOrder) {
  expect_output({4, 15}, 5, [](InOut<float> o, Int n) {
    store(o, 0.f);
    for (auto i : range(n)) {
      (void)i;
      store(o, load(o) + 0.8f);
    }
    store(o + 1, 0.f);
    for (auto i : range(n)) {
      store(o + 1, load(o + 1) + i.cast(f32));
      store(o + 1, load(o + 1) + 1.f);
    }
  });
}

TEST(LangLoop, AtomicsOfIgnoredResultsCountEachTrip) {
  expect_output({10, 6, 5, 5, 5, 5}, 5, [](InOut<float> o, Int n) {
    store(o, 0.f);
    store(o + 1, 1.f);
    store(o + 2 + arange(4), full(f32, {4}, 0.f));
    for (auto i : range(n)) {
      atomic_add(o, i.cast(f32));
      atomic_max(o + 1, load(o + 1) + 1.f);
      atomic_add(o + 2 + arange(4), 1.f);
    }
  });
}

TEST(LangLoop, TilesAreCarried) {
  expect_output({10, 15, 20, 25, 32, 1, 2}, 5, [](Out<float> o, Int n) {
    Tile acc = zeros(f32, {4}), scale = full(f32, {2}, 1.f);
    for (auto i : range(n)) {
      acc += (arange(4) + i).cast(f32);
      scale *= 2.f;
    }
    store(o + arange(4), acc);
    store(o + 4 + arange(1), load(o + arange(1)) * 0 + 32.f);
    Tile a = arange(2), b = a + 1;
    for (auto i : range(n)) {
      (void)i;
      std::swap(a, b);
    }
    store(o + 5 + arange(2), a.cast(f32));
  });
}

TEST(LangLoop, EveryIntegerDtype) {
  for (const DType d : {i8, i16, i32, i64, u8, u16, u32, u64, DType::index})
    expect_output({10, 5, 6}, 5, [d](Out<float> o, Int n) {
      Scalar m = n.cast(d), s = Scalar(0).cast(d), trips = 0;
      for (auto i : range(m)) {
        s += i;
        trips += 1;
      }
      put(o, s);
      put(o + 1, trips);
      Scalar down = Scalar(0).cast(d);
      if (is_signed(d))
        for (auto i : range(m - 2, -1, -1)) down += i;
      else
        for (auto i : range(m - 4, m - 1)) down += i;
      put(o + 2, down);
    });
}

// A step that passes the dtype's last number ends the loop; it does not start again from the other end.
TEST(LangLoop, StepsDoNotWrap) {
  expect_output({6, 3, 3, 2}, 0, [](Out<float> o, Int n) {
    const auto trips = [](Range&& r) {
      Scalar count = 0;
      for (auto i : r) {
        (void)i;
        count += 1;
      }
      return count;
    };
    const Scalar zero8 = n.cast(i8), zero_u8 = n.cast(u8);
    put(o, trips(range(zero8, zero8 + 127, 23)));
    put(o + 1, trips(range(zero_u8, zero_u8 + 255, 100)));
    put(o + 2, trips(range(zero8 - 28, zero8 - 127, -60)) + 1);
    Scalar most = n.cast(i64) + std::numeric_limits<std::int64_t>::max();
    put(o + 3, trips(range(most - 10, most, 7)));
  });
}

TEST(LangLoop, WhileRunsUntilItsConditionFails) {
  expect_output({128, 7, 5, 8, 1}, 100, [](Out<float> o, Int n) {
    Scalar x = index(1), k = 0;
    while_([&] { return x < n; }, [&] {
      x *= 2;
      k += 1;
    });
    put(o, x);
    put(o + 1, k);
    Scalar i = 0, s = 0;
    while_([&] { return i < 5; }, [&] {
      i += 1;
      continue_if(i == 3);
      s += i - 1;
    });
    put(o + 2, i);
    put(o + 3, s);
    Scalar y = index(1);
    while_([&] { return y > n; }, [&] { y *= 2; });  // zero trips
    put(o + 4, y);
  });
}

TEST(LangLoop, WhileInLoopsAndLoopsInWhile) {
  // Steps of the Collatz sequence from 1, 2, 3, 4: 0, 1, 7, 2; and a while whose body swaps two variables.
  expect_output({0, 1, 7, 2, 3, 4, 12}, 4, [](Out<float> o, Int n) {
    for (auto start : range(n)) {
      Scalar x = start + 1, steps = 0;
      while_([&] { return x != 1; }, [&] {
        x = select(x % 2 == 0, x / 2, x * 3 + 1);
        steps += 1;
      });
      put(o + start, steps);
    }
    Scalar a = 4, b = 3, left = 3, inner = index(0);
    while_([&] { return left > 0; }, [&] {
      std::swap(a, b);
      left -= 1;
      for (auto i : range(n)) inner += i - (i == 2).cast(DType::index);
    });
    put(o + 4, a);
    put(o + 5, b);
    put(o + 6, inner - 3);
  });
}

TEST(LangLoop, BreakIf) {
  expect_output({3, 2, 1, 0, 7, 6}, 5, [](Out<float> o, Int n) {
    Scalar s = index(0), last = index(-1);
    for (auto i : range(n)) {
      break_if(i == 3);
      s += i;
      last = i;
    }
    put(o, s);
    put(o + 1, last);
    Scalar t = index(0);
    for (auto i : range(n)) {
      break_if(i == 4);
      t += i;
      break_if(i == 1);
      t += 0;
    }
    put(o + 2, t);
    Scalar none = 0;
    for (auto i : range(n)) {
      break_if(i >= 0);
      none += 1;
    }
    put(o + 3, none);
    Scalar odd = index(0), after = 0;
    for (auto i : range(n)) {  // skips 2, ends at 4
      continue_if(i == 2);
      break_if(i == 4);
      odd += i + 1;
      after += 2;
    }
    put(o + 4, odd);
    put(o + 5, after);
  });
}

// Only what changes is carried: a variable that is read, or swapped with its own value, is not.
TEST(LangLoop, InvariantVariablesAreNotCarried) {
  auto k = kernel("invariant", [](Out<float> o, Int n) {
    Scalar s = 0, a = 1, b = 2;
    for (auto i : range(n)) {
      (void)i;
      Scalar t = a;
      a = t;
      s += a + b;
    }
    put(o, s);
  });
  const std::string text = k.trace(device_ptr<float>(256), 5).text(false);
  EXPECT_NE(text.find("(%8 : index, %9 : i32)"), std::string::npos) << text;
  expect_output({15, 1}, 5, [](Out<float> o, Int n) {
    Scalar s = 0, a = 1, b = 2;
    for (auto i : range(n)) {
      (void)i;
      Scalar t = a;
      for (auto j : range(n)) {
        (void)j;
        a = t;
      }
      s += a + b;
    }
    put(o, s);
    put(o + 1, a);
  });
}

// Two operands promise to be one, then a loop exchanges them: the variable follows its value, not the promise.
TEST(LangLoop, StridesThatAreOneMaySwap) {
  auto k = kernel("strides", [](In<float> x, Out<float> o, Int a, Int b, Int n) {
    Scalar s = a, t = b;
    for (auto i : range(n)) {
      store(o + i, load(x + i * s));
      std::swap(s, t);
    }
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    Buffer<float> x = buffer_of(d, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8});
    const auto run = [&](int a, int b) {
      Buffer<float> o(d, 4);
      k.launch(s, 1, x, o, a, b, 4);
      s.synchronize();
      return o.to_vector();
    };
    EXPECT_EQ(run(1, 1), (std::vector<float>{0, 1, 2, 3}));
    EXPECT_EQ(run(1, 2), (std::vector<float>{0, 2, 2, 6}));
    EXPECT_EQ(run(2, 1), (std::vector<float>{0, 1, 4, 3}));
  });
}

// 16 trips of step 4 and remainders of every size: no trip is lost, the remainder runs once.
TEST(LangLoop, UnrolledLoopsLoseNoTrip) {
  for (const int copies : {1, 2, 3, 4, 5, 8, 100})
    expect_output({4, 24, 7, 21, 0, 5, 5 + 4 + 3 + 2 + 1, 3}, 1, [copies](Out<float> o, Int n) {
      Scalar trips = 0, sum = index(0), sevens = 0, sum7 = index(0), none = 0, down = 0, sum_down = index(0), last = index(0);
      for (auto i : range(0, 16, 4).unroll(copies)) {
        trips += 1;
        sum += i;
      }
      for (auto i : range(7).unroll(copies)) {
        sevens += 1;
        sum7 += i;
      }
      for (auto i : range(3, 3).unroll(copies)) {
        (void)i;
        none += 1;
      }
      for (auto i : range(5, 0, -1).unroll(copies)) {
        down += 1;
        sum_down += i;
        for (auto j : range(3).unroll(2)) last = j + n;
      }
      put(o, trips);
      put(o + 1, sum);
      put(o + 2, sevens);
      put(o + 3, sum7);
      put(o + 4, none);
      put(o + 5, down);
      put(o + 6, sum_down);
      put(o + 7, last);
    });
}

TEST(LangLoop, FullyUnrolledLoopsDisappear) {
  auto k = kernel("straight", [](InOut<float> o) {
    for (auto i : range(4).unroll()) {
      continue_if(i == 2);
      store(o + i, load(o + i) + 1.f);
    }
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    Buffer<float> o = buffer_of(d, std::vector<float>{0, 10, 20, 30});
    k.launch(s, 1, o);
    s.synchronize();
    EXPECT_EQ(o.to_vector(), (std::vector<float>{1, 11, 20, 31}));
    if (d.kind() == DeviceKind::Simulator) {
      EXPECT_EQ(k.image(d, o).ptx.find("bra"), std::string::npos);
    }
  });
}

// Tiles of pointers and offsets that advance, in loops, through branches and inner loops.
TEST(LangLoop, PointerTilesAdvance) {
  auto k = kernel("chunks", [](In<float> x, Out<float> y, Int n, Const<int> B) {
    Tile p = x + arange(B), q = y + arange(B), left = n - arange(B);
    Scalar moved = index(0);
    for (auto i : range(0, n, B)) {
      store(q, load(p, left > 0) + 1.f, left > 0);
      if_(i % 2 == 0, [&] { p += B; }, [&] { p += 1 * B; });
      for (auto j : range(B / 4)) {
        q += 4;
        moved += j * 0 + 4;
      }
      left -= B;
    }
    store(y + n, moved.cast(f32));
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    for (const int n : {0, 1, 63, 64, 65, 300}) {
      std::vector<float> in(300), want(301, -1.f);
      for (int i = 0; i < n; ++i) in[std::size_t(i)] = float(i), want[std::size_t(i)] = float(i) + 1;
      want[std::size_t(n)] = float((n + 63) / 64 * 64);
      Buffer<float> x = buffer_of(d, in), y = buffer_of(d, std::vector<float>(301, -1.f));
      k.launch(s, 1, x, y, n, 64);
      s.synchronize();
      EXPECT_EQ(y.to_vector(), want) << n;
    }
  });
}

// One row in chunks with accumulators, the maximum and its position, as an online softmax has them.
TEST(LangLoop, RowsInChunks) {
  auto k = kernel("row", [](In<float> x, Out<float> y, Int n, Const<int> B) {
    Scalar row = program_id(0);
    Tile most = full(f32, {B}, -1e30f), sum = zeros(f32, {B});
    for (auto i : range(0, n, B)) {
      Tile at = i + arange(B), v = load(x + row * n + at, at < n, -1e30f);
      Tile next = maximum(most, v);
      sum = sum * exp2(most - next) + exp2(v - next);
      most = next;
    }
    for (auto i : range(0, n, B)) {
      Tile at = i + arange(B);
      store(y + row * n + at, most + log2(sum), at < n);
    }
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    for (const int n : {1, 16, 100, 257, 512}) {
      constexpr int kBlock = 64, kRows = 3;
      std::vector<float> in(std::size_t(kRows * n));
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = float((i * 37) % 11) - 5;
      Buffer<float> x = buffer_of(d, in), y(d, in.size());
      k.launch(s, kRows, x, y, n, kBlock);
      s.synchronize();
      const std::vector<float> got = y.to_vector();
      for (int r = 0; r < kRows; ++r)
        for (int i = 0; i < n; ++i) {
          double sum = 0;
          for (int j = i % kBlock; j < n; j += kBlock) sum += std::exp2(double(in[std::size_t(r * n + j)]));
          ASSERT_NEAR(got[std::size_t(r * n + i)], std::log2(sum), 1e-4) << "row " << r << " column " << i << " of " << n;
        }
    }
  });
}

// A row in chunks: with aligned pointers and n divisible by 16, loops load and store 16 bytes at a time, whether the
// addresses come from the induction variable or from pointers that advance.
TEST(LangLoop, ChunkedRowsKeepVectorAccesses) {
  const auto by_index = kernel("by_index", [](In<float> x, Out<float> y, Int n, Const<int> B) {
    Scalar row = program_id(0) * n;
    for (auto i : range(0, n, B)) {
      Tile at = i + arange(B);
      store(y + row + at, load(x + row + at, at < n) * 2.f, at < n);
    }
  });
  const auto by_pointer = kernel("by_pointer", [](In<float> x, Out<float> y, Int n, Const<int> B) {
    Tile at = arange(B), p = x + program_id(0) * n + at, q = y + program_id(0) * n + at;
    for (auto i : range(0, n, B)) {
      (void)i;
      store(q, load(p, at < n) * 2.f, at < n);
      p += B;
      q += B;
      at += B;
    }
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    const int n = 2000;
    std::vector<float> in(std::size_t(2 * n)), want(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = float(i), want[i] = 2 * float(i);
    Buffer<float> x = buffer_of(d, in);
    const auto check = [&](const auto& k) {
      Buffer<float> y(d, in.size());
      k.launch(s, 2, x, y, n, 512);
      s.synchronize();
      EXPECT_EQ(y.to_vector(), want);
      if (d.kind() == DeviceKind::Interpreter) return;
      const std::string ptx = k.image(d, x, y, n, 512).ptx;
      EXPECT_NE(ptx.find("ld.global.v"), std::string::npos) << ptx;
      EXPECT_NE(ptx.find("st.global.v"), std::string::npos) << ptx;
      EXPECT_EQ(ptx.find("ld.global.b"), std::string::npos) << ptx;
      EXPECT_EQ(ptx.find("st.global.b"), std::string::npos) << ptx;
    };
    check(by_index);
    check(by_pointer);
    if (d.kind() == DeviceKind::Interpreter) return;
    // Sixteen elements a thread: an address of each would be sixteen additions a trip and pointer.
    Buffer<float> y(d, in.size());
    const std::string ptx = by_pointer.image(d, x, y, n, 2048).ptx;
    const std::size_t from = ptx.rfind("$L__BB0_", ptx.find("bar.sync")), to = ptx.find("bra", from);
    int additions = 0;
    for (std::size_t at = ptx.find("add.s64", from); at < to; at = ptx.find("add.s64", at + 1)) ++additions;
    EXPECT_GE(additions, 3) << ptx;
    EXPECT_LE(additions, 12) << ptx;
  });
}

// The softmax of one row in one pass over its chunks: running maximum and rescaled sum.
TEST(LangLoop, OnlineSoftmax) {
  auto k = kernel("online_softmax", [](In<float> x, Out<float> y, Int n, Const<int> B) {
    Scalar most = -1e30f, total = 0.f, row = program_id(0) * n;
    for (auto i : range(0, n, B)) {
      Tile at = i + arange(B), v = load(x + row + at, at < n, -1e30f);
      Scalar next = maximum(most, max(v));
      total = total * exp(most - next) + sum(select(at < n, exp(v - next), 0.f));
      most = next;
    }
    for (auto i : range(0, n, B)) {
      Tile at = i + arange(B);
      store(y + row + at, exp(load(x + row + at, at < n) - most) / total, at < n);
    }
  });
  on_each_device([&](const Device& d) {
    const Stream s(d);
    for (const int n : {1, 64, 100, 300}) {
      constexpr int kRows = 2;
      std::vector<float> in(std::size_t(kRows * n));
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = float((i * 37) % 11) - 5;
      Buffer<float> x = buffer_of(d, in), y(d, in.size());
      k.launch(s, kRows, x, y, n, 64);
      s.synchronize();
      const std::vector<float> got = y.to_vector();
      for (int r = 0; r < kRows; ++r) {
        double total = 0;
        for (int i = 0; i < n; ++i) total += std::exp(double(in[std::size_t(r * n + i)]));
        for (int i = 0; i < n; ++i)
          ASSERT_NEAR(got[std::size_t(r * n + i)], std::exp(double(in[std::size_t(r * n + i)])) / total, 1e-5) << n;
      }
    }
  });
}

}  // namespace
}  // namespace kiln::test

// Products against double precision: element types, layouts of operands, edges, and what must be refused.
#include "tests/lib/products.h"
#include "tests/lib/real_types.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

namespace epilogue = lib::epilogue;

/// Operands of X and W and the exact result.
template <class X, class W>
struct Case {
  Extents e;
  std::vector<double> x, w;
  explicit Case(const Extents& extents)
      : e(extents), x(elements_of<X>(e.m * e.k, 1)), w(elements_of<W>(e.n * e.k, 2)) {}

  /// `finish(sum, i, j)` is what the chain makes of an exact sum; it must not stretch distances.
  template <class Y, class F>
  void expect(const Operand<Y>& y, F finish) const {
    const Products p = products(e, x, w);
    std::vector<double> want(p.sum.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      want[i] = finish(p.sum[i], i / std::size_t(e.n), i % std::size_t(e.n));
    expect_within(y.values(), want, [&](std::size_t i) {
      return step<Y>(want[i]) + sum_bound<X, W>(e.k) * (p.size[i] + std::abs(want[i]));
    });
    y.expect_rest_untouched();
  }
  template <class Y>
  void expect(const Operand<Y>& y) const {
    expect(y, [](double sum, std::size_t, std::size_t) { return sum; });
  }
};

/// Small blocks: several of each kind in small matrices.
const lib::LinearOptions kSmall{.blocks = {32, 32, 16}};

template <class T>
class LinearOf : public testing::Test {};
using TwoTypes = testing::Types<float, bf16>;
TYPED_TEST_SUITE(LinearOf, TwoTypes, RealTypeNames);

// By the blocks of the table: few rows, few columns, many of both.
TYPED_TEST(LinearOf, BiasAndReluByTheTable) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    for (Extents e : {Extents{1, 70, 100}, {70, 1, 100}, {130, 130, 70}}) {
      SCOPED_TRACE(testing::PrintToString(e));
      const Case<T, T> c(e);
      const auto bias = elements_of<T>(e.n, 3);
      const Operand<T> x(d, e.m, e.k, c.x), w(d, e.n, e.k, c.w);
      Operand<T> y(d, e.m, e.n);
      lib::linear<T>(x, w).then(epilogue::bias<T>(Weights<T>(d, bias))).then(epilogue::relu).run(Stream(d), y);
      c.expect(y, [&](double sum, std::size_t, std::size_t j) { return std::max(0.0, sum + bias[j]); });
    }
  });
}

// Memory between and around the rows is NaN: nothing of it may reach a result, and nothing there may be written.
TYPED_TEST(LinearOf, OperandsAnywhereInMemoryBesideNaN) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    const Case<T, T> c({37, 45, 53});
    for (bool x_columns : {false, true})
      for (bool w_columns : {false, true}) {
        const Operand<T> x(d, 37, 53, c.x, 3, 1, x_columns), w(d, 45, 53, c.w, 11, 8, w_columns);
        Operand<T> y(d, 37, 45, 19, 3);
        lib::linear<T>(x, w, kSmall).run(Stream(d), y);
        c.expect(y);
      }
  });
}

TYPED_TEST(LinearOf, OnesAreCounted) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    const Operand<T> x(d, 128, 64, std::vector<double>(128 * 64, 1)), w(d, 256, 64, std::vector<double>(256 * 64, 1));
    Operand<T> y(d, 128, 256);
    lib::linear<T>(x, w).run(Stream(d), y);
    for (double v : y.values()) ASSERT_EQ(v, 64);
  });
}

TYPED_TEST(LinearOf, NothingToAddGivesTheChainOfZero) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    const Stream s(d);
    const Buffer<T> none(d, 0);
    const auto bias = elements_of<T>(5, 3);
    Operand<T> y(d, 3, 5);
    lib::linear<T>({none, {3, 0}}, {none, {5, 0}}).then(epilogue::bias<T>(Weights<T>(d, bias))).run(s, y);
    const std::vector<double> got = y.values();
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], bias[i % 5]);
  });
}

TYPED_TEST(LinearOf, WithoutRowsOrColumnsNothingIsLaunched) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    const Stream s(d);
    Buffer<T> none(d, 0), some(d, 8);
    d.reset_counters();
    lib::linear<T>({none, {0, 4}}, {some, {2, 4}}).then(epilogue::relu).run(s, {none, {0, 2}});
    lib::linear<T>({some, {2, 4}}, {none, {0, 4}}).run(s, {none, {2, 0}});
    lib::linear_batched<T>({none, {0, 2, 4}}, {none, {0, 2, 4}}).run(s, {none, {0, 2, 2}});
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

TYPED_TEST(LinearOf, RepeatedRunsGiveTheSameBits) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    const Case<T, T> c({70, 40, 90});
    const Operand<T> x(d, 70, 90, c.x), w(d, 40, 90, c.w);
    const auto run = [&](const lib::LinearOptions& o) {
      Operand<T> y(d, 70, 40);
      lib::linear<T>(x, w, o).run(Stream(d), y);
      return y.values();
    };
    for (int splits : {1, 3}) {
      lib::LinearOptions o = kSmall;
      o.splits = splits;
      const auto first = run(o);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(run(o), first);
    }
  });
}

// Row i of a batch is what it is alone, bit for bit.
TYPED_TEST(LinearOf, BatchInvariantRowsDoNotDependOnTheirNumber) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    const std::int64_t rows = 130, n = 33, k = 150;
    const Case<T, T> c({rows, n, k});
    const Operand<T> w(d, n, k, c.w);
    const auto run = [&](std::int64_t m) {
      const Operand<T> x(d, m, k, std::vector<double>(c.x.end() - m * k, c.x.end()));  // the last m rows
      Operand<float> y(d, m, n);
      lib::linear<T>(x, w, {.batch_invariant = true}).template run<float>(Stream(d), y);
      return y.values();
    };
    const auto all = run(rows);
    for (std::int64_t m : {1, 2, 16, 64, 65}) EXPECT_EQ(run(m), std::vector<double>(all.end() - m * n, all.end())) << m;
  });
}

TYPED_TEST(LinearOf, AResidualMayBeTheResultsMemory) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    const Case<T, T> c({40, 50, 20});
    const auto residual = elements_of<T>(40 * 50, 3);
    const Operand<T> x(d, 40, 20, c.x), w(d, 50, 20, c.w);
    Operand<T> y(d, 40, 50, residual);
    lib::linear<T>(x, w, kSmall).then(epilogue::residual<T>(y)).run(Stream(d), y);
    c.expect(y, [&](double sum, std::size_t i, std::size_t j) { return sum + residual[i * 50 + j]; });
  });
}

// --- element types ---------------------------------------------------------------------------------------------------

template <class X, class W, class Y>
void check_types(const Device& d) {
  SCOPED_TRACE(std::string(name(dtype_of<X>)) + " " + name(dtype_of<W>) + " to " + name(dtype_of<Y>));
  for (Extents e : {Extents{33, 40, 50}, {3, 40, 50}}) {
    const Case<X, W> c(e);
    const Operand<X> x(d, e.m, e.k, c.x, 5, 3);
    const Operand<W> w(d, e.n, e.k, c.w, 1, 0);
    Operand<Y> y(d, e.m, e.n);
    lib::linear<X, W>(x, w, {.blocks = {32, 32, 16, e.m == 3}}).template run<Y>(Stream(d), y);
    c.expect(y);
  }
}

TEST(LinearTypes, FloatsIntoAnyFloat) {
  on_each_device([](const Device& d) {
    check_types<double, double, double>(d);
    check_types<float, double, double>(d);
    check_types<float, float, bf16>(d);
    check_types<f16, bf16, f16>(d);
    check_types<bf16, bf16, float>(d);
    check_types<bf16, float, bf16>(d);
  });
}

TEST(LinearTypes, IntegersAreExact) {
  on_each_device([](const Device& d) {
    check_types<std::int8_t, std::int8_t, std::int32_t>(d);
    check_types<std::uint8_t, std::int8_t, std::int32_t>(d);
  });
}

TEST(LinearTypes, EightBitFloatsInAnyPairing) {
  on_each_device([](const Device& d) {
    check_types<f8e4m3, f8e4m3, bf16>(d);
    check_types<f8e4m3, f8e5m2, float>(d);
    check_types<f8e5m2, f8e4m3, float>(d);
    check_types<f8e5m2, f8e5m2, f16>(d);
  });
}

TEST(LinearTypes, NarrowWeightsAreConvertedExactly) {
  on_each_device([](const Device& d) {
    check_types<bf16, std::int8_t, bf16>(d);
    check_types<f16, std::int8_t, float>(d);
    check_types<bf16, f8e4m3, bf16>(d);
    check_types<f16, f8e5m2, float>(d);
  });
}

TEST(LinearTypes, WithoutANameTheResultIsOfTheOperandsOrTheSums) {
  on_each_device([](const Device& d) {
    const Case<std::int8_t, std::int8_t> c({20, 20, 20});
    const Operand<std::int8_t> x(d, 20, 20, c.x), w(d, 20, 20, c.w);
    Operand<std::int32_t> y(d, 20, 20);
    lib::linear<std::int8_t>(x, w, kSmall).run(Stream(d), y);
    c.expect(y);
    const Case<f8e4m3, f8e4m3> f({20, 20, 20});
    const Operand<f8e4m3> fx(d, 20, 20, f.x), fw(d, 20, 20, f.w);
    Operand<float> fy(d, 20, 20);
    lib::linear<f8e4m3>(fx, fw, kSmall).run(Stream(d), fy);
    f.expect(fy);
  });
}

// Each within the bound that dsl/lang/dot.h states, and not the bits of the exact product.
TEST(LinearTypes, PrecisionsOfSinglePrecisionAreNamed) {
  on_each_device([](const Device& d) {
    const Extents e{40, 48, 64};
    const Case<float, float> c(e);
    const Products p = products(e, c.x, c.w);
    const Operand<float> x(d, e.m, e.k, c.x), w(d, e.n, e.k, c.w);
    const auto run = [&](Precision precision) {
      Operand<float> y(d, e.m, e.n);
      lib::linear<float>(x, w, {.precision = precision, .blocks = {32, 32, 32}}).run(Stream(d), y);
      return y.values();
    };
    const auto exact = run(Precision::exact);
    for (const auto& [precision, product] :
         {std::pair{Precision::tf32, 0x1p-10}, {Precision::tf32x3, 0x1p-20}, {Precision::bf16x3, 0x1p-15}}) {
      const auto got = run(precision);
      // The interpreter multiplies in f32 what others multiply in parts.
      if (precision == Precision::tf32 || d.kind() != DeviceKind::Interpreter) {
        EXPECT_NE(got, exact) << int(precision);
      }
      expect_within(got, p.sum, [&, product = product](std::size_t i) {
        return (product + sum_bound<float, float>(e.k)) * p.size[i];
      });
    }
  });
}

/// One fma a step, in the order of k: what f32 and f64 products are, bit for bit, whatever the blocks.
template <class T>
void check_order(const Device& d, const lib::LinearOptions& o) {
  const Extents e{35, 34, 77};
  const Case<T, T> c(e);
  const Operand<T> x(d, e.m, e.k, c.x), w(d, e.n, e.k, c.w);
  Operand<T> y(d, e.m, e.n);
  lib::linear<T>(x, w, o).run(Stream(d), y);
  const std::vector<T> got = y.elements();
  for (std::size_t i = 0; i < std::size_t(e.m); ++i)
    for (std::size_t j = 0; j < std::size_t(e.n); ++j) {
      T sum = 0;
      for (std::size_t k = 0; k < std::size_t(e.k); ++k)
        sum = std::fma(T(c.x[i * std::size_t(e.k) + k]), T(c.w[j * std::size_t(e.k) + k]), sum);
      ASSERT_EQ(got[i * std::size_t(e.n) + j], sum) << i << "," << j;
    }
}

TEST(LinearTypes, SingleAndDoublePrecisionAreExactToTheBit) {
  on_each_device([](const Device& d) {
    for (const lib::LinearOptions& o :
         {lib::LinearOptions{}, kSmall, lib::LinearOptions{.blocks = {16, 64, 32, true}}}) {
      check_order<float>(d, o);
      check_order<double>(d, o);
    }
  });
}

// Every target multiplies with units of its own, by blocks of its own.
TEST(LinearTypes, EveryTarget) {
  for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    SCOPED_TRACE(target);
    const Device d = Device::simulator(target);
    check_types<bf16, bf16, bf16>(d);
    check_types<f8e4m3, f8e5m2, float>(d);
    check_types<std::int8_t, std::int8_t, std::int32_t>(d);
    check_types<f16, std::int8_t, f16>(d);
    check_order<float>(d, {});
  }
}

// --- errors ----------------------------------------------------------------------------------------------------------

class LinearErrors : public testing::Test {
 protected:
  Device d = interpreter();
  Stream s{d};
  Buffer<float> x{d, 64}, w{d, 64}, y{d, 64}, b{d, 64};
};

TEST_F(LinearErrors, ShapesThatDoNotFit) {
  expect_user_error(
      [&] {
        lib::linear<float>({x, {3, 4}}, {w, {2, 5}}).run(s, {y, {3, 2}});
      },
      "linear: x is 3x4 and w is 2x5: they must have the same number of columns", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({x, {3, 4}}, {w, {2, 4}}).run(s, {y, {2, 3}});
      },
      "linear: y is 2x3, must be 3x2", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({x, {-3, 4}}, {w, {2, 4}}).run(s, {y, {2, 3}});
      },
      "linear: x is -3x4, must have no negative size", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({x, {3, 4}}, {w, {2, 4}}).then(epilogue::bias<float>({b, {3}})).run(s, {y, {3, 2}});
      },
      "linear: bias has 3 elements, must have 2, one for each of the columns", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({x, {3, 4}}, {w, {2, 4}}).then(epilogue::residual<float>({b, {2, 3}})).run(s, {y, {3, 2}});
      },
      "linear: residual is 2x3, must be 3x2", __FILE__, __LINE__ - 2);
  const auto add = [](Tile t, Tile u) { return t + u; };
  expect_user_error(
      [&] {
        lib::linear<float>({x, {3, 4}}, {w, {2, 4}})
            .then(epilogue::relu)
            .then(add, lib::per_row<float>({b, {2}}))
            .run(s, {y, {3, 2}});
      },
      "linear: tensor 1 of stage 2 has 2 elements, must have 3, one for each of the rows", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({x, {3, 4}}, {w, {3, 4}}).then(epilogue::swiglu).run(s, {y, {3, 1}});
      },
      "linear: 3 columns cannot be taken 2 at a time", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear_batched<float>({x, {2, 3, 4}}, {w, {3, 2, 4}}).run(s, {y, {2, 3, 2}});
      },
      "linear_batched: x has 2 batches and w has 3", __FILE__, __LINE__ - 2);
  Buffer<std::int32_t> offsets(d, 8);
  expect_user_error(
      [&] {
        lib::linear_grouped<float>({x, {3, 4}}, {w, {2, 2, 4}}, {offsets, {4}}).run(s, {y, {3, 2}});
      },
      "linear_grouped: offsets has 4 elements, must have 3", __FILE__, __LINE__ - 2);
}

TEST_F(LinearErrors, BuffersThatAreTooShort) {
  expect_user_error(
      [&] {
        lib::linear<float>({x, {9, 8}}, {w, {2, 8}}).run(s, {y, {9, 2}});
      },
      "linear: argument 1 (x)", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({x, {8, 8}}, {w, {9, 8}}).run(s, {y, {8, 9}});
      },
      "linear: argument 2 (w)", __FILE__, __LINE__ - 2);
}

TEST_F(LinearErrors, ResultsOverWhatOtherProgramsRead) {
  const auto at = [&](int i) {
    return device_ptr<float>(x.ptr() + std::size_t(i) * sizeof(float), 64 - std::size_t(i));
  };
  expect_user_error(
      [&] {
        lib::linear<float>({x, {4, 4}}, {w, {4, 4}}).run(s, {x, {4, 4}});
      },
      "linear: y must not overlap x, which other programs still read", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({w, {4, 4}}, {x, {4, 4}}).run(s, {at(15), {4, 4}});
      },
      "linear: y must not overlap w", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({w, {4, 4}}, {b, {4, 4}})
            .then(epilogue::residual<float>({at(4), {4, 4}}))
            .run(s, {at(0), {4, 4}});
      },
      "linear: y must not overlap residual", __FILE__, __LINE__ - 2);
  // The right halves of the same rows are something else.
  lib::linear<float>({x, {4, 4}, {8, 1}}, {w, {4, 4}}).run(s, {at(4), {4, 4}, {8, 1}});
  expect_user_error(
      [&] {
        lib::linear<float>({x, {4, 5}, {8, 1}}, {w, {4, 5}}).run(s, {at(4), {4, 4}, {8, 1}});
      },
      "linear: y must not overlap x", __FILE__, __LINE__ - 2);
}

TEST_F(LinearErrors, OptionsOutOfRange) {
  expect_user_error(
      [&] {
        lib::linear<float>({x, {4, 4}}, {w, {4, 4}}, {.splits = -1}).run(s, {y, {4, 4}});
      },
      "linear: splits is -1, must be at least 1, or 0", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear_batched<float>({x, {1, 4, 4}}, {w, {1, 4, 4}}, {.splits = 2}).run(s, {y, {1, 4, 4}});
      },
      "linear_batched: splits is 2, must be 1", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::linear<float>({x, {4, 4}}, {w, {4, 4}}, {.blocks = {24, 16, 16}}).run(s, {y, {4, 4}});
      },
      "linear: blocks are BM 24, BN 16, BK 16, must be powers of two", __FILE__, __LINE__ - 2);
}

}  // namespace
}  // namespace kiln::test

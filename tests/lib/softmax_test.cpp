// Softmax and its logarithm against double precision: every width, type and place in memory, rows of special values.
#include "dsl/lib/softmax.h"

#include <algorithm>

#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

enum class Function { Softmax, LogSoftmax };
constexpr Function kBoth[] = {Function::Softmax, Function::LogSoftmax};

template <class T>
void call(Function f, const Stream& s, const Rows<T>& x, Rows<T>& y) {
  if (f == Function::Softmax) lib::softmax<T>(s, x, y);
  else lib::log_softmax<T>(s, x, y);
}

template <class T>
std::vector<double> exact(Function f, const std::vector<double>& x, std::size_t cols) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += cols) {
    double largest = -kInf, total = 0;
    for (std::size_t i = row; i < row + cols; ++i) largest = std::isnan(x[i]) ? kNaN : std::max(x[i], largest);
    for (std::size_t i = row; i < row + cols; ++i) total += std::exp(x[i] - largest);
    for (std::size_t i = row; i < row + cols; ++i)
      y[i] = in_range<T>(f == Function::Softmax ? std::exp(x[i] - largest) / total : x[i] - largest - std::log(total));
  }
  return y;
}

/// The bounds that dsl/lib/softmax.h states.
template <class T>
void expect_close(const Device& device, Function f, const std::vector<double>& got, const std::vector<double>& x,
                  std::size_t cols) {
  const std::vector<double> want = exact<T>(f, x, cols);
  const double sum = sum_error(device, std::int64_t(cols));
  std::vector<double> largest(x.size() / cols);
  for (std::size_t r = 0; r < largest.size(); ++r)
    largest[r] = *std::max_element(x.begin() + std::ptrdiff_t(r * cols), x.begin() + std::ptrdiff_t((r + 1) * cols));
  expect_within(got, want, [&](std::size_t i) {
    const double narrow = sizeof(T) == 4 ? 0 : ulp<T>(want[i]);
    if (f == Function::LogSoftmax) return narrow + 1e-6 + sum + 0x1p-23 * std::abs(want[i]);
    const double distance = std::min(largest[i / cols] - x[i], 1e3);  // beyond, the result is 0
    return narrow + (1e-6 + sum + 0x1p-24 * distance) * want[i] + 0x1p-126;
  });
}

template <class T>
void check(const Device& device, Function f, Shape shape, const std::vector<double>& x) {
  SCOPED_TRACE(std::to_string(shape.cols) + " columns" + (f == Function::LogSoftmax ? ", log_softmax" : ""));
  Rows<T> from(device, shape, x), to(device, shape);
  call(f, Stream(device), from, to);
  expect_close<T>(device, f, to.values(), x, std::size_t(shape.cols));
  to.expect_rest_untouched();
}

template <class T>
class Softmax : public testing::Test {};
using Types = testing::Types<float, f16, bf16>;
struct TypeNames {
  template <class T>
  static std::string GetName(int) {
    return name(dtype_of<T>);
  }
};
TYPED_TEST_SUITE(Softmax, Types, TypeNames);

TYPED_TEST(Softmax, RowsOfEveryWidth) {
  on_each_device([](const Device& d) {
    for (Function f : kBoth)
      for (std::int64_t cols : {1, 2, 3, 127, 1000, 1024, 4097})
        check<TypeParam>(d, f, {3, cols}, numbers<TypeParam>(std::size_t(3 * cols), 1));
  });
}

TYPED_TEST(Softmax, RowsAnywhereInMemory) {
  on_each_device([](const Device& d) {
    for (Function f : kBoth)
      for (Shape s : {Shape{5, 1, 2, 1}, Shape{3, 127, 1, 0}, Shape{3, 1000, 24, 8}, Shape{3, 1000, 0, 1}})
        check<TypeParam>(d, f, s, numbers<TypeParam>(std::size_t(s.rows * s.cols), 2));
  });
}

TYPED_TEST(Softmax, LongRows) {
  on_each_device([](const Device& d) {
    for (Function f : kBoth)
      for (Shape s : {Shape{2, 100003}, Shape{1, 32769, 5, 1}})
        check<TypeParam>(d, f, s, numbers<TypeParam>(std::size_t(s.rows * s.cols), 3));
  });
}

// The lane, warp or chunk that sees nothing but -inf must not spoil the others.
TYPED_TEST(Softmax, RowsOfSpecialValues) {
  on_each_device([](const Device& d) {
    for (Function f : kBoth)
      for (std::int64_t cols : {1, 5, 4096, 40000}) {
        const auto n = std::size_t(cols);
        std::vector<double> x = numbers<TypeParam>(7 * n, 4);
        const auto row = [&](std::size_t r) { return x.begin() + std::ptrdiff_t(r * n); };
        std::fill(row(0), row(3), -kInf);
        row(1)[0] = row(2)[cols - 1] = 3;  // a single finite value: 1 there, 0 elsewhere
        row(3)[cols / 2] = kNaN;
        row(4)[cols / 2] = kInf;
        row(5)[cols / 2] = -kInf;
        std::fill(row(6), x.end(), -2.5);
        check<TypeParam>(d, f, {7, cols}, x);
      }
  });
}

TYPED_TEST(Softmax, IncreasingRowsRescaleAtEveryChunk) {
  on_each_device([](const Device& d) {
    for (Function f : kBoth) {
      std::vector<double> x(40000);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(float(TypeParam(float(i) * 1e-3f - 20)));
      check<TypeParam>(d, f, {1, 40000}, x);
    }
  });
}

TYPED_TEST(Softmax, InPlace) {
  on_each_device([](const Device& d) {
    for (Function f : kBoth)
      for (Shape s : {Shape{3, 1000}, Shape{3, 77, 3, 1}, Shape{1, 40000}}) {
        const auto x = numbers<TypeParam>(std::size_t(s.rows * s.cols), 5);
        Rows<TypeParam> rows(d, s, x);
        call(f, Stream(d), rows, rows);
        expect_close<TypeParam>(d, f, rows.values(), x, std::size_t(s.cols));
        rows.expect_rest_untouched();
      }
  });
}

TYPED_TEST(Softmax, LargeNumbers) {
  const double huge = std::same_as<TypeParam, f16> ? 65504 : 0x1.fep127;
  on_each_device([&](const Device& d) {
    for (Function f : kBoth) {
      check<TypeParam>(d, f, {1, 6}, {huge, -huge, 0, huge, -huge / 2, huge / 2});
      check<TypeParam>(d, f, {1, 4}, {-huge, -huge, -huge, -huge});
    }
  });
}

TEST(SoftmaxRows, OfSmallAndOfNegligibleWeights) {
  on_each_device([](const Device& d) {
    for (Function f : kBoth) check<float>(d, f, {2, 1000}, numbers<float>(2000, 6, 60));
  });
}

// The largest elements have a logarithm near 0, whatever their size: it is not their difference to a rounded sum.
TEST(SoftmaxRows, LogarithmsFarFromZero) {
  on_each_device([](const Device& d) {
    for (double centre : {1e4, -1e6, 1e30})
      for (std::int64_t cols : {100, 40000})
        check<float>(d, Function::LogSoftmax, {1, cols}, numbers<float>(std::size_t(cols), 7, 3, centre));
  });
}

TEST(SoftmaxRows, NothingIsLaunchedForNoElements) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    d.reset_counters();
    Buffer<float> none(d, 0), some(d, 8);
    for (auto shape : {std::array<std::int64_t, 2>{0, 8}, {8, 0}, {0, 0}}) {
      lib::softmax<float>(s, {none, shape}, {none, shape});
      lib::log_softmax<float>(s, {some, shape}, {some, shape});
    }
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

TEST(SoftmaxErrors, ShapesThatDiffer) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), y(d, 12);
  expect_user_error(
      [&] {
        lib::softmax<float>(s, {x, {3, 4}}, {y, {4, 3}});
      },
      "softmax: y is 4x3, but x is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::log_softmax<float>(s, {x, {3, 4}}, {y, {3, 3}});
      },
      "log_softmax: y is 3x3, but x is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
}

TEST(SoftmaxErrors, RowsThatAreNotContiguous) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), y(d, 12);
  expect_user_error(
      [&] {
        lib::softmax<float>(s, {x, {4, 3}, {1, 4}}, {y, {4, 3}});
      },
      "softmax: the elements of a row of x are 4 apart, must be 1", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::softmax<float>(s, {x, {4, 3}}, {y, {4, 3}, {1, 4}});
      },
      "softmax: the elements of a row of y are 4 apart, must be 1", __FILE__, __LINE__ - 2);
}

TEST(SoftmaxErrors, BuffersThatAreTooShort) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    Buffer<float> x(d, 12), y(d, 11), none;
    expect_user_error(
        [&] {
          lib::softmax<float>(s, {x, {3, 4}}, {y, {3, 4}});
        },
        "softmax: argument 2 (y)", __FILE__, __LINE__ - 2);
    expect_user_error(
        [&] {
          lib::softmax<float>(s, {x, {3, 4}, {5, 1}}, {x, {3, 4}});
        },
        "softmax: argument 1 (x)", __FILE__, __LINE__ - 2);
    expect_user_error(
        [&] {
          lib::softmax<float>(s, {x, {3, 40000}}, {x, {3, 40000}});
        },
        "softmax_long: argument 1 (x)", __FILE__, __LINE__ - 2);
    expect_user_error(
        [&] {
          lib::softmax<float>(s, {none, {3, 4}}, {x, {3, 4}});
        },
        "softmax: argument 1 (x)", __FILE__, __LINE__ - 2);
    expect_user_error([&] { lib::softmax<float>(s, {x, {-3, 4}}, {x, {-3, 4}}); }, "-3", __FILE__, __LINE__);
  });
}

}  // namespace
}  // namespace kiln::test

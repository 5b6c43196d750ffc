// Layernorm, rmsnorm and rmsnorm of a sum against double precision.
#include "dsl/lib/norm.h"

#include <algorithm>

#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

enum class Function { Layernorm, Rmsnorm, AddRmsnorm };
constexpr Function kAll[] = {Function::Layernorm, Function::Rmsnorm, Function::AddRmsnorm};
const char* const kNames[] = {"layernorm", "rmsnorm", "add_rmsnorm"};

/// One call: inputs and everything it wrote, and the exact results.
template <class T>
struct Case {
  Function f;
  Shape shape;
  std::vector<double> x, residual, weight, bias;
  float eps = 1e-5f;

  Case(Function function, Shape s, std::uint32_t seed, double reach = 4, double centre = 0)
      : f(function),
        shape(s),
        x(numbers<T>(std::size_t(s.rows * s.cols), seed, reach, centre)),
        residual(numbers<T>(x.size(), seed + 1)),
        weight(numbers<T>(std::size_t(s.cols), seed + 2, 2)),
        bias(numbers<T>(std::size_t(s.cols), seed + 3, 2)) {}

  /// The row that is normalised: x, or x + residual rounded to T.
  std::vector<double> normalised_input() const {
    std::vector<double> v = x;
    if (f == Function::AddRmsnorm)
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = double(float(T(float(x[i]) + float(residual[i]))));
    return v;
  }
};

template <class T>
void call(const Case<T>& c, const Stream& s, const Rows<T>& x, const Rows<T>& residual, Rows<T>& sum, Rows<T>& y) {
  const Weights<T> weight(s.device(), c.weight), bias(s.device(), c.bias);
  switch (c.f) {
    case Function::Layernorm: return lib::layernorm<T>(s, x, weight, bias, y, c.eps);
    case Function::Rmsnorm: return lib::rmsnorm<T>(s, x, weight, y, c.eps);
    case Function::AddRmsnorm: return lib::add_rmsnorm<T>(s, x, residual, weight, sum, y, c.eps);
  }
}

/// The bounds that dsl/lib/norm.h states.
template <class T>
void expect_close(const Device& device, const Case<T>& c, const std::vector<double>& got) {
  const std::vector<double> x = c.normalised_input();
  const auto cols = std::size_t(c.shape.cols);
  std::vector<double> want(x.size()), allowed(x.size());
  const double relative = 4e-6 + sum_error(device, c.shape.cols);
  for (std::size_t row = 0; row < x.size(); row += cols) {
    double mean = 0, squares = 0, largest = 0;
    for (std::size_t i = 0; i < cols; ++i) mean += (x[row + i] - x[row]) / double(cols);
    mean = c.f == Function::Layernorm ? mean + x[row] : 0;
    for (std::size_t i = 0; i < cols; ++i) {
      squares += (x[row + i] - mean) * (x[row + i] - mean) / double(cols);
      largest = std::max(largest, std::abs(x[row + i] - mean));
    }
    const double scale = 1 / std::sqrt(squares + double(c.eps));
    for (std::size_t i = 0; i < cols; ++i) {
      double& y = want[row + i];
      y = (x[row + i] - mean) * scale * c.weight[i];
      const double size = c.f == Function::Layernorm ? largest * scale * std::abs(c.weight[i]) : std::abs(y);
      if (c.f == Function::Layernorm) y += c.bias[i];
      allowed[row + i] = ulp<T>(y) + relative * size;
    }
  }
  expect_within(got, want, [&](std::size_t i) { return allowed[i]; });
}

template <class T>
void check(const Device& device, const Case<T>& c) {
  SCOPED_TRACE(std::string(kNames[int(c.f)]) + " of " + std::to_string(c.shape.cols) + " columns");
  const Rows<T> x(device, c.shape, c.x), residual(device, c.shape, c.residual);
  Rows<T> sum(device, c.shape), y(device, c.shape);
  call(c, Stream(device), x, residual, sum, y);
  expect_close(device, c, y.values());
  y.expect_rest_untouched();
  sum.expect_rest_untouched();
  if (c.f == Function::AddRmsnorm) {
    EXPECT_EQ(sum.values(), c.normalised_input());
  }
}

template <class T>
class Norm : public testing::Test {};
using Types = testing::Types<float, f16, bf16>;
struct TypeNames {
  template <class T>
  static std::string GetName(int) {
    return name(dtype_of<T>);
  }
};
TYPED_TEST_SUITE(Norm, Types, TypeNames);

// 1000 and 1024 are one tile of 1024 lanes: the padding of the first must not enter the variance.
TYPED_TEST(Norm, RowsOfEveryWidth) {
  on_each_device([](const Device& d) {
    for (Function f : kAll)
      for (std::int64_t cols : {1, 2, 3, 127, 1000, 1024, 4097}) check(d, Case<TypeParam>(f, {3, cols}, 1, 4, 1));
  });
}

TYPED_TEST(Norm, RowsAnywhereInMemory) {
  on_each_device([](const Device& d) {
    for (Function f : kAll)
      for (Shape s : {Shape{5, 1, 2, 1}, Shape{3, 127, 1, 0}, Shape{3, 1000, 24, 8}, Shape{3, 1000, 0, 1}})
        check(d, Case<TypeParam>(f, s, 2));
  });
}

TYPED_TEST(Norm, LongRows) {
  on_each_device([](const Device& d) {
    for (Function f : kAll)
      for (Shape s : {Shape{2, 100003}, Shape{1, 32769, 5, 1}}) check(d, Case<TypeParam>(f, s, 3, 2, 1));
  });
}

TYPED_TEST(Norm, InPlace) {
  on_each_device([](const Device& d) {
    for (Function f : kAll)
      for (Shape s : {Shape{3, 1000}, Shape{3, 77, 3, 1}, Shape{1, 40000}}) {
        const Case<TypeParam> c(f, s, 4);
        Rows<TypeParam> x(d, s, c.x), residual(d, s, c.residual), y(d, s);
        call(c, Stream(d), x, residual, x, f == Function::AddRmsnorm ? y : x);  // the sum replaces x
        expect_close(d, c, (f == Function::AddRmsnorm ? y : x).values());
        if (f != Function::AddRmsnorm) continue;
        EXPECT_EQ(x.values(), c.normalised_input());
        Rows<TypeParam> again(d, s, c.x);
        call(c, Stream(d), again, residual, residual, again);  // the sum replaces the residual, the result x
        expect_close(d, c, again.values());
        EXPECT_EQ(residual.values(), c.normalised_input());
      }
  });
}

// Variance 0: layernorm gives the bias exactly, the others a row of weights.
TYPED_TEST(Norm, ConstantRows) {
  on_each_device([](const Device& d) {
    for (std::int64_t cols : {1, 7, 1000, 40000})
      for (Function f : kAll) {
        Case<TypeParam> c(f, {1, cols}, 5);
        std::fill(c.x.begin(), c.x.end(), double(float(TypeParam(1.1f))));
        check(d, c);
        std::fill(c.x.begin(), c.x.end(), 0);
        check(d, c);
        if (f != Function::Layernorm) continue;
        std::fill(c.x.begin(), c.x.end(), double(float(TypeParam(333.3f))));
        const Rows<TypeParam> x(d, c.shape, c.x), none(d, c.shape);
        Rows<TypeParam> sum(d, c.shape), y(d, c.shape);
        call(c, Stream(d), x, none, sum, y);
        EXPECT_EQ(y.values(), c.bias) << cols;
      }
  });
}

TYPED_TEST(Norm, ValuesThatAreNotFinite) {
  on_each_device([](const Device& d) {
    for (std::int64_t cols : {1, 1000, 40000})
      for (Function f : kAll)
        for (double special : {kNaN, kInf}) {
          Case<TypeParam> c(f, {2, cols}, 6);
          const std::size_t at = std::size_t(cols) * 2 - 1;  // the last of the second row
          c.x[at] = special;
          const Rows<TypeParam> x(d, c.shape, c.x), residual(d, c.shape, c.residual);
          Rows<TypeParam> sum(d, c.shape), y(d, c.shape);
          call(c, Stream(d), x, residual, sum, y);
          const std::vector<double> got = y.values();
          for (std::size_t i = 0; i < got.size(); ++i) {
            SCOPED_TRACE(std::string(kNames[int(f)]) + ", element " + std::to_string(i));
            const bool in_first_row = i < std::size_t(cols),
                       zero = f != Function::Layernorm && special == kInf && i != at;
            if (in_first_row) {
              ASSERT_TRUE(std::isfinite(got[i]));
            } else if (zero) {
              ASSERT_EQ(got[i], 0);
            } else {
              ASSERT_TRUE(std::isnan(got[i])) << got[i];
            }
          }
        }
  });
}

// A mean far from 0: 1e4 has a neighbour 1e-3 away, so that these deviations are ten different numbers.
TEST(NormRows, MeansFarFromTheDeviations) {
  on_each_device([](const Device& d) {
    for (double centre : {1e4, -3e7, 1e-20})
      for (std::int64_t cols : {3, 1000, 4097, 40000}) {
        Case<float> c(Function::Layernorm, {2, cols}, 7, std::abs(centre) * 1e-6, centre);
        c.eps = 1e-12f;
        check(d, c);
      }
  });
}

// The first element, from which distances are taken, may be any of them.
TEST(NormRows, FirstElementsFarFromTheRest) {
  on_each_device([](const Device& d) {
    for (std::int64_t cols : {3, 1000, 40000}) {
      Case<float> c(Function::Layernorm, {1, cols}, 8);
      c.x[0] = 1e8;
      check(d, c);
    }
  });
}

// Squares must fit f32: above it the scale is 0.
TEST(NormRows, LargeNumbers) {
  on_each_device([](const Device& d) {
    for (Function f : kAll)
      for (std::int64_t cols : {1000, 40000}) {
        check(d, Case<float>(f, {1, cols}, 9, 1e16));
        Case<float> c(f, {1, cols}, 9, 1e30);
        const Rows<float> x(d, c.shape, c.x), residual(d, c.shape, c.residual);
        Rows<float> sum(d, c.shape), y(d, c.shape);
        call(c, Stream(d), x, residual, sum, y);
        const std::vector<double> got = y.values();
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(got[i], f == Function::Layernorm ? c.bias[i] : 0) << kNames[int(f)] << " " << i;
      }
  });
}

TEST(NormRows, NothingIsLaunchedForNoElements) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    d.reset_counters();
    Buffer<float> none(d, 0), w(d, 8);
    for (auto shape : {std::array<std::int64_t, 2>{0, 8}, {8, 0}, {0, 0}}) {
      lib::layernorm<float>(s, {none, shape}, {w, {shape[1]}}, {w, {shape[1]}}, {none, shape});
      lib::rmsnorm<float>(s, {none, shape}, {w, {shape[1]}}, {none, shape});
      lib::add_rmsnorm<float>(s, {none, shape}, {none, shape}, {w, {shape[1]}}, {none, shape}, {none, shape});
    }
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

class NormErrors : public testing::Test {
 protected:
  Device d = interpreter();
  Stream s{d};
  Buffer<float> x{d, 12}, y{d, 12}, w{d, 8};
};

TEST_F(NormErrors, ShapesThatDiffer) {
  expect_user_error(
      [&] {
        lib::layernorm<float>(s, {x, {3, 4}}, {w, {4}}, {w, {4}}, {y, {2, 4}});
      },
      "layernorm: y is 2x4, but x is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::layernorm<float>(s, {x, {3, 4}}, {w, {3}}, {w, {4}}, {y, {3, 4}});
      },
      "layernorm: weight has 3 elements, must have 4", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::layernorm<float>(s, {x, {3, 4}}, {w, {4}}, {w, {5}}, {y, {3, 4}});
      },
      "layernorm: bias has 5 elements, must have 4", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rmsnorm<float>(s, {x, {3, 4}}, {w, {5}}, {y, {3, 4}});
      },
      "rmsnorm: weight has 5 elements, must have 4", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::add_rmsnorm<float>(s, {x, {3, 4}}, {x, {4, 3}}, {w, {4}}, {y, {3, 4}}, {y, {3, 4}});
      },
      "add_rmsnorm: residual is 4x3, but x is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::add_rmsnorm<float>(s, {x, {3, 4}}, {x, {3, 4}}, {w, {4}}, {y, {12, 1}}, {y, {3, 4}});
      },
      "add_rmsnorm: sum is 12x1, but x is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
}

TEST_F(NormErrors, RowsAndWeightsThatAreNotContiguous) {
  expect_user_error(
      [&] {
        lib::rmsnorm<float>(s, {x, {4, 3}, {1, 4}}, {w, {3}}, {y, {4, 3}});
      },
      "rmsnorm: the elements of a row of x are 4 apart, must be 1", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rmsnorm<float>(s, {x, {3, 4}}, {w, {4}, {2}}, {y, {3, 4}});
      },
      "rmsnorm: the elements of weight are 2 apart, must be 1", __FILE__, __LINE__ - 2);
}

TEST_F(NormErrors, BuffersThatAreTooShort) {
  on_each_device([](const Device& device) {
    const Stream stream(device);
    Buffer<float> in(device, 12), out(device, 12), weight(device, 3);
    expect_user_error(
        [&] {
          lib::rmsnorm<float>(stream, {in, {3, 4}}, {weight, {4}}, {out, {3, 4}});
        },
        "rmsnorm: argument 2 (weight)", __FILE__, __LINE__ - 2);
    expect_user_error(
        [&] {
          lib::rmsnorm<float>(stream, {in, {4, 3}}, {weight, {3}}, {out, {4, 3}, {4, 1}});
        },
        "rmsnorm: argument 3 (y)", __FILE__, __LINE__ - 2);
  });
}

}  // namespace
}  // namespace kiln::test

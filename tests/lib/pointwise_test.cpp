// Dropout, SwiGLU, the GELU chain and AdamW against double precision.
#include "dsl/lib/pointwise.h"

#include <algorithm>
#include <array>

#include "tests/lib/real_types.h"
#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

/// A dense matrix seen as a vector.
template <class T>
lib::Vector<const T> read(const Rows<T>& r, std::int64_t n) {
  const lib::Matrix<const T> m = r;
  return {TypedPtr<T>{m.data.address, std::size_t(n)}, {n}};
}
template <class T>
lib::Vector<T> written(Rows<T>& r, std::int64_t n) {
  const lib::Matrix<T> m = r;
  return {TypedPtr<T>{m.data.address, std::size_t(n)}, {n}};
}

// --- dropout ---------------------------------------------------------------------------------------------------------

/// Philox4x32-10 as the paper has it: word i % 4 of counter i / 4, as the multiple of 2^-24.
double uniform(std::uint64_t seed, std::uint64_t i) {
  std::array<std::uint32_t, 4> x{std::uint32_t(i / 4), std::uint32_t(i / 4 >> 32), 0, 0};
  std::uint32_t k0 = std::uint32_t(seed), k1 = std::uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const std::uint64_t p = std::uint64_t(x[0]) * 0xD2511F53u, q = std::uint64_t(x[2]) * 0xCD9E8D57u;
    x = {std::uint32_t(q >> 32) ^ x[1] ^ k0, std::uint32_t(q), std::uint32_t(p >> 32) ^ x[3] ^ k1, std::uint32_t(p)};
  }
  return double(x[i % 4] >> 8) * 0x1p-24;
}

template <class T>
void check_dropout(const Device& device, std::int64_t n, double p, std::uint64_t seed, std::int64_t offset = 0,
                   bool in_place = false) {
  SCOPED_TRACE(std::to_string(n) + " elements, p " + std::to_string(p));
  const std::vector<double> x = numbers<T>(std::size_t(n), 1);
  Rows<T> from(device, {1, n, 0, offset}, x), to(device, {1, n, 0, offset});
  Rows<T>& result = in_place ? from : to;
  lib::dropout<T>(Stream(device), read(from, n), written(result, n), p, seed);
  std::vector<double> want(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    want[i] = uniform(seed, i) >= double(float(p)) ? double(float(T(float(x[i]) * float(1 / (1 - p))))) : 0;
  expect_within(result.values(), want, [](std::size_t) { return 0; });
  result.expect_rest_untouched();
}

template <class T>
class Dropout : public testing::Test {};
TYPED_TEST_SUITE(Dropout, RealTypes, RealTypeNames);

TYPED_TEST(Dropout, KeepsWhatTheGeneratorSays) {
  on_each_device([](const Device& d) {
    for (std::int64_t n : {1, 2, 3, 127, 1000, 4097}) check_dropout<TypeParam>(d, n, 0.3, 1234);
    check_dropout<TypeParam>(d, 100003, 0.1, 7);
    check_dropout<TypeParam>(d, 1000, 0.5, 0xfedcba9876543210u, 1);
    check_dropout<TypeParam>(d, 3000, 0.5, 3, 0, true);
  });
}

TYPED_TEST(Dropout, OfNothingAndOfAlmostEverything) {
  on_each_device([](const Device& d) {
    check_dropout<TypeParam>(d, 1000, 0, 5);
    check_dropout<TypeParam>(d, 1000, 0.999, 5);
  });
}

TEST(DropoutRows, WhatIsDroppedIsZeroWhateverItWas) {
  on_each_device([](const Device& d) {
    Rows<float> x(d, {1, 1000}, std::vector<double>(1000, kNaN)), y(d, {1, 1000});
    lib::dropout<float>(Stream(d), read(x, 1000), written(y, 1000), 0.5, 9);
    const std::vector<double> got = y.values();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), uniform(9, i) >= 0.5) << i;
  });
}

TEST(DropoutErrors, ProbabilitiesAndShapes) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 8), y(d, 8);
  for (double p : {1.0, -0.25, kNaN, kInf}) {
    const std::string text = error_of<UserError>([&] { lib::dropout<float>(s, {x, {8}}, {y, {8}}, p, 1); });
    EXPECT_NE(text.find(", must be in [0, 1)"), std::string::npos) << text;
  }
  expect_user_error(
      [&] {
        lib::dropout<float>(s, {x, {8}}, {y, {8}}, 1.5, 1);
      },
      "dropout: p is 1.5, must be in [0, 1)", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::dropout<float>(s, {x, {8}}, {y, {7}}, 0.5, 1);
      },
      "dropout: y has 7 elements, must have 8", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::dropout<float>(s, {x, {4}, {2}}, {y, {4}}, 0.5, 1);
      },
      "dropout: the elements of x are 2 apart, must be 1", __FILE__, __LINE__ - 2);
}

// --- swiglu ----------------------------------------------------------------------------------------------------------

double silu(double x) { return x == -kInf ? -0.0 : x / (1 + std::exp(-x)); }

template <class T>
void check_swiglu(const Device& device, Shape shape, const std::vector<double>& a, const std::vector<double>& b,
                  bool in_place = false) {
  SCOPED_TRACE(std::to_string(shape.rows) + "x" + std::to_string(shape.cols));
  Rows<T> x(device, shape, a), gate(device, shape, b), y(device, shape);
  Rows<T>& result = in_place ? x : y;
  lib::swiglu<T>(Stream(device), x, gate, result);
  std::vector<double> want(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) want[i] = in_range<T>(silu(a[i]) * b[i]);
  expect_within(result.values(), want, [&](std::size_t i) { return (sizeof(T) == 4 ? 4 : 2) * ulp<T>(want[i]); });
  result.expect_rest_untouched();
}

template <class T>
class Swiglu : public testing::Test {};
TYPED_TEST_SUITE(Swiglu, RealTypes, RealTypeNames);

TYPED_TEST(Swiglu, MatricesOfEveryShape) {
  on_each_device([](const Device& d) {
    for (Shape s : {Shape{1, 1}, Shape{3, 2}, Shape{7, 127}, Shape{3, 4097}, Shape{3, 1000, 24, 8}, Shape{5, 3, 1, 1},
                    Shape{2, 100003}}) {
      const auto n = std::size_t(s.rows * s.cols);
      check_swiglu<TypeParam>(d, s, numbers<TypeParam>(n, 1, 9), numbers<TypeParam>(n, 2));
      if (n < 5000) check_swiglu<TypeParam>(d, s, numbers<TypeParam>(n, 1, 9), numbers<TypeParam>(n, 2), true);
    }
  });
}

TYPED_TEST(Swiglu, SpecialValues) {
  on_each_device([](const Device& d) {
    check_swiglu<TypeParam>(d, {1, 9}, {kNaN, 1, kInf, -kInf, kInf, -kInf, -1e4, 1e4, 0},
                            {1, kNaN, 2, 2, 0, kInf, 3, 3, kInf});
  });
}

TEST(SwigluRows, HalvesOfWiderRows) {
  on_each_device([](const Device& d) {
    const std::int64_t rows = 3, cols = 48;
    const std::vector<double> x = numbers<float>(std::size_t(rows * 2 * cols), 3);
    Rows<float> both(d, {rows, 2 * cols}, x), y(d, {rows, cols});
    const lib::Matrix<const float> m = both;
    const TypedPtr<float> a{m.data.address, std::size_t(rows * 2 * cols)};
    const TypedPtr<float> b{m.data.address + std::size_t(cols) * sizeof(float), std::size_t((2 * rows - 1) * cols)};
    lib::swiglu<float>(Stream(d), {a, {rows, cols}, {2 * cols, 1}}, {b, {rows, cols}, {2 * cols, 1}}, y);
    std::vector<double> want;
    for (std::size_t r = 0; r < std::size_t(rows); ++r)
      for (std::size_t c = 0; c < std::size_t(cols); ++c) want.push_back(silu(x[r * 96 + c]) * x[r * 96 + 48 + c]);
    expect_within(y.values(), want, [&](std::size_t i) { return 4 * ulp<float>(want[i]); });
  });
}

TEST(SwigluErrors, ShapesThatDiffer) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), y(d, 12);
  expect_user_error(
      [&] {
        lib::swiglu<float>(s, {x, {3, 4}}, {x, {3, 3}}, {y, {3, 4}});
      },
      "swiglu: b is 3x3, but a is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
}

// --- gelu ------------------------------------------------------------------------------------------------------------

template <class T>
void check_gelu(const Device& device, Shape shape, bool in_place = false) {
  SCOPED_TRACE(std::to_string(shape.rows) + "x" + std::to_string(shape.cols));
  const auto n = std::size_t(shape.rows * shape.cols), cols = std::size_t(shape.cols);
  const std::vector<double> x = numbers<T>(n, 1), other = numbers<T>(n, 2), bias = numbers<T>(cols, 3),
                            scale = numbers<T>(std::size_t(shape.rows), 4);
  Rows<T> from(device, shape, x), residual(device, shape, other), to(device, shape);
  const Weights<T> b(device, bias), s(device, scale);
  Rows<T>& result = in_place ? residual : to;
  lib::gelu_bias_scale_residual<T>(Stream(device), from, b, s, residual, result);
  std::vector<double> want(n), largest(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double v = x[i] + bias[i % cols];
    const double g = 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
    want[i] = g * scale[i / cols] + other[i];
    largest[i] = std::max({std::abs(v * scale[i / cols]), std::abs(other[i]), std::abs(want[i])});
  }
  expect_within(result.values(), want, [&](std::size_t i) { return (sizeof(T) == 4 ? 4 : 1) * ulp<T>(largest[i]); });
  result.expect_rest_untouched();
}

template <class T>
class Gelu : public testing::Test {};
TYPED_TEST_SUITE(Gelu, RealTypes, RealTypeNames);

TYPED_TEST(Gelu, MatricesOfEveryShape) {
  on_each_device([](const Device& d) {
    for (Shape s : {Shape{1, 1}, Shape{3, 2}, Shape{100, 3}, Shape{7, 127}, Shape{5, 1000, 24, 8}, Shape{9, 2048},
                    Shape{3, 4097, 0, 1}, Shape{1, 100003}}) {
      check_gelu<TypeParam>(d, s);
      if (s.rows * s.cols < 5000) check_gelu<TypeParam>(d, s, true);
    }
  });
}

// What is far below 0 is 0, an infinity too; nothing overflows on the way.
TYPED_TEST(Gelu, SpecialValues) {
  const double huge = std::same_as<TypeParam, f16> ? 65504 : 0x1.fep127, tiny = ulp<TypeParam>(0);
  const std::vector<double> x{huge, -huge, kInf, -kInf, kNaN, 0, -0.0, tiny, -tiny, -200, 200, huge / 2, -huge / 2};
  const std::vector<double> want{huge, 0, kInf, 0, kNaN, 0, 0, tiny / 2, -tiny / 2, 0, 200, huge / 2, 0};
  const auto cols = std::int64_t(x.size());
  on_each_device([&](const Device& d) {
    const std::vector<double> none(x.size());
    Rows<TypeParam> from(d, {1, cols}, x), residual(d, {1, cols}, none), to(d, {1, cols});
    const Weights<TypeParam> bias(d, none), scale(d, {1});
    lib::gelu_bias_scale_residual<TypeParam>(Stream(d), from, bias, scale, residual, to);
    expect_within(to.values(), want, [&](std::size_t i) { return ulp<TypeParam>(want[i]); });
  });
}

TEST(GeluErrors, ShapesThatDoNotFit) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), y(d, 12), v(d, 4);
  expect_user_error(
      [&] {
        lib::gelu_bias_scale_residual<float>(s, {x, {3, 4}}, {v, {3}}, {v, {3}}, {x, {3, 4}}, {y, {3, 4}});
      },
      "gelu_bias_scale_residual: bias has 3 elements, must have 4", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::gelu_bias_scale_residual<float>(s, {x, {3, 4}}, {v, {4}}, {v, {4}}, {x, {3, 4}}, {y, {3, 4}});
      },
      "gelu_bias_scale_residual: scale has 4 elements, must have 3", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::gelu_bias_scale_residual<float>(s, {x, {3, 4}}, {v, {4}}, {v, {3}}, {x, {4, 3}}, {y, {3, 4}});
      },
      "gelu_bias_scale_residual: residual is 4x3, but x is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
}

// --- adam ------------------------------------------------------------------------------------------------------------

/// Steps of AdamW as its paper has them, in double.
struct Reference {
  std::vector<double> p, m, v;
  void step(const std::vector<double>& g, const lib::AdamW& o, int t) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(o.beta1, t)), square = v[i] / (1 - std::pow(o.beta2, t));
      p[i] = p[i] * (1 - o.lr * o.weight_decay) - o.lr * mean / (std::sqrt(square) + o.eps);
    }
  }
};

template <class T>
void check_adam(const Device& device, std::int64_t n, const lib::AdamW& options, std::int64_t offset = 0) {
  SCOPED_TRACE(std::to_string(n) + " elements");
  const auto size = std::size_t(n);
  const Shape shape{1, n, 0, offset};
  Reference want{numbers<T>(size, 1), std::vector<double>(size), std::vector<double>(size)};
  Rows<T> param(device, shape, want.p);
  Rows<float> m(device, shape, want.m), v(device, shape, want.v);
  for (int t = 1; t <= 3; ++t) {
    const std::vector<double> g = numbers<T>(size, std::uint32_t(10 + t), 0.5);
    Rows<T> grad(device, shape, g);
    lib::adam_step<T>(Stream(device), written(param, n), read(grad, n), written(m, n), written(v, n), options, t);
    want.step(g, options, t);
    const std::vector<double> got = param.values();
    expect_within(got, want.p,
                  [&](std::size_t i) { return ulp<T>(want.p[i]) + 1e-6 * (std::abs(want.p[i]) + options.lr); });
    expect_within(m.values(), want.m, [&](std::size_t i) { return 1e-6 * (std::abs(want.m[i]) + 0.5); });
    expect_within(v.values(), want.v, [&](std::size_t i) { return 1e-6 * (want.v[i] + 0.25); });
    want.p = got;  // a rounded parameter is what the next step starts from
  }
  param.expect_rest_untouched();
  m.expect_rest_untouched();
  v.expect_rest_untouched();
}

template <class T>
class Adam : public testing::Test {};
TYPED_TEST_SUITE(Adam, RealTypes, RealTypeNames);

TYPED_TEST(Adam, ThreeSteps) {
  on_each_device([](const Device& d) {
    for (std::int64_t n : {1, 2, 3, 127, 1000, 4097}) check_adam<TypeParam>(d, n, {});
    check_adam<TypeParam>(d, 1000, {.lr = 0.1, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.3}, 1);
    check_adam<TypeParam>(d, 100, {.lr = 0.1, .beta1 = 0, .beta2 = 0, .weight_decay = 0});
    check_adam<TypeParam>(d, 100, {.lr = 0});
  });
}

TEST(AdamErrors, NumbersAndShapes) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> p(d, 8), q(d, 8);
  const auto error = [&](const lib::AdamW& o, std::int64_t t) {
    return error_of<UserError>([&] { lib::adam_step<float>(s, {p, {8}}, {q, {8}}, {p, {8}}, {q, {8}}, o, t); });
  };
  EXPECT_NE(error({}, 0).find("adam_step: step is 0, must be at least 1"), std::string::npos);
  EXPECT_NE(error({.beta1 = 1}, 1).find("adam_step: beta1 is 1, must be below 1"), std::string::npos);
  EXPECT_NE(error({.beta2 = -0.5}, 1).find("adam_step: beta2 is -0.5, must be at least 0"), std::string::npos);
  EXPECT_NE(error({.eps = kNaN}, 1).find("adam_step: eps is nan, must be at least 0"), std::string::npos);
  EXPECT_NE(error({.lr = -1}, 1).find("adam_step: lr is -1, must be at least 0"), std::string::npos);
  EXPECT_NE(error({.weight_decay = kInf}, 1).find("adam_step: weight_decay is inf, must be below inf"),
            std::string::npos);
  expect_user_error(
      [&] {
        lib::adam_step<float>(s, {p, {8}}, {q, {7}}, {p, {8}}, {q, {8}}, {}, 1);
      },
      "adam_step: grad has 7 elements, must have 8", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::adam_step<float>(s, {p, {8}}, {q, {8}}, {p, {8}}, {q, {6}}, {}, 1);
      },
      "adam_step: v has 6 elements, must have 8", __FILE__, __LINE__ - 2);
}

TEST(PointwiseRows, NothingIsLaunchedForNoElements) {
  on_each_device([](const Device& d) {
    d.reset_counters();
    Buffer<float> none(d, 0);
    const Stream s(d);
    lib::dropout<float>(s, {none, {0}}, {none, {0}}, 0.5, 1);
    lib::adam_step<float>(s, {none, {0}}, {none, {0}}, {none, {0}}, {none, {0}}, {}, 1);
    for (auto shape : {std::array<std::int64_t, 2>{0, 4}, {4, 0}}) {
      lib::swiglu<float>(s, {none, shape}, {none, shape}, {none, shape});
      Buffer<float> v(d, 4);
      lib::gelu_bias_scale_residual<float>(s, {none, shape}, {v, {shape[1]}}, {v, {shape[0]}}, {none, shape},
                                           {none, shape});
    }
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

}  // namespace
}  // namespace kiln::test

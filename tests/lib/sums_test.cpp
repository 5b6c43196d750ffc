// Sums of whole arrays and along rows against double precision.
#include "dsl/lib/sums.h"

#include <algorithm>

#include "tests/lib/real_types.h"
#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

/// The sum of `x`, as sum_all computes it on `device`.
template <class T>
float sum_of(const Device& device, const std::vector<double>& x) {
  const auto n = std::int64_t(x.size());
  Rows<T> memory(device, {1, n}, x);
  Buffer<float> out = buffer_of(device, std::vector<float>{77.f, 77.f});
  const lib::Matrix<const T> row = memory;
  lib::Vector<const T> vector(TypedPtr<T>{row.data.address, std::size_t(n)}, {n});
  lib::sum_all<T>(Stream(device), vector, {out, {1}});
  EXPECT_EQ(out.to_vector()[1], 77.f);
  return out.to_vector()[0];
}

/// The bound that dsl/lib/sums.h states; the interpreter adds the elements of a lane, and the lanes, one by one.
double sum_bound(const Device& device, const std::vector<double>& x) {
  double sizes = 0;
  for (double v : x) sizes += std::abs(v);
  const double extra = device.kind() == DeviceKind::Interpreter ? 700 : 0;
  return 0x1p-24 * (double(x.size()) / 0x1p26 + 96 + extra) * sizes;
}

template <class T>
void check_sum(const Device& device, std::size_t n, double centre) {
  SCOPED_TRACE(std::to_string(n) + " elements");
  const std::vector<double> x = numbers<T>(n, 1, 4, centre);
  double want = 0;
  for (double v : x) want += v;
  EXPECT_LE(std::abs(double(sum_of<T>(device, x)) - want), sum_bound(device, x));
}

template <class T>
class Sums : public testing::Test {};
TYPED_TEST_SUITE(Sums, RealTypes, RealTypeNames);

TYPED_TEST(Sums, OfArraysOfEverySize) {
  on_each_device([](const Device& d) {
    for (std::size_t n : {0, 1, 2, 3, 127, 1000, 4097, 16384, 100003})
      for (double centre : {0, 3}) check_sum<TypeParam>(d, n, centre);
  });
}

TYPED_TEST(Sums, OfMoreThanOneRoundOfAllPrograms) { check_sum<TypeParam>(Device::simulator("sm_90a", 1), 400003, 1); }

TEST(SumAll, OfSpecialValues) {
  on_each_device([](const Device& d) {
    std::vector<double> x(20000, 1);
    x[19999] = kInf;
    EXPECT_EQ(sum_of<float>(d, x), float(kInf));
    x[0] = -kInf;
    EXPECT_TRUE(std::isnan(sum_of<float>(d, x)));
    x[0] = x[19999] = 1;
    x[12345] = kNaN;
    EXPECT_TRUE(std::isnan(sum_of<float>(d, x)));
    EXPECT_EQ(sum_of<float>(d, {3e38, 3e38}), float(kInf));
    EXPECT_EQ(sum_of<f16>(d, std::vector<double>(3000, 1)), 3000) << "f16 stops at 2048";
  });
}

TEST(SumAll, GivesTheSameBitsEachTime) {
  on_each_device([](const Device& d) {
    const std::vector<double> x = numbers<float>(30000, 2);
    const float first = sum_of<float>(d, x);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(sum_of<float>(d, x), first);
  });
}

// A captured sum brings its own workspace, which need not be cleared between replays.
TEST(SumAll, IsReplayedFromAGraph) {
  for (const Device& d : Device::all()) {
    SCOPED_TRACE(d.name());
    const Stream s(d);
    const std::int64_t n = 40000, space = lib::kSumWorkspace;
    Buffer<float> x = buffer_of(d, std::vector<float>(n, 1.f)), out(d, 1), workspace(d, std::size_t(space));
    workspace.fill_bytes(0xff);
    const auto sum = [&] { lib::sum_all<float>(s, {x, {n}}, {out, {1}}, {workspace, {space}}); };
    sum();
    EXPECT_EQ(out.to_vector()[0], 40000);
    const Graph graph = Graph::capture(s, sum);
    EXPECT_EQ(graph.kernels(), 2u);
    for (float value : {2.f, 0.5f}) {
      x.upload(std::vector<float>(n, value));
      graph.replay(s);
      s.synchronize();
      EXPECT_EQ(out.to_vector()[0], 40000 * value);
    }
    const auto without = [&] { lib::sum_all<float>(s, {x, {n}}, {out, {1}}); };
    EXPECT_THAT(
        error_of<UserError>([&] { (void)Graph::capture(s, without); }),
        testing::HasSubstr("sum_all: the stream is being captured, so a workspace of " + std::to_string(space)));
  }
}

TEST(SumAllErrors, ShapesThatDoNotFit) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), out(d, 2);
  expect_user_error(
      [&] {
        lib::sum_all<float>(s, {x, {12}}, {out, {2}});
      },
      "sum_all: out has 2 elements, must have 1", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::sum_all<float>(s, {x, {6}, {2}}, {out, {1}});
      },
      "sum_all: the elements of x are 2 apart, must be 1", __FILE__, __LINE__ - 2);
  const std::string few =
      "sum_all: workspace has 1 elements, must have " + std::to_string(lib::kSumWorkspace);
  expect_user_error([&] { lib::sum_all<float>(s, {x, {12}}, {out, {1}}, {x, {1}}); }, few, __FILE__, __LINE__);
  expect_user_error(
      [&] {
        lib::sum_all<float>(s, {x, {13}}, {out, {1}});
      },
      "sum_all: argument 1 (x)", __FILE__, __LINE__ - 2);
}

// --- cumsum ----------------------------------------------------------------------------------------------------------

template <class T>
void check_running(const Device& device, Shape shape, const std::vector<double>& x, bool in_place = false) {
  SCOPED_TRACE(std::to_string(shape.cols) + " columns");
  Rows<T> from(device, shape, x), to(device, shape);
  Rows<T>& result = in_place ? from : to;
  lib::cumsum<T>(Stream(device), from, result);
  const auto cols = std::size_t(shape.cols);
  std::vector<double> want(x.size()), bound(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool first = i % cols == 0;
    want[i] = x[i] + (first ? 0 : want[i - 1]);
    bound[i] = std::abs(x[i]) + (first ? 0 : bound[i - 1]);
  }
  // The interpreter adds the up to 2048 elements of a chunk one by one.
  const double extra = device.kind() == DeviceKind::Interpreter ? 2048 : 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double terms = double(i % cols) / 2048 + 32 + extra;
    bound[i] = 0x1p-24 * terms * bound[i] + (sizeof(T) == 4 ? 0 : ulp<T>(want[i]) / 2);
  }
  for (double& w : want) w = in_range<T>(w);
  expect_within(result.values(), want, [&](std::size_t i) { return bound[i] * 1.001; });
  result.expect_rest_untouched();
}

template <class T>
class Cumsum : public testing::Test {};
TYPED_TEST_SUITE(Cumsum, RealTypes, RealTypeNames);

TYPED_TEST(Cumsum, RowsOfEveryWidth) {
  on_each_device([](const Device& d) {
    for (std::int64_t cols : {1, 2, 3, 127, 1000, 4097})
      check_running<TypeParam>(d, {3, cols}, numbers<TypeParam>(std::size_t(3 * cols), 1));
    check_running<TypeParam>(d, {2, 100003}, numbers<TypeParam>(200006, 2, 1e-2));
  });
}

TYPED_TEST(Cumsum, RowsAnywhereInMemoryAndInPlace) {
  on_each_device([](const Device& d) {
    for (bool in_place : {false, true})
      for (Shape s : {Shape{5, 1, 2, 1}, Shape{3, 127, 1, 0}, Shape{3, 1000, 24, 8}, Shape{2, 4097, 0, 1}})
        check_running<TypeParam>(d, s, numbers<TypeParam>(std::size_t(s.rows * s.cols), 3), in_place);
  });
}

TYPED_TEST(Cumsum, WhatFollowsASpecialValue) {
  on_each_device([](const Device& d) {
    std::vector<double> x(3 * 4097, 1e-2);
    x[1] = x[4097 + 3000] = kNaN;
    x[2 * 4097 + 100] = kInf;
    x[2 * 4097 + 4000] = -kInf;
    for (double& v : x) v = double(float(TypeParam(float(v))));
    check_running<TypeParam>(d, {3, 4097}, x);
  });
}

TEST(CumsumErrors, ShapesThatDiffer) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), y(d, 12);
  expect_user_error(
      [&] {
        lib::cumsum<float>(s, {x, {3, 4}}, {y, {4, 3}});
      },
      "cumsum: y is 4x3, but x is 3x4: they must have one shape", __FILE__, __LINE__ - 2);
}

TEST(CumsumErrors, NothingIsLaunchedForNoElements) {
  on_each_device([](const Device& d) {
    d.reset_counters();
    Buffer<float> none(d, 0);
    const Stream s(d);
    lib::cumsum<float>(s, {none, {0, 8}}, {none, {0, 8}});
    lib::cumsum<float>(s, {none, {8, 0}}, {none, {8, 0}});
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

}  // namespace
}  // namespace kiln::test

// Cross-entropy and its gradient against double precision: every width and type, targets that name no column, rows of
// special values.
#include "dsl/lib/cross_entropy.h"

#include <algorithm>

#include "tests/lib/real_types.h"
#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

using Targets = std::vector<std::int64_t>;
constexpr std::int64_t kIgnored = -100;

struct Exact {
  std::vector<double> loss, gradient;
};
Exact exact(const std::vector<double>& x, std::size_t cols, const Targets& target, double scale,
            std::int64_t ignore_index) {
  Exact e{std::vector<double>(target.size()), std::vector<double>(x.size())};
  for (std::size_t r = 0; r < target.size(); ++r) {
    const double* row = x.data() + r * cols;
    double largest = -kInf, total = 0;
    for (std::size_t c = 0; c < cols; ++c) largest = std::isnan(row[c]) ? kNaN : std::max(row[c], largest);
    for (std::size_t c = 0; c < cols; ++c) total += std::exp(row[c] - largest);
    const std::int64_t t = target[r];
    const bool ignored = t == ignore_index, inside = t >= 0 && t < std::int64_t(cols);
    e.loss[r] = ignored ? 0 : inside ? std::log(total) + (largest - row[t]) : kNaN;
    for (std::size_t c = 0; c < cols; ++c)
      e.gradient[r * cols + c] = ignored   ? 0
                                 : !inside ? kNaN
                                           : (std::exp(row[c] - largest) / total - (std::int64_t(c) == t)) * scale;
  }
  return e;
}

template <class T>
double loss_bound(const Device& device, std::int64_t cols, double loss) {
  return (sizeof(T) == 4 ? 2e-6 : 1e-5) * (1 + loss) + sum_error(device, cols);
}

/// Loss and gradient of one matrix, within the bounds that dsl/lib/cross_entropy.h states.
template <class T>
void check(const Device& device, Shape shape, const std::vector<double>& x, const Targets& target,
           std::int64_t ignore_index = kIgnored) {
  SCOPED_TRACE(std::to_string(shape.cols) + " columns");
  const float scale = 0.75f;
  const Exact want = exact(x, std::size_t(shape.cols), target, scale, ignore_index);
  const Stream s(device);
  const Buffer<std::int64_t> targets = buffer_of(device, target);
  const auto losses = [&] { return buffer_of(device, std::vector<float>(target.size() + 1, 77.f)); };
  const auto expect_losses = [&](const Buffer<float>& loss) {
    const std::vector<float> got = loss.to_vector();
    EXPECT_EQ(got.back(), 77.f);
    expect_within({got.begin(), got.end() - 1}, want.loss,
                  [&](std::size_t r) { return loss_bound<T>(device, shape.cols, want.loss[r]); });
  };
  Rows<T> logits(device, shape, x);
  Buffer<float> loss = losses();
  lib::cross_entropy<T>(s, logits, {targets, {shape.rows}}, {loss, {shape.rows}}, ignore_index);
  expect_losses(loss);
  loss = losses();
  lib::cross_entropy_gradient<T>(s, logits, {targets, {shape.rows}}, {loss, {shape.rows}}, scale, ignore_index);
  expect_losses(loss);
  logits.expect_rest_untouched();
  expect_within(logits.values(), want.gradient, [&](std::size_t i) {
    return 2 * ulp<T>(want.gradient[i]) + 4e-6 * scale + sum_error(device, shape.cols) * scale;
  });
}

/// A column of each row.
Targets columns(std::int64_t rows, std::int64_t cols) {
  Targets t;
  for (std::int64_t r = 0; r < rows; ++r) t.push_back((r * 7919 + cols - 1) % cols);
  return t;
}

template <class T>
class CrossEntropy : public testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, RealTypes, RealTypeNames);

TYPED_TEST(CrossEntropy, RowsOfEveryWidth) {
  on_each_device([](const Device& d) {
    for (std::int64_t cols : {1, 2, 3, 127, 1000, 4097})
      check<TypeParam>(d, {3, cols}, numbers<TypeParam>(std::size_t(3 * cols), 1), columns(3, cols));
  });
}

TYPED_TEST(CrossEntropy, LongRows) {
  on_each_device([](const Device& d) { check<TypeParam>(d, {1, 100003}, numbers<TypeParam>(100003, 2), {100002}); });
}

TYPED_TEST(CrossEntropy, RowsAnywhereInMemory) {
  on_each_device([](const Device& d) {
    for (Shape s : {Shape{5, 1, 2, 1}, Shape{3, 127, 1, 0}, Shape{3, 1000, 24, 8}, Shape{2, 1000, 0, 1}})
      check<TypeParam>(d, s, numbers<TypeParam>(std::size_t(s.rows * s.cols), 3), columns(s.rows, s.cols));
  });
}

// A column just beyond the row is one that the chunks' tail covers; far ones would be wild addresses.
TYPED_TEST(CrossEntropy, TargetsThatNameNoColumn) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  on_each_device([&](const Device& d) {
    for (std::int64_t cols : {5, 1000}) {
      const Targets t{kIgnored, 0, -1, cols - 1, cols, cols + 1, kIgnored, -most - 1, most, std::int64_t(1) << 32};
      check<TypeParam>(d, {10, cols}, numbers<TypeParam>(std::size_t(10 * cols), 4), t);
    }
  });
}

TYPED_TEST(CrossEntropy, AnyNumberMayBeIgnored) {
  on_each_device([](const Device& d) {
    const std::vector<double> x = numbers<TypeParam>(4 * 9, 5);
    check<TypeParam>(d, {4, 9}, x, {0, 8, 0, 3}, 0);
    check<TypeParam>(d, {4, 9}, x, {9, 8, kIgnored, 3}, 9);
  });
}

TYPED_TEST(CrossEntropy, RowsOfSpecialValues) {
  on_each_device([](const Device& d) {
    for (std::int64_t cols : {5, 20000}) {
      const auto n = std::size_t(cols);
      std::vector<double> x = numbers<TypeParam>(8 * n, 6);
      const auto row = [&](std::size_t r) { return x.begin() + std::ptrdiff_t(r * n); };
      std::fill(row(0), row(3), -kInf);
      row(1)[1] = row(2)[cols - 1] = 3;  // the right column, and another one, is the only finite one
      row(3)[cols / 2] = kNaN;
      row(4)[cols / 2] = kInf;
      row(5)[1] = -kInf;  // the right column is impossible
      row(6)[cols / 2] = kNaN;
      row(7)[cols / 2] = kInf;
      check<TypeParam>(d, {8, cols}, x, {1, 1, 1, 1, 1, 1, kIgnored, kIgnored});
    }
  });
}

TEST(CrossEntropyRows, FarFromZeroAndFarApart) {
  on_each_device([](const Device& d) {
    for (double centre : {1e4, -1e6, 1e30}) check<float>(d, {2, 1000}, numbers<float>(2000, 7, 3, centre), {999, 0});
    check<float>(d, {2, 20000}, numbers<float>(40000, 8, 60), {19999, 0});
    check<float>(d, {1, 4}, {0x1.fep127, -0x1.fep126, 0, 0x1.fep127}, {3});
  });
}

TEST(CrossEntropyRows, IncreasingRowsRescaleAtEveryChunk) {
  on_each_device([](const Device& d) {
    std::vector<double> x(40000);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(float(i) * 1e-3f - 20);
    check<float>(d, {1, 40000}, x, {39999});
  });
}

TEST(CrossEntropyRows, NoRowsAndNoColumns) {
  on_each_device([](const Device& d) {
    const Stream s(d);
    Buffer<float> logits(d, 8), loss = buffer_of(d, std::vector<float>(4, 77.f));
    Buffer<std::int64_t> target = buffer_of(d, Targets{0, -1, kIgnored, 5});
    lib::cross_entropy<float>(s, {logits, {0, 8}}, {target, {0}}, {loss, {0}});
    lib::cross_entropy_gradient<float>(s, {logits, {0, 8}}, {target, {0}}, {loss, {0}}, 1);
    EXPECT_EQ(loss.to_vector(), std::vector<float>(4, 77.f));
    lib::cross_entropy<float>(s, {logits, {4, 0}}, {target, {4}}, {loss, {4}});
    const std::vector<float> got = loss.to_vector();
    for (std::size_t r = 0; r < 4; ++r) EXPECT_TRUE(r == 2 ? got[r] == 0 : std::isnan(got[r])) << r << " " << got[r];
  });
}

TEST(CrossEntropyErrors, ShapesThatDoNotFit) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), loss(d, 4);
  Buffer<std::int64_t> t(d, 4);
  expect_user_error(
      [&] {
        lib::cross_entropy<float>(s, {x, {3, 4}}, {t, {4}}, {loss, {3}});
      },
      "cross_entropy: target has 4 elements, must have 3", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::cross_entropy<float>(s, {x, {3, 4}}, {t, {3}}, {loss, {2}});
      },
      "cross_entropy: loss has 2 elements, must have 3", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::cross_entropy_gradient<float>(s, {x, {3, 4}}, {t, {2}}, {loss, {3}}, 1);
      },
      "cross_entropy_gradient: target has 2 elements, must have 3", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::cross_entropy<float>(s, {x, {3, 4}, {1, 3}}, {t, {3}}, {loss, {3}});
      },
      "cross_entropy: the elements of a row of logits are 3 apart, must be 1", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::cross_entropy<float>(s, {x, {3, 4}}, {t, {3}}, {loss, {3}, {2}});
      },
      "cross_entropy: the elements of loss are 2 apart, must be 1", __FILE__, __LINE__ - 2);
}

}  // namespace
}  // namespace kiln::test

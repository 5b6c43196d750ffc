// Products with their epilogues against double precision.
#include "tests/lib/products.h"
#include "tests/lib/real_types.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

namespace epilogue = lib::epilogue;

template <class X, class W, class Y>
struct Case {
  Extents e;
  std::vector<double> x, w;
  explicit Case(const Extents& extents)
      : e(extents), x(elements_of<X>(e.m * e.k, 1)), w(elements_of<W>(e.n * e.k, 2)) {}

  /// `finish(sum, i, j)` is what the epilogue makes of an exact sum; it must not stretch distances.
  template <class F>
  void expect(const Operand<Y>& y, F finish) const {
    const Products p = products(e, x, w);
    std::vector<double> want(p.sum.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      want[i] = finish(p.sum[i], i / std::size_t(e.n), i % std::size_t(e.n));
    expect_within(y.values(), want, [&](std::size_t i) {
      return step<Y>(want[i]) + sum_bound<X>(e.k) * (p.size[i] + std::abs(want[i]));
    });
    y.expect_rest_untouched();
  }
};

template <class T>
class LinearOf : public testing::Test {};
TYPED_TEST_SUITE(LinearOf, RealTypes, RealTypeNames);

TYPED_TEST(LinearOf, BiasAndReluOfEveryShape) {
  using T = TypeParam;
  on_each_device([](const Device& d) {
    for (Extents e : {Extents{1, 1, 1}, {65, 63, 127}, {7, 130, 64}, {2, 7, 1000}, {200, 1, 65}}) {
      SCOPED_TRACE(testing::PrintToString(e));
      const Case<T, T, T> c(e);
      const auto bias = elements_of<T>(e.n, 3);
      const Operand<T> x(d, e.m, e.k, c.x), w(d, e.n, e.k, c.w);
      Operand<T> y(d, e.m, e.n);
      lib::linear<T>(x, w).then(epilogue::bias<T>(Weights<T>(d, bias))).then(epilogue::relu).run(Stream(d), y);
      c.expect(y, [&](double sum, std::size_t, std::size_t j) { return std::max(0.0, sum + bias[j]); });
    }
  });
}

}  // namespace
}  // namespace kiln::test

// What comes before and after a product: stages of every kind, ready-made and the caller's, against double precision.
#include "dsl/lib/pointwise.h"
#include "tests/lib/products.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

namespace epilogue = lib::epilogue;

const lib::LinearOptions kSmall{.blocks = {32, 32, 16}};

/// f32 operands [37, 29] and [44, 29] on a device, and their exact products; 44 is divisible by 4, for pairs and masks.
struct Layer {
  Extents e{37, 44, 29};
  std::vector<double> xs = elements_of<float>(e.m * e.k, 1), ws = elements_of<float>(e.n * e.k, 2),
                      sum = products(e, xs, ws).sum;
  Device d;
  Stream s{d};
  Operand<float> x{d, e.m, e.k, xs}, w{d, e.n, e.k, ws}, y{d, e.m, e.n};
  explicit Layer(const Device& device) : d(device) {}

  auto linear() const { return lib::linear<float>(x, w, kSmall); }
  std::size_t cols() const { return std::size_t(e.n); }
  /// y, or another matrix of results, is f(sum, row, column) of the exact sums.
  template <class Y, class F>
  void expect(const Operand<Y>& got, F f, double relative = 1e-5) const {
    std::vector<double> want(sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i) want[i] = f(sum[i], i / cols(), i % cols());
    expect_within(got.values(), want,
                  [&](std::size_t i) { return step<Y>(want[i]) + relative * (std::abs(want[i]) + 20); });
    got.expect_rest_untouched();
  }
};

double silu(double v) { return v / (1 + std::exp(-v)); }

TEST(LinearChain, StagesOfOneNoneAndTwoTensorsWithACapturedConstant) {
  on_each_device([](const Device& d) {
    Layer t(d);
    const auto bias = elements_of<float>(t.e.n, 3), residual = elements_of<bf16>(t.e.m * t.e.n, 4);
    std::vector<std::int32_t> steps(std::size_t(t.e.m));
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = std::int32_t(i % 5);
    const Buffer<std::int32_t> rows = buffer_of(d, steps);
    const Operand<bf16> r(d, t.e.m, t.e.n, residual, 3, 1);
    const Weights<float> b(d, bias);
    for (float slope : {0.25f, 0.75f}) {
      t.linear()
          .then([](Tile acc, Tile v) { return acc + v; }, lib::per_column<float>(b))
          .then([slope](Tile acc) { return select(acc > 0, acc, acc * slope); })
          .then([](Tile acc, Tile v, Tile n) { return acc * 2 + v - n.cast(f32); }, lib::per_element<bf16>(r),
                lib::per_row<std::int32_t>({rows, {t.e.m}}))
          .run(t.s, t.y);
      t.expect(t.y, [&](double v, std::size_t i, std::size_t j) {
        v += bias[j];
        return (v > 0 ? v : v * double(slope)) * 2 + residual[i * t.cols() + j] - steps[i];
      });
    }
  });
}

// Captures of one closure type are different kernels where their values differ, and one where they do not.
TEST(LinearChain, CapturesAreInTheKeyAndNumbersAreNot) {
  const Device d = Device::simulator();
  Layer t(d);
  const auto run = [&](float factor, bool negate, float added) {
    t.linear()
        .then([factor, negate](Tile v, Tile a) { return (negate ? -v : v) * factor + a; }, lib::number(added))
        .run(t.s, t.y);
    t.expect(t.y,
             [&](double v, std::size_t, std::size_t) { return (negate ? -v : v) * double(factor) + double(added); });
  };
  run(2, false, 1);
  run(2, true, 1);
  run(3, true, 1);
  run(3, true, 5);
  run(2, false, 7);
}

TEST(LinearChain, ReadyMadeFunctions) {
  on_each_device([](const Device& d) {
    Layer t(d);
    t.linear().then(epilogue::relu).run(t.s, t.y);
    t.expect(t.y, [](double v, std::size_t, std::size_t) { return std::max(v, 0.0); });
    t.linear().then(epilogue::gelu).run(t.s, t.y);
    t.expect(t.y, [](double v, std::size_t, std::size_t) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); });
    t.linear().then(epilogue::gelu_tanh).run(t.s, t.y);
    t.expect(t.y, [](double v, std::size_t, std::size_t) {
      return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    });
    t.linear().then(epilogue::silu).run(t.s, t.y);
    t.expect(t.y, [](double v, std::size_t, std::size_t) { return silu(v); });
  });
}

TEST(LinearChain, SwigluTakesColumnsInPairs) {
  on_each_device([](const Device& d) {
    const Layer t(d);
    const auto bias = elements_of<float>(t.e.n / 2, 3);
    Operand<bf16> y(d, t.e.m, t.e.n / 2, 1, 1);
    t.linear().then(epilogue::swiglu).then(epilogue::bias<float>(Weights<float>(d, bias))).run<bf16>(t.s, y);
    std::vector<double> want;
    for (std::size_t i = 0; i < t.sum.size(); i += 2)
      want.push_back(silu(t.sum[i]) * t.sum[i + 1] + bias[want.size() % 22]);
    expect_within(y.values(), want, [&](std::size_t i) { return ulp<bf16>(want[i]) + 1e-3; });
    y.expect_rest_untouched();
  });
}

TEST(LinearChain, ScalesOfEveryKind) {
  on_each_device([](const Device& d) {
    Layer t(d);
    const auto rows = elements_of<float>(t.e.m, 3), cols = elements_of<float>(t.e.n, 4);
    const Weights<float> r(d, rows), c(d, cols);
    const Buffer<float> one = buffer_of(d, std::vector<float>{0.5f});
    t.linear()
        .then(epilogue::scale(lib::per_row<float>(r)))
        .then(epilogue::scale(lib::per_column<float>(c)))
        .then(epilogue::scale(lib::per_tensor<float>(one)))
        .then(epilogue::scale(lib::number(3.f)))
        .run(t.s, t.y);
    t.expect(t.y, [&](double v, std::size_t i, std::size_t j) { return v * rows[i] * cols[j] * 1.5; });
  });
}

TEST(LinearChain, SqrtOfAProductOfOnesIsTwo) {
  on_each_device([](const Device& d) {
    const Operand<float> ones(d, 4, 4, std::vector<double>(16, 1));
    Operand<float> y(d, 4, 4);
    lib::linear<float>(ones, ones, kSmall).then([](Tile t) { return sqrt(t); }).run(Stream(d), y);
    for (double v : y.values()) EXPECT_EQ(v, 2);
  });
}

TEST(LinearChain, SeveralResultsOfOneKernel) {
  on_each_device([](const Device& d) {
    Layer t(d);
    Operand<bf16> z(d, t.e.m, t.e.n, 5, 2);
    Operand<std::int32_t> sign(d, t.e.m, t.e.n);
    t.linear()
        .then([](Tile v) { return std::tuple(v, v * 2, (v > 0).cast(i32)); })
        .then([](Tile a, Tile b, Tile c) {
          return std::array{a + b, a, c};
        })
        .run<float, bf16, std::int32_t>(t.s, t.y, z, sign);
    t.expect(t.y, [](double v, std::size_t, std::size_t) { return v * 3; });
    t.expect(z, [](double v, std::size_t, std::size_t) { return v; });
    t.expect(
        sign, [](double v, std::size_t, std::size_t) { return v > 0 ? 1.0 : 0.0; }, 0);
  });
}

TEST(LinearChain, SavesWhatGoesBy) {
  on_each_device([](const Device& d) {
    Layer t(d);
    Operand<f16> before(d, t.e.m, t.e.n, 7, 3);
    t.linear().then(epilogue::save<f16>(before)).then(epilogue::relu).run(t.s, t.y);
    t.expect(before, [](double v, std::size_t, std::size_t) { return v; });
    t.expect(t.y, [](double v, std::size_t, std::size_t) { return std::max(v, 0.0); });
  });
}

TEST(LinearChain, ReductionsOfRowsAndColumns) {
  on_each_device([](const Device& d) {
    for (int splits : {1, 2}) {
      Layer t(d);
      const auto rows = std::size_t(t.e.m), cols = t.cols();
      Buffer<float> row_sum(d, rows), row_max(d, rows), col_squares(d, cols), col_max(d, cols);
      lib::LinearOptions o = kSmall;
      o.splits = splits;
      lib::linear<float>(t.x, t.w, o)
          .then([](Tile v) { return 50 - abs(v); })  // what lies beyond the edges is larger than any element
          .then(epilogue::row_reduce(lib::Reduction::sum, {row_sum, {t.e.m}}))
          .then(epilogue::column_reduce(lib::Reduction::sum_squares, {col_squares, {t.e.n}}))
          .then(epilogue::row_reduce(lib::Reduction::max, {row_max, {t.e.m}}))
          .then(epilogue::column_reduce(lib::Reduction::abs_max, {col_max, {t.e.n}}))
          .run(t.s, t.y);
      std::vector<double> a(rows), b(rows, -kInf), c(cols), e(cols);
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < cols; ++j) {
          const double v = 50 - std::abs(t.sum[i * cols + j]);
          a[i] += v, b[i] = std::max(b[i], v), c[j] += v * v, e[j] = std::max(e[j], std::abs(v));
        }
      const auto expect = [&](const Buffer<float>& got, const std::vector<double>& want) {
        const auto v = got.to_vector();
        expect_within(std::vector<double>(v.begin(), v.end()), want,
                      [&](std::size_t i) { return 1e-5 * (std::abs(want[i]) + 100); });
      };
      expect(row_sum, a);
      expect(row_max, b);
      expect(col_squares, c);
      expect(col_max, e);
      t.expect(t.y, [](double v, std::size_t, std::size_t) { return 50 - std::abs(v); });
    }
  });
}

TEST(LinearChain, DropoutIsThatOfTheWholeResult) {
  on_each_device([](const Device& d) {
    Layer t(d);
    const std::int64_t n = t.e.m * t.e.n;
    t.linear().then(epilogue::dropout(0.4, 1234)).run(t.s, t.y);
    Buffer<float> whole(d, std::size_t(n)), want(d, std::size_t(n));
    std::vector<float> sums(std::size_t(n), 1.f);
    whole.upload(sums);
    lib::dropout<float>(t.s, {whole, {n}}, {want, {n}}, 0.4, 1234);
    const auto mask = want.to_vector();
    int kept = 0;
    for (float m : mask) kept += m > 0;
    EXPECT_NEAR(kept, 0.6 * double(n), 120);
    t.expect(t.y, [&](double v, std::size_t i, std::size_t j) { return v * double(mask[i * t.cols() + j]); });
  });
}

TEST(LinearChain, CastToEightBitsWithTheLargestMagnitude) {
  on_each_device([](const Device& d) {
    const Layer t(d);
    const Buffer<float> scale = buffer_of(d, std::vector<float>{64.f});
    Buffer<float> amax = buffer_of(d, std::vector<float>{0.f});
    Operand<f8e4m3> y(d, t.e.m, t.e.n, 3, 1);
    t.linear().then(epilogue::cast_amax<f8e4m3>(scale, amax)).run<f8e4m3>(t.s, y);
    double largest = 0;
    for (double v : t.sum) largest = std::max(largest, std::abs(v));
    EXPECT_NEAR(double(amax.to_vector()[0]), largest, 1e-4);
    EXPECT_GT(largest * 64, 448);  // so that something is clamped
    const auto got = y.values();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = std::clamp(t.sum[i] * 64, -448.0, 448.0);
      ASSERT_NEAR(got[i], want, std::abs(want) / 16 + 0.002) << i;
    }
    y.expect_rest_untouched();
  });
}

// What a function makes of the padding behind k, here an infinity, meets weights of 0 there.
TEST(LinearChain, FunctionsOfXBeforeTheProduct) {
  on_each_device([](const Device& d) {
    Layer t(d);
    const auto rows = elements_of<float>(t.e.m, 5), steps = elements_of<float>(t.e.k, 6);
    const Weights<float> r(d, rows), k(d, steps);
    lib::linear<float>(t.x, t.w, kSmall)
        .before([](Tile x, Tile a, Tile b) { return 1 / x + a * b; }, lib::per_row<float>(r), lib::per_column<float>(k))
        .then(epilogue::relu)
        .run(t.s, t.y);
    std::vector<double> x = t.xs;
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = double(1 / float(x[i]) + float(rows[i / 29]) * float(steps[i % 29]));
    const Products p = products(t.e, x, t.ws);
    std::vector<double> want = p.sum;
    for (double& v : want) v = std::max(v, 0.0);
    expect_within(t.y.values(), want, [&](std::size_t i) { return 1e-5 * p.size[i]; });
  });
}

TEST(LinearChain, PlaceTellsWhereATileStands) {
  on_each_device([](const Device& d) {
    Layer t(d);
    t.linear()
        .then([](const lib::Place& p, Tile v) {
          return v * 0 + p.row_numbers().cast(f32) * 100 + p.column_numbers().cast(f32);
        })
        .run(t.s, t.y);
    t.expect(
        t.y, [](double, std::size_t i, std::size_t j) { return double(100 * i + j); }, 0);
  });
}

TEST(LinearChain, TilesOfOtherExtentsAreRefusedWhereTheProductBegan) {
  const Device d = interpreter();
  Layer t(d);
  expect_user_error(
      [&] { lib::linear<float>(t.x, t.w, kSmall).then([](Tile v) { return sum(v, 1, true); }).run(t.s, t.y); },
      "stage 1 of a chain returns a tile of [32,1], must be [32,32]", __FILE__, __LINE__ - 1);
  expect_user_error([&] { (void)epilogue::dropout(1, 2); }, "dropout: p is 1, must be in [0, 1)", __FILE__, __LINE__);
}

}  // namespace
}  // namespace kiln::test

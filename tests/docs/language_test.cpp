// The C++ blocks of docs/language.md, compiled and run. tests/layering compares the two, line by line.
#include <gtest/gtest.h>
#include <kiln/kiln.h>

#include <algorithm>
#include <cmath>

namespace kiln::test {
namespace {

// The page's own line breaks:
// clang-format off

constinit auto add_relu = kernel("add_relu", [](In<float> a, In<float> b, Out<float> c, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(c + i, relu(load(a + i, mask) + load(b + i, mask)), mask);
}).names("a b c n BLOCK");

auto scaled(float factor) {
  return kernel("scaled", [factor](In<float> x, Out<float> y, Int n, Const<int> BLOCK) {
    Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
    store(y + i, load(x + i, mask) * factor, mask);
  });
}

template <class T>
constinit auto halve = kernel("halve", [](In<T> x, Out<T> y, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(y + i, (load(x + i, mask).template cast<float>() / 2).template cast<T>(), mask);
});

// y[r, c] = gelu(x[r, c] + bias[c]) * scale[r]
constinit auto bias_gelu = kernel("bias_gelu", [](In<bf16> x, In<float> bias, In<float> scale, Out<bf16> y, Int rows, Int cols,
                                                  Const<int> BM, Const<int> BN) {
  Tile r = expand(program_id(1) * BM + arange(BM), 1);  // [BM, 1]
  Tile c = program_id(0) * BN + arange(BN);             // [BN]
  Tile at = r * cols + c, inside = r < rows && c < cols;
  Tile v = load(x + at, inside) + load(bias + c, c < cols);
  store(y + at, (gelu(v) * load(scale + r, r < rows)).cast<bf16>(), inside);
});

// y[c] = sum of column c of x
constinit auto column_sums = kernel("column_sums", [](In<float> x, Out<float> y, Int rows, Int cols, Const<int> BLOCK) {
  Tile c = program_id(0) * BLOCK + arange(BLOCK), p = x + c, sum = zeros(f32, {BLOCK});
  for (auto r : range(rows)) {
    (void)r;
    sum += load(p, c < cols);
    p += cols;
  }
  store(y + c, sum, c < cols);
});

constinit auto collatz = kernel("collatz", [](Out<std::int32_t> steps, Int n) {
  Scalar x = program_id(0) + 1, count = 0;
  return_if(x > n);
  while_([&] { return x != 1; }, [&] {
    if_(x % 2 == 0, [&] { x = x / 2; }, [&] { x = x * 3 + 1; });
    count += 1;
  });
  store(steps + program_id(0), count);
});

// the first position of `key` in a[0, n), or n; and whether it was found
constinit auto find = kernel("find", [](In<std::int32_t> a, Int n, Int32 key, Out<std::int64_t> at) {
  Scalar found = n;
  for (auto i : range(n)) {
    found = select(load(a + i) == key, i, n);
    break_if(found < n);
  }
  auto [position, yes] = if_(found < n, [&] { return std::pair(found, Scalar(1)); }, [&] { return std::pair(n, Scalar(0)); });
  store(at, position.cast(i64));
  store(at + 1, yes.cast(i64));
});

constinit auto transpose = kernel("transpose", [](View<const float, 2> x, View<float, 2> y, Const<int> B) {
  Scalar r = program_id(0) * B, c = program_id(1) * B;
  y.store({r, c}, x.trans().load({r, c}, {B, B}));
});

// Rotary embedding of one row of 2 * HALF elements: pairs (x[i], x[i + HALF]) turned by the angle of position `row`.
constinit auto rotary = kernel("rotary", [](In<float> x, In<float> angle, Out<float> y, Const<int> HALF) {
  Scalar row = program_id(0) * (2 * HALF);
  Tile v = load(x + row + arange(2 * HALF)), a = load(angle + program_id(0) * HALF + arange(HALF));
  Tile first = slice(v, 0, 0, HALF), second = slice(v, 0, HALF, 2 * HALF);
  Tile turned = cat(first * cos(a) - second * sin(a), second * cos(a) + first * sin(a), 0);
  store(y + row + arange(2 * HALF), turned);
});

constinit auto histogram = kernel("histogram", [](In<std::int32_t> x, InOut<std::int32_t> bins, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  atomic_add(bins + load(x + i, mask), 1, mask);
});

constinit auto halve_rows = kernel("halve_rows", [](In<float> x, InOut<float> half, InOut<std::int32_t> arrived, Out<float> first,
                                                    Const<int> COLS) {
  Tile c = arange(COLS), at = program_id(0) * COLS + c;
  store(half + at, load(x + at) * 0.5f);
  Scalar before = atomic_add(arrived, 1, true, {.order = Order::acq_rel, .scope = Scope::gpu});
  Scalar last = before == num_programs(0) - 1;
  store(first + c, load(half + c, last), last);  // the row of program 0, whoever comes last
});

constinit auto look_up = kernel("look_up", [](In<std::int32_t> at, In<float> table, Out<float> y, Int n, Int size, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  Tile k = load(at + i, mask);
  device_assert(k >= 0 && k < size, "index outside the table", mask);
  print("program {} of {}", program_id(0), num_programs(0));
  store(y + i, load(table + k, mask && k >= 0 && k < size), mask);
});

constinit auto block_histogram = kernel("block_histogram", [](In<std::int32_t> x, InOut<std::int32_t> bins, Int n, Const<int> BLOCK) {
  Scalar mine = shared<std::int32_t>(256);  // of this program; a pointer like any other
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n, k = arange(256);
  store(mine + k, 0);
  atomic_add(mine + load(x + i, mask), 1, mask);
  atomic_add(bins + k, load(mine + k));
});

Tile exp2_fast(Tile x) { return inline_ptx<float>("ex2.approx.ftz.f32 $0, $1;", x); }  // for each element

struct Blocks {
  int size = 1024;
  bool negate = false;
};
constinit auto copy = kernel("copy", [](In<float> x, Out<float> y, Int n, Tune<Blocks> t) {
  Tile i = program_id(0) * t.size + arange(t.size), mask = i < n;
  Tile v = load(x + i, mask);
  if (t.negate) v = -v;  // a C++ value: decided while tracing
  store(y + i, v, mask);
});

constinit auto matmul = kernel("matmul", [](View<const bf16, 2> a, View<const bf16, 2> b, View<bf16, 2> c, Const<int> BM,
                                            Const<int> BN, Const<int> BK) {
  Scalar m = program_id(0) * BM, n = program_id(1) * BN;
  Tile acc = zeros(f32, {BM, BN});
  for (Scalar k : range(0, a.size(1), BK)) acc = dot(a.load({m, k}, {BM, BK}), b.load({k, n}, {BK, BN}), acc);
  c.store({m, n}, acc.cast<bf16>());
});

constinit auto pipelined = kernel("pipelined", [](View<const bf16, 2> a, View<const bf16, 2> b, View<float, 2> c) {
  Tile acc = zeros(f32, {64, 64});
  for (Scalar k : range(0, a.size(1), 32).stages(3)) acc = dot(a.load({0, k}, {64, 32}), b.load({k, 0}, {32, 64}), acc);
  c.store({0, 0}, acc);
});

// The backward pass calls this with the gradient as x: the same seed and offsets give the same mask.
constinit auto dropout = kernel("dropout", [](In<float> x, Out<float> y, Int n, Int seed, Float p, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), inside = i < n;
  store(y + i, select(rand(seed, i) >= p, load(x + i, inside) / (1 - p), 0), inside);
});

// clang-format on

class LanguagePage : public testing::Test {
 protected:
  template <class T>
  Buffer<T> buffer(std::vector<T> values) {
    Buffer<T> b(device, values.size());
    b.upload(values);
    return b;
  }
  Device device = Device::simulator();
  Stream stream{device};
};

TEST_F(LanguagePage, AddRelu) {
  const int n = 3;
  auto a = buffer<float>({1, -2, 3}), b = buffer<float>({1, 1, -4}), c = buffer<float>({9, 9, 9});
  add_relu.launch(stream, cdiv(n, 1024), a, b, c, n, 1024);
  EXPECT_EQ(c.to_vector(), (std::vector<float>{2, 0, 0}));
}

TEST_F(LanguagePage, FactoryAndTemplate) {
  auto x = buffer<float>({1, 2}), y = buffer<float>({0, 0});
  const auto triple = scaled(3), negated = scaled(-1);
  triple.launch(stream, 1, x, y, 2, 64);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{3, 6}));
  negated.launch(stream, 1, x, y, 2, 64);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{-1, -2}));
  auto h = buffer<f16>({f16(3.0f)}), half = buffer<f16>({f16(0.0f)});
  halve<f16>.launch(stream, 1, h, half, 1, 64);
  EXPECT_EQ(static_cast<float>(half.to_vector()[0]), 1.5f);
}

TEST_F(LanguagePage, BroadcastsRowsAndColumns) {
  const int rows = 3, cols = 5;
  auto x = buffer<bf16>(std::vector<bf16>(15, bf16(0.5f))), y = buffer<bf16>(std::vector<bf16>(15, bf16(9.0f)));
  auto bias = buffer<float>({0, 1, 2, 3, 4}), scale = buffer<float>({1, 2, 3});
  bias_gelu.launch(stream, {1, 1}, x, bias, scale, y, rows, cols, 16, 16);
  const auto got = y.to_vector();
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      const double v = 0.5 + c, want = v / 2 * (1 + std::erf(v / std::sqrt(2.0))) * (r + 1);
      EXPECT_NEAR(static_cast<float>(got[static_cast<std::size_t>(r * cols + c)]), want, want / 128) << r << " " << c;
    }
}

TEST_F(LanguagePage, SumsColumns) {
  const int rows = 3, cols = 2;
  auto x = buffer<float>({1, 2, 3, 4, 5, 6}), y = buffer<float>({0, 0});
  column_sums.launch(stream, cdiv(cols, 64), x, y, rows, cols, 64);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{9, 12}));
}

TEST_F(LanguagePage, CountsCollatzSteps) {
  auto steps = buffer<std::int32_t>({-1, -1, -1, -1, -1});
  collatz.launch(stream, 5, steps, 4);
  EXPECT_EQ(steps.to_vector(), (std::vector<std::int32_t>{0, 1, 7, 2, -1}));
}

TEST_F(LanguagePage, FindsTheFirstPosition) {
  auto a = buffer<std::int32_t>({5, 7, 7, 1});
  auto at = buffer<std::int64_t>({-1, -1});
  find.launch(stream, 1, a, 4, 7, at);
  EXPECT_EQ(at.to_vector(), (std::vector<std::int64_t>{1, 1}));
  find.launch(stream, 1, a, 4, 8, at);
  EXPECT_EQ(at.to_vector(), (std::vector<std::int64_t>{4, 0}));
}

TEST_F(LanguagePage, TransposesAView) {
  const int rows = 2, cols = 3;
  auto x = buffer<float>({1, 2, 3, 4, 5, 6}), y = buffer<float>({0, 0, 0, 0, 0, 0});
  transpose.launch(stream, {cdiv(cols, 16), cdiv(rows, 16)}, {x, {rows, cols}}, {y, {cols, rows}}, 16);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST_F(LanguagePage, TurnsPairs) {
  auto x = buffer<float>({1, 0, 0, 2, 3, 4, 5, 6}), a = buffer<float>({0, 1.5707964f, 0, 0}), y = buffer<float>(std::vector<float>(8));
  rotary.launch(stream, 2, x, a, y, 2);
  const std::vector<float> got = y.to_vector(), want{1, -2, 0, 0, 3, 4, 5, 6};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST_F(LanguagePage, CountsInBothHistograms) {
  auto x = buffer<std::int32_t>({3, 1, 3, 255, 3}), bins = buffer(std::vector<std::int32_t>(256, 0));
  histogram.launch(stream, 2, x, bins, 5, 4);
  block_histogram.launch(stream, 2, x, bins, 5, 4);
  const auto got = bins.to_vector();
  EXPECT_EQ(got[3], 6);
  EXPECT_EQ(got[1], 2);
  EXPECT_EQ(got[255], 2);
  EXPECT_EQ(got[0], 0);
}

TEST_F(LanguagePage, TheLastProgramSeesTheFirstRow) {
  auto x = buffer<float>({2, 4, 6, 8}), half = buffer<float>({0, 0, 0, 0}), first = buffer<float>({0, 0});
  auto arrived = buffer<std::int32_t>({0});
  halve_rows.launch(stream, 2, x, half, arrived, first, 2);
  EXPECT_EQ(first.to_vector(), (std::vector<float>{1, 2}));
}

TEST_F(LanguagePage, PrintsAndAsserts) {
  std::vector<std::string> lines;
  device.on_print([&](const std::string& line) { lines.push_back(line); });
  auto at = buffer<std::int32_t>({1, 7});
  auto table = buffer<float>({5, 6}), y = buffer<float>({0, 0});
  look_up.launch(stream, 1, at, table, y, 2, 2, 4);
  EXPECT_THROW(stream.synchronize(), DeviceError);
  EXPECT_EQ(lines, std::vector<std::string>{"look_up (0, 0, 0): program 0 of 1"});
  EXPECT_EQ(y.to_vector(), (std::vector<float>{6, 0}));
}

TEST_F(LanguagePage, RunsPtx) {
  const auto k = kernel("exp2", [](InOut<float> y) { store(y + arange(2), exp2_fast(load(y + arange(2)))); });
  auto y = buffer<float>({3, -1});
  k.launch(stream, 1, y);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{8, 0.5f}));
}

TEST_F(LanguagePage, MultipliesMatrices) {
  const int m = 20, n = 33, k = 40;
  std::vector<bf16> x(std::size_t(m * k)), y(std::size_t(k * n));
  std::vector<float> want(std::size_t(m * n));  // whole numbers below 256: bf16 has them
  for (int i = 0; i < m * k; ++i) x[std::size_t(i)] = bf16(float(i % 7 - 3));
  for (int i = 0; i < k * n; ++i) y[std::size_t(i)] = bf16(float(i % 5 - 2));
  for (int i = 0; i < m * n; ++i)
    for (int l = 0; l < k; ++l)
      want[std::size_t(i)] += float(x[std::size_t(i / n * k + l)]) * float(y[std::size_t(l * n + i % n)]);
  auto a = buffer(x), b = buffer(y), c = buffer(std::vector<bf16>(std::size_t(m * n)));
  matmul.launch(stream, {cdiv(m, 16), cdiv(n, 32)}, {a, {m, k}}, {b, {k, n}}, {c, {m, n}}, 16, 32, 16);
  const std::vector<bf16> got = c.to_vector();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(float(got[i]), want[i]) << i;
}

TEST_F(LanguagePage, CopiesAhead) {
  auto a = buffer(std::vector<bf16>(64 * 96, bf16(1.f))), b = buffer(std::vector<bf16>(96 * 64, bf16(2.f)));
  auto c = buffer(std::vector<float>(64 * 64));
  pipelined.launch(stream, 1, {a, {64, 96}}, {b, {96, 64}}, {c, {64, 64}});
  for (float x : c.to_vector()) ASSERT_EQ(x, 192);
}

TEST_F(LanguagePage, DropsTheSameElementsAgain) {
  const int n = 1000;
  auto x = buffer(std::vector<float>(1000, 1.f)), y = buffer(std::vector<float>(1000));
  auto again = buffer(std::vector<float>(1000));
  dropout.launch(stream, cdiv(n, 256), x, y, n, 7, 0.5f, 256);
  dropout.launch(stream, cdiv(n, 1024), x, again, n, 7, 0.5f, 1024);
  const auto got = y.to_vector();
  EXPECT_EQ(got, again.to_vector());
  EXPECT_NEAR(double(std::count(got.begin(), got.end(), 2.f)), 500, 80);
  EXPECT_EQ(std::count(got.begin(), got.end(), 2.f) + std::count(got.begin(), got.end(), 0.f), n);
}

TEST_F(LanguagePage, TunesByName) {
  const int n = 2;
  auto x = buffer<float>({1, 2}), y = buffer<float>({0, 0});
  copy.with({.num_warps = 8}).launch(stream, cdiv(n, 512), x, y, n, {.size = 512, .negate = true});
  EXPECT_EQ(y.to_vector(), (std::vector<float>{-1, -2}));
}

TEST_F(LanguagePage, TunesByMeasuring) {
  const int n = 2;
  auto x = buffer<float>({1, 2}), y = buffer<float>({0, 0});
  const auto fast = copy.tune({{.size = 1024}, {.size = 4096}}, {{.num_warps = 4}, {.num_warps = 8}});
  fast.launch(stream, [&](const Blocks& b) { return cdiv(n, b.size); }, x, y, n);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 2}));
}

TEST_F(LanguagePage, CapturesAGraph) {
  const int n = 2;
  auto x = buffer<float>({1, 2}), y = buffer<float>({0, 0});
  copy.preload(device, x, y, n, {.size = 512});  // a capture compiles nothing
  Graph graph = Graph::capture(stream, [&] { copy.launch(stream, cdiv(n, 512), x, y, n, {.size = 512}); });
  graph.replay(stream);
  EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace kiln::test

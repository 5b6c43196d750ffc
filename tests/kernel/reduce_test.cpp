// Reductions in kernels: every named one, any combining lambda, any axis, extents of every kind, special values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class Reductions : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Reductions);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const int kWidths[] = {1, 2, 3, 127, 1000, 4097, 100003};

/// Small whole numbers of either sign: their sums are exact in f32.
template <class T>
std::vector<T> numbers(std::size_t n, int range = 17) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = T(float(int(i * 2654435761u >> 16) % range) - float(range / 2));
  return v;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// --- rows of every width ---------------------------------------------------------------------------------------------

constinit auto row_statistics =
    kernel("row_statistics", [](In<float> x, Out<float> out, Out<std::int64_t> where, Int n, Const<int> WIDTH) {
      Tile i = arange(WIDTH), row = load(x + program_id(0) * n + i, i < n, 0.f);
      Tile largest = select(i < n, row, -std::numeric_limits<float>::infinity());
      store(out + program_id(0) * 3, sum(row));
      store(out + program_id(0) * 3 + 1, max(largest));
      store(out + program_id(0) * 3 + 2, sum(row * row));
      store(where + program_id(0), argmax(largest).cast(i64));
    });
TEST_P(Reductions, RowsOfEveryWidth) {
  Stream s(device());
  for (int n : kWidths)
    for (int pad : {0, 40}) {
      const int rows = 3;
      const auto h = numbers<float>(std::size_t(rows * n));
      auto x = buffer_of(device(), h);
      Buffer<float> out(device(), 3 * rows);
      Buffer<std::int64_t> where(device(), rows);
      row_statistics.launch(s, rows, x, out, where, n, n + pad);
      s.synchronize();
      const auto got = out.to_vector();
      const auto at = where.to_vector();
      for (int r = 0; r < rows; ++r) {
        const float* row = h.data() + r * n;
        float total = 0, squares = 0;
        for (int i = 0; i < n; ++i) total += row[i], squares += row[i] * row[i];
        const float* best = std::max_element(row, row + n);
        EXPECT_EQ(got[std::size_t(3 * r)], total) << n;
        EXPECT_EQ(got[std::size_t(3 * r + 1)], *best) << n;
        EXPECT_EQ(got[std::size_t(3 * r + 2)], squares) << n;
        EXPECT_EQ(at[std::size_t(r)], best - row) << n;
      }
    }
}

// Lanes beyond a mask are exactly `other`, and padding counts for nothing.
constinit auto masked_sum = kernel("masked_sum", [](In<float> x, Out<float> out, Int n) {
  Tile i = arange(256);
  store(out, sum(load(x + i, i < n, 0.f)));
});
TEST_P(Reductions, MaskedLanesAreOther) {
  Stream s(device());
  const auto h = numbers<float>(16, 9);
  auto x = buffer_of(device(), h);
  Buffer<float> out(device(), 1);
  masked_sum.launch(s, 1, x, out, 16);
  s.synchronize();
  float want = 0;
  for (float v : h) want += v;
  EXPECT_EQ(out.to_vector()[0], want);
}

// Row maximum and column sum after a prologue that maps 0 to something else: no pad lane is counted.
constinit auto column_sum =
    kernel("column_sum", [](In<bf16> x, Out<float> rows, Out<float> columns, Int n, Const<int> ROWS, Const<int> WIDTH) {
      Tile r = expand(arange(ROWS), 1), c = expand(arange(WIDTH), 0);
      Tile inside = r < n;
      Tile y = load(x + r * WIDTH + c, inside, 0.f).cast(f32) * 2.f + 0.25f;
      store(rows + arange(ROWS), max(y, 1), arange(ROWS) < n);
      store(columns + arange(WIDTH), sum(select(inside, y, 0.f), 0));
    });
TEST_P(Reductions, PaddedRowsDoNotEnterColumnSums) {
  Stream s(device());
  for (int n : {37, 40}) {
    const int width = 129;
    const auto h = numbers<bf16>(std::size_t(n * width), 9);
    auto x = buffer_of(device(), h);
    Buffer<float> rows(device(), 40), columns(device(), std::size_t(width));
    column_sum.launch(s, 1, x, rows, columns, n, 40, width);
    s.synchronize();
    for (int c = 0; c < width; ++c) {
      float want = 0;
      for (int r = 0; r < n; ++r) want += float(h[std::size_t(r * width + c)]) * 2.f + 0.25f;
      ASSERT_EQ(columns.to_vector()[std::size_t(c)], want) << n << " " << c;
    }
    for (int r = 0; r < n; ++r) {
      float want = -kInf;
      for (int c = 0; c < width; ++c) want = std::max(want, float(h[std::size_t(r * width + c)]) * 2.f + 0.25f);
      ASSERT_EQ(rows.to_vector()[std::size_t(r)], want) << n << " " << r;
    }
  }
}

// Columns beyond the row count as (0 - mean)² where the mask comes too early.
constinit auto variance = kernel("variance", [](In<float> x, Out<float> out, Int n) {
  Tile i = arange(1024);
  Tile row = load(x + i, i < n, 0.f);
  Scalar mean_of_row = sum(row) / n.cast(f32);
  Tile centred = select(i < n, row - mean_of_row, 0.f);
  store(out, sum(centred * centred) / n.cast(f32));
});
TEST_P(Reductions, VarianceCountsOnlyTheRow) {
  Stream s(device());
  std::vector<float> h(1000);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = 7.f + float(i % 2);  // mean 7.5, every square 0.25
  auto x = buffer_of(device(), h);
  Buffer<float> out(device(), 1);
  variance.launch(s, 1, x, out, 1000);
  s.synchronize();
  EXPECT_EQ(out.to_vector()[0], 0.25f);
}

// --- axes ------------------------------------------------------------------------------------------------------------

constinit auto each_axis = kernel("each_axis", [](In<std::int32_t> x, Out<std::int32_t> out, Const<int> A, Const<int> B,
                                                  Const<int> C, Const<int> AXIS) {
  Tile a = expand(expand(arange(A), 1), 2), b = expand(expand(arange(B), 0), 2), c = expand(expand(arange(C), 0), 0);
  Tile t = load(x + (a * B + b) * C + c);
  Tile s = sum(t, AXIS, true);
  const Shape shape = s.shape();
  Tile i = expand(expand(arange(int(shape[0])), 1), 2), j = expand(expand(arange(int(shape[1])), 0), 2),
       k = expand(expand(arange(int(shape[2])), 0), 0);
  store(out + (i * int(shape[1]) + j) * int(shape[2]) + k, s);
});
TEST_P(Reductions, EveryAxisOfThree) {
  Stream s(device());
  for (const auto& [a, b, c] :
       {std::array{5, 6, 7}, std::array{3, 20, 33}, std::array{1, 9, 2}, std::array{17, 1, 5}}) {
    const auto h = numbers<std::int32_t>(std::size_t(a * b * c), 1001);
    auto x = buffer_of(device(), h);
    for (int axis : {0, 1, 2, -1}) {
      const int real = (axis + 3) % 3;
      int extents[] = {a, b, c};
      extents[real] = 1;
      std::vector<std::int32_t> want(std::size_t(extents[0] * extents[1] * extents[2]));
      for (int i = 0; i < a; ++i)
        for (int j = 0; j < b; ++j)
          for (int k = 0; k < c; ++k) {
            const int at[] = {real == 0 ? 0 : i, real == 1 ? 0 : j, real == 2 ? 0 : k};
            want[std::size_t((at[0] * extents[1] + at[1]) * extents[2] + at[2])] += h[std::size_t((i * b + j) * c + k)];
          }
      Buffer<std::int32_t> out(device(), want.size());
      each_axis.launch(s, 1, x, out, a, b, c, axis);
      s.synchronize();
      EXPECT_EQ(out.to_vector(), want) << a << " " << b << " " << c << " " << axis;
    }
  }
}

// An axis of extent 1 disappears like any other.
constinit auto one_row = kernel("one_row", [](In<float> x, Out<float> out) {
  Tile i = arange(128);
  Tile s = sum(load(x + expand(i, 0)), 0);
  store(out + i, s);
});
TEST_P(Reductions, AxisOfExtentOne) {
  Stream s(device());
  const auto h = numbers<float>(128);
  auto x = buffer_of(device(), h);
  Buffer<float> out(device(), 128);
  one_row.launch(s, 1, x, out);
  s.synchronize();
  EXPECT_EQ(out.to_vector(), h);
}

// --- special values --------------------------------------------------------------------------------------------------

constinit auto extremes = kernel("extremes", [](In<float> x, Out<float> out, Out<std::int64_t> where, Const<int> N) {
  Tile row = load(x + arange(N));
  store(out, max(row));
  store(out + 1, min(row));
  store(where, argmax(row).cast(i64));
  store(where + 1, argmin(row).cast(i64));
});
TEST_P(Reductions, NaNZerosAndTies) {
  Stream s(device());
  struct {
    std::vector<float> x;
    float max, min;
    std::int64_t argmax, argmin;
  } cases[] = {
      {{1, 3, 3, -2, 3, -2}, 3, -2, 1, 3},
      {{5, kNaN, 9, kNaN, -9}, kNaN, kNaN, 1, 1},
      {{0.f, -0.f, 0.f}, 0.f, -0.f, 0, 0},
      {{-0.f, 0.f}, 0.f, -0.f, 0, 0},
      {{-kInf, -kInf, -kInf}, -kInf, -kInf, 0, 0},
      {{kInf, -kInf, kInf, -kInf}, kInf, -kInf, 0, 1},
      {{kNaN}, kNaN, kNaN, 0, 0},
      {{4}, 4, 4, 0, 0},
  };
  for (const auto& c : cases)
    for (int repeat : {1, 40}) {  // also with equal elements in other threads
      std::vector<float> h;
      for (int k = 0; k < repeat; ++k) h.insert(h.end(), c.x.begin(), c.x.end());
      auto x = buffer_of(device(), h);
      Buffer<float> out(device(), 2);
      Buffer<std::int64_t> where(device(), 2);
      extremes.launch(s, 1, x, out, where, int(h.size()));
      s.synchronize();
      const auto got = out.to_vector();
      EXPECT_TRUE(same(got[0], c.max)) << got[0] << " for " << c.max << " of " << h.size();
      EXPECT_TRUE(same(got[1], c.min)) << got[1] << " for " << c.min << " of " << h.size();
      EXPECT_EQ(where.to_vector(), (std::vector<std::int64_t>{c.argmax, c.argmin})) << h.size();
    }
}

constinit auto lowest_index = kernel("lowest_index", [](In<std::int32_t> x, Out<std::int64_t> out, Const<int> AXIS) {
  Tile r = expand(arange(10), 1), c = expand(arange(10), 0);
  store(out + arange(10), argmax(load(x + r * 10 + c), AXIS).cast(i64));
});
TEST_P(Reductions, ArgmaxGivesTheLowestOfEqualMaxima) {
  Stream s(device());
  const auto h = numbers<std::int32_t>(100, 4);
  auto x = buffer_of(device(), h);
  for (int axis : {0, 1}) {
    Buffer<std::int64_t> out(device(), 10);
    lowest_index.launch(s, 1, x, out, axis);
    s.synchronize();
    for (int i = 0; i < 10; ++i) {
      std::int64_t best = 0;
      const auto at = [&](std::int64_t k) { return h[std::size_t(axis == 0 ? k * 10 + i : i * 10 + k)]; };
      for (std::int64_t k = 1; k < 10; ++k)
        if (at(k) > at(best)) best = k;
      EXPECT_EQ(out.to_vector()[std::size_t(i)], best) << axis << " " << i;
    }
  }
}

constinit auto softmax_row = kernel("softmax_row", [](In<float> x, Out<float> out, Out<float> lse, Const<int> N) {
  Tile i = arange(N), row = load(x + i);
  Tile e = exp(row - max(row));
  store(out + i, e / sum(e));
  store(lse, logsumexp(row));
});
TEST_P(Reductions, RowWithOneFiniteElement) {
  Stream s(device());
  const int n = 4096;
  std::vector<float> h(n, -kInf);
  h[1234] = 3.5f;
  auto x = buffer_of(device(), h);
  Buffer<float> out(device(), n), lse(device(), 1);
  softmax_row.launch(s, 1, x, out, lse, n);
  s.synchronize();
  const auto got = out.to_vector();
  for (int i = 0; i < n; ++i) ASSERT_EQ(got[std::size_t(i)], i == 1234 ? 1.f : 0.f) << i;
  EXPECT_EQ(lse.to_vector()[0], 3.5f);
}
TEST_P(Reductions, LogsumexpOfSpecialRows) {
  Stream s(device());
  struct {
    std::vector<float> x;
    float want;
  } cases[] = {{std::vector<float>(300, -kInf), -kInf},
               {{-kInf}, -kInf},
               {{1, kInf, 2}, kInf},
               {{1, kNaN, 2}, kNaN},
               {{-2.5f}, -2.5f},
               {{kInf, -kInf}, kInf}};
  for (const auto& c : cases) {
    auto x = buffer_of(device(), c.x);
    Buffer<float> out(device(), c.x.size()), lse(device(), 1);
    softmax_row.launch(s, 1, x, out, lse, int(c.x.size()));
    s.synchronize();
    EXPECT_TRUE(same(lse.to_vector()[0], c.want)) << lse.to_vector()[0] << " for " << c.want;
  }
}

// bf16 rows are kept as they were loaded, and widened again behind each reduction.
constinit auto bf16_rows =
    kernel("bf16_rows", [](In<bf16> x, Out<bf16> softmax, Out<bf16> centred, Int n, Const<int> N) {
      Tile i = arange(N), at = program_id(0) * n + i, inside = i < n;
      Tile row = load(x + at, inside, -std::numeric_limits<float>::infinity()).cast(f32);
      Tile e = exp(row - max(row));
      store(softmax + at, (e / sum(e)).cast<bf16>(), inside);
      Tile zeroed = select(inside, row, 0.f);
      Tile d = zeroed - sum(zeroed) / n.cast(f32);
      store(centred + at, (d * rsqrt(sum(select(inside, d * d, 0.f)) / n.cast(f32) + 1e-5f)).cast<bf16>(), inside);
    });
TEST_P(Reductions, NarrowRows) {
  Stream s(device());
  for (int n : {1000, 4096})
    for (int warps : {2, 8}) {
      const int rows = 2;
      std::vector<bf16> h(std::size_t(rows * n));
      for (std::size_t i = 0; i < h.size(); ++i) h[i] = bf16(float(int(i * 2654435761u >> 16) % 1001 - 500) / 100.f);
      auto x = buffer_of(device(), h);
      Buffer<bf16> soft(device(), h.size()), centred(device(), h.size());
      bf16_rows.with({.num_warps = warps}).launch(s, rows, x, soft, centred, n, n == 1000 ? 1024 : 4096);
      s.synchronize();
      const auto got = soft.to_vector(), norm = centred.to_vector();
      for (int r = 0; r < rows; ++r) {
        const bf16* row = h.data() + r * n;
        double total = 0, mean = 0, squares = 0;
        for (int i = 0; i < n; ++i) total += std::exp(double(float(row[i]))), mean += double(float(row[i])) / n;
        for (int i = 0; i < n; ++i) squares += std::pow(double(float(row[i])) - mean, 2) / n;
        for (int i = 0; i < n; ++i) {
          const double p = std::exp(double(float(row[i]))) / total,
                       z = (double(float(row[i])) - mean) / std::sqrt(squares + 1e-5);
          ASSERT_NEAR(double(float(got[std::size_t(r * n + i)])), p, p / 128) << n << " " << i;
          ASSERT_NEAR(double(float(norm[std::size_t(r * n + i)])), z, std::fabs(z) / 128 + 1e-4) << n << " " << i;
        }
      }
    }
}

// --- dtypes ----------------------------------------------------------------------------------------------------------

constinit auto wide_sum =
    kernel("wide_sum", [](In<std::int32_t> x, In<std::int64_t> y, Out<std::int64_t> out, Const<int> N) {
      Tile i = arange(N);
      store(out, sum(load(x + i).cast(i64)));
      store(out + 1, sum(load(x + i)).cast(i64));
      store(out + 2, sum(load(y + i)));
      store(out + 3, max(load(y + i)));
    });
TEST_P(Reductions, IntegerSumsAreExactAt64BitsWhereAsked) {
  Stream s(device());
  const int n = 1000;
  std::vector<std::int32_t> h(n, 2'000'000'000);
  std::vector<std::int64_t> wide(n);
  std::int64_t want = 0;
  for (int i = 0; i < n; ++i) want += wide[std::size_t(i)] = (std::int64_t(1) << 40) + std::int64_t(i) * 12345678901;
  auto x = buffer_of(device(), h);
  auto y = buffer_of(device(), wide);
  Buffer<std::int64_t> out(device(), 4);
  wide_sum.launch(s, 1, x, y, out, n);
  s.synchronize();
  EXPECT_EQ(out.to_vector(),
            (std::vector<std::int64_t>{2'000'000'000'000, std::int32_t(std::uint32_t(2'000'000'000'000)), want,
                                       wide.back()}));
}

constinit auto half_sum = kernel("half_sum", [](In<bf16> x, Out<bf16> out, Const<int> N) {
  Tile row = load(x + arange(N));
  store(out, sum(row));
  store(out + 1, reduce(row, [](Scalar a, Scalar b) { return a + b; }));
  store(out + 2, mean(row));
});
TEST_P(Reductions, SumsOf16BitFloatsRoundOnce) {
  Stream s(device());
  const int n = 1024;  // in bf16, 256 + 1 is 256
  auto x = buffer_of(device(), std::vector<bf16>(n, bf16(1.f)));
  Buffer<bf16> out(device(), 3);
  half_sum.launch(s, 1, x, out, n);
  s.synchronize();
  EXPECT_EQ(float(out.to_vector()[0]), 1024.f);
  EXPECT_LE(float(out.to_vector()[1]), 1024.f);
  EXPECT_EQ(float(out.to_vector()[2]), 1.f);
}

constinit auto logic = kernel("logic", [](In<std::int32_t> x, Out<std::int32_t> out, Const<int> N) {
  Tile row = load(x + arange(N));
  store(out, any(row > 5).cast(i32));
  store(out + 1, all(row > 5).cast(i32));
  store(out + 2, prod(row));
});
TEST_P(Reductions, AnyAllProd) {
  Stream s(device());
  for (const auto& h : {std::vector<std::int32_t>(77, 1), std::vector<std::int32_t>(77, 6), [] {
                          std::vector<std::int32_t> v(77, 1);
                          v[70] = 9;
                          return v;
                        }()}) {
    auto x = buffer_of(device(), h);
    Buffer<std::int32_t> out(device(), 3);
    logic.launch(s, 1, x, out, 77);
    s.synchronize();
    std::uint32_t product = 1;
    for (std::int32_t v : h) product *= std::uint32_t(v);
    const auto more = [](std::int32_t v) { return v > 5; };
    EXPECT_EQ(out.to_vector(),
              (std::vector<std::int32_t>{std::any_of(h.begin(), h.end(), more), std::all_of(h.begin(), h.end(), more),
                                         std::int32_t(product)}));
  }
}

// --- lambdas ---------------------------------------------------------------------------------------------------------

// (a, b) ∘ (c, d) = (a c, b c + d) does not commute.
constinit auto affine =
    kernel("affine", [](In<std::int32_t> a, In<std::int32_t> b, Out<std::int32_t> out, Const<int> ROWS, Const<int> N) {
      Tile r = expand(arange(ROWS), 1), c = expand(arange(N), 0);
      auto [x, y] =
          reduce(std::tuple{load(a + r * N + c), load(b + r * N + c)}, 1, [](Scalar p, Scalar q, Scalar u, Scalar v) {
            return std::pair{p * u, q * u + v};
          });
      store(out + arange(ROWS) * 2, x);
      store(out + arange(ROWS) * 2 + 1, y);
    });
TEST_P(Reductions, OperandsKeepTheirOrder) {
  Stream s(device());
  for (int n : {1, 7, 64, 300})
    for (int warps : {1, 4}) {
      const int rows = 3;
      const auto h = numbers<std::int32_t>(std::size_t(rows * n), 7),
                 g = numbers<std::int32_t>(std::size_t(rows * n), 11);
      auto a = buffer_of(device(), h), b = buffer_of(device(), g);
      Buffer<std::int32_t> out(device(), 2 * rows);
      affine.with({.num_warps = warps}).launch(s, 1, a, b, out, rows, n);
      s.synchronize();
      std::vector<std::int32_t> want;
      for (int r = 0; r < rows; ++r) {
        std::uint32_t p = std::uint32_t(h[std::size_t(r * n)]), q = std::uint32_t(g[std::size_t(r * n)]);
        for (int i = 1; i < n; ++i) {
          const auto u = std::uint32_t(h[std::size_t(r * n + i)]), v = std::uint32_t(g[std::size_t(r * n + i)]);
          q = q * u + v;
          p = p * u;
        }
        want.push_back(std::int32_t(p));
        want.push_back(std::int32_t(q));
      }
      EXPECT_EQ(out.to_vector(), want) << n << " " << warps;
    }
}

// Reductions in a loop, one after the other: scratch memory is used again and again.
constinit auto in_a_loop = kernel("in_a_loop", [](In<float> x, Out<float> out, Int n, Const<int> N) {
  Scalar total = 0.f;
  for (auto k : range(n)) {
    Tile row = load(x + k * N + arange(N));
    total += sum(row) * max(row);
  }
  store(out, total);
});
TEST_P(Reductions, InLoops) {
  Stream s(device());
  const int n = 5, width = 600;
  const auto h = numbers<float>(std::size_t(n * width), 9);
  auto x = buffer_of(device(), h);
  Buffer<float> out(device(), 1);
  in_a_loop.launch(s, 1, x, out, n, width);
  s.synchronize();
  float want = 0;
  for (int k = 0; k < n; ++k) {
    float total = 0, most = -kInf;
    for (int i = 0; i < width; ++i) {
      total += h[std::size_t(k * width + i)];
      most = std::max(most, h[std::size_t(k * width + i)]);
    }
    want += total * most;
  }
  EXPECT_EQ(out.to_vector()[0], want);
}

// --- errors ----------------------------------------------------------------------------------------------------------

constinit auto sum_of_i1 = kernel("sum_of_i1", [](Out<float> out) {
  Tile i = arange(8);
  store(out, sum(i < 3).cast(f32));
});
constinit auto axis_of_one = kernel("axis_of_one", [](Out<float> out) {
  Tile i = arange(8).cast(f32);
  store(out + arange(8), sum(i, 0));
});
constinit auto other_dtype = kernel("other_dtype", [](Out<float> out) {
  Tile i = arange(8).cast(f32);
  store(out, reduce(i, [](Scalar a, Scalar b) { return (a + b).cast(i32); }).cast(f32));
});
TEST_P(Reductions, Errors) {
  Stream s(device());
  Buffer<float> out(device(), 8);
  EXPECT_THAT(kiln::test::error_of<UserError>([&] { sum_of_i1.launch(s, 1, out); }),
              testing::HasSubstr("sum: takes numbers, not tile<8xi1>; cast it first, or use any and all"));
  EXPECT_THAT(kiln::test::error_of<UserError>([&] { axis_of_one.launch(s, 1, out); }),
              testing::HasSubstr("sum: tile<8xf32> has one axis, so the result is a Scalar"));
  EXPECT_THAT(kiln::test::error_of<UserError>([&] { other_dtype.launch(s, 1, out); }), testing::HasSubstr("reduce"));
}

}  // namespace

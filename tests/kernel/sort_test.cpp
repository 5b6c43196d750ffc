// Sorting, the k largest, histograms: every dtype and extent, stable order, NaN and padding. Each body runs on the
// interpreter, the simulator and every GPU found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

template <class T>
std::vector<T> numbers(std::size_t n, unsigned seed) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u ^ seed * 0x94d049bb133111ebu;
    const std::uint64_t bits = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u >> 13;
    if constexpr (std::is_integral_v<T>) v[i] = T(bits);
    else v[i] = T(float(std::int64_t(bits % 801) - 400) / 8);
  }
  return v;
}

template <class T>
double wide(T v) {
  if constexpr (std::is_same_v<T, double>) return v;
  else return double(float(v));
}

template <class T>
bool before(T a, T b, bool descending) {
  if constexpr (std::is_integral_v<T>) return descending ? a > b : a < b;
  else {
    const double x = wide(a), y = wide(b);
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x);
    return descending ? x > y : x < y;
  }
}

/// Positions of `keys` in sorted order.
template <class T>
std::vector<int> order_of(const std::vector<T>& keys, bool descending) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return before(keys[std::size_t(a)], keys[std::size_t(b)], descending); });
  return order;
}

template <class T>
bool same(T a, T b) {
  if constexpr (!std::is_integral_v<T>)
    if (std::isnan(wide(a)) && std::isnan(wide(b))) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
constinit auto sort_row = kernel("sort_row",
                                 [](In<T> x, Out<T> o, Out<std::int32_t> p, Const<int> N, Const<bool> DOWN) {
                                   Tile i = arange(N), v = load(x + i);
                                   store(o + i, sort(v, 0, DOWN));
                                   store(p + i, argsort(v, 0, DOWN).cast(i32));
                                 });

template <class T>
void expect_sorted(const Device& d, const std::vector<T>& x, int warps = 4) {
  for (bool down : {false, true}) {
    Buffer<T> in = buffer_of(d, x), out(d, x.size());
    Buffer<std::int32_t> at(d, x.size());
    const Stream s(d);
    sort_row<T>.with({.num_warps = warps}).launch(s, 1, in, out, at, int(x.size()), down);
    s.synchronize();
    const std::vector<T> got = out.to_vector();
    const std::vector<int> order = order_of(x, down);
    EXPECT_EQ(at.to_vector(), (std::vector<std::int32_t>(order.begin(), order.end()))) << x.size() << " down " << down;
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(same<T>(got[i], x[std::size_t(order[i])])) << x.size() << " down " << down << " at " << i;
  }
}

class Sort : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Sort);

TEST_P(Sort, EveryExtent) {
  for (std::size_t n : {1u, 2u, 3u, 5u, 8u, 31u, 32u, 33u, 100u, 127u, 128u, 200u, 513u, 1000u, 1024u})
    expect_sorted(device(), numbers<float>(n, 1));
}

TEST_P(Sort, AnyNumberOfWarps) {
  for (int warps : {1, 2, 8, 16}) expect_sorted(device(), numbers<float>(300, 2), warps);
}

TEST_P(Sort, EveryDtype) {
  expect_sorted(device(), numbers<std::int8_t>(150, 1));
  expect_sorted(device(), numbers<std::uint8_t>(150, 1));
  expect_sorted(device(), numbers<std::int16_t>(150, 1));
  expect_sorted(device(), numbers<std::uint16_t>(150, 1));
  expect_sorted(device(), numbers<std::int32_t>(150, 1));
  expect_sorted(device(), numbers<std::uint32_t>(150, 1));
  expect_sorted(device(), numbers<std::int64_t>(150, 1));
  expect_sorted(device(), numbers<std::uint64_t>(150, 1));
  expect_sorted(device(), numbers<f16>(150, 1));
  expect_sorted(device(), numbers<bf16>(150, 1));
  expect_sorted(device(), numbers<double>(150, 1));
  expect_sorted(device(), numbers<f8e4m3>(150, 1));
  expect_sorted(device(), numbers<f8e5m2>(150, 1));
}

template <class T>
void expect_special_values_sorted(const Device& d) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<T> x;
  for (float v : {0.f, -0.f, nan, 1.f, -inf, -1.f, -0.f, inf, 0.f, -nan, -inf, 448.f, -448.f, nan, inf, 0x1p-9f})
    x.push_back(T(v));
  expect_sorted(d, x);
}

// Infinities are ordered, zeros keep their order whatever their sign, NaN comes last in both directions.
TEST_P(Sort, SpecialValues) {
  expect_special_values_sorted<float>(device());
  expect_special_values_sorted<double>(device());
  expect_special_values_sorted<f16>(device());
  expect_special_values_sorted<bf16>(device());
  expect_special_values_sorted<f8e5m2>(device());
  expect_special_values_sorted<f8e4m3>(device());
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (float v : {inf, -inf, nan, 0.f}) expect_sorted(device(), std::vector<float>(37, v));
  expect_sorted(device(), std::vector<std::int32_t>{INT32_MAX, INT32_MIN, -1, 0, INT32_MAX, INT32_MIN, 1});
  expect_sorted(device(), std::vector<std::uint32_t>{UINT32_MAX, 0, 1, UINT32_MAX, 0});
}

constinit auto several = kernel("several", [](In<std::int32_t> k, In<double> a, In<f16> b, Out<std::int32_t> ok,
                                              Out<double> oa, Out<f16> ob, Out<std::uint8_t> oc, Const<int> N) {
  Tile i = arange(N), key = load(k + i), even = load(a + i) < 0.0;
  auto [x, y, z, w] = sort(std::tuple{key, load(a + i), load(b + i), even});
  store(ok + i, x);
  store(oa + i, y);
  store(ob + i, z);
  store(oc + i, w.cast(u8));
});

TEST_P(Sort, TilesFollowTheFirstAndEqualKeysKeepTheirOrder) {
  for (std::size_t n : {1u, 7u, 64u, 600u}) {
    std::vector<std::int32_t> key = numbers<std::int32_t>(n, 1);
    for (std::int32_t& x : key) x &= 3;
    const auto a = numbers<double>(n, 2);
    const auto b = numbers<f16>(n, 3);
    Buffer<std::int32_t> k = buffer_of(device(), key), ok(device(), n);
    Buffer<double> in_a = buffer_of(device(), a), oa(device(), n);
    Buffer<f16> in_b = buffer_of(device(), b), ob(device(), n);
    Buffer<std::uint8_t> oc(device(), n);
    const Stream s(device());
    several.launch(s, 1, k, in_a, in_b, ok, oa, ob, oc, int(n));
    s.synchronize();
    const std::vector<int> order = order_of(key, false);
    const auto gk = ok.to_vector();
    const auto ga = oa.to_vector();
    const auto gb = ob.to_vector();
    const auto gc = oc.to_vector();
    for (std::size_t i = 0; i < n; ++i) {
      const auto from = std::size_t(order[i]);
      ASSERT_EQ(gk[i], key[from]) << n << " " << i;
      ASSERT_EQ(ga[i], a[from]) << n << " " << i;
      ASSERT_EQ(gb[i].bits, b[from].bits) << n << " " << i;
      ASSERT_EQ(gc[i], std::uint8_t(a[from] < 0)) << n << " " << i;
    }
  }
}

constinit auto sort_axis =
    kernel("sort_axis", [](In<float> x, Out<float> o, Const<int> A, Const<int> B, Const<int> C, Const<int> AXIS) {
      Tile at = expand(expand(arange(A), 1), 2) * (B.value * C.value) + (expand(arange(B), 1) * C + arange(C));
      store(o + at, sort(load(x + at), AXIS));
    });

TEST_P(Sort, AnyAxisOfARankThreeTile) {
  const int extent[] = {5, 12, 9}, stride[] = {12 * 9, 9, 1};
  const auto x = numbers<float>(5 * 12 * 9, 4);
  for (int axis : {0, 1, 2, -1}) {
    const auto k = std::size_t(axis < 0 ? axis + 3 : axis);
    std::vector<float> want = x;
    for (int i = 0; i < 5 * 12 * 9; ++i) {
      if (i / stride[k] % extent[k] != 0) continue;
      std::vector<float> line;
      for (int j = 0; j < extent[k]; ++j) line.push_back(x[std::size_t(i + j * stride[k])]);
      std::sort(line.begin(), line.end());
      for (int j = 0; j < extent[k]; ++j) want[std::size_t(i + j * stride[k])] = line[std::size_t(j)];
    }
    Buffer<float> in = buffer_of(device(), x), out(device(), x.size());
    const Stream s(device());
    sort_axis.launch(s, 1, in, out, 5, 12, 9, axis);
    s.synchronize();
    EXPECT_EQ(out.to_vector(), want) << axis;
  }
}

TEST_P(Sort, BooleansAndIndices) {
  auto k = kernel("flags", [](Out<std::uint8_t> f, Out<std::int64_t> i) {
    Tile n = arange(50);
    store(f + n, sort(n % 3 == 0).cast(u8));
    store(i + n, sort((n - 25) * (n * 7 % 11 - 5)).cast(i64));
  });
  Buffer<std::uint8_t> flags(device(), 50);
  Buffer<std::int64_t> indices(device(), 50);
  const Stream s(device());
  k.launch(s, 1, flags, indices);
  s.synchronize();
  const auto f = flags.to_vector();
  for (std::size_t n = 0; n < 50; ++n) EXPECT_EQ(f[n], std::uint8_t(n >= 33)) << n;
  std::vector<std::int64_t> want;
  for (std::int64_t n = 0; n < 50; ++n) want.push_back((n - 25) * (n * 7 % 11 - 5));
  std::sort(want.begin(), want.end());
  EXPECT_EQ(indices.to_vector(), want);
}

TEST(SortCode, ARowOfFourThousandCompilesWithinASecondWithoutConflicts) {
  const Device d = Device::simulator("sm_90a");
  const auto x = numbers<float>(4096, 9);
  Buffer<float> in = buffer_of(d, x), out(d, x.size());
  auto k = kernel("long_row", [](In<float> a, Out<float> o) { store(o + arange(4096), sort(load(a + arange(4096)))); });
  const auto start = std::chrono::steady_clock::now();
  (void)k.with({.num_warps = 8}).image(d, in, out);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 5.0) << "a second on an idle machine";
  const Stream s(d);
  k.with({.num_warps = 8}).launch(s, 1, in, out);
  s.synchronize();
  std::vector<float> want = x;
  std::sort(want.begin(), want.end());
  EXPECT_EQ(out.to_vector(), want);
  EXPECT_EQ(d.counters().bank_conflicts, 0u);
}

// --- the k largest ---------------------------------------------------------------------------------------------------

constinit auto top =
    kernel("top", [](In<float> x, Out<float> v, Out<std::int32_t> p, Const<int> R, Const<int> N, Const<int> K) {
      Tile row = expand(arange(R), 1);
      auto [best, where] = topk(load(x + (row * N + arange(N))), K);
      store(v + (row * K + arange(K)), best);
      store(p + (row * K + arange(K)), where.cast(i32));
    });

TEST_P(Sort, TopKIsLargestFirstWithTheLowestPositionOfEqualOnes) {
  struct Case {
    int rows, n, k;
  };
  for (const Case& c : {Case{1, 1, 1}, {3, 100, 1}, {4, 33, 5}, {1, 8, 8}, {2, 1000, 100}}) {
    auto x = numbers<float>(std::size_t(c.rows * c.n), 5);
    for (float& v : x) v = std::round(v / 8);
    x[0] = std::numeric_limits<float>::quiet_NaN();
    Buffer<float> in = buffer_of(device(), x), values(device(), std::size_t(c.rows * c.k));
    Buffer<std::int32_t> places(device(), std::size_t(c.rows * c.k));
    const Stream s(device());
    top.launch(s, 1, in, values, places, c.rows, c.n, c.k);
    s.synchronize();
    const auto v = values.to_vector();
    const auto p = places.to_vector();
    for (int r = 0; r < c.rows; ++r) {
      const std::vector<float> row(x.begin() + r * c.n, x.begin() + (r + 1) * c.n);
      const std::vector<int> order = order_of(row, true);
      for (int i = 0; i < c.k; ++i) {
        EXPECT_EQ(p[std::size_t(r * c.k + i)], order[std::size_t(i)]) << c.n << " " << c.k << " " << r << " " << i;
        EXPECT_TRUE(same(v[std::size_t(r * c.k + i)], row[std::size_t(order[std::size_t(i)])]));
      }
    }
  }
}

// --- histogram -------------------------------------------------------------------------------------------------------

template <class T>
constinit auto counts = kernel("counts", [](In<T> x, Out<std::int32_t> o, Int limit, Const<int> N, Const<int> BINS) {
  Tile i = arange(N), v = load(x + i);
  store(o + arange(BINS), histogram(v, BINS));
  store(o + (BINS + arange(BINS)), histogram(v, BINS, i < limit));
});

template <class T>
void expect_counts(const Device& d, std::size_t n, int bins, int spread) {
  auto x = numbers<T>(n, 6);
  for (T& v : x) v = T(std::int64_t(v) % spread);
  const std::size_t limit = n / 2;
  std::vector<std::int32_t> want(std::size_t(2 * bins), 0);
  for (std::size_t i = 0; i < n; ++i)
    if (x[i] >= 0 && std::uint64_t(x[i]) < std::uint64_t(bins)) {
      ++want[std::size_t(x[i])];
      if (i < limit) ++want[std::size_t(bins) + std::size_t(x[i])];
    }
  Buffer<T> in = buffer_of(d, x);
  Buffer<std::int32_t> out(d, want.size());
  const Stream s(d);
  counts<T>.launch(s, 1, in, out, limit, int(n), bins);
  s.synchronize();
  EXPECT_EQ(out.to_vector(), want) << n << " elements, " << bins << " bins";
}

class Histogram : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Histogram);

// Negative and large values are not counted; neither is what the mask leaves out, or padding.
TEST_P(Histogram, CountsWhatIsInRangeAndMasked) {
  expect_counts<std::int32_t>(device(), 1000, 10, 15);
  expect_counts<std::int32_t>(device(), 1, 1, 2);
  expect_counts<std::int8_t>(device(), 300, 200, 100);
  expect_counts<std::uint8_t>(device(), 300, 256, 256);
  expect_counts<std::int16_t>(device(), 33, 7, 9);
  expect_counts<std::uint32_t>(device(), 517, 33, 40);
  expect_counts<std::int64_t>(device(), 517, 33, 40);
  expect_counts<std::uint64_t>(device(), 100, 2, 1000);
  expect_counts<std::int32_t>(device(), 2048, 3000, 4000);
}

TEST_P(Histogram, TakesTilesOfAnyRankAndIndices) {
  auto k = kernel("square", [](Out<std::int32_t> o) {
    Tile i = expand(arange(20), 1), j = arange(30);
    store(o + arange(5), histogram((i + j) % 7 - 1, 5, i < 10));
  });
  std::vector<std::int32_t> want(5, 0);
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 30; ++j)
      if (const int v = (i + j) % 7 - 1; v >= 0 && v < 5) ++want[std::size_t(v)];
  Buffer<std::int32_t> out(device(), 5);
  const Stream s(device());
  k.launch(s, 1, out);
  s.synchronize();
  EXPECT_EQ(out.to_vector(), want);
}

// --- in loops --------------------------------------------------------------------------------------------------------

constinit auto streamed = kernel(
    "streamed", [](In<std::int32_t> x, Out<std::int32_t> counts, Out<std::int32_t> best, Int n, Const<int> BLOCK) {
      Tile sums = zeros(i32, {10}), largest = full(i32, {8}, -1);
      for (Scalar first : range(0, n, BLOCK)) {
        Tile i = first + arange(BLOCK), inside = i < n, v = load(x + i, inside, -1);
        sums += histogram(v % 10, 10, inside);
        largest = topk(cat(largest, v, 0), 8).first;
      }
      store(counts + arange(10), sums);
      store(best + arange(8), largest);
    });

// Scratch of one trip is not overwritten by the next before everybody has read it; no trip leaves the first values.
TEST_P(Sort, LoopsCountAndKeepTheBest) {
  for (std::size_t n : {0u, 1u, 64u, 300u}) {
    std::vector<std::int32_t> x = numbers<std::int32_t>(n + 1, 8);
    for (std::int32_t& v : x) v &= 0xffff;
    std::vector<std::int32_t> counts(10, 0), best(x.begin(), x.begin() + std::ptrdiff_t(n));
    for (std::size_t i = 0; i < n; ++i) ++counts[std::size_t(x[i] % 10)];
    std::sort(best.begin(), best.end(), std::greater<>());
    best.resize(8, -1);
    Buffer<std::int32_t> in = buffer_of(device(), x), c(device(), 10), b(device(), 8);
    const Stream s(device());
    streamed.launch(s, 1, in, c, b, n, 48);
    s.synchronize();
    EXPECT_EQ(c.to_vector(), counts) << n;
    EXPECT_EQ(b.to_vector(), best) << n;
  }
}

TEST(HistogramCode, CountersThatDoNotFitAreRefusedWithBothNumbers) {
  const Device d = Device::simulator("sm_90a");
  auto k = kernel("wide", [](Out<std::int32_t> o) { store(o + arange(60000), histogram(arange(64), 60000)); });
  Buffer<std::int32_t> out(d, 60000);
  const std::string what =
      kiln::test::error_of<UserError>([&] { k.with({.num_warps = 32}).launch(Stream(d), 1, out); });
  EXPECT_THAT(what, testing::HasSubstr("262144"));
  EXPECT_THAT(what, testing::HasSubstr("232448"));
  EXPECT_THAT(what, testing::HasSubstr("histogram"));
}

// --- errors ----------------------------------------------------------------------------------------------------------

template <class F>
std::string trace_error(F f) {
  auto k = kernel("wrong", [f](Out<float> o) { (void)f(o); });
  return kiln::test::error_of<UserError>([&] { (void)k.trace(device_ptr<float>(0)); });
}

TEST(SortLanguage, ErrorsNameWhatDoesNotFit) {
  using testing::HasSubstr;
  EXPECT_THAT(trace_error([](auto&) {
                return sort(zeros(f32, {2, 3}), 2);
              }),
              HasSubstr("sort: axis 2 of a tile of rank 2"));
  EXPECT_THAT(trace_error([](auto&) {
                return sort(std::tuple{zeros(f32, {2}), zeros(f32, {3})});
              }),
              HasSubstr("sort: shapes differ: tile<2xf32> and tile<3xf32>"));
  EXPECT_THAT(trace_error([](auto& o) { return sort(o + arange(4)); }),
              HasSubstr("sort: takes values, not tile<4xptr<f32>>"));
  EXPECT_THAT(trace_error([](auto&) {
                return topk(zeros(f32, {4, 9}), 0);
              }),
              HasSubstr("topk: k is 0, must be 1 to 9, the extent of axis 1"));
  EXPECT_THAT(trace_error([](auto&) {
                return topk(zeros(f32, {4, 9}), 5, 0);
              }),
              HasSubstr("topk: k is 5, must be 1 to 4, the extent of axis 0"));
  EXPECT_THAT(trace_error([](auto&) { return histogram(zeros(f32, {4}), 3); }),
              HasSubstr("histogram: takes a tile of integers, not tile<4xf32>"));
  EXPECT_THAT(trace_error([](auto&) { return histogram(arange(4), 0); }),
              HasSubstr("histogram: extents of a tile are positive"));
  EXPECT_THAT(trace_error([](auto&) { return histogram(arange(4), 3, arange(4)); }), HasSubstr("histogram: mask is"));
}

}  // namespace

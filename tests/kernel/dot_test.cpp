// Products of matrices: every extent and type, operands of either direction, batches, slices of k that fit shared
// memory. Each body runs on the interpreter, the simulator and every GPU found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;
using kiln::test::on_each_device;

/// Small numbers of either sign that sums do not hold exactly.
template <class T>
std::vector<T> numbers(std::size_t n, unsigned seed) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) {
    const int x = int((i + seed) * 2654435761u >> 12 & 0xff) - 128;
    if constexpr (std::is_integral_v<T>) v[i] = T(x * 1000003);
    else v[i] = T(float(x) / 37);
  }
  return v;
}

/// c + a b for one batch after the other: f32 and f64 by fma along k, integers modulo 2^bits.
template <class A, class B, class C>
std::vector<C> product_of(const std::vector<A>& a, const std::vector<B>& b, std::vector<C> c, std::size_t batches,
                          std::size_t m, std::size_t n, std::size_t k) {
  for (std::size_t z = 0; z < batches; ++z)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t l = 0; l < k; ++l) {
          C& sum = c[(z * m + i) * n + j];
          const A x = a[(z * m + i) * k + l];
          const B y = b[(z * k + l) * n + j];
          if constexpr (std::is_integral_v<C>) sum = C(std::uint64_t(x) * std::uint64_t(y) + std::uint64_t(sum));
          else if constexpr (std::is_same_v<C, double>) sum = std::fma(double(x), double(y), sum);
          else sum = std::fma(float(x), float(y), sum);
        }
  return c;
}

/// Pointers to a row-major tile of this shape.
template <class P>
Tile at(const P& base, const Shape& shape) {
  Tile offset = zeros(DType::index, shape);
  std::int64_t stride = 1;
  for (int axis = shape.rank(); axis-- > 0; stride *= shape[axis]) {
    Tile i = arange(shape[axis]) * stride;
    for (int after = axis + 1; after < shape.rank(); ++after) i = expand(i, -1);
    offset = offset + i;
  }
  return base + offset;
}

struct Extents {
  int m, n, k;
};
std::ostream& operator<<(std::ostream& o, Extents e) { return o << e.m << "x" << e.n << "x" << e.k; }

template <class A, class B, class C>
constinit auto product = kernel("product", [](In<A> a, In<B> b, In<C> c, Out<C> o, Const<int> M, Const<int> N,
                                              Const<int> K) {
  store(at(o, {M, N}), dot(load(at(a, {M, K})), load(at(b, {K, N})), load(at(c, {M, N}))));
});

template <class A, class B, class C>
std::vector<C> run(const Device& d, Extents e, const std::vector<A>& a, const std::vector<B>& b,
                   const std::vector<C>& c, int warps) {
  Buffer<A> x = buffer_of(d, a);
  Buffer<B> y = buffer_of(d, b);
  Buffer<C> z = buffer_of(d, c), out(d, c.size());
  const Stream s(d);
  product<A, B, C>.with({.num_warps = warps}).launch(s, 1, x, y, z, out, e.m, e.n, e.k);
  s.synchronize();
  return out.to_vector();
}

template <class A, class B, class C>
void expect_exact(const Device& d, Extents e, int warps = 4) {
  const auto a = numbers<A>(std::size_t(e.m * e.k), 1);
  const auto b = numbers<B>(std::size_t(e.k * e.n), 2);
  const auto c = numbers<C>(std::size_t(e.m * e.n), 3);
  EXPECT_EQ((run<A, B, C>(d, e, a, b, c, warps)),
            (product_of(a, b, c, 1, std::size_t(e.m), std::size_t(e.n), std::size_t(e.k))))
      << e << " on " << warps << " warps";
}

class Dot : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Dot);

TEST_P(Dot, SinglePrecisionIsOneFmaAStepForEveryExtent) {
  for (Extents e : {Extents{1, 1, 1},
                    {1, 1, 7},
                    {1, 64, 3},
                    {64, 1, 5},
                    {2, 2, 2},
                    {3, 5, 7},
                    {16, 16, 16},
                    {17, 65, 1},
                    {100, 36, 50},
                    {128, 1, 64},
                    {1, 128, 33},
                    {32, 8, 3},
                    {8, 200, 12},
                    {64, 64, 32},
                    {33, 31, 129}})
    expect_exact<float, float, float>(device(), e);
}

TEST_P(Dot, AnyNumberOfWarpsGivesTheSame) {
  for (int warps : {1, 2, 8, 16}) {
    expect_exact<float, float, float>(device(), {64, 48, 24}, warps);
    expect_exact<float, float, float>(device(), {5, 3, 9}, warps);
  }
}

// Operands of more than 48 KB go through shared memory a slice at a time; the last one is not full.
TEST_P(Dot, LongSumsAreSliced) {
  expect_exact<float, float, float>(device(), {32, 32, 513}, 16);
  expect_exact<float, float, float>(device(), {64, 16, 300}, 16);
  expect_exact<double, double, double>(device(), {16, 64, 200}, 16);
}

TEST_P(Dot, DoublePrecisionIsExactToTheBit) {
  for (Extents e : {Extents{1, 1, 1}, {3, 5, 7}, {32, 32, 16}, {20, 33, 9}})
    expect_exact<double, double, double>(device(), e);
  expect_exact<float, double, double>(device(), {16, 8, 11});
}

TEST_P(Dot, IntegersWrap) {
  for (Extents e : {Extents{1, 1, 1}, {3, 5, 7}, {32, 16, 64}}) {
    expect_exact<std::int8_t, std::int8_t, std::int32_t>(device(), e);
    expect_exact<std::uint8_t, std::int8_t, std::int32_t>(device(), e);
    expect_exact<std::int16_t, std::int32_t, std::int32_t>(device(), e);
    expect_exact<std::uint32_t, std::uint16_t, std::uint32_t>(device(), e);
    expect_exact<std::int32_t, std::int64_t, std::int64_t>(device(), e);
    expect_exact<std::uint64_t, std::uint8_t, std::uint64_t>(device(), e);
  }
}

/// |got - exact| <= K 2^-23 (|c| + |a| |b|), in f64.
template <class A, class B>
void expect_close(const Device& d, Extents e) {
  const auto a = numbers<A>(std::size_t(e.m * e.k), 1);
  const auto b = numbers<B>(std::size_t(e.k * e.n), 2);
  const auto c = numbers<float>(std::size_t(e.m * e.n), 3);
  const std::vector<float> got = run<A, B, float>(d, e, a, b, c, 4);
  for (int i = 0; i < e.m; ++i)
    for (int j = 0; j < e.n; ++j) {
      double sum = c[std::size_t(i * e.n + j)], size = std::abs(sum);
      for (int l = 0; l < e.k; ++l) {
        const double p = double(float(a[std::size_t(i * e.k + l)])) * double(float(b[std::size_t(l * e.n + j)]));
        sum += p, size += std::abs(p);
      }
      ASSERT_NEAR(got[std::size_t(i * e.n + j)], sum, e.k * 0x1p-23 * size) << e << " at " << i << "," << j;
    }
}

TEST_P(Dot, NarrowFloatsAccumulateInSinglePrecision) {
  for (Extents e : {Extents{1, 1, 1}, {3, 5, 7}, {32, 24, 100}}) {
    expect_close<f16, f16>(device(), e);
    expect_close<bf16, bf16>(device(), e);
    expect_close<f16, bf16>(device(), e);
    expect_close<f8e4m3, f8e4m3>(device(), e);
    expect_close<f8e4m3, f8e5m2>(device(), e);
  }
}

constinit auto columns = kernel("columns", [](In<float> a, In<float> b, Out<float> o, Const<int> M, Const<int> N,
                                              Const<int> K, Const<bool> A, Const<bool> B) {
  Tile m = expand(arange(M), 1), n = arange(N), k = arange(K);
  Tile x = load(A ? a + (m + k * M) : a + (m * K + k));
  Tile y = load(B ? b + (expand(k, 1) + n * K) : b + (expand(k, 1) * N + n));
  store(o + (m * N + n), dot(x, y));
});

TEST_P(Dot, OperandsMayRunDownTheirColumns) {
  const int M = 48, N = 40, K = 28;
  const auto a = numbers<float>(std::size_t(M * K), 1), b = numbers<float>(std::size_t(K * N), 2);
  auto transposed = [](const std::vector<float>& x, int rows, int cols) {
    std::vector<float> t(x.size());
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) t[std::size_t(j * rows + i)] = x[std::size_t(i * cols + j)];
    return t;
  };
  const auto want =
      product_of(a, b, std::vector<float>(std::size_t(M * N)), 1, std::size_t(M), std::size_t(N), std::size_t(K));
  for (bool down_a : {false, true})
    for (bool down_b : {false, true}) {
      Buffer<float> x = buffer_of(device(), down_a ? transposed(a, M, K) : a);
      Buffer<float> y = buffer_of(device(), down_b ? transposed(b, K, N) : b);
      Buffer<float> out(device(), std::size_t(M * N));
      const Stream s(device());
      columns.launch(s, 1, x, y, out, M, N, K, down_a, down_b);
      s.synchronize();
      EXPECT_EQ(out.to_vector(), want) << down_a << down_b;
    }
}

constinit auto batched = kernel("batched", [](In<float> a, In<float> b, Out<float> o, Const<int> Y, Const<int> Z,
                                              Const<int> M, Const<int> N, Const<int> K) {
  store(at(o, {Y, Z, M, N}), dot(load(at(a, {Y, Z, M, K})), load(at(b, {Y, Z, K, N}))));
});

TEST_P(Dot, LeadingAxesAreBatches) {
  struct Case {
    int y, z, m, n, k;
  };
  for (const Case& c : {Case{1, 3, 5, 7, 2}, {2, 3, 16, 8, 12}, {5, 1, 1, 1, 9}, {1, 16, 9, 17, 4}}) {
    const auto a = numbers<float>(std::size_t(c.y * c.z * c.m * c.k), 1);
    const auto b = numbers<float>(std::size_t(c.y * c.z * c.k * c.n), 2);
    const auto want = product_of(a, b, std::vector<float>(std::size_t(c.y * c.z * c.m * c.n)), std::size_t(c.y * c.z),
                                 std::size_t(c.m), std::size_t(c.n), std::size_t(c.k));
    Buffer<float> x = buffer_of(device(), a), y = buffer_of(device(), b), out(device(), want.size());
    const Stream s(device());
    batched.launch(s, 1, x, y, out, c.y, c.z, c.m, c.n, c.k);
    s.synchronize();
    EXPECT_EQ(out.to_vector(), want) << c.y << " " << c.z << " " << c.m << " " << c.n << " " << c.k;
  }
}

constinit auto strided =
    kernel("strided", [](In<float> a, In<float> b, Out<float> o, Int m, Int n, Int k, Int stride, Const<int> B) {
      Tile i = expand(arange(B), 1), j = arange(B);
      Tile x = load(a + (i * stride + j), i < m && j < k), y = load(b + (i * stride + j), i < k && j < n);
      store(o + (i * stride + j), dot(x, y), i < m && j < n);
    });

// Rows of memory hold NaN beyond the bound, and the tile's own padding holds whatever it holds.
TEST_P(Dot, NothingBeyondTheBoundReachesAResult) {
  const std::size_t stride = 40;
  for (int block : {24, 32, 33}) {
    const std::size_t m = 21, n = 23, k = 19;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> a(stride * stride, nan), b(stride * stride, nan), want(stride * stride, -7.f);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < k; ++j) a[i * stride + j] = float(int(i * 7 + j * 3) % 11 - 5);
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < n; ++j) b[i * stride + j] = float(int(i * 5 + j * 2) % 13 - 6);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::size_t l = 0; l < k; ++l) sum += a[i * stride + l] * b[l * stride + j];
        want[i * stride + j] = sum;
      }
    Buffer<float> x = buffer_of(device(), a), y = buffer_of(device(), b);
    Buffer<float> out = buffer_of(device(), std::vector<float>(stride * stride, -7.f));
    const Stream s(device());
    strided.launch(s, 1, x, y, out, m, n, k, stride, block);
    s.synchronize();
    EXPECT_EQ(out.to_vector(), want) << block;
  }
}

constinit auto chain = kernel("chain", [](In<float> a, In<float> b, In<float> c, Out<float> o, Const<int> N) {
  Tile x = load(at(a, {N, N})), y = load(at(b, {N, N})), z = load(at(c, {N, N}));
  Tile p = dot(x, y);
  store(at(o, {N, N}), dot(p, z, dot(p * 2, p, x)));
});

TEST_P(Dot, ProductsMayBeFactors) {
  for (int n : {1, 7, 32, 50}) {
    const auto size = std::size_t(n * n), side = std::size_t(n);
    const auto a = numbers<float>(size, 1), b = numbers<float>(size, 2), c = numbers<float>(size, 3);
    const auto p = product_of(a, b, std::vector<float>(size), 1, side, side, side);
    auto twice = p;
    for (float& x : twice) x *= 2;
    const auto want = product_of(p, c, product_of(twice, p, a, 1, side, side, side), 1, side, side, side);
    Buffer<float> x = buffer_of(device(), a), y = buffer_of(device(), b), z = buffer_of(device(), c),
                  out(device(), size);
    const Stream s(device());
    chain.launch(s, 1, x, y, z, out, n);
    s.synchronize();
    EXPECT_EQ(out.to_vector(), want) << n;
  }
}

constinit auto looped = kernel("looped", [](In<float> a, In<float> b, Out<float> c, Int M, Int N, Int K, Const<int> BM,
                                            Const<int> BN, Const<int> BK) {
  Tile m = expand(program_id(1) * BM + arange(BM), 1), n = program_id(0) * BN + arange(BN);
  Tile acc = zeros(f32, {BM, BN});
  for (Scalar k : range(0, K, BK)) {
    Tile kx = k + arange(BK), ky = expand(kx, 1);
    acc = dot(load(a + (m * K + kx), m < M && kx < K), load(b + (ky * N + n), ky < K && n < N), acc);
  }
  store(c + (m * N + n), acc, m < M && n < N);
});

// Any number of trips, none among them; the last step of k is masked.
TEST_P(Dot, LoopsAccumulate) {
  for (int k : {0, 1, 7, 8, 9, 41}) {
    const int m = 37, n = 50;
    const auto a = numbers<float>(std::size_t(m * k + 1), 1), b = numbers<float>(std::size_t(k * n + 1), 2);
    const auto want =
        product_of(a, b, std::vector<float>(std::size_t(m * n)), 1, std::size_t(m), std::size_t(n), std::size_t(k));
    Buffer<float> x = buffer_of(device(), a), y = buffer_of(device(), b), out(device(), std::size_t(m * n));
    const Stream s(device());
    looped.launch(s, {cdiv(n, 32), cdiv(m, 16)}, x, y, out, m, n, k, 16, 32, 8);
    s.synchronize();
    EXPECT_EQ(out.to_vector(), want) << k;
  }
}

TEST(DotLanguage, TheAccumulatorHoldsBothOperands) {
  auto k = kernel("types", [](Out<float>) {
    auto dtype = [](DType a, DType b) { return dot(zeros(a, {2, 3}), zeros(b, {3, 4})).dtype(); };
    EXPECT_EQ(dtype(DType::f32, DType::f32), DType::f32);
    EXPECT_EQ(dtype(DType::f16, DType::bf16), DType::f32);
    EXPECT_EQ(dtype(DType::f8e4m3, DType::f8e5m2), DType::f32);
    EXPECT_EQ(dtype(DType::f16, DType::f64), DType::f64);
    EXPECT_EQ(dtype(DType::i8, DType::u8), DType::i32);
    EXPECT_EQ(dtype(DType::i32, DType::i16), DType::i32);
    EXPECT_EQ(dtype(DType::i64, DType::i8), DType::i64);
    EXPECT_EQ(dtype(DType::u64, DType::u8), DType::u64);
    EXPECT_EQ(dot(zeros(DType::f32, {5, 2, 3}), zeros(DType::f32, {5, 3, 4})).shape(), Shape({5, 2, 4}));
  });
  (void)k.trace(device_ptr<float>(0));
}

template <class F>
std::string trace_error(F f) {
  auto k = kernel("wrong", [f](Out<float>) { (void)f(); });
  return kiln::test::error_of<UserError>([&] { (void)k.trace(device_ptr<float>(0)); });
}

TEST(DotLanguage, ErrorsNameAllShapesAndDtypes) {
  using testing::HasSubstr;
  EXPECT_THAT(trace_error([] {
                return dot(zeros(f32, {2, 3}), zeros(f32, {4, 5}));
              }),
              HasSubstr("dot: extents do not fit: tile<2x3xf32> times tile<4x5xf32> into tile<2x5xf32>"));
  EXPECT_THAT(trace_error([] {
                return dot(zeros(f32, {2, 3}), zeros(f32, {3, 5}), zeros(f32, {2, 4}));
              }),
              HasSubstr("dot: extents do not fit: tile<2x3xf32> times tile<3x5xf32> into tile<2x4xf32>"));
  EXPECT_THAT(trace_error([] {
                return dot(zeros(f32, {2, 2, 3}), zeros(f32, {3, 3, 5}));
              }),
              HasSubstr("dot: extents do not fit: tile<2x2x3xf32> times tile<3x3x5xf32>"));
  EXPECT_THAT(trace_error([] { return dot(zeros(f32, {3}), zeros(f32, {3})); }),
              HasSubstr("dot: takes tiles of one rank, at least 2, not tile<3xf32> and tile<3xf32>"));
  EXPECT_THAT(trace_error([] {
                return dot(zeros(f32, {2, 3}), zeros(i32, {3, 5}));
              }),
              HasSubstr("dot: takes two tiles of floats or two of integers, not tile<2x3xf32> and tile<3x5xi32>"));
  EXPECT_THAT(
      trace_error([] {
        return dot(zeros(f64, {2, 3}), zeros(f32, {3, 5}), zeros(f32, {2, 5}));
      }),
      HasSubstr("dot: operands must be floats that f32 holds: tile<2x3xf64> times tile<3x5xf32> into tile<2x5xf32>"));
  EXPECT_THAT(trace_error([] {
                return dot(zeros(DType::f16, {2, 3}), zeros(DType::f16, {3, 5}), zeros(DType::f16, {2, 5}));
              }),
              HasSubstr("dot: accumulates in f32, f64, i32, u32, i64 or u64, not tile<2x5xf16>"));
}

/// Times `part` is in `text`.
int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
  return n;
}

constinit auto matmul =
    kernel("matmul", [](In<float> a, In<float> b, Out<float> o, Const<int> M, Const<int> N, Const<int> K) {
      store(at(o, {M, N}), dot(load(at(a, {M, K})), load(at(b, {K, N}))));
    });

TEST(DotCode, ThreadsOwnBlocksAndReadVectorsWithoutConflicts) {
  const Device d = Device::simulator("sm_90a");
  Buffer<float> a(d, 128 * 16), b(d, 16 * 128), o(d, 128 * 128);
  a.fill_bytes(0);
  b.fill_bytes(0);
  const std::string ptx = matmul.image(d, a, b, o, 128, 128, 16).ptx;
  EXPECT_THAT(ptx, testing::HasSubstr(".reqntid 256"));
  EXPECT_EQ(count(ptx, "fma.rn.f32"), 8 * 8 * 4);    // one step of 4 along k, in a loop
  EXPECT_EQ(count(ptx, "ld.shared.v4"), 8 + 2 * 4);  // 8 rows of a along k, two vectors of b for each k
  EXPECT_EQ(count(ptx, "st.shared.v4"), 2 * 2);
  EXPECT_EQ(count(ptx, "bar.sync"), 1);
  const Stream s(d);
  matmul.launch(s, 1, a, b, o, 128, 128, 16);
  s.synchronize();
  EXPECT_GT(d.counters().shared_accesses, 0u);
  EXPECT_EQ(d.counters().bank_conflicts, 0u);
}

// The whole of a matrix product: an accumulator that stays in its registers, two barriers a step.
TEST(DotCode, ALoopOfProductsKeepsItsSumsInRegisters) {
  const Device d = Device::simulator("sm_90a");
  Buffer<float> a(d, 1 << 20), b(d, 1 << 20), o(d, 1 << 20);
  const std::string ptx = looped.image(d, a, b, o, 1024, 1024, 1024, 128, 128, 16).ptx;
  EXPECT_EQ(count(ptx, "fma.rn.f32"), 8 * 8 * 4);
  EXPECT_EQ(count(ptx, "ld.shared.v4"), 8 + 2 * 4);
  EXPECT_EQ(count(ptx, "bar.sync"), 2);
}

constinit auto accumulated = kernel("accumulated", [](In<bf16> a, In<bf16> b, InOut<float> c, Int K) {
  Tile m = expand(arange(64), 1), n = arange(64), at_c = m * 64 + n;
  Tile acc = load(c + at_c);
  for (Scalar k : range(0, K, 32)) {
    Tile kx = k + arange(32), ky = expand(kx, 1);
    acc = dot(load(a + (m * K + kx), kx < K), load(b + (ky * 64 + n), ky < K), acc);
  }
  store(c + at_c, acc * 2);
});

// The sums begin in memory's layout and are moved once, before the loop.
TEST(DotCode, SumsThatBeginInMemoryAreNotMovedInTheLoop) {
  const int K = 80;
  const auto a = numbers<bf16>(64 * K, 1), b = numbers<bf16>(K * 64, 2);
  const auto c = numbers<float>(64 * 64, 3);
  auto want = product_of(a, b, c, 1, 64, 64, K);
  for (float& x : want) x *= 2;
  on_each_device([&](const Device& d) {
    Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b);
    Buffer<float> z = buffer_of(d, c);
    const Stream s(d);
    accumulated.launch(s, 1, x, y, z, K);
    s.synchronize();
    const std::vector<float> got = z.to_vector();
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2 * K * 0x1p-23 * 1000) << i;
    if (d.kind() == DeviceKind::Interpreter) return;
    const std::string ptx = accumulated.image(d, x, y, z, K).ptx;
    EXPECT_LE(count(ptx, "bar.sync"), 5) << ptx;  // one more where the result leaves the blocks of the unit
  });
}

TEST(DotCode, OperandsInEitherDirectionCauseNoConflicts) {
  const Device d = Device::simulator("sm_90a");
  Buffer<float> a(d, 64 * 32), b(d, 32 * 64), o(d, 64 * 64);
  a.fill_bytes(0);
  b.fill_bytes(0);
  const Stream s(d);
  for (int direction = 0; direction < 4; ++direction) {
    columns.launch(s, 1, a, b, o, 64, 64, 32, direction % 2 == 1, direction > 1);
    s.synchronize();
    EXPECT_EQ(d.counters().bank_conflicts, 0u) << direction;
  }
}

}  // namespace

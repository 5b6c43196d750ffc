// Kernels at the corners of the language: order of memory operations inside a program, threads that hold the same
// element, unusual shapes, narrow integers, addresses far from their base.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class Corners : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Corners);

template <class T>
std::vector<T> counted(std::size_t n, int first = 0) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = T(first + int(i));
  return v;
}

// --- who stores
// --------------------------------------------------------------------------------------------------------

// A tile smaller than the threads is held many times; x = x + 1 must add once.
constinit auto increment = kernel("increment", [](InOut<float> x, Const<int> N, Const<int> TIMES) {
  Tile i = arange(N);
  for (int k = 0; k < TIMES; ++k) store(x + i, load(x + i) + 1.f);
});
TEST_P(Corners, ThreadsThatShareAnElementAddOnce) {
  Stream s(device());
  for (int n : {1, 2, 3, 5, 31, 32, 33, 64, 100, 127, 300})
    for (int warps : {1, 2, 4, 16, 32}) {
      auto x = buffer_of(device(), counted<float>(512));
      increment.with({.num_warps = warps}).launch(s, 1, x, n, 3);
      s.synchronize();
      const auto h = x.to_vector();
      for (int i = 0; i < 512; ++i)
        ASSERT_EQ(h[std::size_t(i)], float(i) + (i < n ? 3.f : 0.f)) << n << " " << warps << " " << i;
    }
}

constinit auto increment_scalar = kernel("increment_scalar", [](InOut<std::int32_t> x, Const<int> TIMES) {
  for (int k = 0; k < TIMES; ++k) store(x, load(x) + 1);
});
TEST_P(Corners, ScalarUpdatesAddOnce) {
  Stream s(device());
  for (int warps : {1, 4, 32}) {
    auto x = buffer_of<std::int32_t>(device(), {5, 7});
    increment_scalar.with({.num_warps = warps}).launch(s, 1, x, 10);
    s.synchronize();
    EXPECT_EQ(x.to_vector(), (std::vector<std::int32_t>{15, 7}));
  }
}

// --- order
// -------------------------------------------------------------------------------------------------------------

// x[i] = x[i+1] + x[n-1-i], again and again: each step reads what other threads stored.
constinit auto mix = kernel("mix", [](InOut<std::int32_t> x, In<std::int32_t> same, Const<int> N, Const<int> TIMES) {
  Tile i = arange(N);
  for (int k = 0; k < TIMES; ++k) store(x + i, load(same + (i + 1) % N) + load(x + (N - 1 - i)) * 3);
});
TEST_P(Corners, EveryStepReadsTheStepBefore) {
  Stream s(device());
  for (int n : {2, 3, 32, 33, 500, 1024})
    for (int warps : {1, 8}) {
      auto want = counted<std::int32_t>(std::size_t(n), 1);
      auto x = buffer_of(device(), want);
      mix.with({.num_warps = warps}).launch(s, 1, x, x, n, 6);
      s.synchronize();
      for (int k = 0; k < 6; ++k) {
        const auto old = want;
        for (int i = 0; i < n; ++i) {
          const auto a = std::uint32_t(old[std::size_t((i + 1) % n)]), b = std::uint32_t(old[std::size_t(n - 1 - i)]);
          want[std::size_t(i)] = std::int32_t(a + 3 * b);
        }
      }
      ASSERT_EQ(x.to_vector(), want) << n << " " << warps;
    }
}

// Two stores to one tile: the later one stays; scalar accesses in between.
constinit auto twice = kernel("twice", [](InOut<float> x, Out<float> seen, Const<int> N) {
  Tile i = arange(N);
  store(x + i, i.cast(f32));
  store(x + (N - 1 - i), i.cast(f32) * 2.f);
  store(seen, load(x + 5));
  store(x + 5, -1.f);
  store(seen + 1, load(x + 5));
  store(seen + 2 + i, load(x + i));
  store(x + i, 8.f, i < 3);
  store(seen + 2, load(x + 2) + load(seen + 2 + 7));
});
TEST_P(Corners, LaterStoresStay) {
  Stream s(device());
  for (int n : {8, 100, 1000}) {
    Buffer<float> x(device(), std::size_t(n)), seen(device(), std::size_t(n + 2));
    twice.launch(s, 1, x, seen, n);
    s.synchronize();
    const auto hx = x.to_vector(), hs = seen.to_vector();
    const float five = float(n - 1 - 5) * 2;
    EXPECT_EQ(hs[0], five);
    EXPECT_EQ(hs[1], -1.f);
    for (int i = 1; i < n; ++i) {
      const float now = i == 5 ? -1.f : float(n - 1 - i) * 2;
      ASSERT_EQ(hs[std::size_t(i + 2)], now) << n << " " << i;
      ASSERT_EQ(hx[std::size_t(i)], i < 3 ? 8.f : now) << n << " " << i;
    }
    EXPECT_EQ(hs[2], 8.f + float(n - 1 - 7) * 2) << n;
  }
}

// One value along both axes, stored over what it was loaded from.
constinit auto both_ways = kernel("both_ways", [](InOut<float> x, Out<float> y, Const<int> N) {
  Tile i = arange(N), v = load(x + i);
  Tile table = expand(v, 1) * 100.f + expand(v, 0);
  store(x + (N - 1 - i), v);
  store(y + (expand(i, 1) * N + expand(i, 0)), table);
  store(y + (expand(i, 1) + expand(i, 0) * N), table + expand(load(x + i), 0) * 10000.f);
});
TEST_P(Corners, AValueInTwoOrientationsIsTheOldOne) {
  Stream s(device());
  for (int n : {1, 2, 7, 32, 50}) {
    auto x = buffer_of(device(), counted<float>(std::size_t(n), 1));
    Buffer<float> y(device(), std::size_t(n * n));
    both_ways.launch(s, 1, x, y, n);
    s.synchronize();
    const auto hy = y.to_vector();
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        ASSERT_EQ(hy[std::size_t(j * n + i)], float(i + 1) * 100 + float(j + 1) + float(n - j) * 10000)
            << n << " " << i << " " << j;
  }
}

// --- shapes
// ------------------------------------------------------------------------------------------------------------

constinit auto four_axes =
    kernel("four_axes", [](In<float> x, Out<float> y, Const<int> A, Const<int> B, Const<int> C, Const<int> D) {
      Tile a = expand(expand(expand(arange(A), 1), 1), 1), b = expand(expand(arange(B), 1), 1),
           c = expand(arange(C), 1), d = arange(D);
      Tile v = load(x + (((a * B + b) * C + c) * D + d));
      store(y + (((d * C + c) * B + b) * A + a), v + b.cast(f32) * 1000.f);
    });
TEST_P(Corners, FourAxesReversed) {
  Stream s(device());
  for (auto [A, B, C, D] :
       {std::array{2, 3, 4, 5}, {1, 1, 1, 1}, {1, 7, 1, 3}, {4, 4, 4, 4}, {3, 1, 16, 8}, {5, 2, 1, 33}}) {
    const std::size_t n = std::size_t(A * B * C * D);
    auto x = buffer_of(device(), counted<float>(n));
    Buffer<float> y(device(), n);
    four_axes.launch(s, 1, x, y, A, B, C, D);
    s.synchronize();
    const auto h = y.to_vector();
    for (int a = 0; a < A; ++a)
      for (int b = 0; b < B; ++b)
        for (int c = 0; c < C; ++c)
          for (int d = 0; d < D; ++d)
            ASSERT_EQ(h[std::size_t(((d * C + c) * B + b) * A + a)],
                      float(((a * B + b) * C + c) * D + d) + float(b) * 1000);
  }
}

constinit auto large = kernel("large", [](In<float> x, Out<float> y, Const<int> N) {
  Tile i = arange(N);
  store(y + i, load(x + i) + 1.f);
});
TEST_P(Corners, LargeTiles) {
  Stream s(device());
  for (int n : {16384, 65536}) {
    auto x = buffer_of(device(), counted<float>(std::size_t(n)));
    Buffer<float> y(device(), std::size_t(n));
    large.launch(s, 1, x, y, n);
    s.synchronize();
    EXPECT_EQ(y.to_vector(), counted<float>(std::size_t(n), 1)) << n;
  }
}
TEST_P(Corners, RegistersMayBeCapped) {
  Stream s(device());
  auto x = buffer_of(device(), counted<float>(4096));
  Buffer<float> y(device(), 4096);
  large.with({.num_warps = 2, .max_registers = 24}).launch(s, 1, x, y, 4096);
  s.synchronize();
  EXPECT_EQ(y.to_vector(), counted<float>(4096, 1));
}

// --- addresses
// ---------------------------------------------------------------------------------------------------------

// The base lies far outside, the offset brings it back.
constinit auto far = kernel("far", [](In<std::int16_t> x, Out<std::int16_t> y, Int off, Int32 narrow,
                                      Const<std::int64_t> CONSTANT, Const<int> N) {
  Tile i = arange(N);
  In<std::int16_t> p = x;
  store(y + i, load((x + (off + i)) - off) + load((x + CONSTANT + i) + (-CONSTANT)) + load(x + ((i - off) + off)) +
                   load(((x - narrow) + i.cast(i32)) + narrow) + load(p + (i * off + i - i * off)));
});
TEST_P(Corners, OffsetsFarOutAndBack) {
  Stream s(device());
  const int n = 300;
  const auto hx = counted<std::int16_t>(std::size_t(n));
  auto x = buffer_of(device(), hx);
  std::vector<std::int16_t> want;
  for (std::int16_t v : hx) want.push_back(std::int16_t(5 * v));
  const std::int64_t one = 1;
  for (std::int64_t off :
       {one << 31, (one << 31) - 1, -(one << 31), -(one << 31) - 1, one << 32, one << 40, -(one << 40), one << 33}) {
    Buffer<std::int16_t> y(device(), std::size_t(n));
    far.launch(s, 1, x, y, off, std::int32_t(0x7fffffff), off, n);
    s.synchronize();
    ASSERT_EQ(y.to_vector(), want) << off;
  }
}

// Strides that are 1, hence constants of the code, change places in a loop with each other and with others.
constinit auto swap_strides = kernel("swap_strides", [](In<float> x, Out<float> y, Int a, Int b, Int n) {
  Scalar here = a, next = b, at = a * 0;
  for (auto i : range(n)) {
    store(y + i, load(x + at));
    at += here;
    std::swap(here, next);
  }
});
TEST_P(Corners, StridesOfOneMayChangePlaces) {
  const Stream s(device());
  auto x = buffer_of(device(), counted<float>(200));
  constexpr int kSteps = 7;
  for (auto [a, b] : {std::pair{1, 1}, {1, 2}, {16, 1}, {3, 5}}) {
    Buffer<float> y(device(), kSteps);
    swap_strides.launch(s, 1, x, y, a, b, kSteps);
    std::vector<float> want(1, 0.f);
    for (int i = 0; i + 1 < kSteps; ++i) want.push_back(want.back() + float(i % 2 ? b : a));
    EXPECT_EQ(y.to_vector(), want) << a << " " << b;
  }
}

// i32 arithmetic wraps at 32 bits, index does not.
constinit auto widths = kernel("widths", [](Int32 a, Int b, Out<std::int64_t> y) {
  Tile i = arange(4), n = i.cast(i32);
  store(y + i, (n + a).cast(i64));
  store(y + 4 + i, (i + a).cast(i64));
  store(y + 8 + i, (n * a * 2).cast(i64));
  store(y + 12 + i, (i * b * b).cast(i64));
  store(y + 16, (a + 1).cast(i64));
  store(y + 17, (a + b).cast(i64));
});
TEST_P(Corners, I32WrapsAndIndexDoesNot) {
  Stream s(device());
  const std::int64_t big = 0x7fffffff, b = (std::int64_t(1) << 33) + 5;
  auto y = buffer_of(device(), std::vector<std::int64_t>(18, -1));
  widths.launch(s, 1, std::int32_t(big), b, y);
  s.synchronize();
  const auto h = y.to_vector();
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(h[std::size_t(i)], std::int32_t(std::uint32_t(big + i)));
    EXPECT_EQ(h[std::size_t(4 + i)], big + i);
    EXPECT_EQ(h[std::size_t(8 + i)], std::int32_t(std::uint32_t(i * big * 2)));
    EXPECT_EQ(h[std::size_t(12 + i)], std::int64_t(std::uint64_t(i) * std::uint64_t(b) * std::uint64_t(b)));
  }
  EXPECT_EQ(h[16], std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(h[17], big + b);
}

// --- narrow types
// ------------------------------------------------------------------------------------------------------

template <class T>
constinit auto narrow = kernel("narrow", [](In<T> x, In<T> y, Out<T> out, Out<bool> less, Const<int> N) {
  Tile i = arange(N), a = load(x + i), b = load(y + i);
  int k = 0;
  for (Tile v :
       {a + b, a - b, a * b, a / b, a % b, a << (b & 7), a >> (b & 7), -a, ~a, minimum(a, b), a ^ b, (a + b) / 2})
    store(out + k++ * N + i, v);
  store(less + i, a < b && !(a == b) || a > b && b < 0);
});
template <class T>
void check_narrow(const Device& device) {
  Stream s(device);
  std::vector<T> hx, hy;
  for (int a = -130; a <= 260; a += 13)
    for (int b : {-128, -100, -3, -1, 0, 1, 2, 7, 100, 127, 200, 255}) hx.push_back(T(a * 97)), hy.push_back(T(b));
  const int n = int(hx.size());
  auto x = buffer_of(device, hx), y = buffer_of(device, hy);
  Buffer<T> out(device, std::size_t(12 * n));
  Buffer<bool> less(device, std::size_t(n));
  narrow<T>.launch(s, 1, x, y, out, less, n);
  s.synchronize();
  const auto h = out.to_vector();
  std::vector<std::uint8_t> hl(std::size_t(n), 9);
  Buffer<std::uint8_t>::foreign(device, less.ptr(), std::size_t(n)).download(hl);
  for (std::size_t i = 0; i < hx.size(); ++i) {
    const T a = hx[i], b = hy[i];
    const int c = b & 7;
    const T want[] = {T(a + b),
                      T(a - b),
                      T(a * b),
                      b == 0 ? T(0) : T(a / b),
                      b == 0 ? T(0) : T(a % b),
                      T(a << c),
                      T(a >> c),
                      T(-a),
                      T(~a),
                      std::min(a, b),
                      T(a ^ b),
                      T(T(a + b) / 2)};
    for (std::size_t k = 0; k < 12; ++k)
      ASSERT_EQ(int(h[k * std::size_t(n) + i]), int(want[k]))
          << "operation " << k << " of " << int(a) << " and " << int(b);
    ASSERT_EQ(int(hl[i]), int(a < b || (a > b && b < 0))) << int(a) << " " << int(b);
  }
}
TEST_P(Corners, NarrowIntegersWrap) {
  check_narrow<std::int8_t>(device());
  check_narrow<std::uint8_t>(device());
  check_narrow<std::int16_t>(device());
  check_narrow<std::uint16_t>(device());
}

// --- many parameters
// -----------------------------------------------------------------------------------------------------

template <std::size_t>
using Float1 = Float;
template <std::size_t... K>
auto sum_of(std::index_sequence<K...>) {
  return kernel("sum_of", [](Out<float> y, Float1<K>... x) { store(y, (Scalar(x) + ...)); });
}
template <class Kernel, std::size_t... K>
void launch_sum(const Kernel& k, Stream& s, Buffer<float>& y, std::index_sequence<K...>) {
  k.launch(s, 1, y, float(K)...);
}
TEST_P(Corners, AHundredParameters) {
  Stream s(device());
  Buffer<float> y(device(), 1);
  const auto k = sum_of(std::make_index_sequence<100>{});
  launch_sum(k, s, y, std::make_index_sequence<100>{});
  s.synchronize();
  EXPECT_EQ(y.to_vector()[0], 4950.f);
}

// --- casts
// ---------------------------------------------------------------------------------------------------------------

// One rounding from the integer: a way through f32 would give a tie, and the wrong neighbour.
constinit auto to_bf16 =
    kernel("to_bf16", [](In<std::uint32_t> x, In<std::int64_t> y, Out<bf16> a, Out<bf16> b, Out<bf16> c, Const<int> N) {
      Tile i = arange(N);
      store(a + i, load(x + i).cast<bf16>());
      store(b + i, load(x + i).cast(i32).cast<bf16>());
      store(c + i, load(y + i).cast<bf16>());
    });
std::uint16_t bf16_of(double exact) {  // of an integer below 2^53
  std::uint32_t best = 0;
  const double m = std::abs(exact);
  auto value = [](std::uint32_t b) { return double(std::bit_cast<float>(b << 16)); };
  for (std::uint32_t b = 0; b < 0x7f80; ++b)
    if (const double d = std::abs(value(b) - m), e = std::abs(value(best) - m); d < e || (d == e && b % 2 == 0))
      best = b;
  return std::uint16_t(best | (exact < 0 ? 0x8000u : 0u));
}
TEST_P(Corners, IntegersRoundOnceToBf16) {
  std::vector<std::uint32_t> hx{0x877fff9b, 0x01010001, 0x01008001, 0x7f7fffff,
                                0xffffffff, 0x80800001, 0x808000ff, 0x00818001};
  std::vector<std::int64_t> hy;
  for (std::uint32_t v : hx) hy.push_back(std::int64_t(v) << 13 | 1);
  const int n = int(hx.size());
  std::vector<Device> all{device()};
  if (device().is_simulator())
    for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_100a", "sm_120a"}) all.push_back(Device::simulator(arch));
  for (const Device& d : all) {
    Stream s(d);
    auto x = buffer_of(d, hx);
    auto y = buffer_of(d, hy);
    Buffer<bf16> a(d, hx.size()), b(d, hx.size()), c(d, hx.size());
    to_bf16.launch(s, 1, x, y, a, b, c, n);
    s.synchronize();
    const auto ha = a.to_vector(), hb = b.to_vector(), hc = c.to_vector();
    for (std::size_t i = 0; i < hx.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint16_t>(ha[i]), bf16_of(double(hx[i]))) << d.target() << " u32 " << hx[i];
      EXPECT_EQ(std::bit_cast<std::uint16_t>(hb[i]), bf16_of(double(std::int32_t(hx[i]))))
          << d.target() << " i32 " << hx[i];
      EXPECT_EQ(std::bit_cast<std::uint16_t>(hc[i]), bf16_of(double(hy[i]))) << d.target() << " i64 " << hy[i];
    }
  }
}

// The same operation on tiles, on scalars and on constants, which are folded while tracing.
constinit auto three_ways = kernel(
    "three_ways", [](In<float> x, Out<float> tile, Out<float> scalar, Const<float> A, Const<float> B, Const<int> N) {
      const auto all = [](auto a, auto b) {
        return std::vector{a + b,
                           a - b,
                           a * b,
                           a / b,
                           a % b,
                           minimum(a, b),
                           maximum(a, b),
                           relu(a),
                           abs(a),
                           -a,
                           floor(a),
                           round(a),
                           sqrt(a),
                           fma(a, b, a),
                           a.cast(i32).cast(f32),
                           a.template cast<f16>().cast(f32),
                           a.template cast<bf16>().cast(f32),
                           a.template cast<f8e4m3>().cast(f32),
                           a.template cast<f8e5m2>().cast(f32),
                           a.template cast_sat<f8e4m3>().cast(f32),
                           (a < b).cast(f32),
                           (a != a).cast(f32)};
      };
      Tile i = arange(N);
      const auto t = all(load(x + i * 0), load(x + 1 + i * 0));
      const auto s = all(load(x), load(x + 1));
      const auto c = all(Scalar(A), Scalar(B));
      for (std::size_t k = 0; k < t.size(); ++k) {
        store(tile + int(k) * N + i, t[k]);
        store(scalar + 2 * int(k), s[k]);
        store(scalar + (2 * int(k) + 1), c[k]);
      }
    });
TEST_P(Corners, TilesScalarsAndConstantsAgree) {
  Stream s(device());
  constexpr int kOps = 22, kN = 40;
  const float nan = NAN, inf = INFINITY, tiny = 1e-41f;
  for (auto [a, b] : {std::pair{nan, 1.f},
                      {1.f, nan},
                      {-0.f, 0.f},
                      {0.f, -0.f},
                      {tiny, tiny},
                      {inf, -inf},
                      {-inf, 2.f},
                      {3e38f, 3e38f},
                      {0.f, 0.f},
                      {-5.5f, 2.f},
                      {448.f, 1.f},
                      {464.f, 1e-30f},
                      {65520.f, 3.f},
                      {-2.5f, tiny}}) {
    auto x = buffer_of<float>(device(), {a, b});
    Buffer<float> tile(device(), kOps * kN), scalar(device(), 2 * kOps);
    three_ways.launch(s, 1, x, tile, scalar, a, b, kN);
    s.synchronize();
    const auto ht = tile.to_vector(), hs = scalar.to_vector();
    const auto bits = [](float v) { return std::isnan(v) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(v); };
    for (std::size_t k = 0; k < kOps; ++k) {
      ASSERT_EQ(bits(hs[2 * k]), bits(hs[2 * k + 1]))
          << "operation " << k << " of " << a << ", " << b << ": scalar and constant";
      for (std::size_t i = 0; i < kN; ++i)
        ASSERT_EQ(bits(ht[k * kN + i]), bits(hs[2 * k]))
            << "operation " << k << " of " << a << ", " << b << ": tile and scalar";
    }
  }
}

}  // namespace

// Scans in kernels: running sums and products, any combining lambda, every axis, both directions, loops.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class Scans : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Scans);

std::vector<std::int32_t> numbers(std::size_t n, int range) {
  std::vector<std::int32_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = int(i * 2654435761u >> 16) % range - range / 2;
  return v;
}

constinit auto running =
    kernel("running", [](In<std::int32_t> x, Out<std::int32_t> out, Const<int> N, Const<bool> REVERSE) {
      Tile i = arange(N);
      store(out + i, cumsum(load(x + i), 0, REVERSE));
    });
TEST_P(Scans, RunningSumsOfEveryWidth) {
  Stream s(device());
  for (int n : {1, 2, 3, 127, 1000, 4097, 100003})
    for (bool reverse : {false, true})
      for (int warps : {1, 4}) {
        const auto h = numbers(std::size_t(n), 1001);
        auto x = buffer_of(device(), h);
        Buffer<std::int32_t> out(device(), std::size_t(n));
        if (n > 4000 && warps == 1) continue;
        running.with({.num_warps = n > 5000 ? 32 : warps}).launch(s, 1, x, out, n, reverse);
        s.synchronize();
        std::vector<std::int32_t> want(h.size());
        std::int32_t total = 0;
        for (int k = 0; k < n; ++k) {
          const auto i = std::size_t(reverse ? n - 1 - k : k);
          want[i] = total += h[i];
        }
        ASSERT_EQ(out.to_vector(), want) << n << " " << reverse << " " << warps;
      }
}

constinit auto along_axis = kernel("along_axis", [](In<std::int32_t> x, Out<std::int32_t> out, Const<int> A,
                                                    Const<int> B, Const<int> C, Const<int> AXIS) {
  Tile a = expand(expand(arange(A), 1), 2), b = expand(expand(arange(B), 0), 2), c = expand(expand(arange(C), 0), 0);
  Tile at = (a * B + b) * C + c;
  store(out + at, cumsum(load(x + at), AXIS));
});
TEST_P(Scans, EveryAxisOfThree) {
  Stream s(device());
  for (const auto& e : {std::array{5, 6, 7}, std::array{3, 20, 33}})
    for (int axis : {0, 1, 2}) {
      const auto h = numbers(std::size_t(e[0] * e[1] * e[2]), 101);
      auto x = buffer_of(device(), h);
      Buffer<std::int32_t> out(device(), h.size());
      along_axis.launch(s, 1, x, out, e[0], e[1], e[2], axis);
      s.synchronize();
      std::vector<std::int32_t> want = h;
      const int step = axis == 0 ? e[1] * e[2] : axis == 1 ? e[2] : 1;
      for (int i = 0; i < int(want.size()); ++i)
        if (i / step % e[std::size_t(axis)] > 0) want[std::size_t(i)] += want[std::size_t(i - step)];
      ASSERT_EQ(out.to_vector(), want) << axis;
    }
}

// (a, b) ∘ (c, d) = (a c, b c + d): the scan that gives linear recurrences.
constinit auto recurrence = kernel(
    "recurrence", [](In<std::int32_t> a, In<std::int32_t> b, Out<std::int32_t> p, Out<std::int32_t> q, Const<int> N) {
      Tile i = arange(N);
      auto [x, y] = scan(std::tuple{load(a + i), load(b + i)}, 0, [](Scalar c, Scalar d, Scalar e, Scalar f) {
        return std::pair{c * e, d * e + f};
      });
      store(p + i, x);
      store(q + i, y);
    });
TEST_P(Scans, OperandsKeepTheirOrder) {
  Stream s(device());
  for (int n : {64, 37, 600}) {
    const auto h = numbers(std::size_t(n), 7), g = numbers(std::size_t(n), 11);
    auto a = buffer_of(device(), h), b = buffer_of(device(), g);
    Buffer<std::int32_t> p(device(), std::size_t(n)), q(device(), std::size_t(n));
    recurrence.launch(s, 1, a, b, p, q, n);
    s.synchronize();
    std::vector<std::int32_t> wp(1, h[0]), wq(1, g[0]);
    for (int i = 1; i < n; ++i) {
      const auto u = std::uint32_t(h[std::size_t(i)]), v = std::uint32_t(g[std::size_t(i)]);
      wq.push_back(std::int32_t(std::uint32_t(wq.back()) * u + v));
      wp.push_back(std::int32_t(std::uint32_t(wp.back()) * u));
    }
    EXPECT_EQ(p.to_vector(), wp) << n;
    EXPECT_EQ(q.to_vector(), wq) << n;
  }
}

// Eight ones in a loop of one trip, on more threads than elements.
constinit auto replicated = kernel("replicated", [](In<std::int32_t> x, Out<std::int32_t> out, Int trips) {
  Tile i = arange(8);
  for (auto k : range(trips)) store(out + k * 8 + i, cumsum(load(x + i), 0));
});
TEST_P(Scans, ReplicatedTilesInLoops) {
  Stream s(device());
  auto x = buffer_of(device(), std::vector<std::int32_t>(8, 1));
  for (int trips : {1, 2}) {
    Buffer<std::int32_t> out(device(), 16);
    replicated.launch(s, 1, x, out, trips);
    s.synchronize();
    for (int i = 0; i < 8 * trips; ++i) ASSERT_EQ(out.to_vector()[std::size_t(i)], i % 8 + 1);
  }
}

constinit auto exclusive =
    kernel("exclusive", [](In<std::int32_t> x, Out<std::int32_t> out, Const<int> N, Const<bool> REVERSE) {
      Tile i = arange(N);
      store(out + i, exclusive_scan(
                         load(x + i), 0, 5, [](Scalar a, Scalar b) { return a + b; }, REVERSE));
      store(out + N + i, cumprod(load(x + i), 0, REVERSE));
    });
TEST_P(Scans, ExclusiveAndProducts) {
  Stream s(device());
  for (int n : {1, 33, 700})
    for (bool reverse : {false, true}) {
      const auto h = numbers(std::size_t(n), 5);
      auto x = buffer_of(device(), h);
      Buffer<std::int32_t> out(device(), std::size_t(2 * n));
      exclusive.launch(s, 1, x, out, n, reverse);
      s.synchronize();
      const auto got = out.to_vector();
      std::uint32_t product = 1;
      std::int32_t before = 5;
      for (int k = 0; k < n; ++k) {
        const int i = reverse ? n - 1 - k : k;
        EXPECT_EQ(got[std::size_t(i)], before) << i;
        before += h[std::size_t(i)];
        product *= std::uint32_t(h[std::size_t(i)]);
        EXPECT_EQ(got[std::size_t(n + i)], std::int32_t(product)) << i;
      }
    }
}

}  // namespace

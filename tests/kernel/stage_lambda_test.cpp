// Lambdas over tiles inside a kernel: the stages of an epilogue are C++ functions of tiles, so a kernel that takes some
// as captures fuses whatever they compute, with extra tensors and several outputs. An extra tensor is a view whose
// repeated dimensions have stride 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class StageLambdas : public EveryDevice {};
KILN_ON_EVERY_DEVICE(StageLambdas);

constexpr int kM = 37, kN = 29, kK = 21;  // ragged: no multiple of a block
constexpr int kBlockM = 16, kBlockN = 16, kBlockK = 8;

struct Block {
  Scalar m, n;
  template <class T>
  Tile of(const View<const T, 2>& v) const {
    return v.load({m, n}, {kBlockM, kBlockN});
  }
};

/// This program's block of x · wᵀ.
std::pair<Block, Tile> product(const View<const float, 2>& x, const View<const float, 2>& w) {
  const Block at{program_id(1) * kBlockM, program_id(0) * kBlockN};
  Tile acc = zeros(f32, {kBlockM, kBlockN});
  for (auto k : range(0, x.size(1), kBlockK))
    acc = dot(x.load({at.m, k}, {kBlockM, kBlockK}), trans(w.load({at.n, k}, {kBlockN, kBlockK})), acc);
  return {at, acc};
}

std::vector<float> numbers(std::size_t n, int seed) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(int((i * 2654435761u + unsigned(seed) * 40503u) >> 20) % 9 - 4);
  return v;
}

/// Small whole numbers: every sum is exact.
struct Matrices {
  std::vector<float> x = numbers(kM * kK, 1), w = numbers(kN * kK, 2), row = numbers(kN, 3),
                     residual = numbers(kM * kN, 4);
  std::vector<std::int32_t> column;
  Matrices() {
    for (int i = 0; i < kM; ++i) column.push_back(i % 5 - 2);
  }
  float product(int m, int n) const {
    float sum = 0;
    for (int k = 0; k < kK; ++k) sum += x[std::size_t(m * kK + k)] * w[std::size_t(n * kK + k)];
    return sum;
  }
};

const Grid kGrid{cdiv(kN, kBlockN), cdiv(kM, kBlockM)};

/// y = (f2 ∘ f1 ∘ f0)(x · wᵀ), with 1, 0 and 2 extra tensors.
template <class F0, class F1, class F2>
auto linear(F0 f0, F1 f1, F2 f2) {
  return kernel("linear",
                [f0, f1, f2](View<const float, 2> x, View<const float, 2> w, View<const float, 2> row,
                             View<const float, 2> residual, View<const std::int32_t, 2> column, View<float, 2> y) {
                  const auto [at, acc] = product(x, w);
                  y.store({at.m, at.n}, f2(f1(f0(acc, at.of(row))), at.of(residual), at.of(column)));
                });
}

TEST_P(StageLambdas, ThreeStagesWithOneNoAndTwoExtraTensors) {
  const float slope = 0.25f;
  const auto k = linear([](Tile acc, Tile b) { return acc + b; },
                        [slope](Tile acc) { return select(acc > 0.f, acc, acc * slope); },
                        [](Tile acc, Tile r, Tile c) { return acc * 2 + r - c.cast(f32); });
  const Matrices h;
  auto x = buffer_of(device(), h.x), w = buffer_of(device(), h.w), row = buffer_of(device(), h.row),
       residual = buffer_of(device(), h.residual);
  auto column = buffer_of(device(), h.column);
  auto y = buffer_of(device(), std::vector<float>(kM * kN, -1));
  const Stream s(device());
  k.launch(s, kGrid, {x, {kM, kK}}, {w, {kN, kK}}, {row, {kM, kN}, {0, 1}}, {residual, {kM, kN}},
           {column, {kM, kN}, {1, 0}}, {y, {kM, kN}});
  s.synchronize();
  const auto got = y.to_vector();
  for (int m = 0; m < kM; ++m)
    for (int n = 0; n < kN; ++n) {
      float v = h.product(m, n) + h.row[std::size_t(n)];
      v = v > 0 ? v : v * slope;
      v = v * 2 + h.residual[std::size_t(m * kN + n)] - float(h.column[std::size_t(m)]);
      ASSERT_EQ(got[std::size_t(m * kN + n)], v) << m << " " << n;
    }
}

/// The stage gives two tiles: the block, and one number a row of it.
template <class F>
auto linear_with_rows(F f) {
  return kernel("linear_with_rows",
                [f](View<const float, 2> x, View<const float, 2> w, View<float, 2> y, View<float, 2> rows) {
                  const auto [at, acc] = product(x, w);
                  const auto [out, of_rows] = f(acc);
                  y.store({at.m, at.n}, out);
                  rows.store({at.m, program_id(0)}, expand(of_rows, 1));
                });
}

TEST_P(StageLambdas, SeveralOutputsOfWhichOneIsAReduction) {
  const auto k = linear_with_rows([](Tile acc) { return std::pair{relu(acc), max(acc, 1)}; });
  const Matrices h;
  auto x = buffer_of(device(), h.x), w = buffer_of(device(), h.w);
  Buffer<float> y(device(), kM * kN), rows(device(), kM * 2);
  const Stream s(device());
  k.launch(s, kGrid, {x, {kM, kK}}, {w, {kN, kK}}, {y, {kM, kN}}, {rows, {kM, 2}});
  s.synchronize();
  const auto got = y.to_vector(), most = rows.to_vector();
  for (int m = 0; m < kM; ++m) {
    float best[2] = {-1e9f, -1e9f};
    for (int n = 0; n < kN; ++n) {
      ASSERT_EQ(got[std::size_t(m * kN + n)], std::max(h.product(m, n), 0.f)) << m << " " << n;
      best[n / kBlockN] = std::max(best[n / kBlockN], h.product(m, n));
    }
    EXPECT_EQ(most[std::size_t(2 * m)], best[0]) << m;
    EXPECT_EQ(most[std::size_t(2 * m + 1)], std::max(best[1], 0.f)) << m;  // columns beyond the edge are 0 there
  }
}

// One kernel template, two objects: each has its own stages and constants.
template <class F>
auto mapped(F f) {
  return kernel("mapped",
                [f](In<float> x, Out<float> y, Const<int> N) { store(y + arange(N), f(load(x + arange(N)))); });
}
TEST_P(StageLambdas, EachKernelObjectHasItsOwnConstants) {
  const auto plus = [](float c) { return mapped([c](Tile t) { return t + c; }); };
  const auto one = plus(1.f), ten = plus(10.f);
  auto x = buffer_of(device(), std::vector<float>{1, 2, 3});
  Buffer<float> y(device(), 3);
  const Stream s(device());
  one.launch(s, 1, x, y, 3);
  s.synchronize();
  EXPECT_EQ(y.to_vector(), (std::vector<float>{2, 3, 4}));
  ten.launch(s, 1, x, y, 3);
  s.synchronize();
  EXPECT_EQ(y.to_vector(), (std::vector<float>{11, 12, 13}));
}

}  // namespace

// Tiles that are read along one axis and written along another: what they hold, and that shared memory is used well.
#include <gtest/gtest.h>

#include "dsl/kiln.h"
#include "tests/support/devices.h"

namespace kiln::test {
namespace {

template <class T>
std::vector<T> numbers(std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = T(float(std::int64_t(i * 2654435761u % 201) - 100));
  return v;
}

template <class T>
void expect_transposed(int rows, int columns, int height = 32, int width = 64) {
  auto k = kernel("transpose", [](View<const T, 2> x, View<T, 2> y, Const<int> h, Const<int> w) {
    Scalar r = program_id(1) * h, c = program_id(0) * w;
    y.store({c, r}, trans(x.load({r, c}, {h, w})));
  });
  const std::vector<T> in = numbers<T>(std::size_t(rows * columns));
  std::vector<T> want(in.size());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) want[std::size_t(c * rows + r)] = in[std::size_t(r * columns + c)];
  on_each_device([&](const Device& d) {
    d.reset_counters();
    Buffer<T> x = buffer_of(d, in), y(d, in.size());
    k.launch(Stream(d), {cdiv(columns, width), cdiv(rows, height)}, {x, {rows, columns}}, {y, {columns, rows}}, height,
             width);
    const std::vector<T> got = y.to_vector();
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(float(got[i]), float(want[i])) << rows << "x" << columns << " at " << i;
    EXPECT_EQ(d.counters().bank_conflicts, 0u) << rows << "x" << columns;
  });
}

TEST(Layouts, TranspositionsOfEveryWidthAndTail) {
  for (const auto& [rows, columns] : {std::pair(64, 128), {33, 65}, {1, 100}, {160, 16}}) {
    expect_transposed<bf16>(rows, columns);
    expect_transposed<float>(rows, columns);
    expect_transposed<std::int8_t>(rows, columns);
    expect_transposed<double>(rows, columns);
  }
}

// More than 48 KB has to be asked for.
TEST(Layouts, TilesThatTakeMuchSharedMemory) {
  expect_transposed<float>(160, 200, 128, 128);
  expect_transposed<bf16>(160, 300, 128, 256);
}

// Both orders meet in one expression, in a loop, with what the loop carries.
TEST(Layouts, ATileAndItsTransposeMeetInALoop) {
  auto k = kernel("symmetric", [](View<const float, 2> x, View<float, 2> y, Int n) {
    Tile sum = zeros(DType::f32, {32, 32});
    for (auto i : range(n)) {
      Tile t = x.load({i * 32, 0}, {32, 32});
      sum = sum + (t + trans(t));
    }
    y.store({0, 0}, sum);
  });
  constexpr int kTiles = 3;
  const std::vector<float> in = numbers<float>(kTiles * 32 * 32);
  std::vector<float> want(32 * 32, 0.f);
  for (int t = 0; t < kTiles; ++t)
    for (int r = 0; r < 32; ++r)
      for (int c = 0; c < 32; ++c)
        want[std::size_t(r * 32 + c)] +=
            in[std::size_t((t * 32 + r) * 32 + c)] + in[std::size_t((t * 32 + c) * 32 + r)];
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, in), y(d, want.size());
    k.launch(Stream(d), 1, {x, {kTiles * 32, 32}}, {y, {32, 32}}, kTiles);
    EXPECT_EQ(y.to_vector(), want);
  });
}

}  // namespace
}  // namespace kiln::test

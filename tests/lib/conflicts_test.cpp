// Shared memory without avoidable bank conflicts: the library's functions, and what tiles exchange in general, on the
// simulator, which counts them by kernel and line.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "dsl/kiln.h"
#include "dsl/lib/lib.h"
#include "tests/lib/rows.h"

namespace kiln::test {
namespace {

/// Runs `body(stream)` on a simulator and expects shared memory to be used without avoidable conflicts; a failure names
/// each kernel, line and count.
void expect_no_conflicts(const std::string& what, const std::function<void(const Stream&)>& body) {
  const Device device = Device::simulator();
  const Stream s(device);
  body(s);
  s.synchronize();
  EXPECT_GT(device.counters().instructions, 0u) << what;
  for (const KernelCounters& k : device.kernel_counters())
    for (const KernelCounters::Conflict& c : k.conflicts)
      ADD_FAILURE() << what << ": " << k.kernel << " has " << c.wavefronts << " conflicts at " << c.where;
}

// --- the library -----------------------------------------------------------------------------------------------------

template <class T>
void row_functions(const Stream& s, std::int64_t cols) {
  const Shape shape{2, cols};
  const Rows<T> x(s.device(), shape, numbers<T>(std::size_t(2 * cols), 1)),
      residual(s.device(), shape, numbers<T>(std::size_t(2 * cols), 2));
  const Weights<T> w(s.device(), numbers<T>(std::size_t(cols), 3)), b(s.device(), numbers<T>(std::size_t(cols), 4));
  Rows<T> y(s.device(), shape), z(s.device(), shape);
  lib::softmax<T>(s, x, y);
  lib::log_softmax<T>(s, x, y);
  lib::layernorm<T>(s, x, w, b, y);
  lib::rmsnorm<T>(s, x, w, y);
  lib::add_rmsnorm<T>(s, x, residual, w, y, z);
}

TEST(Conflicts, RowFunctionsHaveNone) {
  for (std::int64_t cols : {1, 127, 1000, 1024, 4096, 4097, 12288, 32768, 40000})
    expect_no_conflicts("rows of " + std::to_string(cols), [&](const Stream& s) {
      row_functions<float>(s, cols);
      row_functions<f16>(s, cols);
      row_functions<bf16>(s, cols);
    });
}

/// A dense array of T on the stream's device, with small numbers in it.
template <class T>
Buffer<T> filled(const Stream& s, std::int64_t n) {
  std::vector<T> v;
  v.resize(std::size_t(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = T(float(int(i * 2654435761u >> 16) % 7 - 3));
  return buffer_of(s.device(), v);
}

template <class T>
void other_functions(const Stream& s, std::int64_t rows, std::int64_t cols) {
  const std::int64_t n = rows * cols;
  const Buffer<T> a = filled<T>(s, n), b = filled<T>(s, n), w = filled<T>(s, cols), scale = filled<T>(s, rows);
  const Buffer<std::int64_t> ids = buffer_of(s.device(), std::vector<std::int64_t>(std::size_t(rows), 0));
  Buffer<T> y = filled<T>(s, n), grad = filled<T>(s, n);
  Buffer<float> loss(s.device(), std::size_t(rows)), m = filled<float>(s, n), v = filled<float>(s, n),
                                                     total(s.device(), 1);
  lib::transpose<T>(s, {a, {rows, cols}}, {y, {cols, rows}});
  lib::cross_entropy<T>(s, {a, {rows, cols}}, {ids, {rows}}, {loss, {rows}});
  lib::cross_entropy_gradient<T>(s, {grad, {rows, cols}}, {ids, {rows}}, {loss, {rows}}, 1.f);
  lib::cumsum<T>(s, {a, {rows, cols}}, {y, {rows, cols}});
  lib::sum_all<T>(s, {a, {n}}, {total, {1}});
  lib::dropout<T>(s, {a, {n}}, {y, {n}}, 0.5, 7);
  lib::swiglu<T>(s, {a, {rows, cols}}, {b, {rows, cols}}, {y, {rows, cols}});
  lib::gelu_bias_scale_residual<T>(s, {a, {rows, cols}}, {w, {cols}}, {scale, {rows}}, {b, {rows, cols}},
                                   {y, {rows, cols}});
  lib::embedding<T>(s, {a, {rows, cols}}, {ids, {rows}}, {y, {rows, cols}});
  lib::adam_step<T>(s, {grad, {n}}, {a, {n}}, {m, {n}}, {v, {n}}, {}, 1);
}

TEST(Conflicts, OtherFunctionsHaveNone) {
  for (const auto& [rows, cols] : {std::pair{64, 64}, {33, 127}, {3, 4096}, {1, 40000}, {200, 129}})
    expect_no_conflicts(std::to_string(rows) + "x" + std::to_string(cols), [&](const Stream& s) {
      other_functions<float>(s, rows, cols);
      other_functions<f16>(s, rows, cols);
      other_functions<bf16>(s, rows, cols);
    });
}

template <class T>
void rotated(const Stream& s, std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
  const Buffer<T> x = filled<T>(s, tokens * heads * dim);
  const Buffer<float> cosines = filled<float>(s, tokens * dim / 2), sines = filled<float>(s, tokens * dim / 2);
  Buffer<T> y = filled<T>(s, tokens * heads * dim);
  for (lib::Pairs pairs : {lib::Pairs::halves, lib::Pairs::interleaved})
    lib::rope<T>(s, {x, {tokens, heads, dim}}, {cosines, {tokens, dim / 2}}, {sines, {tokens, dim / 2}},
                 {y, {tokens, heads, dim}}, pairs);
}

TEST(Conflicts, RotationsHaveNone) {
  for (std::int64_t dim : {32, 64, 80, 96, 128})
    expect_no_conflicts("heads of " + std::to_string(dim), [&](const Stream& s) {
      rotated<float>(s, 5, 3, dim);
      rotated<bf16>(s, 5, 3, dim);
    });
}

// --- what tiles exchange ---------------------------------------------------------------------------------------------

/// Launches a kernel over (View<const T, 2> x, View<T, 2> y, rows, columns) on dense arrays of that size.
template <class T, class K>
void on_tile(const K& k, const Stream& s, int rows, int columns, int warps) {
  const auto n = std::size_t(rows * columns);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = T(float(int(i * 2654435761u >> 16) % 101 - 50));
  Buffer<T> x = buffer_of(s.device(), values), y(s.device(), n);
  k.with({.num_warps = warps}).launch(s, 1, x, y, rows, columns);
}

Tile places(int rows, int columns) { return expand(arange(rows), 1) * columns + arange(columns); }

template <class T>
constinit auto transposed = kernel("transposed", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  store(y + places(C, R), trans(load(x + places(R, C))));
});
template <class T>
constinit auto raveled = kernel("raveled", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  store(y + arange(R * C), ravel(load(x + places(R, C))));
});
template <class T>
constinit auto swapped_axes = kernel("swapped_axes", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  Tile t = reshape(load(x + places(R, C)), {R / 4, 4, C});
  store(y + arange(R * C), ravel(permute(t, {2, 0, 1})));
});
template <class T>
constinit auto reduced = kernel("reduced", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  Tile t = load(x + places(R, C));
  store(y + arange(R), max(t, 1));
  store(y + arange(C), max(t, 0));
  store(y, sum(reshape(t, {R * C})));
});
template <class T>
constinit auto scanned = kernel("scanned", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  Tile t = load(x + places(R, C));
  store(y + places(R, C), cumsum(t, 1));
  store(y + places(R, C), cumsum(t, 0, true));
});
template <class T>
constinit auto sorted = kernel("sorted", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  store(y + places(R, C), sort(load(x + places(R, C)), 1));
});
template <class T>
constinit auto multiplied = kernel("multiplied", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  Tile a = load(x + places(R, C));
  store(y + places(R, R), dot(a, trans(a)).template cast<T>());
});
template <class T>
constinit auto flipped = kernel("flipped", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  Tile t = load(x + places(R, C));
  store(y + places(R, C), flip(t, 1));
  store(y + places(R, C), flip(t, 0));
});
template <class T>
constinit auto joined = kernel("joined", [](In<T> x, Out<T> y, Const<int> R, Const<int> C) {
  Tile t = load(x + places(R, C));
  store(y + places(R, C), cat(slice(t, 1, C / 2, C), slice(t, 1, 0, C / 2), 1));
});

/// Whatever the extents: between layouts, and along an axis.
template <class T>
void exchanges(const Stream& s, int rows, int columns, int warps) {
  on_tile<T>(transposed<T>, s, rows, columns, warps);
  on_tile<T>(swapped_axes<T>, s, rows, columns, warps);
  on_tile<T>(scanned<T>, s, rows, columns, warps);
  on_tile<T>(sorted<T>, s, rows, columns, warps);
}
/// To places that are no linear map of the old ones where extents are no powers of two.
template <class T>
void moves(const Stream& s, int rows, int columns, int warps) {
  on_tile<T>(raveled<T>, s, rows, columns, warps);
  on_tile<T>(reduced<T>, s, rows, columns, warps);
  on_tile<T>(flipped<T>, s, rows, columns, warps);
  on_tile<T>(joined<T>, s, rows, columns, warps);
}

struct Case {
  int rows, columns, warps;
  std::string text() const {
    return std::to_string(rows) + "x" + std::to_string(columns) + " on " + std::to_string(warps) + " warps";
  }
};

TEST(Conflicts, ExchangesBetweenThreadsHaveNone) {
  for (const Case& c : {Case{32, 32, 1}, {64, 64, 4}, {64, 64, 8}, {16, 128, 4}, {128, 16, 4}})
    expect_no_conflicts(c.text(), [&](const Stream& s) {
      exchanges<float>(s, c.rows, c.columns, c.warps);
      exchanges<bf16>(s, c.rows, c.columns, c.warps);
      moves<float>(s, c.rows, c.columns, c.warps);
      moves<bf16>(s, c.rows, c.columns, c.warps);
    });
}

TEST(Conflicts, ExchangesOfRaggedTilesHaveNone) {
  for (const Case& c : {Case{32, 100, 4}, {20, 33, 4}})
    expect_no_conflicts(c.text(), [&](const Stream& s) {
      exchanges<float>(s, c.rows, c.columns, c.warps);
      exchanges<bf16>(s, c.rows, c.columns, c.warps);
    });
}

TEST(Conflicts, ExchangesOfNarrowAndWideElementsHaveNone) {
  expect_no_conflicts("64x64", [&](const Stream& s) {
    exchanges<std::int64_t>(s, 64, 64, 4);
    exchanges<std::int8_t>(s, 64, 64, 4);
    moves<std::int64_t>(s, 64, 64, 4);
    moves<std::int8_t>(s, 64, 64, 4);
  });
}

TEST(Conflicts, ProductsHaveNone) {
  for (const auto& [rows, columns] : {std::pair{32, 32}, {16, 64}})
    expect_no_conflicts(std::to_string(rows) + "x" + std::to_string(columns), [&](const Stream& s) {
      on_tile<float>(multiplied<float>, s, rows, columns, 4);
      on_tile<bf16>(multiplied<bf16>, s, rows, columns, 4);
    });
}

}  // namespace
}  // namespace kiln::test

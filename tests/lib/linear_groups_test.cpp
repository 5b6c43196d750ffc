// Products in batches, in groups and in pieces of k; scales of parts of a sum; weights of 4 bits.
#include "tests/lib/products.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

namespace epilogue = lib::epilogue;

const lib::LinearOptions kSmall{.blocks = {32, 32, 16}};

std::vector<double> part(const std::vector<double>& v, std::int64_t begin, std::int64_t count) {
  return {v.begin() + begin, v.begin() + begin + count};
}
template <class T>
std::vector<T> as(const std::vector<double>& v) {
  std::vector<T> out;
  for (double x : v) out.push_back(T(float(x)));
  return out;
}

/// |got - want| within rounding to Y and a sum of products of that size.
template <class Y>
void expect_sums(const std::vector<double>& got, const std::vector<double>& want, const std::vector<double>& size,
                 std::int64_t k) {
  expect_within(got, want, [&](std::size_t i) { return step<Y>(want[i]) + double(k + 4) * 0x1p-23 * (size[i] + 4); });
}

// --- batches ---------------------------------------------------------------------------------------------------------

TEST(LinearBatched, EachBatchHasItsOwnWeightsOrOneForAll) {
  on_each_device([](const Device& d) {
    const std::int64_t b = 3, m = 35, n = 33, k = 20;
    const auto xs = elements_of<bf16>(b * m * k, 1), ws = elements_of<bf16>(b * n * k, 2),
               bias = elements_of<float>(b * n, 3);
    const Buffer<bf16> x = buffer_of(d, as<bf16>(xs)), w = buffer_of(d, as<bf16>(ws));
    const Buffer<float> bs = buffer_of(d, as<float>(bias));
    const auto add = [](Tile t, Tile u) { return t + u; };
    for (bool shared : {false, true}) {
      Buffer<float> y(d, std::size_t(b * m * n));
      lib::linear_batched<bf16>({x, {b, m, k}}, {w, {b, n, k}, {shared ? 0 : n * k, k, 1}}, kSmall)
          .then(add, lib::per_group_column<float>({bs, {b, n}}))
          .run<float>(Stream(d), {y, {b, m, n}});
      const auto got = y.to_vector();
      for (std::int64_t i = 0; i < b; ++i) {
        Products p = products({m, n, k}, part(xs, i * m * k, m * k), part(ws, shared ? 0 : i * n * k, n * k));
        for (std::size_t j = 0; j < p.sum.size(); ++j) p.sum[j] += bias[std::size_t(i * n) + j % std::size_t(n)];
        expect_sums<float>(part({got.begin(), got.end()}, i * m * n, m * n), p.sum, p.size, k);
      }
    }
  });
}

// --- groups ----------------------------------------------------------------------------------------------------------

TEST(LinearGrouped, RowsMeetTheWeightsOfTheirGroup) {
  on_each_device([](const Device& d) {
    const std::int64_t n = 34, k = 21, groups = 5;
    for (const std::vector<std::int32_t>& offsets : {std::vector<std::int32_t>{0, 1, 1, 34, 66, 100},
                                                     {3, 40, 41, 41, 41, 90},
                                                     {0, 0, 0, 0, 0, 0},
                                                     {0, 0, 0, 0, 0, 100}}) {
      const std::int64_t m = 100;
      const auto xs = elements_of<bf16>(m * k, 1), ws = elements_of<bf16>(groups * n * k, 2),
                 bias = elements_of<float>(groups * n, 3);
      const Operand<bf16> x(d, m, k, xs);
      const Buffer<bf16> w = buffer_of(d, as<bf16>(ws));
      const Buffer<float> b = buffer_of(d, as<float>(bias)), scales = buffer_of(d, std::vector<float>{1, 2, 3, 4, 5});
      const Buffer<std::int32_t> at = buffer_of(d, offsets);
      Operand<float> y(d, m, n);  // 77
      lib::linear_grouped<bf16>(x, {w, {groups, n, k}}, {at, {groups + 1}}, kSmall)
          .then([](Tile t, Tile u, Tile s) { return (t + u) * s; }, lib::per_group_column<float>({b, {groups, n}}),
                lib::per_group<float>({scales, {groups}}))
          .run<float>(Stream(d), y);
      const auto got = y.values();
      std::vector<double> want(got.size(), 77), size(got.size());
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t first = offsets[std::size_t(g)], rows = offsets[std::size_t(g) + 1] - first;
        const Products p = products({rows, n, k}, part(xs, first * k, rows * k), part(ws, g * n * k, n * k));
        for (std::size_t i = 0; i < p.sum.size(); ++i) {
          want[std::size_t(first * n) + i] = (p.sum[i] + bias[std::size_t(g * n) + i % std::size_t(n)]) * double(g + 1);
          size[std::size_t(first * n) + i] = p.size[i] * double(g + 1);
        }
      }
      expect_sums<float>(got, want, size, k);
      y.expect_rest_untouched();
    }
  });
}

// --- pieces of k -----------------------------------------------------------------------------------------------------

TEST(LinearSplit, PiecesAreAddedInTheirOrder) {
  on_each_device([](const Device& d) {
    const Extents e{34, 36, 150};
    const auto xs = elements_of<float>(e.m * e.k, 1), ws = elements_of<float>(e.n * e.k, 2);
    const Operand<float> x(d, e.m, e.k, xs), w(d, e.n, e.k, ws);
    for (int splits : {2, 3, 100}) {
      lib::LinearOptions o = kSmall;
      o.splits = splits;
      Operand<float> y(d, e.m, e.n);
      lib::linear<float>(x, w, o).then(epilogue::relu).run(Stream(d), y);
      // Each piece is a chain of fmas; pieces are whole steps of 16.
      const std::int64_t pieces = std::min<std::int64_t>(splits, 10), length = cdiv(cdiv(150, pieces), 16) * 16;
      std::vector<float> want;
      for (std::size_t i = 0; i < std::size_t(e.m); ++i)
        for (std::size_t j = 0; j < std::size_t(e.n); ++j) {
          float sum = 0;
          for (std::int64_t from = 0; from < e.k; from += length) {
            float piece = 0;
            for (auto k = std::size_t(from); k < std::size_t(std::min(from + length, e.k)); ++k)
              piece = std::fma(float(xs[i * 150 + k]), float(ws[j * 150 + k]), piece);
            sum += piece;
          }
          want.push_back(std::max(sum, 0.f));
        }
      EXPECT_EQ(y.elements(), want) << splits;
    }
  });
}

TEST(LinearSplit, IntegersAndDoublesHaveWorkspacesToo) {
  on_each_device([](const Device& d) {
    const Extents e{9, 40, 70};
    lib::LinearOptions o = kSmall;
    o.splits = 3;
    const auto xi = elements_of<std::int8_t>(e.m * e.k, 1), wi = elements_of<std::int8_t>(e.n * e.k, 2);
    Operand<std::int32_t> yi(d, e.m, e.n);
    lib::linear<std::int8_t>(Operand<std::int8_t>(d, e.m, e.k, xi), Operand<std::int8_t>(d, e.n, e.k, wi), o)
        .run(Stream(d), yi);
    EXPECT_EQ(yi.values(), products(e, xi, wi).sum);
    const auto xd = elements_of<double>(e.m * e.k, 1), wd = elements_of<double>(e.n * e.k, 2);
    Operand<double> yd(d, e.m, e.n);
    lib::linear<double>(Operand<double>(d, e.m, e.k, xd), Operand<double>(d, e.n, e.k, wd), o).run(Stream(d), yd);
    const Products p = products(e, xd, wd);
    expect_within(yd.values(), p.sum, [&](std::size_t i) { return 1e-14 * p.size[i]; });
  });
}

TEST(LinearSplit, AWorkspaceMayBeTheCallers) {
  const Device d = Device::simulator();
  const Stream s(d);
  Buffer<float> x(d, 64 * 64), w(d, 64 * 64), y(d, 64 * 64);
  for (Buffer<float>* b : {&x, &w}) b->upload(std::vector<float>(64 * 64, 1));
  const auto product = [&](int splits) {
    return lib::linear<float>({x, {64, 64}}, {w, {64, 64}}, {.splits = splits, .blocks = {32, 32, 16}});
  };
  EXPECT_EQ(product(1).workspace_size(d), 0);
  EXPECT_EQ(product(2).workspace_size(d), 2 * 64 * 64);
  product(2).run(s, {y, {64, 64}});
  expect_user_error([&] { (void)Graph::capture(s, [&] {
                            product(2).run(s, {y, {64, 64}});
                          }); },
                    "linear: the stream is being captured, so a workspace of 8192 floats is needed", __FILE__,
                    __LINE__ - 3);
  Buffer<float> space(d, 8192);
  expect_user_error(
      [&] {
        product(2).workspace({space, {8191}}).run(s, {y, {64, 64}});
      },
      "linear: workspace has 8191 elements, must have 8192", __FILE__, __LINE__ - 2);
  y.fill_bytes(0);
  const Graph g = Graph::capture(s, [&] { product(2).workspace({space, {8192}}).run(s, {y, {64, 64}}); });
  g.replay(s);
  s.synchronize();
  for (float v : y.to_vector()) ASSERT_EQ(v, 64);
}

TEST(LinearSplit, TheLibraryChoosesPiecesThatFillTheDevice) {
  const Device d = Device::simulator("sm_90a", 132);
  const Stream s(d);
  const std::int64_t k = 4096;
  Buffer<bf16> x(d, std::size_t(16 * k)), w(d, std::size_t(64 * k)), y(d, 16 * 64);
  for (Buffer<bf16>* b : {&x, &w}) b->upload(std::vector<bf16>(b->size(), bf16(1.f)));
  const auto product = lib::linear<bf16>({x, {16, k}}, {w, {64, k}}, {.splits = 0});
  EXPECT_GE(product.workspace_size(d), 2 * 16 * 64);
  product.run(s, {y, {16, 64}});
  for (bf16 v : y.to_vector()) ASSERT_EQ(float(v), 4096);
}

// --- scales of parts -------------------------------------------------------------------------------------------------

TEST(LinearScales, BlocksOfEightBitFloatsHaveScalesOfTheirOwn) {
  on_each_device([](const Device& d) {
    const Extents e{35, 40, 150};
    const std::int64_t group = 32, parts = cdiv(e.k, group), rows = 16, blocks = cdiv(e.n, rows);
    const auto xs = elements_of<f8e4m3>(e.m * e.k, 1), ws = elements_of<f8e4m3>(e.n * e.k, 2),
               sx = elements_of<float>(e.m * parts, 3), sw = elements_of<float>(blocks * parts, 4);
    const Operand<f8e4m3> x(d, e.m, e.k, xs), w(d, e.n, e.k, ws);
    const Operand<float> x_scales(d, e.m, parts, sx, 2), w_scales(d, blocks, parts, sw, 1);
    for (bool weights_first : {false, true}) {
      Operand<bf16> y(d, e.m, e.n);
      lib::linear<f8e4m3>(x, w, {.blocks = {32, 32, 64, weights_first}})
          .x_scaled(x_scales, int(group))
          .w_scaled(w_scales, int(group), int(rows))
          .then(epilogue::relu)
          .run<bf16>(Stream(d), y);
      std::vector<double> x_whole = xs, w_whole = ws;
      for (std::size_t i = 0; i < xs.size(); ++i) x_whole[i] *= sx[i / 150 * std::size_t(parts) + i % 150 / 32];
      for (std::size_t i = 0; i < ws.size(); ++i) w_whole[i] *= sw[i / 150 / 16 * std::size_t(parts) + i % 150 / 32];
      Products p = products(e, x_whole, w_whole);
      for (double& v : p.sum) v = std::max(v, 0.0);
      expect_sums<bf16>(y.values(), p.sum, p.size, e.k);
    }
  });
}

TEST(LinearScales, GroupsOfExpertsHaveScalesOfTheirOwn) {
  on_each_device([](const Device& d) {
    const std::int64_t m = 40, n = 20, k = 64, groups = 2, parts = 2;
    const auto xs = elements_of<f8e4m3>(m * k, 1), ws = elements_of<f8e4m3>(groups * n * k, 2),
               sw = elements_of<float>(groups * n * parts, 4);
    const Operand<f8e4m3> x(d, m, k, xs);
    const Buffer<f8e4m3> w = buffer_of(d, as<f8e4m3>(ws));
    const Buffer<float> scales = buffer_of(d, as<float>(sw));
    const Buffer<std::int32_t> offsets = buffer_of(d, std::vector<std::int32_t>{0, 13, 40});
    Operand<float> y(d, m, n);
    lib::linear_grouped<f8e4m3>(x, {w, {groups, n, k}}, {offsets, {3}}, kSmall)
        .w_scaled({scales, {groups, n, parts}}, 32)
        .run(Stream(d), y);
    std::vector<double> whole = ws;
    for (std::size_t i = 0; i < ws.size(); ++i) whole[i] *= sw[i / 64 * 2 + i % 64 / 32];
    Products p = products({13, n, k}, part(xs, 0, 13 * k), part(whole, 0, n * k));
    const Products q = products({27, n, k}, part(xs, 13 * k, 27 * k), part(whole, n * k, n * k));
    p.sum.insert(p.sum.end(), q.sum.begin(), q.sum.end());
    p.size.insert(p.size.end(), q.size.begin(), q.size.end());
    expect_sums<float>(y.values(), p.sum, p.size, k);
  });
}

TEST(LinearScales, ThatDoNotFitAreRefused) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 256), y(d, 256);
  const auto product = lib::linear<float>({x, {4, 40}}, {x, {4, 40}});
  expect_user_error(
      [&] {
        product.x_scaled({y, {4, 1}}, 32).run(s, {y, {4, 4}});
      },
      "linear: x's scales are 1x4x1, must be 1x4x2: one a row and 32 steps of k", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        (void)product.x_scaled({y, {4, 1}}, 24);
      },
      "linear: a scale is for 24 steps of k, must be a multiple of 16", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        (void)product.x_scaled({y, {4, 2}}, 32).w_scaled({y, {4, 1}}, 64);
      },
      "linear: scales of x and of w are for 32 and 64 steps of k", __FILE__, __LINE__ - 2);
}

// --- weights of 4 bits -----------------------------------------------------------------------------------------------

TEST(LinearInt4, TwoWeightsAByteWithScalesOfGroups) {
  on_each_device([](const Device& d) {
    for (std::int64_t k : {64, 77}) {
      const Extents e{20, 40, k};
      const std::int64_t bytes = cdiv(k, 2), parts = cdiv(k, 32);
      const auto xs = elements_of<bf16>(e.m * k, 1), sw = elements_of<float>(e.n * parts, 4);
      std::vector<double> ws(std::size_t(e.n * k)), packed(std::size_t(e.n * bytes));
      for (std::size_t i = 0; i < ws.size(); ++i) {
        const int v = int(i * 2654435761u >> 20) % 16 - 8;
        const std::size_t row = i / std::size_t(k), col = i % std::size_t(k);
        ws[i] = v;
        double& byte = packed[row * std::size_t(bytes) + col / 2];
        byte += (v & 15) << (col % 2 * 4);
      }
      const Operand<bf16> x(d, e.m, k, xs);
      const Operand<std::uint8_t> w(d, e.n, bytes, packed, 3, 1);
      Operand<float> y(d, e.m, e.n);
      lib::linear<bf16, lib::Int4>(x, w, kSmall).run<float>(Stream(d), y);
      const Products p = products(e, xs, ws);
      expect_sums<float>(y.values(), p.sum, p.size, k);

      const Operand<float> scales(d, e.n, parts, sw);
      lib::linear<bf16, lib::Int4>(x, w, kSmall).w_scaled(scales, 32).run<float>(Stream(d), y);
      for (std::size_t i = 0; i < ws.size(); ++i)
        ws[i] *= sw[i / std::size_t(k) * std::size_t(parts) + i % std::size_t(k) / 32];
      const Products q = products(e, xs, ws);
      expect_sums<float>(y.values(), q.sum, q.size, k);
    }
  });
}

TEST(LinearInt4, ColumnsThatDoNotFit) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<bf16> x(d, 64), y(d, 64);
  Buffer<std::uint8_t> w(d, 64);
  expect_user_error(
      [&] {
        lib::linear<bf16, lib::Int4>({x, {4, 9}}, {w, {4, 4}}).run(s, {y, {4, 4}});
      },
      "linear: x is 4x9 and w is 4x4: for 2 weights a byte it must have 5 columns", __FILE__, __LINE__ - 2);
}

}  // namespace
}  // namespace kiln::test

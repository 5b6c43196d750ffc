// One product whose operands travel through a ring, of every type, block and direction, against f64.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/kernel/operands.h"

namespace kiln::test {

struct Blocks {
  int m = 128, n = 128, k = 64;
  int promote = 0;
  Precision precision = Precision::exact;
};

template <class A, class B, class C, class S>
inline constinit auto matmul = kernel("matmul", [](View<const A, 2> a, View<const B, 2> b, View<C, 2> c,
                                                   Tune<Blocks> t) {
  Scalar m = program_id(0) * t.m, n = program_id(1) * t.n;
  Tile acc = zeros(dtype_of<S>, {t.m, t.n});
  for (auto k : range(0, a.size(1), t.k))
    acc = dot(a.load({m, k}, {t.m, t.k}), b.load({k, n}, {t.k, t.n}), acc, {t.precision, t.promote});
  c.store({m, n}, acc.template cast<C>());
});

struct Case {
  int m, n, k;
  Blocks blocks;
  bool a_columns = false, b_columns = false;
};

/// The kernel on random numbers against sums in f64: within `relative` of the sum of magnitudes.
template <class A, class B, class C, class S = float>
void expect_product(const Device& d, const Case& x, double relative) {
  const auto a = numbers<A>(std::size_t(x.m * x.k), 1);
  const auto b = numbers<B>(std::size_t(x.k * x.n), 2);
  const Stored<A> sa = stored(a, x.m, x.k, x.a_columns);
  const Stored<B> sb = stored(b, x.k, x.n, x.b_columns);
  Buffer<A> da = buffer_of(d, sa.memory);
  Buffer<B> db = buffer_of(d, sb.memory);
  Buffer<C> dc(d, std::size_t(x.m * x.n));
  dc.fill_bytes(0xff);
  const Stream s(d);
  const Grid grid{(x.m + x.blocks.m - 1) / x.blocks.m, (x.n + x.blocks.n - 1) / x.blocks.n};
  matmul<A, B, C, S>.launch(s, grid, {da, {x.m, x.k}, sa.strides()}, {db, {x.k, x.n}, sb.strides()}, {dc, {x.m, x.n}},
                            x.blocks);
  s.synchronize();
  const std::vector<C> got = dc.to_vector();
  for (int i = 0; i < x.m; ++i)
    for (int j = 0; j < x.n; ++j) {
      double want = 0, magnitude = 0;
      for (int k = 0; k < x.k; ++k) {
        const double p = real(a[std::size_t(i * x.k + k)]) * real(b[std::size_t(k * x.n + j)]);
        want += p;
        magnitude += std::abs(p);
      }
      ASSERT_NEAR(real(got[std::size_t(i * x.n + j)]), want, relative * magnitude)
          << d.name() << " " << x.m << "x" << x.n << "x" << x.k << " at " << i << ", " << j;
    }
}

}  // namespace kiln::test

// Every awkward extent of a product: pairs of sizes that divide nothing, on every device.
//
// KILN_LINEAR_SHAPES=n runs n combinations of a longer list instead (`KILN_LINEAR_SHAPES=512`: all of it), without the
// limit on the work of one.
#include <cstdlib>

#include "tests/lib/products.h"

namespace kiln::test {
namespace {

namespace epilogue = lib::epilogue;

constexpr std::int64_t kSizes[] = {1, 2, 7, 63, 65, 127, 1000, 4095};
constexpr std::int64_t kMost = std::int64_t(1) << 26;  ///< multiplications of one product

/// Each pair of values of two extents occurs with some third one, if that is little enough work: element (i, j) of a
/// Latin square gives it, and where it is too much the largest that is not.
std::vector<Extents> pairwise() {
  std::vector<Extents> all;
  const auto add = [&](int fixed, std::int64_t a, std::int64_t b, std::size_t third) {
    for (std::size_t t = third + 1; t-- > 0;) {
      const std::int64_t c = kSizes[t];
      if (a * b * c > kMost) continue;
      const Extents e = fixed == 0 ? Extents{c, a, b} : fixed == 1 ? Extents{a, c, b} : Extents{a, b, c};
      const auto same = [&](const Extents& o) { return o.m == e.m && o.n == e.n && o.k == e.k; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(e);
      return;
    }
  };
  for (int fixed : {0, 1, 2})
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t j = 0; j < 8; ++j) add(fixed, kSizes[i], kSizes[j], (i + j) % 8);
  return all;
}

std::vector<Extents> shapes() {
  const char* count = std::getenv("KILN_LINEAR_SHAPES");
  if (!count) return pairwise();
  std::vector<Extents> all;
  for (int i = 0; i < 512; ++i) all.push_back({kSizes[i * 37 % 512 / 64], kSizes[i * 37 % 64 / 8], kSizes[i * 37 % 8]});
  all.resize(std::min<std::size_t>(all.size(), std::size_t(std::atoi(count))));
  return all;
}

/// Elements of small whole numbers, so that sums are exact and every element can be compared with a sum of integers.
std::vector<double> whole_numbers(std::int64_t n, std::uint32_t seed) {
  std::vector<double> v(static_cast<std::size_t>(n));
  std::uint32_t state = seed;
  for (double& x : v) {
    state = state * 1664525u + 1013904223u;
    x = double(state >> 29) - 3;
  }
  return v;
}

/// The exact result at some elements: the corners and others all over. `aligned`: rows begin at multiples of 16 bytes,
/// as tensor maps want them.
template <class T>
void check(const Device& d, const Extents& e, bool aligned) {
  SCOPED_TRACE(testing::PrintToString(e));
  const auto xs = whole_numbers(e.m * e.k, 1), ws = whole_numbers(e.n * e.k, 2), bias = whole_numbers(e.n, 3);
  const std::int64_t gap = aligned ? -e.k & (16 / std::int64_t(sizeof(T)) - 1) : 1;
  const Operand<T> x(d, e.m, e.k, xs, gap), w(d, e.n, e.k, ws, gap);
  Operand<float> y(d, e.m, e.n, 1);
  lib::linear<T>(x, w)
      .then(epilogue::bias<T>(Weights<T>(d, bias)))
      .then(epilogue::relu)
      .template run<float>(Stream(d), y);
  const std::vector<double> got = y.values();
  const std::int64_t some = std::min<std::int64_t>(e.m * e.n, 20'000'000 / (e.k + 100) + 64);
  for (std::int64_t s = 0; s < some; ++s) {
    const std::int64_t at = some == e.m * e.n ? s : e.m * e.n - 1 - s * (e.m * e.n - 1) / (some - 1), i = at / e.n,
                       j = at % e.n;
    double want = bias[std::size_t(j)];
    for (std::int64_t k = 0; k < e.k; ++k) want += xs[std::size_t(i * e.k + k)] * ws[std::size_t(j * e.k + k)];
    ASSERT_EQ(got[std::size_t(at)], std::max(want, 0.0)) << "row " << i << ", column " << j;
  }
  y.expect_rest_untouched();
}

TEST(LinearShapes, EveryPairOfAwkwardExtents) {
  const auto all = shapes();
  EXPECT_GE(all.size(), std::getenv("KILN_LINEAR_SHAPES") ? 1u : 100u);
  on_each_device([&](const Device& d) {
    for (const Extents& e : all) {
      // The interpreter adds one product after the other: it has the small ones.
      if (d.kind() == DeviceKind::Interpreter && e.m * e.n * e.k > kMost / 64) continue;
      check<bf16>(d, e, true);
      if (d.kind() != DeviceKind::Interpreter && e.m * e.n * e.k <= kMost / 8) check<bf16>(d, e, false);
      if (HasFatalFailure()) return;
    }
  });
}

}  // namespace
}  // namespace kiln::test

// Random chains of the ops that rearrange tiles, on random shapes and dtypes: the interpreter, the simulator and every
// GPU found give the same bits. KILN_TEST_SHAPE_SEED and KILN_TEST_SHAPE_COUNT choose other and more chains.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "dsl/kiln.h"
#include "tests/support/devices.h"

namespace kiln::test {
namespace {

constexpr int kMostElements = 2048;

/// What a chain decides, from one seed. Runs while tracing, so it sees the shapes that the ops gave.
class Chain {
 public:
  explicit Chain(unsigned seed) : random_(seed) {}

  int below(std::int64_t n) { return int(random_() % std::uint64_t(n)); }

  DType dtype() {
    constexpr DType kAll[] = {DType::i32, DType::f32, DType::i8,  DType::u8,   DType::i1,   DType::f16,
                              DType::f64, DType::i64, DType::u16, DType::bf16, DType::index};
    return kAll[below(std::size(kAll))];
  }

  /// Extents with this product: its prime factors, dealt to up to five axes.
  Shape shape_of(std::int64_t elements) {
    std::vector<std::int64_t> extents(std::size_t(1 + below(5)), 1);
    for (std::int64_t p = 2; elements > 1;)
      if (elements % p == 0) extents[std::size_t(below(std::int64_t(extents.size())))] *= p, elements /= p;
      else ++p;
    return Shape(extents);
  }

  int axis(const Tile& x) { return below(x.rank()); }

  Tile step(const Tile& x) {
    const int k = axis(x);
    const std::int64_t extent = x.extent(k);
    const bool small = 2 * elements(x) <= kMostElements;
    switch (below(8)) {
      case 0: return reshape(x, shape_of(elements(x)));
      case 1: {
        std::vector<int> order(std::size_t(x.rank()));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = int(i);
        std::shuffle(order.begin(), order.end(), random_);
        return permute(x, order);
      }
      case 2: return flip(x, k);
      case 3: {
        const int start = below(extent);
        return slice(x, k, start, start + 1 + below(extent - start));
      }
      case 4: return small ? cat(x, slice(flip(x, k), k, 0, 1 + below(extent)), k) : flip(x, k);
      case 5: return small && x.rank() < 5 ? join(x, flip(x, k)) : x;
      case 6: {
        if (elements(x) % 2 != 0) return flip(x, k);
        const auto [a, b] = split(reshape(x, {-1, 2}));
        return below(2) ? a : cat(b, a, 0);
      }
      default: {
        const Shape shape = x.shape();
        std::vector<std::int64_t> places = shape.extents();
        if (below(2))
          places[std::size_t(k)] =
              std::min<std::int64_t>(1 + below(2 * extent), 1 + kMostElements / (elements(x) / extent));
        std::int64_t n = 1;
        for (std::int64_t e : places) n *= e;
        const Tile picks = reshape(arange(n) * (3 + below(7)) % int(extent + 2) - 1, Shape(places));
        return gather(x, below(2) ? picks.cast(i32) : picks, k);
      }
    }
  }

  static std::int64_t elements(const Tile& x) {
    const Shape shape = x.shape();
    std::int64_t n = 1;
    for (std::int64_t e : shape.extents()) n *= e;
    return n;
  }

 private:
  std::mt19937_64 random_;
};

auto chain_kernel(unsigned seed) {
  return kernel("chain", [seed](In<int> in, Out<std::int64_t> out) {
    Chain c(seed);
    const int n = 1 + c.below(c.below(3) ? 600 : 64);
    const DType d = c.dtype();
    Tile x = reshape(load(in + arange(n)).cast(d), c.shape_of(n));
    for (int steps = 3 + c.below(4); steps > 0; --steps) x = c.step(x);
    const Tile all = ravel(x);
    store(out + arange(all.extent(0)), all.cast(i64));
  });
}

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

TEST(ShapeRandom, ChainsGiveTheSameBitsOnEveryDevice) {
  const int first = setting("KILN_TEST_SHAPE_SEED", 1), count = setting("KILN_TEST_SHAPE_COUNT", 120);
  std::vector<int> in(1024);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = int(i * 2654435761u % 101);
  for (int seed = first; seed < first + count; ++seed) {
    auto k = chain_kernel(unsigned(seed));
    std::vector<std::int64_t> expected;
    on_each_device([&](const Device& d) {
      Buffer<int> x = buffer_of(d, in);
      Buffer<std::int64_t> y = buffer_of(d, std::vector<std::int64_t>(4 * kMostElements, -7));
      Stream s(d);
      k.with({.num_warps = 1 << seed % 4}).launch(s, 1, x, y);
      s.synchronize();
      const std::vector<std::int64_t> got = y.to_vector();
      if (expected.empty()) expected = got;
      EXPECT_EQ(got, expected) << "seed " << seed << "\n" << k.trace(x, y).text();
    });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace kiln::test

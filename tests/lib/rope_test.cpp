// Rotary position embedding against double precision: both ways to pair elements, positions that are in no table.
#include "dsl/lib/rope.h"

#include <algorithm>

#include "tests/lib/real_types.h"
#include "tests/lib/rows.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

using lib::Pairs;
constexpr std::int64_t kKnown = 9;  ///< positions in the tables

/// tokens x heads x dim elements; `gap` elements between the heads, and as many more between the tokens.
struct Extent {
  std::int64_t tokens, heads, dim, gap = 0, offset = 0;
};

template <class T>
void check(const Device& device, Extent e, Pairs pairs, const std::vector<std::int32_t>& positions,
           bool in_place = false) {
  SCOPED_TRACE(std::to_string(e.tokens) + "x" + std::to_string(e.heads) + "x" + std::to_string(e.dim) +
               (pairs == Pairs::halves ? " halves" : " interleaved"));
  const std::int64_t head = e.dim + e.gap, token = e.heads * head + e.gap, half = e.dim / 2;
  const std::vector<double> c = numbers<float>(std::size_t(kKnown * half), 1, 1);
  const std::vector<double> s = numbers<float>(std::size_t(kKnown * half), 2, 1);
  Rows<float> cosines(device, {kKnown, half}, c), sines(device, {kKnown, half}, s);
  const Shape shape{1, e.tokens * token, 0, e.offset};  // the gaps are elements, which must stay
  const std::vector<double> x = numbers<T>(std::size_t(shape.cols), 3);
  Rows<T> from(device, shape, x), to(device, shape, x);
  Rows<T>& result = in_place ? from : to;
  const auto part = [&](Rows<T>& r) {
    const lib::Matrix<T> m = r;
    return TypedPtr<T>{m.data.address, std::size_t(shape.cols)};
  };
  const lib::Heads<const T> in(part(from), {e.tokens, e.heads, e.dim}, {token, head, 1});
  const lib::Heads<T> out(part(result), {e.tokens, e.heads, e.dim}, {token, head, 1});
  const Stream stream(device);
  if (positions.empty()) {
    lib::rope<T>(stream, in, cosines, sines, out, pairs);
  } else {
    const Buffer<std::int32_t> p = buffer_of(device, positions);
    lib::rope<T>(stream, in, cosines, sines, {p, {e.tokens}}, out, pairs);
  }
  std::vector<double> want = x, size(x.size());
  for (std::int64_t t = 0; t < e.tokens; ++t)
    for (std::int64_t h = 0; h < e.heads; ++h)
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t p = positions.empty() ? t : positions[std::size_t(t)];
        const std::int64_t first = t * token + h * head;
        const auto a = std::size_t(first + (pairs == Pairs::halves ? i : 2 * i));
        const auto b = std::size_t(first + (pairs == Pairs::halves ? i + half : 2 * i + 1));
        const bool known = p >= 0 && p < kKnown;
        const double cosine = known ? c[std::size_t(p * half + i)] : kNaN;
        const double sine = known ? s[std::size_t(p * half + i)] : kNaN;
        want[a] = x[a] * cosine - x[b] * sine;
        want[b] = x[b] * cosine + x[a] * sine;
        size[a] = std::abs(x[a] * cosine) + std::abs(x[b] * sine);
        size[b] = std::abs(x[b] * cosine) + std::abs(x[a] * sine);
      }
  expect_within(result.values(), want, [&](std::size_t i) {
    return 0x1p-23 * size[i] + (sizeof(T) == 4 || size[i] == 0 ? 0 : ulp<T>(want[i]) / 2);
  });
  result.expect_rest_untouched();
}

template <class T>
class Rope : public testing::Test {};
TYPED_TEST_SUITE(Rope, RealTypes, RealTypeNames);

TYPED_TEST(Rope, HeadsOfEverySize) {
  on_each_device([](const Device& d) {
    for (Pairs pairs : {Pairs::halves, Pairs::interleaved})
      for (Extent e : {Extent{1, 1, 2}, Extent{3, 2, 6}, Extent{2, 3, 64}, Extent{2, 5, 96}, Extent{2, 33, 128},
                       Extent{1, 1, 254}, Extent{1, 2, 2050}})
        check<TypeParam>(d, e, pairs, {});
  });
}

TYPED_TEST(Rope, HeadsAnywhereInMemoryAndInPlace) {
  on_each_device([](const Device& d) {
    for (Pairs pairs : {Pairs::halves, Pairs::interleaved})
      for (bool in_place : {false, true}) {
        check<TypeParam>(d, {2, 3, 64, 128, 16}, pairs, {}, in_place);
        check<TypeParam>(d, {2, 3, 10, 3, 1}, pairs, {}, in_place);
      }
  });
}

TYPED_TEST(Rope, PositionsOfAnyTokenAndOfNone) {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  on_each_device([&](const Device& d) {
    for (Pairs pairs : {Pairs::halves, Pairs::interleaved}) {
      check<TypeParam>(d, {8, 2, 32}, pairs, {8, 0, 5, 5, -1, 9, most, -most - 1});
      check<TypeParam>(d, {11, 1, 4}, pairs, {});  // tokens 9 and 10 are in no table
    }
  });
}

TEST(RopeErrors, ShapesThatDoNotFit) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 48), c(d, 48);
  Buffer<std::int32_t> p(d, 4);
  expect_user_error(
      [&] {
        lib::rope<float>(s, {x, {2, 3, 8}}, {c, {9, 4}}, {c, {9, 4}}, {x, {2, 4, 6}});
      },
      "rope: y is 2x4x6, but x is 2x3x8: they must have one shape", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rope<float>(s, {x, {2, 3, 7}}, {c, {9, 4}}, {c, {9, 4}}, {x, {2, 3, 7}});
      },
      "rope: dim is 7, must be even", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rope<float>(s, {x, {2, 3, 8}}, {c, {9, 8}}, {c, {9, 8}}, {x, {2, 3, 8}});
      },
      "rope: cosines has 8 columns, must have 4 for a dim of 8", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rope<float>(s, {x, {2, 3, 8}}, {c, {9, 4}}, {c, {8, 4}}, {x, {2, 3, 8}});
      },
      "rope: sines is 8x4, but cosines is 9x4: they must have one shape", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rope<float>(s, {x, {2, 3, 8}}, {c, {9, 4}}, {c, {9, 4}}, {p, {3}}, {x, {2, 3, 8}});
      },
      "rope: positions has 3 elements, must have 2", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::rope<float>(s, {x, {2, 1, 8}, {1, 1, 2}}, {c, {9, 4}}, {c, {9, 4}}, {x, {2, 1, 8}});
      },
      "rope: the elements of a head of x are 2 apart, must be 1", __FILE__, __LINE__ - 2);
}

TEST(RopeErrors, NothingIsLaunchedForNoElements) {
  on_each_device([](const Device& d) {
    d.reset_counters();
    Buffer<float> none(d, 0), c(d, 36);
    const Stream s(d);
    lib::rope<float>(s, {none, {0, 3, 8}}, {c, {9, 4}}, {c, {9, 4}}, {none, {0, 3, 8}});
    lib::rope<float>(s, {none, {3, 0, 8}}, {c, {9, 4}}, {c, {9, 4}}, {none, {3, 0, 8}});
    lib::rope<float>(s, {none, {3, 2, 0}}, {c, {9, 0}}, {c, {9, 0}}, {none, {3, 2, 0}});
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

}  // namespace
}  // namespace kiln::test

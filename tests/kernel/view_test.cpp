// Views of any rank, stride and size: every element against coordinates written out here, what lies outside of the
// array, and the accesses that the generated code makes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class Views : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Views);

std::vector<float> iota(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.f);
  return v;
}

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

// --- what lies outside -----------------------------------------------------------------------------------------------
TEST_P(Views, PaddingIsAnyValue) {
  auto k = kernel("pads", [](View<const float, 1> x, View<float, 2> o) {
    const float pads[] = {0.f, 1.f, kNaN, -kInf, -0.f, 3.5f};
    for (int i = 0; i < 6; ++i) o.store({i, 0}, expand(x.load({-1}, {4}, pads[i]), 0));
  });
  Buffer<float> x = buffer_of(device(), std::vector<float>{7, 8}), o(device(), 24);
  k.launch(Stream(device()), 1, {x, {2}}, {o, {6, 4}});
  const float pads[] = {0.f, 1.f, kNaN, -kInf, -0.f, 3.5f};
  const std::vector<float> got = o.to_vector();
  for (std::size_t i = 0; i < 24; ++i) {
    const float want = i % 4 == 1 ? 7.f : i % 4 == 2 ? 8.f : pads[i / 4];
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got[i]) : got[i] == want) << i << ": " << got[i];
    EXPECT_TRUE(std::isnan(want) || std::signbit(got[i]) == std::signbit(want)) << i;
  }
}

TEST_P(Views, PaddingOfNarrowTypes) {
  auto k = kernel("narrow", [](View<const f16, 1> h, View<const std::int8_t, 1> b, View<float, 1> o) {
    o.store({0}, h.load({1}, {3}, -kInf).cast(f32));
    o.store({3}, b.load({1}, {3}, -7).cast(f32));
  });
  Buffer<f16> h = buffer_of(device(), std::vector<f16>{f16(1.f), f16(2.f)});
  Buffer<std::int8_t> b = buffer_of(device(), std::vector<std::int8_t>{3, -4});
  Buffer<float> o(device(), 6);
  k.launch(Stream(device()), 1, {h, {2}}, {b, {2}}, {o, {6}});
  EXPECT_EQ(o.to_vector(), (std::vector<float>{2, -kInf, -kInf, -4, -7, -7}));
}

TEST_P(Views, ClampReadsTheNearestElementInside) {
  auto k = kernel("clamp", [](View<const float, 2> x, View<float, 2> o, Int r, Int c) {
    o.store({0, 0}, x.load({r, c}, {4, 5}, clamp_to_edge));
  });
  Buffer<float> x = buffer_of(device(), iota(6)), o(device(), 20);
  const Stream s(device());
  for (const auto& [r, c] : {std::pair{-2, -1}, {0, 1}, {5, 7}, {-9, 1}}) {
    k.launch(s, 1, {x, {2, 3}}, {o, {4, 5}}, r, c);
    const std::vector<float> got = o.to_vector();
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 5; ++j)
        ASSERT_EQ(got[std::size_t(5 * i + j)], float(3 * std::clamp(r + i, 0, 1) + std::clamp(c + j, 0, 2)))
            << r << " " << c << " " << i << " " << j;
  }
}

TEST_P(Views, ClampOfAnEmptyArrayReadsZero) {
  auto k = kernel("empty", [](View<const float, 2> x, View<float, 2> o) {
    o.store({0, 0}, x.load({0, 0}, {2, 2}, clamp_to_edge));
  });
  Buffer<float> x(device(), 4), o = buffer_of(device(), std::vector<float>(4, -1));
  k.launch(Stream(device()), 1, {x, {2, 0}}, {o, {2, 2}});
  EXPECT_EQ(o.to_vector(), std::vector<float>(4, 0));
}

TEST_P(Views, StoresOutsideWriteNothing) {
  auto k = kernel("fill", [](View<float, 2> o, Int r, Int c) { o.store({r, c}, full(f32, {3, 4}, 1)); });
  const Stream s(device());
  for (int r = -4; r <= 6; ++r)
    for (int c : {-5, -2, 0, 3, 6}) {
      Buffer<float> all = buffer_of(device(), std::vector<float>(64, 0));
      Buffer<float> o = Buffer<float>::foreign(device(), all.ptr() + 4 * 8, 30);
      k.launch(s, 1, {o, {5, 6}}, r, c);
      s.synchronize();
      const std::vector<float> got = all.to_vector();
      for (int i = 0; i < 64; ++i) {
        const int row = (i - 8) / 6, column = (i - 8) % 6;
        const bool in = i >= 8 && i < 38 && row >= r && row < r + 3 && column >= c && column < c + 4;
        ASSERT_EQ(got[std::size_t(i)], float(in)) << r << " " << c << " at " << i;
      }
    }
}

// --- ranks, strides --------------------------------------------------------------------------------------------------
// A block that hangs over the array on both sides, of any rank, from an array whose dimensions stand in another order.
template <int N>
struct Copy;
template <>
struct Copy<1> {
  static auto make() {
    return kernel("copy1", [](View<const float, 1> x, View<float, 1> o, Int s) { o.store({0}, x.load({s}, {7}, -1)); });
  }
};
template <>
struct Copy<2> {
  static auto make() {
    return kernel("copy2", [](View<const float, 2> x, View<float, 2> o, Int s) {
      o.store({0, 0}, x.load({s, s}, {7, 3}, -1));
    });
  }
};
template <>
struct Copy<3> {
  static auto make() {
    return kernel("copy3", [](View<const float, 3> x, View<float, 3> o, Int s) {
      o.store({0, 0, 0}, x.load({s, s, s}, {7, 3, 5}, -1));
    });
  }
};
template <>
struct Copy<4> {
  static auto make() {
    return kernel("copy4", [](View<const float, 4> x, View<float, 4> o, Int s) {
      o.store({0, 0, 0, 0}, x.load({s, s, s, s}, {7, 3, 5, 2}, -1));
    });
  }
};
template <>
struct Copy<5> {
  static auto make() {
    return kernel("copy5", [](View<const float, 5> x, View<float, 5> o, Int s) {
      o.store({0, 0, 0, 0, 0}, x.load({s, s, s, s, s}, {7, 3, 5, 2, 4}, -1));
    });
  }
};

template <int N>
void copies_at_every_offset(const Device& device) {
  constexpr std::array<std::int64_t, 5> kBlock{7, 3, 5, 2, 4}, kSize{6, 5, 4, 3, 5};
  std::array<std::int64_t, N> block, size, stride, dense;
  std::int64_t elements = 1, out = 1;
  for (std::size_t d = 0; d < N; ++d) {  // dimension 0 runs fastest in the source
    block[d] = kBlock[d], size[d] = kSize[d];
    stride[d] = elements, elements *= size[d];
  }
  for (std::size_t d = N; d-- > 0;) dense[d] = out, out *= block[d];
  auto k = Copy<N>::make();
  Buffer<float> x = buffer_of(device, iota(std::size_t(elements))), o(device, std::size_t(out));
  const Stream s(device);
  for (int shift : {-1, 0, 1}) {
    k.launch(s, 1, {x, size, stride}, {o, block}, shift);
    s.synchronize();
    const std::vector<float> got = o.to_vector();
    for (std::int64_t i = 0; i < out; ++i) {
      std::int64_t at = 0;
      bool inside = true;
      for (std::size_t d = 0; d < N; ++d) {
        const std::int64_t c = i / dense[d] % block[d] + shift;
        inside &= c >= 0 && c < size[d];
        at += c * stride[d];
      }
      ASSERT_EQ(got[std::size_t(i)], inside ? float(at) : -1.f) << "rank " << N << " shift " << shift << " at " << i;
    }
  }
}

TEST_P(Views, BlocksOfEveryRankFromAnyOrderOfDimensions) {
  copies_at_every_offset<1>(device());
  copies_at_every_offset<2>(device());
  copies_at_every_offset<3>(device());
  copies_at_every_offset<4>(device());
  copies_at_every_offset<5>(device());
}

TEST_P(Views, SubviewsSlicesAndTransposesOfBlocks) {
  auto k = kernel("parts", [](View<const float, 3> x, View<float, 2> o, Int i) {
    o.store({0, 0}, x.slice(i).load({0, 0}, {3, 4}, -1));                                 // x[i, :, :]
    o.store({3, 0}, x.slice<1>(2).trans().sub({1, 0}, {2, 2}).load({0, 0}, {3, 4}, -1));  // x[:, 2, 1:3] transposed
    o.store({6, 0}, x.trans().slice<2>(i).load({0, 0}, {3, 4}, -1));                      // x[:, i, :]
  });
  Buffer<float> x = buffer_of(device(), iota(2 * 3 * 4)), o(device(), 36);
  k.launch(Stream(device()), 1, {x, {2, 3, 4}}, {o, {9, 4}}, 1);
  const auto at = [](int a, int b, int c) { return float((a * 3 + b) * 4 + c); };
  std::vector<float> want(36, -1);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 4; ++c) {
      want[4 * r + c] = at(1, int(r), int(c));
      if (r < 2 && c < 2) want[12 + 4 * r + c] = at(int(c), 2, int(r) + 1);
      if (r < 2) want[24 + 4 * r + c] = at(int(r), 1, int(c));
    }
  EXPECT_EQ(o.to_vector(), want);
}

TEST_P(Views, OverlappingElementsAreOneElement) {
  auto k = kernel("windows", [](View<const float, 2> x, View<float, 2> o) {
    o.store({0, 0}, x.load({0, 0}, {5, 3}) * 2);
  });
  Buffer<float> x = buffer_of(device(), iota(7)), o(device(), 15);
  k.launch(Stream(device()), 1, {x, {5, 3}, {1, 1}}, {o, {5, 3}});
  std::vector<float> want;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 3; ++j) want.push_back(float(2 * (i + j)));
  EXPECT_EQ(o.to_vector(), want);
}

// 512 experts of 2048 x 4096: elements beyond 2^31.
TEST_P(Views, OffsetsBeyond32Bits) {
  auto k = kernel("experts", [](View<std::uint8_t, 3> w, View<std::uint8_t, 1> o, Int expert, Int row) {
    w.store({expert, row, 4080}, reshape(arange(16) + 1, {1, 1, 16}).cast(u8));
    o.store({0}, ravel(w.load({expert, row, 4078}, {1, 1, 20}, 99)));
    o.put({20}, w.slice(expert).at({row, 4090}));
    o.put({21}, w.sub({expert, row, 4088}, {1, 1, 8}).at({0, 0, 7}));
  });
  Buffer<std::uint8_t> w, o(device(), 22);
  try {
    w = Buffer<std::uint8_t>(device(), std::size_t(512) * 2048 * 4096);
  } catch (const DeviceError& e) {
    GTEST_SKIP() << "needs 4 GiB of device memory: " << e.what();
  }
  const Stream s(device());
  for (const auto& [expert, row] : {std::pair{511, 2047}, {256, 0}, {255, 2047}, {0, 3}}) {
    const std::int64_t start = (std::int64_t(expert) * 2048 + row) * 4096 + 4078;
    Buffer<std::uint8_t>::foreign(device(), w.ptr() + std::uint64_t(start), 2).upload(std::vector<std::uint8_t>{0, 0});
    k.launch(s, 1, {w, {512, 2048, 4096}}, {o, {22}}, expert, row);
    s.synchronize();
    EXPECT_EQ(o.to_vector(),
              (std::vector<std::uint8_t>{0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 99, 99, 11, 16}))
        << expert;
  }
}

// A stride of 1185 floats is no multiple of a vector.
TEST_P(Views, RowsOfAnOddStrideAreNotTakenAsAligned) {
  auto k = kernel("odd", [](View<float, 2> o) {
    Tile r = expand(arange(8), 1), c = arange(64);
    o.store({0, 0}, (r * 64 + c).cast(f32));
  });
  Buffer<float> o = buffer_of(device(), std::vector<float>(1185 * 8, -1));
  k.launch(Stream(device()), 1, {o, {8, 64}, {1185, 1}});
  const std::vector<float> got = o.to_vector();
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], i % 1185 < 64 ? float(i / 1185 * 64 + i % 1185) : -1.f) << i;
}

TEST_P(Views, BroadcastsOfWidths24And40) {
  auto k = kernel("broadcast", [](View<const float, 1> x, View<float, 2> a, View<float, 2> b) {
    a.store({0, 0}, broadcast_to(expand(x.load({0}, {5}), 1), {5, 24}));
    b.store({0, 0}, broadcast_to(x.load({0}, {40}), {3, 40}));
  });
  Buffer<float> x = buffer_of(device(), iota(40)), a(device(), 120), b(device(), 120);
  k.launch(Stream(device()), 1, {x, {40}}, {a, {5, 24}}, {b, {3, 40}});
  const std::vector<float> ga = a.to_vector(), gb = b.to_vector();
  for (std::size_t i = 0; i < 120; ++i) {
    ASSERT_EQ(ga[i], float(i / 24));
    ASSERT_EQ(gb[i], float(i % 40));
  }
}

// Two guards, one inside the other, around vector accesses.
TEST_P(Views, NestedGuardsOnBothDimensions) {
  auto k = kernel("guards", [](View<const float, 2> x, View<float, 2> o, Int rows, Int cols) {
    Scalar m = program_id(1) * 8, n = program_id(0) * 16;
    const View<const float, 2> part = x.sub({0, 0}, {rows, cols});
    o.sub({0, 0}, {rows, cols}).store({m, n}, part.load({m, n}, {8, 16}, 50) + 1);
  });
  Buffer<float> x = buffer_of(device(), iota(32 * 32));
  const Stream s(device());
  for (const auto& [rows, cols] : {std::pair{32, 32}, {31, 29}, {17, 4}, {1, 1}, {0, 5}}) {
    Buffer<float> o = buffer_of(device(), std::vector<float>(32 * 32, -1));
    k.launch(s, {2, 4}, {x, {32, 32}}, {o, {32, 32}}, rows, cols);
    s.synchronize();
    const std::vector<float> got = o.to_vector();
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], int(i) / 32 < rows && int(i) % 32 < cols ? float(i) + 1 : -1.f)
          << rows << "x" << cols << " " << i;
  }
}

TEST_P(Views, AllProgramsOfTwentyFourRows) {
  auto k = kernel("rows", [](View<const float, 2> x, View<float, 2> o) {
    Scalar r = program_id(0) * 8;
    o.store({r, 0}, x.load({r, 0}, {8, 5}) + 1);
  });
  Buffer<float> x = buffer_of(device(), iota(120)), o(device(), 120);
  k.launch(Stream(device()), 3, {x, {24, 5}}, {o, {24, 5}});
  const std::vector<float> got = o.to_vector();
  for (std::size_t i = 0; i < 120; ++i) ASSERT_EQ(got[i], float(i) + 1);
}

// --- the code --------------------------------------------------------------------------------------------------------
int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

constinit auto copy = kernel("copy", [](View<const float, 2> x, View<float, 2> o, Const<int> BM, Const<int> BN) {
  Scalar r = program_id(1) * BM, c = program_id(0) * BN;
  o.store({r, c}, x.load({r, c}, {BM, BN}));
});

TEST(ViewCode, DivisibleSizesGiveSixteenByteAccessesAndOneMaskARow) {
  const Device d = Device::simulator();
  Buffer<float> x(d, 64 * 128), o(d, 64 * 128);
  const std::string ptx = copy.image(d, {x, {64, 128}}, {o, {64, 128}}, 16, 128).ptx;
  // 2048 elements on 256 threads: two vectors a thread, in two rows and one column of vectors.
  EXPECT_EQ(count(ptx, "ld.global"), 2) << ptx;
  EXPECT_EQ(count(ptx, "ld.global.v4"), 2);
  EXPECT_EQ(count(ptx, "st.global"), 2);
  EXPECT_EQ(count(ptx, "st.global.v4"), 2);
  EXPECT_EQ(count(ptx, "setp."), 6) << "two rows and a column, of each view\n" << ptx;
}

TEST(ViewCode, OddStridesGiveScalarAccesses) {
  const Device d = Device::simulator();
  Buffer<float> x(d, 64 * 128), o(d, 64 * 128);
  const std::string ptx = copy.image(d, {x, {63, 127}, {127, 1}}, {o, {64, 128}}, 16, 128).ptx;
  EXPECT_EQ(count(ptx, "ld.global.v"), 0);
}

}  // namespace

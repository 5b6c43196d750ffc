// The functions of the language that rearrange tiles, on every device, against coordinates written out here; their
// errors; and where the generated code needs no exchange between threads.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;
using kiln::test::expect_user_error;
using Coord = std::vector<std::int64_t>;

class Shapes : public EveryDevice {
 protected:
  /// Runs `k` on 0, 1, 2, … and gives the first n numbers of its output.
  template <class K>
  std::vector<int> run(const K& k, std::size_t n) const {
    std::vector<int> in(4096);
    std::iota(in.begin(), in.end(), 0);
    Buffer<int> x = buffer_of(device(), in), o = buffer_of(device(), std::vector<int>(n + 16, -99));
    Stream s(device());
    k.launch(s, 1, x, o);
    s.synchronize();
    std::vector<int> out = o.to_vector();
    for (std::size_t i = n; i < out.size(); ++i) EXPECT_EQ(out[i], -99) << "wrote behind the result";
    out.resize(n);
    return out;
  }
};
KILN_ON_EVERY_DEVICE(Shapes);

/// 0, 1, 2, … as a tile of `shape`.
Tile counted(const In<int>& x, const Shape& shape) {
  std::int64_t n = 1;
  for (int a = 0; a < shape.rank(); ++a) n *= shape[a];
  return reshape(load(x + arange(n)), shape);
}
void give(const Out<int>& o, const Tile& t) {
  const Tile all = ravel(t);
  store(o + arange(all.extent(0)), all);
}

std::int64_t elements(const Coord& s) {
  return std::accumulate(s.begin(), s.end(), std::int64_t(1), std::multiplies<std::int64_t>());
}
Coord coord(const Coord& s, std::int64_t i) {
  Coord c(s.size());
  for (std::size_t a = s.size(); a-- > 0; i /= s[a]) c[a] = i % s[a];
  return c;
}
int number(const Coord& s, const Coord& c) {
  std::int64_t i = 0;
  for (std::size_t a = 0; a < s.size(); ++a) i = i * s[a] + c[a];
  return int(i);
}
/// What `result` must hold when element c of it is element source(c) of a counted tile x.
std::vector<int> moved(const Coord& result, const Coord& x, const std::function<Coord(Coord)>& source) {
  std::vector<int> v;
  for (std::int64_t i = 0; i < elements(result); ++i) v.push_back(number(x, source(coord(result, i))));
  return v;
}

// --- values ----------------------------------------------------------------------------------------------------------
TEST_P(Shapes, ReshapeKeepsTheRowMajorOrder) {
  const auto counting = moved({60}, {60}, [](Coord c) { return c; });
  EXPECT_EQ(run(kernel("a",
                       [](In<int> x, Out<int> o) {
                         give(o, reshape(counted(x, {3, 4, 5}), {5, -1}));
                       }),
                60),
            counting);
  EXPECT_EQ(run(kernel("b",
                       [](In<int> x, Out<int> o) {
                         give(o, reshape(counted(x, {60}), {2, 1, 15, 2, 1}));
                       }),
                60),
            counting);
  EXPECT_EQ(run(kernel("c",
                       [](In<int> x, Out<int> o) {
                         give(o, squeeze(expand(counted(x, {5, 12}), 1), -2));
                       }),
                60),
            counting);
  EXPECT_EQ(run(kernel("d",
                       [](In<int> x, Out<int> o) {
                         give(o, trans(reshape(trans(counted(x, {64, 32})), {32, 8, 8})));
                       }),
                2048),
            moved({32, 8, 8}, {64, 32}, [](Coord c) {
              return Coord{c[2] * 8 + c[1], c[0]};
            }));
}

TEST_P(Shapes, PermuteAndTransposeOfAnyRank) {
  EXPECT_EQ(run(kernel("t",
                       [](In<int> x, Out<int> o) {
                         give(o, trans(counted(x, {3, 5})));
                       }),
                15),
            moved({5, 3}, {3, 5}, [](Coord c) {
              return Coord{c[1], c[0]};
            }));
  EXPECT_EQ(run(kernel("p",
                       [](In<int> x, Out<int> o) {
                         give(o, permute(counted(x, {2, 3, 5}), {2, 0, 1}));
                       }),
                30),
            moved({5, 2, 3}, {2, 3, 5}, [](Coord c) {
              return Coord{c[1], c[2], c[0]};
            }));
  EXPECT_EQ(run(kernel("n",
                       [](In<int> x, Out<int> o) {
                         give(o, permute(counted(x, {2, 3, 4, 1, 5}), {-1, 1, 3, 0, 2}));
                       }),
                120),
            moved({5, 3, 1, 2, 4}, {2, 3, 4, 1, 5}, [](Coord c) {
              return Coord{c[3], c[1], c[4], c[2], c[0]};
            }));
}

TEST_P(Shapes, JoinAndSplitAreInverse) {
  EXPECT_EQ(run(kernel("j",
                       [](In<int> x, Out<int> o) {
                         Tile a = counted(x, {3, 5});
                         give(o, join(a, -a));
                       }),
                30),
            [] {
              std::vector<int> v;
              for (int i = 0; i < 30; ++i) v.push_back(i % 2 ? -(i / 2) : i / 2);
              return v;
            }());
  EXPECT_EQ(run(kernel("s",
                       [](In<int> x, Out<int> o) {
                         auto [even, odd] = split(counted(x, {7, 2}));
                         give(o, cat(odd * 100, even, 0));
                       }),
                14),
            (std::vector<int>{100, 300, 500, 700, 900, 1100, 1300, 0, 2, 4, 6, 8, 10, 12}));
}

TEST_P(Shapes, SliceAtAnyPositionAlongAnyAxis) {
  const Coord whole{12, 10};
  EXPECT_EQ(run(kernel("a",
                       [](In<int> x, Out<int> o) {
                         give(o, slice(counted(x, {12, 10}), 0, 3, 10));
                       }),
                70),
            moved({7, 10}, whole, [](Coord c) {
              return Coord{c[0] + 3, c[1]};
            }));
  EXPECT_EQ(run(kernel("b",
                       [](In<int> x, Out<int> o) {
                         give(o, slice(counted(x, {12, 10}), -1, 8, 10));
                       }),
                24),
            moved({12, 2}, whole, [](Coord c) {
              return Coord{c[0], c[1] + 8};
            }));
  EXPECT_EQ(run(kernel("c", [](In<int> x, Out<int> o) { give(o, slice(counted(x, {1024}), 0, 1000, 1001)); }), 1),
            std::vector<int>{1000});
}

TEST_P(Shapes, CatOfTilesOfAnyExtents) {
  EXPECT_EQ(run(kernel("a",
                       [](In<int> x, Out<int> o) {
                         Tile a = counted(x, {3, 5}), b = counted(x, {3, 2});
                         give(o, cat(a, b + 100, 1));
                       }),
                21),
            (std::vector<int>{0, 1, 2, 3, 4, 100, 101, 5, 6, 7, 8, 9, 102, 103, 10, 11, 12, 13, 14, 104, 105}));
  EXPECT_EQ(run(kernel("b",
                       [](In<int> x, Out<int> o) {
                         std::vector<Tile> parts;
                         for (int i = 1; i <= 5; ++i) parts.push_back(counted(x, {i}) + 10 * i);
                         give(o, cat(parts, 0));
                         parts.clear();
                       }),
                15),
            (std::vector<int>{10, 20, 21, 30, 31, 32, 40, 41, 42, 43, 50, 51, 52, 53, 54}));
}

TEST_P(Shapes, FlipOfPowersOfTwoAndOthers) {
  for (auto& k : {std::pair{64, 0}, {13, 0}}) {
    const auto got = k.first == 64
                         ? run(kernel("f", [](In<int> x, Out<int> o) { give(o, flip(counted(x, {64}), 0)); }), 64)
                         : run(kernel("g", [](In<int> x, Out<int> o) { give(o, flip(counted(x, {13}), -1)); }), 13);
    EXPECT_EQ(got, moved({k.first}, {k.first}, [&](Coord c) { return Coord{k.first - 1 - c[0]}; }));
  }
  EXPECT_EQ(run(kernel("h",
                       [](In<int> x, Out<int> o) {
                         give(o, flip(counted(x, {6, 5, 8}), 1));
                       }),
                240),
            moved({6, 5, 8}, {6, 5, 8}, [](Coord c) {
              return Coord{c[0], 4 - c[1], c[2]};
            }));
}

TEST_P(Shapes, GatherAlongAnyAxisIsZeroOutside) {
  EXPECT_EQ(run(kernel("a",
                       [](In<int> x, Out<int> o) {
                         Tile picks = expand(arange(9), 0) * 2 - 3 + expand(arange(3), 1);  // row r: r-3, r-1, …
                         give(o, gather(counted(x, {3, 10}) + 500, picks, 1));
                       }),
                27),
            [] {
              std::vector<int> v;
              for (int r = 0; r < 3; ++r)
                for (int i = 0; i < 9; ++i) {
                  const int at = r - 3 + 2 * i;
                  v.push_back(at >= 0 && at < 10 ? 500 + 10 * r + at : 0);
                }
              return v;
            }());
  EXPECT_EQ(run(kernel("b",
                       [](In<int> x, Out<int> o) {
                         Tile rows = broadcast_to(expand(flip(arange(5), 0).cast(i8), 1), {5, 4});
                         give(o, gather(counted(x, {5, 4}), rows, -2));
                       }),
                20),
            moved({5, 4}, {5, 4}, [](Coord c) {
              return Coord{4 - c[0], c[1]};
            }));
  EXPECT_EQ(run(kernel("c",
                       [](In<int> x, Out<int> o) {  // beyond the width of the index type, and negative ones
                         Tile picks = cat((arange(4) * 100).cast(u8), full(u8, {2}, 255), 0);
                         give(o, cat(gather(counted(x, {300}), picks, 0),
                                     gather(counted(x, {300}), picks.bitcast(i8), 0), 0));
                       }),
                12),
            (std::vector<int>{0, 100, 200, 44, 255, 255, 0, 100, 0, 44, 0, 0}));
}

TEST_P(Shapes, GatherWithinAWarp) {
  const auto want = [] {
    std::vector<int> v;
    for (int i = 0; i < 48; ++i) v.push_back(i * 7 % 50 < 48 ? i * 7 % 50 + 1000 : 0);
    return v;
  }();
  auto k = kernel("w", [](In<int> x, Out<int> o) {
    Tile i = arange(48);
    give(o, gather(counted(x, {48}) + 1000, i * 7 % 50, 0));
    give(o, gather((counted(x, {48}) + 1000).cast(i64), (i * 7 % 50).cast(u8), 0).cast(i32));
  });
  for (int warps : {1, 2, 4}) EXPECT_EQ(run(k.with({.num_warps = warps}), 48), want) << warps;
  auto rows = kernel("rows", [](In<int> x, Out<int> o) {
    Tile picks = expand(arange(6), 1) + expand(arange(16), 0);
    give(o, gather(counted(x, {6, 16}), picks % 17 - 1, 1));
  });
  EXPECT_EQ(run(rows.with({.num_warps = 1}), 96), [] {
    std::vector<int> v;
    for (int r = 0; r < 6; ++r)
      for (int i = 0; i < 16; ++i) v.push_back((r + i) % 17 == 0 ? 0 : 16 * r + (r + i) % 17 - 1);
    return v;
  }());
}

TEST_P(Shapes, PointersIndicesFlagsAndBytesMoveToo) {
  EXPECT_EQ(run(kernel("pointers",
                       [](In<int> x, Out<int> o) {
                         Tile at = flip(reshape(x + arange(15), {3, 5}), 1);
                         give(o, load(trans(at)));
                       }),
                15),
            moved({5, 3}, {3, 5}, [](Coord c) {
              return Coord{c[1], 4 - c[0]};
            }));
  EXPECT_EQ(run(kernel("flags",
                       [](In<int> x, Out<int> o) {
                         Tile odd = counted(x, {3, 5}) % 2 == 1;
                         give(o, cat(flip(odd, 1), odd, 0).cast(i32));
                       }),
                30),
            [] {
              std::vector<int> v;
              for (int i = 0; i < 15; ++i) v.push_back((i / 5 * 5 + 4 - i % 5) % 2);
              for (int i = 0; i < 15; ++i) v.push_back(i % 2);
              return v;
            }());
  EXPECT_EQ(
      run(kernel("bytes", [](In<int> x, Out<int> o) { give(o, flip(counted(x, {100}).cast(i8), 0).cast(i32)); }), 100),
      moved({100}, {100}, [](Coord c) { return Coord{99 - c[0]}; }));
}

// A rotation of halves, as rotary embeddings have it.
TEST_P(Shapes, HalvesOfRowsAreRotated) {
  EXPECT_EQ(run(kernel("rotate",
                       [](In<int> x, Out<int> o) {
                         Tile rows = counted(x, {8, 64});
                         Tile first = slice(rows, 1, 0, 32), second = slice(rows, 1, 32, 64);
                         give(o, cat(-second, first, 1));
                       }),
                512),
            [] {
              std::vector<int> v;
              for (int r = 0; r < 8; ++r)
                for (int i = 0; i < 64; ++i) v.push_back(i < 32 ? -(64 * r + i + 32) : 64 * r + i - 32);
              return v;
            }());
}

// x += flip(x): the values of the unmodified x.
TEST_P(Shapes, FlipReadsTheUnmodifiedTile) {
  auto k = kernel("add_flip", [](InOut<float> x) {
    Tile at = x + arange(1000), v = load(at);
    store(at, v + flip(v, 0));
  });
  std::vector<float> in(1000);
  std::iota(in.begin(), in.end(), 0.f);
  Buffer<float> x = buffer_of(device(), in);
  k.launch(Stream(device()), 1, x);
  EXPECT_EQ(x.to_vector(), std::vector<float>(1000, 999.f));
}

// --- errors ----------------------------------------------------------------------------------------------------------
// clang-format off: each expectation takes its own line
TEST(ShapeErrors, NameBothShapesAtTheUsersLine) {
  const Device d = interpreter();
  Buffer<int> o(d, 64);
  const auto at = [&](auto k) { return [&o, k] { (void)k.trace(o); }; };
#define KILN_EXPECT(expression, part)                        \
  expect_user_error(at(kernel("k",                           \
                              [](Out<int>) {                 \
                                Tile x = zeros(f32, {3, 4}); \
                                (void)(expression);          \
                              })),                           \
                    part, __FILE__, __LINE__)
  KILN_EXPECT(reshape(x, {5, 2}), "reshape: tile<3x4xf32> has 12 elements, shape [5,2] has 10");
  KILN_EXPECT(reshape(x, {5, -1}), "reshape: no extent makes shape [5,-1] hold the 12 elements of tile<3x4xf32>");
  KILN_EXPECT(reshape(x, {-1, -1}), "reshape: shape [-1,-1] leaves two extents open");
  KILN_EXPECT(squeeze(x, 1), "squeeze: axis 1 of tile<3x4xf32> is not an axis of extent 1 beside others");
  KILN_EXPECT(permute(x, {0, 0}), "permute: order [0,0] is no permutation of the axes of tile<3x4xf32>");
  KILN_EXPECT(permute(x, {0}), "permute: order [0] is no permutation of the axes of tile<3x4xf32>");
  KILN_EXPECT(trans(zeros(f32, {4})), "trans: needs a tile of rank 2 or more, not tile<4xf32>");
  KILN_EXPECT(join(x, zeros(f32, {3, 5})), "join: types differ: tile<3x4xf32> and tile<3x5xf32>");
  KILN_EXPECT(split(x), "split: takes a tile whose last extent is 2, not tile<3x4xf32>");
  KILN_EXPECT(slice(x, 1, 2, 5), "slice: positions 2 to 5 are no part of axis 1 of tile<3x4xf32>");
  KILN_EXPECT(slice(x, 0, 2, 2), "slice: positions 2 to 2 are no part of axis 0 of tile<3x4xf32>");
  KILN_EXPECT(cat(x, zeros(f32, {2, 5}), 0), "cat: tile<3x4xf32> and tile<2x5xf32> differ in more than axis 0");
  KILN_EXPECT(cat(x, zeros(i32, {3, 4}), 0), "cat: tile<3x4xf32> and tile<3x4xi32> differ in more than axis 0");
  KILN_EXPECT(cat(std::vector<Tile>{}, 0), "cat: needs at least one tile");
  KILN_EXPECT(flip(x, 2), "flip: axis 2 of a tile of rank 2");
  KILN_EXPECT(flip(x, -3), "flip: axis -3 of a tile of rank 2");
  KILN_EXPECT(gather(x, zeros(i32, {3, 4, 1}), 0),
              "gather: tile<3x4xf32> and indices tile<3x4x1xi32> differ in more than axis 0");
  KILN_EXPECT(gather(x, zeros(f32, {3, 4}), 0), "gather: indices must be a tile of integers, not tile<3x4xf32>");
#undef KILN_EXPECT
}
// clang-format on

// --- the code --------------------------------------------------------------------------------------------------------
template <class K>
std::string ptx_of(const K& k) {
  const Device d = Device::simulator();
  Buffer<int> x(d, 4096), o(d, 4096);
  return k.with({.num_warps = 1}).image(d, x, o).ptx;
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Elements that stay in their threads cost no instruction.
TEST(ShapeCode, RenamedRegistersNeedNoExchange) {
  const std::string ptx = ptx_of(kernel("rename", [](In<int> x, Out<int> o) {
    Tile v = reshape(load(x + arange(1024)), {8, 4, 32});
    Tile w = reshape(permute(v, {1, 0, 2}), {4, 256});
    store(o + reshape(permute(reshape(arange(1024), {8, 4, 32}), {1, 0, 2}), {4, 256}), w);
  }));
  EXPECT_FALSE(has(ptx, ".shared")) << ptx;
  EXPECT_FALSE(has(ptx, "shfl")) << ptx;
}

TEST(ShapeCode, AFlipAlongLanesIsAShuffle) {
  const std::string ptx =
      ptx_of(kernel("flip", [](In<int> x, Out<int> o) { store(o + arange(32), flip(load(x + arange(32)), 0)); }));
  EXPECT_TRUE(has(ptx, "shfl.sync.bfly")) << ptx;
  EXPECT_FALSE(has(ptx, ".shared")) << ptx;
}

TEST(ShapeCode, AGatherWithinAWarpIsShuffles) {
  const std::string ptx = ptx_of(kernel("gather", [](In<int> x, Out<int> o) {
    Tile i = arange(48);
    store(o + i, gather(load(x + i), i * 7 % 50, 0));
  }));
  EXPECT_TRUE(has(ptx, "shfl.sync.idx")) << ptx;
  EXPECT_FALSE(has(ptx, ".shared")) << ptx;
}

TEST(ShapeCode, ExchangesOfVectorsUseAllBanks) {
  const Device d = Device::simulator();
  const Stream stream(d);
  Buffer<float> x(d, 9600), y(d, 9600);
  x.upload(std::vector<float>(9600));
  auto rows = kernel("rows", [](View<const float, 2> a, View<float, 1> b) {
    b.store({0}, ravel(a.load({0, 0}, {96, 100}) * 2));
  });
  d.reset_counters();
  rows.launch(stream, 1, {x, {96, 100}}, {y, {9600}});
  stream.synchronize();
  EXPECT_GT(d.counters().shared_wavefronts, 0u);
  EXPECT_EQ(d.counters().bank_conflicts, 0u);
}

}  // namespace

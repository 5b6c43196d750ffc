// The interpreter's ops that rearrange tiles, against coordinates written out here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "backend/ir/builder.h"
#include "tests/ir/run.h"

namespace kiln::ir::test {
namespace {

using testing::ElementsAre;
using Coord = std::vector<std::int64_t>;

std::int64_t count(const Shape& s) {
  return std::accumulate(s.begin(), s.end(), std::int64_t(1), std::multiplies<std::int64_t>());
}
std::int64_t flat(const Shape& s, const Coord& c) {
  std::int64_t i = 0;
  for (std::size_t a = 0; a < s.size(); ++a) i = i * s[a] + c[a];
  return i;
}
Coord coord(const Shape& s, std::int64_t i) {
  Coord c(s.size());
  for (std::size_t a = s.size(); a-- > 0; i /= s[a]) c[a] = i % s[a];
  return c;
}

/// A program whose tiles are counted through: element i of counted(shape) is i (modulo the width of its dtype).
class Program {
 public:
  Program() {
    f.params.push_back({Type::pointer(DType::i64), "out", rt::Access::Write, 1, false});
    out = b.param(0, {});
  }
  Value counted(const Shape& s, DType d = DType::i64) {
    const Value all = b.cast(b.arange(0, count(s), {}), d, false, {});
    return make(Op::Reshape, {all}, {}, Type::tile_of(d, s));
  }
  Value make(Op op, std::vector<Value> v, std::vector<Attr> attrs, std::optional<Type> type = {}) {
    return b.make(op, std::move(v), std::move(attrs), {}, std::move(type));
  }
  /// All elements of v in row-major order.
  std::vector<std::int64_t> run(Value v) {
    const std::int64_t n = f.type(v).elements();
    v = make(Op::Reshape, {v}, {}, f.type(v).with_shape({n}));
    if (f.type(v).ptr) v = b.load(v, {}, {}, CacheHint::Plain, {});
    b.store(b.ptr_add(b.splat(out, {n}, {}), b.arange(0, n, {}), {}), b.cast(v, DType::i64, false, {}), {},
            CacheHint::Plain, {});
    std::vector<std::int64_t> result(std::size_t(n), -99);
    Launch launch(f);
    launch.array(result);
    launch();
    return result;
  }

  Function f{"k"};
  Builder b{f};
  Value out;
};

Attr axis(std::int64_t a) { return {AttrKey::axis, a}; }

/// result[c] must be the number of the element that `source` names, in a counted tile of shape x.
void expect_moved(const std::vector<std::int64_t>& got, const Shape& result, const Shape& x,
                  const std::function<Coord(Coord)>& source) {
  ASSERT_EQ(std::int64_t(got.size()), count(result));
  for (std::int64_t i = 0; i < count(result); ++i)
    ASSERT_EQ(got[std::size_t(i)], flat(x, source(coord(result, i)))) << "element " << i;
}

TEST(EvalShape, ReshapeKeepsRowMajorOrder) {
  Program p;
  EXPECT_THAT(p.run(p.make(Op::Reshape, {p.counted({2, 3})}, {}, Type::tile_of(DType::i64, {3, 1, 2}))),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(EvalShape, PermuteRenamesAxesOfAnyRank) {
  for (const auto& [x, order] : std::vector<std::pair<Shape, Shape>>{{{5}, {0}},
                                                                     {{3, 5}, {1, 0}},
                                                                     {{2, 3, 5}, {2, 0, 1}},
                                                                     {{3, 1, 2, 4}, {3, 1, 0, 2}},
                                                                     {{2, 3, 2, 1, 3}, {4, 2, 0, 1, 3}}}) {
    Program p;
    Shape result;
    for (std::int64_t a : order) result.push_back(x[std::size_t(a)]);
    const auto got = p.run(p.make(Op::Permute, {p.counted(x)}, {{AttrKey::order, order}}));
    expect_moved(got, result, x, [&](const Coord& c) {
      Coord s(c.size());
      for (std::size_t a = 0; a < c.size(); ++a) s[std::size_t(order[a])] = c[a];
      return s;
    });
  }
}

TEST(EvalShape, JoinInterleavesAndSplitTakesApart) {
  Program p;
  const Value a = p.counted({3}), b = p.b.elementwise(Op::Neg, {a}, {});
  const Value both = p.make(Op::Join, {a, b}, {});
  EXPECT_THAT(p.run(both), ElementsAre(0, 0, 1, -1, 2, -2));
  Program q;
  const InstId i = q.b.append(Op::Split, {q.counted({2, 2, 2})}, {}, {}, {});
  const std::vector<Value> halves = q.f.inst(i).results;
  EXPECT_THAT(q.run(q.b.elementwise(Op::Add, {halves[0], q.b.elementwise(Op::Mul, {halves[1], halves[1]}, {})}, {})),
              ElementsAre(0 + 1, 2 + 9, 4 + 25, 6 + 49));
}

TEST(EvalShape, SliceCatAndFlipAlongEveryAxis) {
  const Shape x{3, 4, 5};
  for (std::size_t a = 0; a < 3; ++a) {
    Shape part = x, more = x;
    part[a] = 2;
    more[a] += 2;
    const auto k = std::int64_t(a);
    Program slice, flip, cat;
    expect_moved(slice.run(slice.make(Op::Slice, {slice.counted(x)},
                                      {axis(k), {AttrKey::start, std::int64_t(1)}, {AttrKey::end, std::int64_t(3)}})),
                 part, x, [&](Coord c) { return c[a] += 1, c; });
    expect_moved(flip.run(flip.make(Op::Flip, {flip.counted(x)}, {axis(k)})), x, x,
                 [&](Coord c) { return c[a] = x[a] - 1 - c[a], c; });
    const Value both = cat.make(Op::Cat, {cat.counted(x), cat.counted(part)}, {axis(k)});
    const auto got = cat.run(both);
    for (std::int64_t i = 0; i < count(more); ++i) {
      Coord c = coord(more, i);
      const bool first = c[a] < x[a];
      if (!first) c[a] -= x[a];
      ASSERT_EQ(got[std::size_t(i)], flat(first ? x : part, c)) << "axis " << a << " element " << i;
    }
  }
}

TEST(EvalShape, GatherPicksAlongAnAxisAndGivesZeroOutside) {
  Program p;
  const Value x = p.counted({2, 3});
  // indices of rows 0 and 1: -1 0 1 2 3 and 4 3 2 1 0
  const Value up = p.b.elementwise(
      Op::Sub, {p.b.arange(0, 5, {}), p.b.splat(p.b.constant(Literal::of_int(DType::index, 1), {}), {5}, {})}, {});
  const Value down = p.make(Op::Flip, {p.b.arange(0, 5, {})}, {axis(0)});
  const Value rows = p.make(Op::Cat, {p.b.expand_dims(up, 0, {}), p.b.expand_dims(down, 0, {})}, {axis(0)});
  EXPECT_THAT(p.run(p.make(Op::Gather, {x, p.b.cast(rows, DType::i8, false, {})}, {axis(1)})),
              ElementsAre(0, 0, 1, 2, 0, 0, 0, 5, 4, 3));
  Program q;
  const Value column = q.b.expand_dims(q.b.arange(1, 3, {}), 0, {});
  EXPECT_THAT(q.run(q.make(Op::Gather, {q.counted({3, 2}), q.b.cast(column, DType::u64, false, {})}, {axis(0)})),
              ElementsAre(2, 5));
}

TEST(EvalShape, MovesElementsOfEveryWidth) {
  for (DType d : {DType::i1, DType::u8, DType::f16, DType::bf16, DType::i32, DType::f64, DType::index}) {
    Program p;
    const Value turned = p.make(Op::Permute, {p.make(Op::Flip, {p.counted({3, 2}, d)}, {axis(0)})},
                                {{AttrKey::order, std::vector<std::int64_t>{1, 0}}});
    const bool flag = d == DType::i1;
    EXPECT_THAT(p.run(turned), flag ? ElementsAre(1, 1, 0, 1, 1, 1) : ElementsAre(4, 2, 0, 5, 3, 1)) << name(d);
  }
}

TEST(EvalShape, MovesPointers) {
  std::vector<std::int64_t> in{10, 11, 12, 13, 14, 15}, out(6, -99);
  Function f("k");
  for (const char* name : {"in", "out"})
    f.params.push_back({Type::pointer(DType::i64), name, rt::Access::ReadWrite, 1, false});
  Builder b(f);
  const Value i = b.arange(0, 6, {});
  const Value from = b.ptr_add(b.splat(b.param(0, {}), {6}, {}), i, {});
  const Value to = b.ptr_add(b.splat(b.param(1, {}), {6}, {}), i, {});
  const Value reversed = b.make(Op::Flip, {from}, {axis(0)}, {});
  b.store(to, b.load(reversed, {}, {}, CacheHint::Plain, {}), {}, CacheHint::Plain, {});
  Launch launch(f);
  launch.array(in).array(out);
  launch();
  EXPECT_THAT(out, ElementsAre(15, 14, 13, 12, 11, 10));
}

}  // namespace
}  // namespace kiln::ir::test

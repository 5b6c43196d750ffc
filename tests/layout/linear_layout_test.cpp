// The laws of backend/ir/layout.h, each checked over all points of hand-made and random layouts.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "backend/ir/layout.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

using Index = LinearLayout::Index;
using Coord = LinearLayout::Coord;

/// Every combination of input values.
std::vector<Index> places(const LinearLayout& l) {
  std::vector<Index> all{{}};
  for (Dim d : l.in_dims()) {
    std::vector<Index> next;
    for (const Index& i : all)
      for (std::int64_t v = 0; v < l.in_size(d); ++v) {
        next.push_back(i);
        next.back().emplace_back(d, v);
      }
    all = next;
  }
  return all;
}

Index as_index(const LinearLayout& l, const Coord& c) {
  Index i;
  for (int k = 0; k < l.rank(); ++k) i.emplace_back(l.out_dims()[k], c[k]);
  return i;
}

class Random {
 public:
  explicit Random(unsigned seed) : rng_(seed) {}
  std::int64_t below(std::int64_t n) { return std::int64_t(rng_() % std::uint64_t(n)); }
  /// Any map from register, lane, warp to a 2-D tile.
  LinearLayout any() {
    LinearLayout l({std::int64_t(1) << below(4), std::int64_t(1) << below(4)});
    for (Hw h : {Hw::Register, Hw::Lane, Hw::Warp})
      for (std::int64_t n = below(4); n > 0; --n) l.add_bit(h, {below(l.out_shape()[0]), below(l.out_shape()[1])});
    return l;
  }
  /// An invertible one: random bit assignments, then random row operations.
  LinearLayout bijective() {
    const LinearLayout shape({std::int64_t(1) << below(4), std::int64_t(1) << below(4)});
    std::vector<Coord> bases;
    for (int k = 0; k < 2; ++k)
      for (std::int64_t s = 1; s < shape.out_shape()[k]; s *= 2) bases.push_back(k == 0 ? Coord{s, 0} : Coord{0, s});
    std::shuffle(bases.begin(), bases.end(), rng_);
    for (std::size_t step = 0; bases.size() > 1 && step < 8; ++step) {
      const auto a = std::size_t(below(std::int64_t(bases.size()))), b = std::size_t(below(std::int64_t(bases.size())));
      if (a == b) continue;
      bases[a][0] ^= bases[b][0];
      bases[a][1] ^= bases[b][1];
    }
    LinearLayout l = shape;
    for (const Coord& c : bases) l.add_bit(Hw(below(3)), c);
    return l;
  }
  /// A surjective one with replication mixed in.
  LinearLayout surjective() {
    const LinearLayout b = bijective();
    LinearLayout l(b.out_shape());
    for (Dim d : b.in_dims())
      for (int k = 0; k < b.in_bits(d); ++k) {
        if (below(3) == 0) l.add_bit(d, {below(b.out_shape()[0]), below(b.out_shape()[1])});
        l.add_bit(d, b.basis(d, k));
      }
    if (below(2)) l.add_bit(Hw::Warp, {0, 0});
    return l;
  }
  /// An endomorphism of axes 0 and 1, for composing behind another layout.
  LinearLayout after(const LinearLayout& inner) {
    LinearLayout l({std::int64_t(1) << below(4), std::int64_t(1) << below(4)});
    for (int k = 0; k < 2; ++k)
      for (std::int64_t s = 1; s < inner.out_shape()[k]; s *= 2)
        l.add_bit(Dim::axis(k), {below(l.out_shape()[0]), below(l.out_shape()[1])});
    return l;
  }

 private:
  std::mt19937_64 rng_;
};

constexpr int kRandomLayouts = 200;

LinearLayout worked_example() {
  LinearLayout l({4, 4});
  l.add_bit(Hw::Register, {0, 1});
  l.add_bit(Hw::Register, {2, 0});
  l.add_bit(Hw::Lane, {0, 2});
  l.add_bit(Hw::Lane, {1, 0});
  return l;
}

TEST(LinearLayout, WorkedExampleOfTheHeader) {
  const LinearLayout l = worked_example();
  EXPECT_EQ(l.apply({{Hw::Register, 2}, {Hw::Lane, 3}}), (Coord{3, 2}));
  const char* table[4] = {"00 01 10 11", "20 21 30 31", "02 03 12 13", "22 23 32 33"};
  for (std::int64_t lane = 0; lane < 4; ++lane)
    for (std::int64_t reg = 0; reg < 4; ++reg) {
      const Coord c = l.apply({{Hw::Lane, lane}, {Hw::Register, reg}});
      const std::string cell(table[c[0]] + 3 * c[1], 2);
      EXPECT_EQ(cell, std::to_string(lane) + std::to_string(reg));
    }
}

TEST(LinearLayout, PrintsBasesByDimension) {
  EXPECT_EQ(worked_example().str(), "[register=(0,1)(2,0) lane=(0,2)(1,0)] -> 4x4");
  EXPECT_EQ(worked_example().invert().str(), "[axis0=(0,2)(2,0) axis1=(1,0)(0,1)] -> register:4 lane:4");
}

TEST(LinearLayout, ApplyIsLinear) {
  Random random(1);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.any();
    const auto all = places(l);
    for (const Index& a : all) {
      const Index& b = all[std::size_t(random.below(std::int64_t(all.size())))];
      Index x = a;
      for (std::size_t k = 0; k < x.size(); ++k) x[k].second ^= b[k].second;
      Coord sum = l.apply(a);
      for (int k = 0; k < l.rank(); ++k) sum[k] ^= l.apply(b)[k];
      EXPECT_EQ(l.apply(x), sum);
    }
  }
}

TEST(LinearLayout, IdentityCountsAlongItsAxis) {
  const LinearLayout l = LinearLayout::identity(Hw::Lane, 32, 1, 3);
  EXPECT_EQ(l.out_shape(), (std::vector<std::int64_t>{1, 32, 1}));
  for (std::int64_t i = 0; i < 32; ++i) EXPECT_EQ(l.apply({{Hw::Lane, i}}), (Coord{0, i, 0}));
}

TEST(LinearLayout, ZerosReplicate) {
  const LinearLayout l = LinearLayout::zeros(Hw::Warp, 4, 2);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(l.apply({{Hw::Warp, i}}), (Coord{0, 0}));
  EXPECT_EQ(l.free_bits(Hw::Warp), 3);
}

TEST(LinearLayout, EqualityIgnoresTheOrderInWhichDimensionsWereAdded) {
  LinearLayout a({4}), b({4});
  a.add_bit(Hw::Register, {1});
  a.add_bit(Hw::Lane, {2});
  b.add_bit(Hw::Lane, {2});
  b.add_bit(Hw::Register, {1});
  EXPECT_EQ(a, b);
  b.add_bit(Hw::Lane, {0});
  EXPECT_NE(a, b);
}

TEST(LinearLayout, SurjectiveAndInjectiveMeanWhatTheySay) {
  Random random(2);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.any();
    std::map<Coord, int> reached;
    for (const Index& i : places(l)) ++reached[l.apply(i)];
    const std::size_t elements = std::size_t(l.out_shape()[0] * l.out_shape()[1]);
    EXPECT_EQ(l.surjective(), reached.size() == elements) << l.str();
    EXPECT_EQ(l.injective(), reached.size() == places(l).size()) << l.str();
  }
}

TEST(LinearLayout, EachElementHasOneOwnerAndAsManyCopiesAsFreeBitsSay) {
  Random random(3);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.any();
    int free = 0;
    for (Dim d : l.in_dims()) free += std::popcount(std::uint64_t(l.free_bits(d)));
    std::map<Coord, int> copies, owners;
    for (const Index& i : places(l)) {
      bool owner = true;
      for (const auto& [d, v] : i) owner = owner && (v & l.free_bits(d)) == 0;
      ++copies[l.apply(i)];
      owners[l.apply(i)] += owner;
    }
    for (const auto& [c, count] : copies) {
      EXPECT_EQ(count, 1 << free) << l.str();
      EXPECT_EQ(owners[c], 1) << l.str();
    }
  }
}

TEST(LinearLayout, ProductArrangesCopies) {
  Random random(4);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout a = random.any(), b = random.any(), p = a * b;
    for (const Index& i : places(p)) {
      Index in_a, in_b;
      for (const auto& [d, v] : i) {
        in_a.emplace_back(d, v % a.in_size(d));
        in_b.emplace_back(d, v / a.in_size(d));
      }
      const Coord ca = a.apply(in_a), cb = b.apply(in_b), cp = p.apply(i);
      for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(cp[k], ca[k] + a.out_shape()[k] * cb[k]);
    }
  }
}

TEST(LinearLayout, ProductIsAssociativeAndHasAUnit) {
  Random random(5);
  const LinearLayout unit(std::vector<std::int64_t>{1, 1});
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout a = random.any(), b = random.any(), c = random.any();
    EXPECT_EQ((a * b) * c, a * (b * c));
    EXPECT_EQ(unit * a, a);
    EXPECT_EQ(a * unit, a);
  }
}

TEST(LinearLayout, DivideUndoesProduct) {
  Random random(6);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout a = random.any(), b = random.any();
    const auto q = (a * b).divide(a);
    ASSERT_TRUE(q.has_value()) << a.str() << " and " << b.str();
    EXPECT_EQ(*q, b);
  }
}

TEST(LinearLayout, DivideGivesAQuotientOnlyWhereTheProductIsTheDividend) {
  Random random(7);
  int none = 0;
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout a = random.any(), b = random.any();
    if (const auto q = a.divide(b)) EXPECT_EQ(b * *q, a);
    else ++none;
  }
  EXPECT_GT(none, 0);
  EXPECT_FALSE(worked_example().divide(LinearLayout::identity(Hw::Register, 4, 1, 2)).has_value());
}

TEST(LinearLayout, ComposeFollowsInnerWithOuter) {
  Random random(8);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout inner = random.any(), outer = random.after(inner), both = outer.compose(inner);
    for (const Index& i : places(inner)) EXPECT_EQ(both.apply(i), outer.apply(as_index(inner, inner.apply(i))));
  }
}

TEST(LinearLayout, ComposeIsAssociative) {
  Random random(9);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout a = random.any(), b = random.after(a), c = random.after(b);
    EXPECT_EQ(c.compose(b).compose(a), c.compose(b.compose(a)));
  }
}

TEST(LinearLayout, ComposeRefusesOutputsThatDoNotFit) {
  const LinearLayout small = LinearLayout::identity(Dim::axis(0), 4, 0, 1);
  EXPECT_THROW((void)small.compose(LinearLayout::identity(Hw::Lane, 8, 0, 1)), InternalError);
  EXPECT_NO_THROW((void)small.compose(LinearLayout::identity(Hw::Lane, 2, 0, 1)));
}

TEST(LinearLayout, InverseIsTwoSidedForBijections) {
  Random random(10);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.bijective(), inverse = l.invert();
    EXPECT_EQ(l.compose(inverse), LinearLayout::identity_on(l.out_dims(), l.out_shape()));
    EXPECT_EQ(inverse.compose(l), LinearLayout::identity_on(inverse.out_dims(), inverse.out_shape()));
    EXPECT_EQ(inverse.invert(), l);
  }
}

TEST(LinearLayout, InverseOfAReplicatedLayoutFindsTheOwner) {
  Random random(11);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.surjective(), inverse = l.invert();
    EXPECT_EQ(l.compose(inverse), LinearLayout::identity_on(l.out_dims(), l.out_shape()));
    for (const Index& c : places(inverse)) {
      const Coord place = inverse.apply(c);
      for (int k = 0; k < inverse.rank(); ++k)
        EXPECT_EQ(place[std::size_t(k)] & l.free_bits(inverse.out_dims()[std::size_t(k)]), 0) << l.str();
    }
  }
}

TEST(LinearLayout, InverseRefusesWhatIsNotSurjective) {
  EXPECT_THROW((void)LinearLayout(std::vector<std::int64_t>{4}).invert(), InternalError);
}

TEST(LinearLayout, InverseComposedMovesATileBetweenLayouts) {
  Random random(12);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout a = random.bijective();
    LinearLayout b(a.out_shape());
    for (std::int64_t s = 1; s < a.out_shape()[1]; s *= 2) b.add_bit(Hw::Lane, {0, s});
    for (std::int64_t s = 1; s < a.out_shape()[0]; s *= 2) b.add_bit(Hw::Register, {s, 0});
    const LinearLayout move = b.invert().compose(a);
    for (const Index& i : places(a)) EXPECT_EQ(b.apply(as_index(move, move.apply(i))), a.apply(i));
  }
}

TEST(LinearLayout, CollapseZeroesAndSliceRemovesOneComponent) {
  Random random(13);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.any();
    for (int axis = 0; axis < 2; ++axis)
      for (const Index& i : places(l)) {
        Coord c = l.apply(i);
        c[std::size_t(axis)] = 0;
        EXPECT_EQ(l.collapse(axis).apply(i), c);
        c.erase(c.begin() + axis);
        EXPECT_EQ(l.slice(axis).apply(i), c);
      }
  }
}

TEST(LinearLayout, SliceUndoesExpand) {
  Random random(14);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.any();
    for (int axis = 0; axis <= 2; ++axis) {
      EXPECT_EQ(l.expand(axis).out_shape()[std::size_t(axis)], 1);
      EXPECT_EQ(l.expand(axis).slice(axis), l);
    }
  }
}

TEST(LinearLayout, WithoutFreeRegistersEachThreadHoldsTheSameElementsOnce) {
  Random random(15);
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout l = random.any(), r = l.without_free_registers();
    EXPECT_EQ(r.free_bits(Hw::Register), 0);
    for (std::int64_t lane = 0; lane < l.in_size(Hw::Lane); ++lane) {
      std::map<Coord, int> before, after;
      for (std::int64_t reg = 0; reg < l.in_size(Hw::Register); ++reg)
        before[l.apply({{Hw::Register, reg}, {Hw::Lane, lane}})] = 1;
      for (std::int64_t reg = 0; reg < r.in_size(Hw::Register); ++reg)
        ++after[r.apply({{Hw::Register, reg}, {Hw::Lane, lane}})];
      EXPECT_EQ(before, after) << l.str();
    }
  }
}

TEST(LinearLayout, RegisterUseAgreesWithAllPlaces) {
  Random random(16);
  int seen[3] = {};
  for (int n = 0; n < 4 * kRandomLayouts; ++n) {
    const LinearLayout l = random.any();
    const std::vector<std::int64_t> extents{1 + random.below(l.out_shape()[0]), 1 + random.below(l.out_shape()[1])};
    for (std::int64_t reg = 0; reg < l.in_size(Hw::Register); ++reg) {
      int inside = 0, all = 0;
      for (const Index& i : places(l)) {
        Index at = i;
        bool wanted = l.in_bits(Hw::Register) == 0;
        for (const auto& [d, v] : at) wanted = wanted || (d == Dim(Hw::Register) && v == reg);
        if (!wanted) continue;
        const Coord c = l.apply(at);
        ++all;
        inside += c[0] < extents[0] && c[1] < extents[1];
      }
      const RegisterUse expected = inside == 0     ? RegisterUse::Dead
                                   : inside == all ? RegisterUse::Full
                                                   : RegisterUse::Partial;
      EXPECT_EQ(register_use(l, reg, extents), expected) << l.str() << " register " << reg;
      ++seen[int(expected)];
    }
  }
  for (int count : seen) EXPECT_GT(count, 0);
}

TEST(LinearLayout, SameThreadRegistersAgreeWithAllPlaces) {
  Random random(17);
  int found = 0;
  for (int n = 0; n < kRandomLayouts; ++n) {
    const LinearLayout to = random.any(), from = to.collapse(int(random.below(2))).without_free_registers();
    const auto map = same_thread_registers(from, to);
    ASSERT_TRUE(map.has_value()) << to.str();
    for (const Index& i : places(to)) {
      std::int64_t reg = 0;
      Index thread;
      for (const auto& [d, v] : i)
        if (d == Dim(Hw::Register)) reg = v;
        else thread.emplace_back(d, v);
      Coord wanted = to.apply(i);
      for (std::size_t k = 0; k < 2; ++k)
        if (from.out_shape()[k] == 1) wanted[k] = 0;
      thread.emplace_back(Hw::Register, (*map)[std::size_t(reg)]);
      EXPECT_EQ(from.apply(thread), wanted);
      ++found;
    }
  }
  EXPECT_GT(found, 0);
}

TEST(LinearLayout, SameThreadRegistersRefusesElementsOfOtherThreads) {
  const LinearLayout lanes = LinearLayout::identity(Hw::Lane, 4, 0, 1),
                     regs = LinearLayout::identity(Hw::Register, 4, 0, 1);
  EXPECT_FALSE(same_thread_registers(lanes, regs).has_value());
  EXPECT_FALSE(same_thread_registers(regs, lanes).has_value());
}

TEST(LinearLayout, RefusesBasesOutsideTheExtents) {
  LinearLayout l({4, 2});
  EXPECT_THROW(l.add_bit(Hw::Lane, {0, 2}), InternalError);
  EXPECT_THROW(l.add_bit(Hw::Lane, {1}), InternalError);
  EXPECT_THROW(LinearLayout(std::vector<std::int64_t>{3}), InternalError);
}

}  // namespace
}  // namespace kiln::ir

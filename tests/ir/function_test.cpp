// Function arenas: use lists, insertion, removal, cloning, layouts.
#include "backend/ir/function.h"

#include <gtest/gtest.h>

#include "backend/ir/builder.h"
#include "backend/ir/text.h"
#include "backend/ir/verify.h"
#include "runtime/base/error.h"
#include "tests/ir/op_samples.h"

namespace kiln::ir::test {
namespace {

using Users = std::vector<InstId>;

struct Chain {
  Function f{"k"};
  Builder b{f};
  SourceLoc at{"k.cpp", 1, 1};
  Value x = b.program_id(0, at), y = b.program_id(1, at);
  Value sum = b.elementwise(Op::Add, {x, y}, at);
  Value square = b.elementwise(Op::Mul, {sum, sum}, at);
};

TEST(UseLists, HoldOneEntryPerOperandPosition) {
  Chain c;
  EXPECT_EQ(c.f.users(c.x), (Users{c.f.def(c.sum)}));
  EXPECT_EQ(c.f.users(c.sum), (Users{c.f.def(c.square), c.f.def(c.square)}));
  EXPECT_EQ(c.f.use_count(c.sum), 2u);
  EXPECT_FALSE(c.f.has_uses(c.square));
}

TEST(UseLists, AreInProgramOrderWhateverTheOrderOfCreation) {
  Chain c;
  const InstId late = c.f.create(Op::Neg, {c.x}, {c.f.type(c.x)}, {}, c.at);
  const InstId first = c.f.create(Op::Neg, {c.x}, {c.f.type(c.x)}, {}, c.at);
  const InstId loose = c.f.create(Op::Neg, {c.x}, {c.f.type(c.x)}, {}, c.at);
  c.f.append(c.f.body(), late);
  c.f.insert_before(c.f.def(c.sum), first);
  EXPECT_EQ(c.f.users(c.x), (Users{first, c.f.def(c.sum), late, loose}));
}

TEST(UseLists, FollowReplacedUses) {
  Chain c;
  c.f.replace_all_uses(c.sum, c.x);
  EXPECT_FALSE(c.f.has_uses(c.sum));
  EXPECT_EQ(c.f.users(c.x), (Users{c.f.def(c.sum), c.f.def(c.square), c.f.def(c.square)}));
  EXPECT_EQ(c.f.inst(c.f.def(c.square)).operands, (std::vector<Value>{c.x, c.x}));
  EXPECT_TRUE(c.f.use_lists_consistent());
}

TEST(UseLists, FollowSetOperand) {
  Chain c;
  c.f.set_operand(c.f.def(c.square), 1, c.y);
  EXPECT_EQ(c.f.use_count(c.sum), 1u);
  EXPECT_EQ(c.f.users(c.y), (Users{c.f.def(c.sum), c.f.def(c.square)}));
  EXPECT_TRUE(c.f.use_lists_consistent());
}

TEST(UseLists, SeeInstructionsInRegions) {
  const Function f = sample(Op::For);
  const Value pid = f.inst(f.region(f.body()).insts[0]).results[0];
  EXPECT_EQ(f.users(pid).size(), 5u);  // three bounds of the outer loop, two of the inner
  EXPECT_TRUE(f.use_lists_consistent());
}

TEST(Remove, ReleasesOperandsAndRefusesUsedResults) {
  Chain c;
  EXPECT_THROW(c.f.remove(c.f.def(c.sum)), InternalError);
  Chain d;
  d.f.remove(d.f.def(d.square));
  EXPECT_FALSE(d.f.has_uses(d.sum));
  d.f.remove(d.f.def(d.sum));
  EXPECT_FALSE(d.f.has_uses(d.x));
  EXPECT_EQ(d.f.region(d.f.body()).insts.size(), 2u);
  EXPECT_EQ(format(d.f, verify(d.f)), "");
}

TEST(Remove, TakesRegionsAlong) {
  Function f = sample(Op::For);
  const std::vector<InstId> body = f.region(f.body()).insts;
  const Value pid = f.inst(body[0]).results[0];
  f.remove(body[2]);
  EXPECT_FALSE(f.has_uses(pid));
  EXPECT_EQ(format(f, verify(f)), "");
}

TEST(Clone, MapsOperandsAndRegions) {
  Function f = sample(Op::For);
  const InstId loop = f.region(f.body()).insts[2];
  Builder b(f);
  const Value other = b.num_programs(0, {});
  ValueMap map;
  map.set(f.inst(loop).operands[0], other);
  const InstId copy = f.clone(loop, map);
  f.append(f.body(), copy);
  EXPECT_EQ(f.inst(copy).operands[0], other);
  EXPECT_EQ(map(f.inst(loop).results[1]), f.inst(copy).results[1]);
  EXPECT_EQ(f.inst(copy).loc.str(), f.inst(loop).loc.str());
  const Region &from = f.region(f.inst(loop).regions[0]), &to = f.region(f.inst(copy).regions[0]);
  ASSERT_EQ(to.params.size(), 3u);
  EXPECT_EQ(to.owner, copy);
  // The inner loop's lower bound is the outer index: of the copy in the copy.
  EXPECT_EQ(f.inst(from.insts[0]).operands[0], from.params[0]);
  EXPECT_EQ(f.inst(to.insts[0]).operands[0], to.params[0]);
  EXPECT_EQ(f.inst(to.insts[0]).operands[1], other);
  EXPECT_EQ(format(f, verify(f)), "");
}

TEST(Clone, OfEveryOpPrintsLikeTheOriginal) {
  for (Op op : all_ops()) {
    const Function f = sample(op);
    Function g(f.name, f.loc);
    g = f;
    // The whole body is cloned behind itself, then the originals are removed from the back.
    const std::vector<InstId> originals = g.region(g.body()).insts;
    ValueMap map;
    for (InstId i : originals) g.append(g.body(), g.clone(i, map));
    for (auto i = originals.rbegin(); i != originals.rend(); ++i) g.remove(*i);
    EXPECT_EQ(print(g), print(f)) << mnemonic(op);
    EXPECT_TRUE(g.use_lists_consistent()) << mnemonic(op);
  }
}

TEST(Clone, ValueMapLeavesUnknownValuesAlone) {
  ValueMap map;
  map.set({3}, {7});
  EXPECT_EQ(map({3}), Value{7});
  EXPECT_EQ(map({2}), Value{2});
  EXPECT_EQ(map({100}), Value{100});
}

TEST(Arena, CopiesAreIndependent) {
  Chain c;
  Function copy = c.f;
  copy.remove(copy.def(c.square));
  EXPECT_TRUE(c.f.has_uses(c.sum));
  EXPECT_FALSE(copy.has_uses(c.sum));
}

TEST(Arena, InternsEqualLayoutsOnce) {
  Function f;
  const LinearLayout a = LinearLayout::identity(Hw::Lane, 32, 0, 1), b = LinearLayout::identity(Hw::Lane, 16, 0, 1);
  EXPECT_EQ(f.intern(a), 0u);
  EXPECT_EQ(f.intern(b), 1u);
  EXPECT_EQ(f.intern(LinearLayout(a)), 0u);
  EXPECT_EQ(f.layout(1), b);
  EXPECT_EQ(f.layout_count(), 2u);
}

TEST(Arena, KnowsWhereAValueComesFrom) {
  const Function f = sample(Op::For);
  const InstId loop = f.region(f.body()).insts[2];
  const RegionId region = f.inst(loop).regions[0];
  const Value iv = f.region(region).params[0], result = f.inst(loop).results[0];
  EXPECT_EQ(f.def(result), loop);
  EXPECT_EQ(f.param_region(result), kNone);
  EXPECT_EQ(f.def(iv), kNone);
  EXPECT_EQ(f.param_region(iv), region);
  EXPECT_EQ(f.loc_of(iv).line, 4u);
}

TEST(Arena, AppendsAnInstructionOnlyOnce) {
  Chain c;
  EXPECT_THROW(c.f.append(c.f.body(), c.f.def(c.x)), InternalError);
}

TEST(Walk, GoesInProgramOrderOuterFirst) {
  const Function f = sample(Op::If);
  std::string order;
  walk(f, [&](InstId i) { order += std::string(mnemonic(f.inst(i).op)) + " "; });
  EXPECT_EQ(order, "constant if constant yield constant yield if yield yield ");
}

TEST(Types, PrintAsInTheText) {
  EXPECT_EQ(Type::scalar(DType::index).str(), "index");
  EXPECT_EQ(Type::pointer(f32, true).str(), "ptr<const f32>");
  EXPECT_EQ(Type::tile_of(f32, {128, 64}).str(), "tile<128x64xf32>");
  Type t = Type::pointer(f32).with_shape({8});
  t.layout = 1;
  EXPECT_EQ(t.str(), "tile<8xptr<f32>, #1>");
  EXPECT_EQ(Type::tile_of(f32, {}).str(), "tile<f32>");
  EXPECT_EQ(Type::tile_of(f32, {3, 5}).elements(), 15);
  EXPECT_EQ(t.with(DType::i1).str(), "tile<8xi1, #1>");
  EXPECT_EQ(t.with_shape({4, 2}).str(), "tile<4x2xptr<f32>>");
}

}  // namespace
}  // namespace kiln::ir::test

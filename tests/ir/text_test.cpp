// print and parse.
#include "backend/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/ir/builder.h"
#include "backend/ir/verify.h"
#include "tests/ir/op_samples.h"

namespace kiln::ir::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class EveryOp : public testing::TestWithParam<Op> {};
INSTANTIATE_TEST_SUITE_P(Table, EveryOp, testing::ValuesIn(all_ops()),
                         [](const auto& p) { return std::string(mnemonic(p.param)); });

TEST_P(EveryOp, HasASampleThatUsesItAndVerifies) {
  const Function f = sample(GetParam());
  bool used = false;
  walk(f, [&](InstId i) { used |= f.inst(i).op == GetParam(); });
  EXPECT_TRUE(used);
  EXPECT_EQ(format(f, verify(f)), "");
}

TEST_P(EveryOp, RoundTripsThroughText) {
  const std::string text = print(sample(GetParam()));
  EXPECT_EQ(print(parse(text)), text);
  EXPECT_THAT(text, HasSubstr("loc("));
}

TEST_P(EveryOp, RoundTripsWithoutLocations) {
  const std::string text = print(sample(GetParam()), {.locations = false});
  EXPECT_EQ(print(parse(text), {.locations = false}), text);
  EXPECT_THAT(text, Not(HasSubstr("loc(")));
}

TEST_P(EveryOp, PrintsEqualAfterACopy) {
  const Function f = sample(GetParam());
  const Function copy = f;
  EXPECT_EQ(print(copy), print(f));
}

TEST(Text, KeepsFactsExecStageAndNames) {
  const std::string text = R"(kernel "k \"q\"" stage=pipelined loc("dir/k.cpp":3:14)
exec team=cluster warps=8 programs_per_cta=1 cluster=2 max_registers=96 register_goal=64
param "a" : ptr<const f8e4m3> access=read align=16
param : ptr<f32> access=readwrite align=4
param "n" : index access=read align=16 one extent
layout #0 = [register=(0,1)(2,0) lane=(0,2)(0,0)(0,0)(0,0)(0,0) warp=(1,0)(0,0)(0,0) block=(0,0)] -> 4x4
{
  %0 = constant value=i32(7) : i32 loc("dir/k.cpp":5:2)
  %1 = splat %0 : tile<3x4xi32, #0>
}
)";
  const Function f = parse(text);
  EXPECT_EQ(print(f), text);
  EXPECT_EQ(f.name, "k \"q\"");
  EXPECT_EQ(f.stage, Stage::Pipelined);
  ASSERT_TRUE(f.exec);
  EXPECT_EQ(f.exec->team, Team::Cluster);
  EXPECT_EQ(f.exec->register_goal, 64);
  EXPECT_EQ(f.params[0].align, 16);
  EXPECT_EQ(f.params[1].access, rt::Access::ReadWrite);
  EXPECT_EQ(f.params[1].name, "");
  EXPECT_TRUE(f.params[2].is_one);
  EXPECT_TRUE(f.params[2].is_extent);
  EXPECT_EQ(f.loc.str(), "dir/k.cpp:3");
  EXPECT_EQ(f.loc.column, 14u);
  EXPECT_EQ(f.layout(0).basis(Hw::Register, 1), (LinearLayout::Coord{2, 0}));
  EXPECT_EQ(format(f, verify(f)), "");
}

TEST(Text, IdentityLeavesOutNamesAndLocationsButKeepsFacts) {
  Function f = parse(R"(kernel "k" stage=traced loc("k.cpp":1:1)
param "a" : ptr<const f32> access=read align=16
{
  %0 = param index=0 : ptr<const f32> loc("k.cpp":2:2)
})");
  const std::string identity = print(f, {.locations = false});
  f.params[0].name = "b";
  f.loc = SourceLoc("other.cpp", 9, 9);
  f.inst(0).loc = {};
  EXPECT_EQ(print(f, {.locations = false}), identity);
  f.params[0].align = 4;
  EXPECT_NE(print(f, {.locations = false}), identity);
}

TEST(Text, DoesNotDependOnTheHistoryOfTheArena) {
  Function direct("k"), worn("k");
  const SourceLoc at;
  Builder(direct).program_id(0, at);
  Builder(direct).arange(0, 4, at);

  Builder b(worn);
  worn.intern(LinearLayout({8}));
  const Value dead = b.num_programs(1, at);
  b.arange(0, 4, at);
  worn.remove(worn.def(dead));
  const InstId pid =
      worn.create(Op::ProgramId, {}, {Type::scalar(DType::index)}, {{AttrKey::axis, std::int64_t(0)}}, at);
  worn.insert_before(worn.region(worn.body()).insts[0], pid);
  EXPECT_EQ(print(worn), print(direct));
}

TEST(Text, NamesTheLocationOfEachLine) {
  const Function f = parse(
      "kernel \"k\" stage=traced loc(\"k.cpp\":1:1)\nparam \"n\" : index access=read\n{\n"
      "  %0 = program_id axis=0 : index loc(\"k.cpp\":7:1)\n}");
  std::vector<SourceLoc> locs;
  const std::string text = print(f, {.locations = false}, locs);
  EXPECT_EQ(locs.size(), std::size_t(std::count(text.begin(), text.end(), '\n')));
  EXPECT_EQ(locs[0].line, 1u);
  EXPECT_FALSE(locs[1].known());
  EXPECT_EQ(locs[3].line, 7u);
}

TEST(Text, LiteralsReadBackToTheSameBits) {
  for (DType d : all_dtypes()) {
    const int width = bits(d);
    const std::uint64_t mask = width == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << width) - 1;
    std::vector<std::uint64_t> patterns{
        0, 1, mask, mask >> 1, (mask >> 1) + 1, 0x3c003c003c003c00 & mask, 0x7f807f807f807f80 & mask};
    if (width <= 16)
      for (std::uint64_t b = 0; b <= mask; ++b) patterns.push_back(b);
    for (std::uint64_t x = 0x9e3779b97f4a7c15; patterns.size() < 1000; x *= 0xda942042e4dd58b5)
      patterns.push_back(x & mask);
    for (std::uint64_t b : patterns) {
      const std::string text = print(Literal{d, b});
      const Function f = parse("kernel \"k\" stage=traced {\n%0 = constant value=" + text + " : " + name(d) + "\n}");
      ASSERT_EQ(f.inst(0).literal(), (Literal{d, b})) << text;
    }
  }
}

TEST(Text, LiteralsAreDecimalWhereThatIsExact) {
  EXPECT_EQ(print(Literal::of_float(f32, 0.1)), "f32(0.1)");
  EXPECT_EQ(print(Literal::of_float(f32, -0.0)), "f32(-0)");
  EXPECT_EQ(print(Literal::of_float(f32, HUGE_VAL)), "f32(0x7f800000)");
  EXPECT_EQ(print(Literal::of_int(i8, -7)), "i8(-7)");
  EXPECT_EQ(print(Literal::of_int(u64, -1)), "u64(18446744073709551615)");
}

TEST(Text, ReadsCommentsAndBlankLines) {
  EXPECT_EQ(print(parse("// a kernel\nkernel \"k\" // name\n\n stage=traced\n{ // body\n}\n\n")),
            "kernel \"k\" stage=traced\n{\n}\n");
}

TEST(Text, PrintsOneInstructionAsInTheWhole) {
  const Function f = sample(Op::For);
  const std::string whole = print(f);
  std::vector<InstId> insts;
  walk(f, [&](InstId i) { insts.push_back(i); });
  for (const std::string& line : print_lines(f, insts)) EXPECT_THAT(whole, HasSubstr(line));
}

}  // namespace
}  // namespace kiln::ir::test

// One test a property of the list at the head of verify.cpp, each breaking just that.
#include "backend/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/ir/builder.h"
#include "backend/ir/text.h"
#include "tests/ir/op_samples.h"

namespace kiln::ir::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> messages(const Function& f) {
  std::vector<std::string> all;
  for (const Violation& v : verify(f)) all.push_back(v.message);
  return all;
}
std::vector<std::string> traced(const std::string& rest) {
  return messages(parse("kernel \"k\" stage=traced\n" + rest));
}

const std::string kExec =
    "exec team=cta warps=2 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0\n";
const std::string kLaid = "kernel \"k\" stage=laid\n" + kExec + "layout #0 = [lane=(1)(2)(4)(8)(16) warp=(32)] -> 64\n";
std::vector<std::string> laid(const std::string& rest) { return messages(parse(kLaid + rest)); }

TEST(Verify, AcceptsWhatIsWellFormed) {
  EXPECT_THAT(traced("{\n}"), IsEmpty());
  EXPECT_THAT(laid("{\n  %0 = arange start=0 end=64 : tile<64xindex, #0>\n}"), IsEmpty());
  EXPECT_THAT(laid("{\n  %0 = arange start=0 end=33 : tile<33xindex, #0>\n}"), IsEmpty());  // padded
}

// --- region
// ------------------------------------------------------------------------------------------------------------
TEST(Verify, RegionListsEachInstructionOnceAndIsItsParent) {
  Function f("k");
  Builder b(f);
  b.program_id(0, {});
  Function twice = f;
  twice.region(twice.body()).insts.push_back(0);
  EXPECT_THAT(messages(twice), ElementsAre("region: instruction stands twice"));
  Function stray = f;
  stray.inst(0).parent = 7;
  EXPECT_THAT(messages(stray), ElementsAre("region: instruction names another region as its parent"));
}

TEST(Verify, RegionCountIsTheOps) {
  Function f("k");
  Builder b(f);
  const Value c = b.constant({DType::i1, 1}, {});
  b.append(Op::If, {c}, {}, {}, {});
  EXPECT_THAT(messages(f), ElementsAre("region: if has 0 regions, takes 2"));
}

TEST(Verify, RegionNamesItsOwner) {
  Function f = sample(Op::If);
  for (InstId i : f.region(f.body()).insts)
    if (f.inst(i).op == Op::If && f.inst(i).results.empty()) f.region(f.inst(i).regions[0]).owner = 0;
  EXPECT_THAT(messages(f), testing::Contains("region: region names another owner"));
}

TEST(Verify, BodyHasNoParameters) {
  Function f("k");
  f.add_region_param(f.body(), Type::scalar(i32));
  EXPECT_THAT(messages(f), ElementsAre("region: the body has parameters"));
}

// --- scope
// -------------------------------------------------------------------------------------------------------------
TEST(Verify, OperandsAreDefinedBefore) {
  Function f("k");
  Builder b(f);
  const Value x = b.program_id(0, {});
  b.elementwise(Op::Neg, {x}, {});
  std::vector<InstId>& insts = f.region(f.body()).insts;
  std::swap(insts[0], insts[1]);
  EXPECT_THAT(messages(f),
              ElementsAre("scope: neg uses a value that is not defined before it in its region or one around it"));
}

TEST(Verify, OperandsAreNotInAnEndedRegion) {
  Function f = sample(Op::If);
  const InstId branch = f.region(f.body()).insts[1];
  const Value inner = f.inst(f.region(f.inst(branch).regions[0]).insts[0]).results[0];
  f.append(f.body(), f.create(Op::Neg, {inner}, {f.type(inner)}, {}, {}));
  EXPECT_THAT(messages(f), ElementsAre(HasSubstr("scope: neg uses a value")));
}

TEST(Verify, OperandsOfTheOtherBranchAreOutOfScope) {
  Function f = sample(Op::If);
  const InstId branch = f.region(f.body()).insts[1];
  const Value first = f.inst(f.region(f.inst(branch).regions[0]).insts[0]).results[0];
  const InstId yield = f.region(f.inst(branch).regions[1]).insts[1];
  f.set_operand(yield, 1, first);
  EXPECT_THAT(messages(f), ElementsAre(HasSubstr("scope: yield uses a value")));
}

TEST(Verify, OperandsAreValues) {
  Function f = sample(Op::Neg);
  f.inst(f.region(f.body()).insts.back()).operands[0] = Value{};
  EXPECT_THAT(messages(f), testing::Contains(HasSubstr("scope: neg uses a value")));
}

// --- types
// -------------------------------------------------------------------------------------------------------------
TEST(Verify, OperandTypesAreTheOps) {
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 : index\n  %1 = cast %0 : i32\n  %2 = add %0, %1 : index\n}"),
              ElementsAre("types: add: operand types differ: index, i32"));
}

TEST(Verify, OperandCountIsTheOps) {
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 : index\n  %1 = add %0 : index\n}"),
              ElementsAre("types: add: has 1 operands, takes (a, b)"));
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 : index\n  %1 = program_id axis=0 %0 : index\n}"),
              ElementsAre("types: program_id: has 1 operands, takes ()"));
}

TEST(Verify, AttributesArePresentKnownAndOfTheirKind) {
  EXPECT_THAT(traced("{\n  %0 = program_id : index\n}"), ElementsAre("types: program_id: attribute axis is missing"));
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 start=1 : index\n}"),
              ElementsAre("types: program_id: has no attribute start"));
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 axis=1 : index\n}"),
              ElementsAre("types: program_id: attribute axis is given twice"));
  EXPECT_THAT(traced("{\n  %0 = program_id axis=\"x\" : index\n}"),
              ElementsAre("types: program_id: attribute axis must be an integer"));
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 : index\n  %1 = cast saturate=2 %0 : f32\n}"),
              ElementsAre("types: cast: attribute saturate must be 0 or 1"));
}

TEST(Verify, ResultTypesAreTheOps) {
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 : i64\n}"),
              ElementsAre("types: program_id gives (index), its results are (i64)"));
  EXPECT_THAT(traced("{\n  program_id axis=0\n}"), ElementsAre("types: program_id gives (index), its results are ()"));
  EXPECT_THAT(traced("{\n  %0 = arange start=0 end=4 : tile<5xindex>\n}"),
              ElementsAre("types: arange gives (tile<4xindex>), its results are (tile<5xindex>)"));
  EXPECT_THAT(traced("{\n  %0 = constant value=i32(1) : f32\n}"),
              ElementsAre("types: constant gives (i32), its results are (f32)"));
}

TEST(Verify, LiteralsFitTheirType) {
  Function f("k");
  f.append(f.body(), f.create(Op::Constant, {}, {Type::scalar(i8)}, {{AttrKey::value, Literal{i8, 0x1ff}}}, {}));
  EXPECT_THAT(messages(f), ElementsAre("types: constant: literal has bits outside of i8"));
}

TEST(Verify, StoresGoThroughWritablePointers) {
  EXPECT_THAT(traced("param \"p\" : ptr<const f32> access=read\n{\n  %0 = param index=0 : ptr<const f32>\n  %1 = load "
                     "%0 : f32\n  store %0, %1\n}"),
              ElementsAre("types: store: pointer is ptr<const f32>, which is read only"));
}

// --- yield
// -------------------------------------------------------------------------------------------------------------
TEST(Verify, RegionsEndWithTheirOnlyYield) {
  const std::string c = "{\n  %0 = constant value=i1(1) : i1\n";
  EXPECT_THAT(traced(c + "  if %0 {\n  } {\n    yield\n  }\n}"),
              ElementsAre("yield: a region of if does not end with one"));
  EXPECT_THAT(traced(c + "  if %0 {\n    %1 = not %0 : i1\n  } {\n    yield\n  }\n}"),
              ElementsAre("yield: a region of if does not end with one"));
  EXPECT_THAT(traced(c + "  if %0 {\n    yield\n    yield\n  } {\n    yield\n  }\n}"),
              ElementsAre("yield: not at the end of a region"));
  EXPECT_THAT(traced("{\n  yield\n}"), ElementsAre("yield: not at the end of a region"));
}

// --- control
// -----------------------------------------------------------------------------------------------------------
TEST(Verify, ForCarriesOneTypeRound) {
  const std::string head = "{\n  %0 = program_id axis=0 : index\n  %1 = cast %0 : f32\n";
  EXPECT_THAT(traced(head + "  %2 = for %0, %0, %0, %1 : f32 {(%3 : i32, %4 : f32)\n    yield %4\n  }\n}"),
              ElementsAre("control: region 0 of for has parameters (i32, f32), must be (index, f32)"));
  EXPECT_THAT(traced(head + "  %2 = for %0, %0, %0, %1 : f32 {(%3 : index)\n    yield %1\n  }\n}"),
              ElementsAre("control: region 0 of for has parameters (index), must be (index, f32)"));
  EXPECT_THAT(traced(head + "  %2 = for %0, %0, %0, %1 : f32 {(%3 : index, %4 : f32)\n    yield %3\n  }\n}"),
              ElementsAre("control: region 0 of for yields (index), must be (f32)"));
  EXPECT_THAT(traced(head + "  %2 = for %0, %0, %0, %1 : index {(%3 : index, %4 : index)\n    yield %4\n  }\n}"),
              ElementsAre("types: for gives (f32), its results are (index)"));
}

TEST(Verify, WhileTestsAnI1AndCarriesOneTypeRound) {
  const std::string head = "{\n  %0 = program_id axis=0 : index\n  %1 = while %0 : index {(%2 : index)\n";
  EXPECT_THAT(traced(head + "    yield %2\n  } {(%3 : index)\n    yield %3\n  }\n}"),
              ElementsAre("control: region 0 of while yields (index), must be (i1)"));
  EXPECT_THAT(traced(head + "    %4 = lt %2, %0 : i1\n    yield %4\n  } {\n    yield %0\n  }\n}"),
              ElementsAre("control: region 1 of while has parameters (), must be (index)"));
}

TEST(Verify, IfYieldsItsResultsFromBothRegions) {
  EXPECT_THAT(
      traced("{\n  %0 = constant value=i1(1) : i1\n  %1 = if %0 : i1 {\n    yield %0\n  } {\n    yield\n  }\n}"),
      ElementsAre("control: region 1 of if yields (), must be (i1)"));
  EXPECT_THAT(traced("{\n  %0 = program_id axis=0 : index\n  if %0 {\n    yield\n  } {\n    yield\n  }\n}"),
              ElementsAre("types: if: condition is index, must be a scalar i1"));
}

TEST(Verify, LoopEdgesHaveEqualLayouts) {
  const std::string second = "layout #1 = [register=(1) lane=(2)(4)(8)(16)(32) warp=(0)] -> 64\n";
  const std::string head = second + "{\n  %0 = program_id axis=0 : index\n  %1 = splat %0 : tile<64xindex, #0>\n";
  EXPECT_THAT(laid(head + "  %2 = for %0, %0, %0, %1 : tile<64xindex, #0> {(%3 : index, %4 : tile<64xindex, #0>)\n"
                          "    %5 = convert %4 : tile<64xindex, #1>\n    yield %5\n  }\n}"),
              ElementsAre("control: region 0 of for yields (tile<64xindex, #1>), must be (tile<64xindex, #0>)"));
}

// --- params
// ------------------------------------------------------------------------------------------------------------
TEST(Verify, ParamsAreScalarsOrPointersWithFactsThatFit) {
  EXPECT_THAT(traced("param : tile<4xf32> access=read\n{\n}"),
              ElementsAre("params: parameter 0 (tile<4xf32>): is a tile"));
  EXPECT_THAT(traced("param : ptr<const f32> access=write\n{\n}"),
              ElementsAre("params: parameter 0 (ptr<const f32>): access differs from the pointer's const"));
  EXPECT_THAT(traced("param : ptr<f32> access=read\n{\n}"),
              ElementsAre("params: parameter 0 (ptr<f32>): access differs from the pointer's const"));
  EXPECT_THAT(traced("param : f32 access=readwrite\n{\n}"),
              ElementsAre("params: parameter 0 (f32): a scalar is only read"));
  EXPECT_THAT(traced("param : index access=read align=12\n{\n}"),
              ElementsAre("params: parameter 0 (index): alignment 12 is no power of two"));
  EXPECT_THAT(traced("param : f32 access=read align=4\n{\n}"),
              ElementsAre("params: parameter 0 (f32): only pointers and index have an alignment"));
  EXPECT_THAT(traced("param : i32 access=read one\n{\n}"),
              ElementsAre("params: parameter 0 (i32): only an index is known to be one"));
  EXPECT_THAT(traced("param : i32 access=read extent\n{\n}"),
              ElementsAre("params: parameter 0 (i32): only an index is an extent"));
}

// --- uses
// --------------------------------------------------------------------------------------------------------------
TEST(Verify, UseListsMatchOperands) {
  Function f("k");
  Builder b(f);
  const Value x = b.program_id(0, {}), y = b.program_id(1, {});
  const Value sum = b.elementwise(Op::Add, {x, y}, {});
  f.inst(f.def(sum)).operands[1] = x;  // behind the arena's back
  EXPECT_THAT(messages(f), ElementsAre("uses: use lists do not match operands"));
}

// --- exec
// --------------------------------------------------------------------------------------------------------------
TEST(Verify, ExecIsPresentFromCanonicalOn) {
  EXPECT_THAT(traced(kExec + "{\n}"), ElementsAre("exec: present at stage traced"));
  for (const char* stage : {"canonical", "laid", "pipelined", "specialised", "allocated", "synced"})
    EXPECT_THAT(messages(parse(std::string("kernel \"k\" stage=") + stage + " {\n}")),
                ElementsAre(std::string("exec: missing at stage ") + stage));
}

TEST(Verify, ExecIsConsistent) {
  const auto with = [](auto&& edit) {
    Function f("k");
    f.stage = Stage::Canonical;
    f.exec = Exec{};
    edit(*f.exec);
    return messages(f);
  };
  EXPECT_THAT(with([](Exec&) {}), IsEmpty());
  EXPECT_THAT(with([](Exec& e) { e.warps = 3; }), ElementsAre("exec: 3 warps: a power of two from 1 to 32 is needed"));
  EXPECT_THAT(with([](Exec& e) { e.warps = 64; }),
              ElementsAre("exec: 64 warps: a power of two from 1 to 32 is needed"));
  EXPECT_THAT(with([](Exec& e) { e.team = Team::Warp; }), ElementsAre("exec: a warp team has one warp, not 4"));
  EXPECT_THAT(with([](Exec& e) { e.programs_per_cta = 2; }), ElementsAre("exec: 2 programs in a block for a cta team"));
  EXPECT_THAT(with([](Exec& e) { e.cluster = 2; }), ElementsAre("exec: cluster of 2 for a cta team"));
  EXPECT_THAT(with([](Exec& e) { e.max_registers = 256; }), ElementsAre("exec: 256 registers: 0 to 255 is allowed"));
  EXPECT_THAT(with([](Exec& e) { e = {Team::Warp, 1, 8, 1, 0}; }), IsEmpty());
  EXPECT_THAT(with([](Exec& e) { e = {Team::Cluster, 8, 1, 4, 64}; }), IsEmpty());
}

// --- layouts
// -----------------------------------------------------------------------------------------------------------
TEST(Verify, NoLayoutsBeforeLaid) {
  const std::string layout = "layout #0 = [lane=(1)(2)] -> 4\n{\n  %0 = arange start=0 end=4 : tile<4xindex, #0>\n}";
  EXPECT_THAT(traced(layout), ElementsAre("layouts: tile<4xindex, #0> has a layout at stage traced"));
  EXPECT_THAT(messages(parse("kernel \"k\" stage=canonical\n" + kExec + layout)),
              ElementsAre("layouts: tile<4xindex, #0> has a layout at stage canonical"));
  EXPECT_THAT(traced("{\n  %0 = arange start=0 end=4 : tile<4xindex>\n  %1 = convert %0 : tile<4xindex>\n}"),
              ElementsAre("layouts: convert at stage traced"));
}

TEST(Verify, EveryTileHasALayoutFromLaidOn) {
  EXPECT_THAT(laid("{\n  %0 = arange start=0 end=64 : tile<64xindex>\n}"),
              ElementsAre("layouts: tile<64xindex> has no layout at stage laid"));
}

TEST(Verify, LayoutIsInTheTable) {
  Function f = parse(kLaid + "{\n  %0 = arange start=0 end=64 : tile<64xindex, #0>\n}");
  Type t = f.type({0});
  t.layout = 9;
  f.set_type({0}, t);
  EXPECT_THAT(messages(f), ElementsAre("layouts: tile<64xindex, #9> names a layout that the function does not have"));
  EXPECT_THAT(format(f, verify(f)), HasSubstr("%0 = arange start=0 end=64 : tile<64xindex, #9>"));
}

TEST(Verify, LayoutCoversThePaddedExtents) {
  EXPECT_THAT(laid("{\n  %0 = arange start=0 end=65 : tile<65xindex, #0>\n}"),
              ElementsAre(HasSubstr("tile<65xindex, #0> has a layout of other extents")));
  EXPECT_THAT(laid("{\n  %0 = arange start=0 end=32 : tile<32xindex, #0>\n}"),
              ElementsAre(HasSubstr("tile<32xindex, #0> has a layout of other extents")));
  EXPECT_THAT(laid("{\n  %0 = arange start=0 end=64 : tile<64xindex, #0>\n  %1 = expand_dims axis=0 %0 : "
                   "tile<1x64xindex, #0>\n}"),
              ElementsAre(HasSubstr("tile<1x64xindex, #0> has a layout of other extents")));
}

TEST(Verify, LayoutReachesEveryElement) {
  EXPECT_THAT(messages(parse("kernel \"k\" stage=laid\n" + kExec +
                             "layout #0 = [lane=(1)(2)(4)(8)(16) warp=(16)] -> 64\n{\n  %0 = arange start=0 end=64 : "
                             "tile<64xindex, #0>\n}")),
              ElementsAre(HasSubstr("has a layout that does not reach every element")));
}

TEST(Verify, LayoutHasTheThreadsOfExec) {
  const auto with = [](const std::string& layout) {
    return messages(parse("kernel \"k\" stage=laid\n" + kExec + "layout #0 = " + layout +
                          "\n{\n  %0 = arange start=0 end=64 : tile<64xindex, #0>\n}"));
  };
  for (const char* layout :
       {"[lane=(1)(2)(4)(8)(16) warp=(32)(0)] -> 64", "[register=(1)(2) lane=(4)(8)(16) warp=(32)] -> 64",
        "[lane=(1)(2)(4)(8)(16) warp=(32) block=(0)] -> 64"})
    EXPECT_THAT(with(layout), ElementsAre(HasSubstr("has a layout of other threads than 2 warps, cluster 1")));
}

TEST(Verify, ElementwiseOpsKeepOneLayout) {
  EXPECT_THAT(laid("layout #1 = [register=(1) lane=(2)(4)(8)(16)(32) warp=(0)] -> 64\n{\n  %0 = arange start=0 end=64 "
                   ": tile<64xindex, #0>\n"
                   "  %1 = arange start=0 end=64 : tile<64xindex, #1>\n  %2 = add %0, %1 : tile<64xindex, #0>\n}"),
              ElementsAre("types: add: operand types differ: tile<64xindex, #0>, tile<64xindex, #1>"));
}

// --- threads
// -----------------------------------------------------------------------------------------------------------
TEST(Verify, ExpandDimsAndBroadcastStayInTheirThreads) {
  const std::string head = "kernel \"k\" stage=laid\n" + kExec +
                           "layout #0 = [lane=(1)(2)(4)(0)(0) warp=(0)] -> 8\n"
                           "layout #1 = [lane=(0,1)(0,2)(0,4)(0,0)(0,0) warp=(0,0)] -> 1x8\n"
                           "layout #2 = [lane=(0,1)(0,2)(0,4)(1,0)(2,0) warp=(4,0)] -> 8x8\n"
                           "layout #3 = [lane=(1,0)(2,0)(0,1)(0,2)(0,4) warp=(4,0)] -> 8x8\n"
                           "layout #4 = [lane=(0,0)(0,0)(0,1)(0,2)(0,4) warp=(0,0)] -> 1x8\n"
                           "{\n  %0 = arange start=0 end=8 : tile<8xindex, #0>\n";
  EXPECT_THAT(
      messages(parse(
          head + "  %1 = expand_dims axis=0 %0 : tile<1x8xindex, #1>\n  %2 = broadcast %1 : tile<8x8xindex, #2>\n}")),
      IsEmpty());
  EXPECT_THAT(messages(parse(head + "  %1 = expand_dims axis=0 %0 : tile<1x8xindex, #4>\n}")),
              ElementsAre(HasSubstr("threads: expand_dims needs elements of other threads")));
  EXPECT_THAT(
      messages(parse(
          head + "  %1 = expand_dims axis=0 %0 : tile<1x8xindex, #1>\n  %2 = broadcast %1 : tile<8x8xindex, #3>\n}")),
      ElementsAre(HasSubstr("threads: broadcast needs elements of other threads")));
}

// --- the report
// --------------------------------------------------------------------------------------------------------
TEST(Verify, CollectsEveryViolationInProgramOrderWithItsLine) {
  const Function f = parse(R"(kernel "k" stage=traced loc("k.cpp":1:1)
param : f32 access=write
{
  %0 = program_id axis=5 : index loc("k.cpp":4:1)
  %1 = constant value=i1(1) : i1
  if %1 {
    %2 = add %0, %1 : index loc("k.cpp":6:1)
    yield
  } {
    yield
  }
  %3 = neg %1 : i1 loc("k.cpp":9:1)
})");
  const auto violations = verify(f);
  ASSERT_EQ(violations.size(), 4u);
  EXPECT_EQ(violations[0].loc.line, 1u);
  EXPECT_EQ(violations[1].loc.line, 4u);
  EXPECT_EQ(violations[2].loc.line, 6u);
  EXPECT_EQ(violations[3].loc.line, 9u);
  EXPECT_EQ(format(f, violations),
            "k.cpp:1: k: params: parameter 0 (f32): a scalar is only read\n"
            "k.cpp:4: k: types: program_id: grid axes are 0, 1 and 2, axis is 5\n    %0 = program_id axis=5 : index\n"
            "k.cpp:6: k: types: add: operand types differ: index, i1\n    %2 = add %0, %1 : index\n"
            "k.cpp:9: k: types: neg: takes integers, index, f16, bf16, f32, f64, not i1\n    %3 = neg %1 : i1\n");
}

}  // namespace
}  // namespace kiln::ir::test

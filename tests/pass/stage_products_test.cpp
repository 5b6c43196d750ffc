// The ring of a product: what travels through it, how the program is split, and what stays as it is.
#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;
using testing::HasSubstr;
using testing::Not;

const std::string kViews =
    "param \"a\" : ptr<const bf16> access=read align=16 disjoint\nparam : index access=read extent\n"
    "param : index access=read extent\nparam : index access=read align=16 extent\nparam : index access=read one "
    "extent\n"
    "param \"b\" : ptr<const bf16> access=read align=16 disjoint\nparam : index access=read extent\n"
    "param : index access=read align=16 extent\nparam : index access=read align=16 extent\nparam : index access=read "
    "one extent\n"
    "param \"c\" : ptr<f32> access=readwrite align=16 disjoint\n";

/// c[64, 64] = a b, block by block along k; `inside` stands in the loop, which yields `sum`.
std::string matmul(const std::string& params = kViews, const std::string& inside = "", const std::string& sum = "%r") {
  return kernel(params, R"(%pa = param index=0 : ptr<const bf16>
%am = param index=1 : index
%ak = param index=2 : index
%as = param index=3 : index
%a1 = param index=4 : index
%pb = param index=5 : ptr<const bf16>
%bk = param index=6 : index
%bn = param index=7 : index
%bs = param index=8 : index
%b1 = param index=9 : index
%pc = param index=10 : ptr<f32>
%pid = program_id axis=0 : index
%c64 = constant value=index(64) : index
%c0 = constant value=index(0) : index
%m = mul %pid, %c64 : index
%zero = constant value=f32(0) : f32
%start = splat %zero : tile<64x64xf32>
%out = for %c0, %ak, %c64, %start : tile<64x64xf32> {(%k : index, %acc : tile<64x64xf32>)
%ap, %ai = block extents=[64,64] %pa, %am, %ak, %as, %a1, %m, %k : tile<64x64xptr<const bf16>>, tile<64x64xi1>
%av = load %ap, %ai : tile<64x64xbf16>
%bp, %bi = block extents=[64,64] %pb, %bk, %bn, %bs, %b1, %k, %c0 : tile<64x64xptr<const bf16>>, tile<64x64xi1>
%bv = load %bp, %bi : tile<64x64xbf16>
)" + inside + R"(%r = dot %av, %bv, %acc : tile<64x64xf32>
yield )" + sum + R"(
}
%i = arange start=0 end=64 : tile<64xindex>
%cp, %ci = block extents=[64,64] %pc, %am, %bn, %bn, %b1, %m, %c0 : tile<64x64xptr<f32>>, tile<64x64xi1>
store %cp, %out
)");
}

TEST(StageProducts, LoadsBecomeFillAndTake) {
  const std::string text = after({choose_mma, stage_products}, matmul());
  EXPECT_THAT(text, HasSubstr("fill extents=[64,64,64,64] along=[1,1]"));
  EXPECT_THAT(text, HasSubstr("take extents=[64,64,64,64] : ptr<shared bf16>, ptr<shared bf16>"));
  EXPECT_THAT(text, HasSubstr("ring_dot extents=[64,64,64] along=[1,1] unit=bf16 behind=1"));
  EXPECT_THAT(text, HasSubstr("release behind=1"));
  EXPECT_THAT(text, HasSubstr("settle"));
  EXPECT_THAT(text, Not(HasSubstr("= load")));
}

TEST(StageProducts, SumsThatTheLoopLooksAtAreAwaited) {
  const std::string text = after({choose_mma, stage_products}, matmul(kViews, "", "%acc"));
  EXPECT_THAT(text, Not(HasSubstr("settle")));
}

TEST(StageProducts, WhatCannotTravelStays) {
  const auto stays = [](const std::string& text, const CompileOptions& options = {}) {
    EXPECT_THAT(after({choose_mma, stage_products}, text, options), Not(HasSubstr("fill")));
  };
  std::string pitch = kViews, shared = kViews, sizes = kViews;
  pitch.replace(pitch.find("align=16 extent"), 15, "extent");
  shared.replace(shared.find(" disjoint"), 9, "");
  sizes.replace(sizes.find(" extent"), 7, "");
  stays(matmul(pitch));
  stays(matmul(shared));
  stays(matmul(sizes));
  stays(matmul(), {.num_warps = 8});
  std::string anywhere = matmul();  // along k, which may be no multiple of 16 bytes
  anywhere.replace(anywhere.find("for %c0, %ak"), 12, "for %bk, %ak");
  stays(anywhere);
  stays(matmul(kViews, "print text=\"{}\" %av\n"));  // somebody else needs the elements
}

// The result's rows are contiguous, at multiples of 16 bytes and whole ones, or not; %b1 is known to be 1.
TEST(StageResults, StoresOfBlocksLeaveThroughSharedMemory) {
  const std::string stored = "store %cp, %out, %ci\n", pitch = "%pc, %am, %bn, %bn, %b1";
  std::string text = matmul();
  text.replace(text.find("store %cp, %out\n"), 16, stored);
  const auto with = [&](const std::string& array) {
    std::string other = text;
    other.replace(other.find(pitch), pitch.size(), array);
    return after({choose_mma, stage_products, stage_results}, other);
  };
  EXPECT_THAT(with("%pc, %am, %bn, %ak, %b1"), HasSubstr("store_block %"));
  EXPECT_THAT(with("%pc, %am, %ak, %bs, %b1"), HasSubstr("store_block %"));  // a copy writes whole units of 16 bytes
  text.replace(text.find(pitch), pitch.size(), "%pc, %am, %bn, %bs, %b1");
  EXPECT_THAT(after({choose_mma, stage_products, stage_results}, text), HasSubstr("store_block mapped=1 %"));
  // read again behind the store: no copy that nobody awaits
  std::string again = text;
  again.replace(again.find(stored), stored.size(),
                stored + "%back = load %cp, %ci : tile<64x64xf32>\nstore %cp, %back\n");
  EXPECT_THAT(after({choose_mma, stage_products, stage_results}, again), HasSubstr("store_block %"));
  // a mask of the user's, or columns apart
  EXPECT_THAT(after({choose_mma, stage_products, stage_results}, matmul()), Not(HasSubstr("store_block")));
  text.replace(text.find("%bs, %b1, %m, %c0 : tile<64x64xptr<f32>>"), 8, "%bs, %bn");
  EXPECT_THAT(after({choose_mma, stage_products, stage_results}, text), Not(HasSubstr("store_block")));
}

const std::initializer_list<ir::Pass> kUntilLaid = {choose_mma,  stage_products, stage_results, expand_blocks,
                                                    infer_facts, canonicalise,   choose_exec,   rematerialise,
                                                    chunk,       assign_layouts, walk_programs};

/// matmul() with 128 rows a program, and columns by the second axis of the grid.
std::string large(const std::string& more = "") {
  std::string text = matmul();
  const auto all = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  all("tile<64x64xf32>", "tile<128x64xf32>");
  all("block extents=[64,64] %pa", "block extents=[128,64] %pa");
  all("block extents=[64,64] %pc", "block extents=[128,64] %pc");
  all("%m, %k : tile<64x64x", "%m, %k : tile<128x64x");
  all("%m, %c0 : tile<64x64x", "%m, %n : tile<128x64x");
  all("%m, %n : tile<128x64xptr<f32>>, tile<64x64xi1>", "%m, %n : tile<128x64xptr<f32>>, tile<128x64xi1>");
  all("%m, %k : tile<128x64xptr<const bf16>>, tile<64x64xi1>",
      "%m, %k : tile<128x64xptr<const bf16>>, tile<128x64xi1>");
  all("%av = load %ap, %ai : tile<64x64xbf16>", "%av = load %ap, %ai : tile<128x64xbf16>");
  all("%k, %c0 : tile<64x64xptr<const bf16>>", "%k, %n : tile<64x64xptr<const bf16>>");
  all("%m = mul %pid, %c64 : index",
      "%c128 = constant value=index(128) : index\n%m = mul %pid, %c128 : index\n"
      "%column = program_id axis=1 : index\n%n = mul %column, %c64 : index\n" +
          more);
  all("store %cp, %out\n", "store %cp, %out, %ci\n");
  return text;
}

TEST(WalkPrograms, RowsOfTheLeftOperandGoInGroupsAndTheLargerOperandIsShared) {
  const std::string text = after(kUntilLaid, large());
  EXPECT_THAT(text, HasSubstr("walk group=16 pair=2"));  // 128 rows of a against 64 columns of b
  EXPECT_THAT(text, HasSubstr("both=1"));
  EXPECT_THAT(text, Not(HasSubstr("program_id")));
  EXPECT_THAT(after(kUntilLaid, large(), {.cluster = 1}), HasSubstr("walk group=16 {"));
}

TEST(WalkPrograms, WhoSeesHowProgramsAreRunStays) {
  const std::string counts = large("%many = num_programs axis=0 : index\nprint text=\"{}\" %many\n");
  EXPECT_THAT(after(kUntilLaid, counts), Not(HasSubstr("walk")));
  EXPECT_THAT(after(kUntilLaid, matmul()), Not(HasSubstr("walk")));  // 64 rows a program
}

TEST(Specialise, RolesHaveTheSameTrips) {
  const std::string text = after({choose_mma, stage_products, expand_blocks, infer_facts, canonicalise, choose_exec,
                                  rematerialise, chunk, assign_layouts, specialise},
                                 matmul());
  const std::size_t rest = text.find("} {");
  ASSERT_NE(rest, std::string::npos) << text;
  const std::string fills = text.substr(0, rest), takes = text.substr(rest);
  EXPECT_THAT(fills, HasSubstr("fill"));
  EXPECT_THAT(fills, HasSubstr("for "));
  for (const char* op : {"take", "ring_dot", "store", "release", "tile<64x64xf32, "}) {
    EXPECT_THAT(fills.substr(fills.find('{')), Not(HasSubstr(op)));
    EXPECT_THAT(takes, HasSubstr(op));
  }
  EXPECT_THAT(takes, Not(HasSubstr("fill")));
}

}  // namespace
}  // namespace kiln::test

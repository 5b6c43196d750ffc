// A ring that the threads which multiply fill themselves: what is fetched, and what stays as it is.
#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;
using testing::HasSubstr;
using testing::Not;

std::string views(const std::string& access_of_a = "ptr<const bf16> access=read align=16 disjoint") {
  const std::string array = "param : index access=read align=16 extent\nparam : index access=read align=16 extent\n";
  return "param \"a\" : " + access_of_a + "\n" + array +
         "param \"b\" : ptr<const bf16> access=read align=16 disjoint\n" +
         "param \"c\" : ptr<f32> access=readwrite align=16\n";
}

/// c[64, 64] = a b, 32 positions of k at a time; `inside` stands in the loop, which has `attrs`.
std::string matmul(const std::string& params = views(), const std::string& inside = "", const std::string& attrs = "",
                   const std::string& step = "32") {
  return kernel(params, R"(%pa = param index=0 : ptr<const bf16>
%ak = param index=1 : index
%bn = param index=2 : index
%pb = param index=3 : ptr<const bf16>
%pc = param index=4 : ptr<f32>
%step = constant value=index()" +
                            step + R"() : index
%c0 = constant value=index(0) : index
%c1 = constant value=index(1) : index
%c64 = constant value=index(64) : index
%zero = constant value=f32(0) : f32
%start = splat %zero : tile<64x64xf32>
%out = for )" + attrs + R"(%c0, %ak, %step, %start : tile<64x64xf32> {(%k : index, %acc : tile<64x64xf32>)
%ap, %ai = block extents=[64,32] %pa, %c64, %ak, %ak, %c1, %c0, %k : tile<64x32xptr<const bf16>>, tile<64x32xi1>
%av = load %ap, %ai : tile<64x32xbf16>
%bp, %bi = block extents=[32,64] %pb, %ak, %bn, %bn, %c1, %k, %c0 : tile<32x64xptr<const bf16>>, tile<32x64xi1>
%bv = load %bp, %bi : tile<32x64xbf16>
)" + inside + R"(%r = dot %av, %bv, %acc : tile<64x64xf32>
yield %r
}
%cp, %ci = block extents=[64,64] %pc, %c64, %c64, %c64, %c1, %c0, %c0 : tile<64x64xptr<f32>>, tile<64x64xi1>
store %cp, %out
)");
}

std::string skewed(const std::string& text, const CompileOptions& options = {}) {
  return after(
      {choose_mma, expand_blocks, infer_facts, canonicalise, choose_exec, rematerialise, chunk, assign_layouts, skew},
      text, options);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Skew, LoadsBecomeFetchesAheadOfTheirTrip) {
  const std::string text = skewed(matmul());
  EXPECT_EQ(count(text, "fetch along=[1,1]"), 5u);  // of five slots: four in front of the loop, one in it
  EXPECT_THAT(text, HasSubstr("fetch along=[1,1] position=4"));
  EXPECT_THAT(text, HasSubstr("take extents=[64,32,32,64]"));
  EXPECT_THAT(text, HasSubstr("ring_dot extents=[64,64,32] along=[1,1] unit=bf16"));
  EXPECT_THAT(text, HasSubstr("alloc count=40960"));
  EXPECT_THAT(text, Not(HasSubstr("= load")));
}

TEST(Skew, AsManySlotsAsWanted) {
  EXPECT_EQ(count(skewed(matmul(views(), "", "stages=3 ")), "fetch"), 3u);
  EXPECT_EQ(count(skewed(matmul(), {.stages = 2}), "fetch"), 2u);
  EXPECT_EQ(count(skewed(matmul(views(), "", "stages=1 ")), "fetch"), 0u);
  EXPECT_EQ(count(skewed(matmul(), {.stages = 1}), "fetch"), 0u);
}

TEST(Skew, AnOperandAlone) {
  // What else uses a keeps it in registers; b is fetched.
  const std::string text =
      skewed(matmul(views(),
                    "%f = cast %av : tile<64x32xf32>\n%s = reduce axis=1 %f : tile<64xf32> {(%x : f32, "
                    "%y : f32)\n%z = add %x, %y : f32\nyield %z\n}\n%sp = splat %pc : "
                    "tile<64xptr<f32>>\n%si = arange start=0 end=64 : tile<64xindex>\n%sq = "
                    "ptr_add %sp, %si : tile<64xptr<f32>>\nstore %sq, %s\n"));
  EXPECT_THAT(text, HasSubstr("fetch along=[1]"));
  EXPECT_THAT(text, HasSubstr("take extents=[32,64]"));
}

TEST(Skew, WhatCannotBeFetchedStays) {
  const auto stays = [](const std::string& text, const CompileOptions& options = {}) {
    EXPECT_THAT(skewed(text, options), Not(HasSubstr("fetch"))) << text;
  };
  stays(matmul(), {.debug = true});
  stays(matmul(views(), "", "", "-32"));
  // Of b and c nothing is known, and the loop writes c.
  std::string overlapping = views();
  for (std::size_t at; (at = overlapping.find(" disjoint")) != std::string::npos;) overlapping.erase(at, 9);
  EXPECT_THAT(skewed(matmul(overlapping)), HasSubstr("fetch"));
  stays(matmul(overlapping, "store %pc, %zero\n"));
}

}  // namespace
}  // namespace kiln::test

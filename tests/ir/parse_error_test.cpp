// What the parser says about broken text: the line, and what was expected there.
#include <gtest/gtest.h>

#include "backend/ir/text.h"
#include "backend/ir/verify.h"
#include "runtime/base/error.h"
#include "tests/ir/op_samples.h"

namespace kiln::ir::test {
namespace {

struct Broken {
  const char* name;
  const char* text;
  const char* message;
};

class ParseError : public testing::TestWithParam<Broken> {};

TEST_P(ParseError, NamesLineAndExpectation) {
  try {
    parse(GetParam().text, "t.kir");
    FAIL() << "parsed";
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()), std::string("t.kir:") + GetParam().message);
  }
}

#define K "kernel \"k\" stage=traced\n"
const Broken kBroken[] = {
    {"Empty", "", "1: error: expected 'kernel', found end of text"},
    {"NoName", "kernel k", "1: error: expected kernel name in quotes, found 'k'"},
    {"OpenString", "kernel \"k\nstage=traced", "1: error: expected '\"' that ends the string"},
    {"Stage", "kernel \"k\" stage=raw",
     "1: error: expected stage: one of traced, canonical, laid, pipelined, specialised, allocated, synced, found "
     "'raw'"},
    {"Location", "kernel \"k\" stage=traced loc(\"f\":x:1)", "1: error: expected line number, found 'x'"},
    {"ExecKey", K "exec team=cta warp=4", "2: error: expected 'warps', found 'warp'"},
    {"ExecNumber", K "exec team=cta warps=99999999999", "2: error: warps 99999999999 does not fit 32 bits"},
    {"Access", K "param : f32 access=rw", "2: error: expected access: one of read, write, readwrite, found 'rw'"},
    {"ParamType", K "param : f33 access=read", "2: error: expected a type, found 'f33'"},
    {"LayoutOrder", K "layout #1 = [] -> 4", "2: error: expected '#0', found '#1'"},
    {"LayoutDim", K "layout #0 = [thread=(1)] -> 4",
     "2: error: expected ']' or hardware dimension: one of register, lane, warp, block, offset, found 'thread'"},
    {"LayoutRank", K "layout #0 = [lane=(1,2)] -> 4", "2: error: basis of rank 2 in a layout of rank 1"},
    {"LayoutBasis", K "layout #0 = [lane=(0,4)] -> 8x4", "2: error: basis (0,4) is outside of 8x4"},
    {"LayoutPower", K "layout #0 = [] -> 6", "2: error: extent 6 of a layout is no power of two"},
    {"LayoutExtents", K "layout #0 = [] -> 4y", "2: error: expected extents like 8x128, found '4y'"},
    {"OpenBody", K "{\n", "3: error: expected instruction or '}', found end of text"},
    {"After", K "{\n}\nmore", "4: error: expected end of text after the kernel, found 'more'"},
    {"Op", K "{\n  %0 = ad : i32\n}", "3: error: expected an op, found 'ad'"},
    {"NotAnOp", K "{\n  =\n}", "3: error: expected instruction or '}', found '='"},
    {"UseBeforeDefinition", K "{\n  %0 = neg %1 : i32\n}", "3: error: value %1 is not defined before its use"},
    {"DefinedTwice", K "{\n  %0 = program_id axis=0 : index\n  %0 = program_id axis=0 : index\n}",
     "5: error: value %0 is defined twice"},
    {"TypeCount", K "{\n  %0 = program_id axis=0 : index, index\n}", "4: error: program_id: 1 results, 2 types"},
    {"NoType", K "{\n  %0 = program_id axis=0\n}", "4: error: program_id: 1 results, 0 types"},
    {"Flag", K "{\n  %0 = program_id axis=x : index\n}", "3: error: expected integer, found 'x'"},
    {"Cache", K "{\n  %0 = load cache=hot : index\n}",
     "3: error: expected cache hint: one of plain, no_allocate, streaming, evict_first, evict_last, found 'hot'"},
    {"LiteralRange", K "{\n  %0 = constant value=i8(200) : i8\n}", "3: error: 200 does not fit i8"},
    {"LiteralText", K "{\n  %0 = constant value=f32(one) : f32\n}", "3: error: 'one' is no value of f32"},
    {"LiteralInfinity", K "{\n  %0 = constant value=f32(inf) : f32\n}", "3: error: 'inf' is no value of f32"},
    {"TileElement", K "{\n  %0 = arange start=0 end=4 : tile<4>\n}",
     "3: error: expected an element type after the shape, found '4'"},
    {"TileLayout", K "{\n  %0 = arange start=0 end=4 : tile<4xindex, #0>\n}",
     "3: error: expected one of the 0 layouts, as #n, found '#0'"},
    {"MissingRegion", K "{\n  %0 = constant value=i1(1) : i1\n  if %0 {\n    yield\n  }\n}",
     "7: error: expected '{', found '}'"},
    {"InnerValueOutside",
     K "{\n  %0 = constant value=i1(1) : i1\n  if %0 {\n    %1 = not %0 : i1\n    yield\n  } {\n    yield\n  }\n  %2 = "
       "not %1 : i1\n}",
     "10: error: value %1 is not defined before its use"},
};
#undef K
INSTANTIATE_TEST_SUITE_P(Texts, ParseError, testing::ValuesIn(kBroken),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(ParseError, DamagedTextIsParsedOrRefusedNeverWorse) {
  std::uint32_t x = 1;
  const auto random = [&](std::size_t n) { return std::size_t((x = x * 1664525u + 1013904223u) >> 8) % n; };
  const std::string junk = "%#0123456789x(){}<>:=,\"- \nindex";
  int refused = 0, parsed = 0;
  for (Op op : all_ops()) {
    const std::string whole = print(sample(op));
    for (int i = 0; i < 400; ++i) {
      std::string text = whole;
      for (std::size_t edits = 1 + random(3); edits > 0; --edits) {
        const std::size_t at = random(text.size());
        switch (random(3)) {
          case 0: text.erase(at, 1 + random(6)); break;
          case 1: text[at] = junk[random(junk.size())]; break;
          default: text.insert(at, 1, junk[random(junk.size())]);
        }
        if (text.empty()) text = " ";
      }
      try {
        const Function f = parse(text);
        format(f, verify(f));
        ++parsed;
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(parsed, 1000);
}

TEST(ParseError, CanBeFollowedByAGoodParse) {
  EXPECT_THROW(parse("kernel"), UserError);
  EXPECT_EQ(parse("kernel \"k\" stage=traced {}").name, "k");
}

}  // namespace
}  // namespace kiln::ir::test

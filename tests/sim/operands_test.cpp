// Operands and declarations: constant expressions, WARP_SZ, vector registers, special registers, names given twice.
#include <gmock/gmock.h>

#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;
using U32 = std::uint32_t;

TEST(Operands, MayBeConstantExpressions) {
  const std::pair<const char*, U32> kCases[] = {{"(3+4)*2", 14},
                                                {"3+4*2", 11},
                                                {"WARP_SZ*2-1", 63},
                                                {"~5", 0xFFFFFFFA},
                                                {"!5", 0},
                                                {"-(5)", 0xFFFFFFFB},
                                                {"17/5", 3},
                                                {"-7/2", 0xFFFFFFFD},
                                                {"-16>>2", 0xFFFFFFFC},
                                                {"1<<4|3", 19},
                                                {"6&12^1", 5},
                                                {"5>=4", 1},
                                                {"1?2:3", 2},
                                                {"0?2:1==1&&4<3", 0},
                                                {"(.u64)-1>>32", 0xFFFFFFFF},
                                                {"0xffffffffffffffff/2>>62", 1},
                                                {"1-2-3", 0xFFFFFFFC}};
  for (const auto& [text, value] : kCases) {
    SCOPED_TRACE(text);
    const U32 want = value;
    expect_each({"add.u32 %r9, %r9, " + std::string(text) + ";"}, [=](U32) { return want; });
  }
  expect_each({"mov.f32 %f1, 1.5+2.5*2.0; cvt.rzi.u32.f32 %r9, %f1;"}, [](U32) { return 6u; });
  expect_each({"mov.u64 %rd3, words+(1+1)*4; ld.global.u32 %r9, [%rd3+(3+1)*4-20];",
               "sm_90a",
               {},
               ".global .u32 words[3] = {1+2, (3+4)*2, WARP_SZ};"},
              [](U32) { return 14u; });
}

TEST(Operands, MayBePartsOfVectorRegisters) {
  expect_each(
      {".reg .v4 .u32 V, W; .reg .v2 .u32 U<2>; mov.u32 V.x, 1; mov.u32 V.y, 20; mov.u32 V.b, 300; mov.u32 V.a, "
       "4000; mov.v4.u32 W, V; mov.v4.u32 W, {W.y, W.x, W.w, W.z}; .shared .align 16 .b8 s[16]; mov.u32 %r2, s; "
       "st.shared.v4.u32 [%r2], W; ld.shared.v4.u32 V, [%r2]; mov.u32 U1.x, V.x; mov.u32 U1.y, V.z; mov.b64 "
       "%rd3, U1; mov.b64 {%r3, %r4}, %rd3; add.u32 %r9, %r3, %r4;",
       "sm_90a",
       {{1, 1, 1}, {1, 1, 1}, 0}},
      [](U32) { return 4020u; });
  expect_each({".reg .v4 .u32 T; mov.v4.u32 T, %tid; add.u32 %r9, T.x, T.w;"}, [](U32 t) { return t; });
}

TEST(Operands, MayBeSpecialRegisters) {
  expect_each({"mov.u32 %r2, %envreg3; mov.u32 %r3, %aggr_smem_size; mov.u32 %r4, %total_smem_size; sub.u32 %r3, %r3, "
               "%r4; mov.pred %p1, %is_explicit_cluster; selp.u32 %r5, 10, 0, %p1; add.u32 %r9, %r2, %r3; add.u32 %r9, "
               "%r9, %r5;",
               "sm_90a",
               {{4, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}}},
              [](U32) { return 1034u; });
  expect_each({"mov.pred %p1, %is_explicit_cluster; selp.u32 %r9, 10, 3, %p1;"}, [](U32) { return 3u; });
  expect_each({"elect.sync %r2|%p1, -1; selp.u32 %r9, 1, 0, %p1;"}, [](U32 t) { return t == 0 ? 1u : 0u; });
}

TEST(Operands, ArePackedToFewBits) {
  expect_each({"mov.u32 %r2, 0xABCDEF12; cvt.pack.sat.u4.s32.b32 %r9, 99, -3, %r2;"}, [](U32) { return 0xCDEF12F0u; });
  expect_each({"mov.u32 %r2, 0xABCDEF12; cvt.pack.sat.s4.s32.b32 %r9, -99, 3, %r2;"}, [](U32) { return 0xCDEF1283u; });
  expect_each({"mov.u32 %r2, 1; cvt.pack.sat.s2.s32.b32 %r9, -99, 99, %r2;"}, [](U32) { return 0x19u; });
}

std::string refusal(const std::string& body) {
  try {
    load(Device::simulator("sm_90a"), thread_program(body), "k");
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "no error";
}
TEST(Operands, HaveOneDeclaration) {
  EXPECT_THAT(refusal(".reg .b32 %r3;"), HasSubstr("register %r3 is declared twice"));
  EXPECT_THAT(refusal(".reg .b32 %r<2>;"), HasSubstr("register %r is declared twice"));
  EXPECT_THAT(refusal(".reg .b32 %r1<5>;"), HasSubstr("register %r1 is declared twice"));
  EXPECT_THAT(refusal(".reg .b32 x; .reg .b64 x;"), HasSubstr("register x is declared twice"));
  EXPECT_THAT(refusal(".reg .b32 x7; .reg .b64 x<9>;"), HasSubstr("register x is declared twice"));
  EXPECT_THAT(refusal(".shared .b32 x; .shared .b32 x;"), HasSubstr("variable x is declared twice"));
  EXPECT_EQ(refusal("{ .reg .b32 %r3; .shared .b32 x; } { .shared .b32 x; }"), "no error");
}
TEST(Operands, ThatMakeNoSenseAreRefused) {
  EXPECT_THAT(refusal("add.u32 %r9, %r9, 5/0;"), HasSubstr("a division by zero"));
  EXPECT_THAT(refusal("mov.f64 %fd1, ~1.0;"), HasSubstr("'~' of a float"));
  std::string deep(200, '-');
  EXPECT_THAT(refusal("add.u32 %r9, %r9, " + deep + "5;"), HasSubstr("brackets in one another"));
}

}  // namespace
}  // namespace kiln::test

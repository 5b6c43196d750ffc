// Instructions of integers, bits and moves against C++.
#include "tests/sim/instruction_row.h"

namespace kiln::test::instructions {
namespace {

TEST(Integer, ProductsInEveryWidth) {
  sweep("mul.hi.s32 rd, ra, rb;", 'r',
        [](U64 a, U64 b, U64) { return static_cast<U64>((I64{static_cast<I32>(a)} * static_cast<I32>(b)) >> 32); });
  sweep("mul.hi.u32 rd, ra, rb;", 'r',
        [](U64 a, U64 b, U64) { return (U64{static_cast<U32>(a)} * static_cast<U32>(b)) >> 32; });
  sweep("mul.hi.s64 ld, la, lb;", 'l',
        [](U64 a, U64 b, U64) { return static_cast<U64>((Wide{static_cast<I64>(a)} * static_cast<I64>(b)) >> 64); });
  sweep("mul.hi.u64 ld, la, lb;", 'l', [](U64 a, U64 b, U64) { return static_cast<U64>((UWide{a} * b) >> 64); });
  sweep("mul.hi.s16 hd, ha, hb;", 'h', [](U64 a, U64 b, U64) {
    return static_cast<U64>((static_cast<std::int16_t>(a) * static_cast<std::int16_t>(b)) >> 16);
  });
  sweep("mul.wide.s32 ld, ra, rb;", 'l',
        [](U64 a, U64 b, U64) { return static_cast<U64>(I64{static_cast<I32>(a)} * static_cast<I32>(b)); });
  sweep("mul.wide.u16 rd, ha, hb;", 'r', [](U64 a, U64 b, U64) { return (a & 0xFFFF) * (b & 0xFFFF); });
  sweep("mad.wide.u32 ld, ra, rb, lc;", 'l',
        [](U64 a, U64 b, U64 c) { return U64{static_cast<U32>(a)} * static_cast<U32>(b) + c; });
  sweep("mad.lo.s32 rd, ra, rb, rc;", 'r', [](U64 a, U64 b, U64 c) { return a * b + c; });
  sweep("mad.hi.u32 rd, ra, rb, rc;", 'r',
        [](U64 a, U64 b, U64 c) { return ((U64{static_cast<U32>(a)} * static_cast<U32>(b)) >> 32) + c; });
  sweep("mul24.lo.u32 rd, ra, rb;", 'r', [](U64 a, U64 b, U64) { return (a & 0xFFFFFF) * (b & 0xFFFFFF); });
  sweep("mul24.hi.u32 rd, ra, rb;", 'r', [](U64 a, U64 b, U64) { return ((a & 0xFFFFFF) * (b & 0xFFFFFF)) >> 16; });
  sweep("sad.u32 rd, ra, rb, rc;", 'r', [](U64 a, U64 b, U64 c) {
    return c + static_cast<U64>(std::llabs(static_cast<I64>(a & 0xFFFFFFFF) - static_cast<I64>(b & 0xFFFFFFFF)));
  });
}

TEST(Integer, DivisionByZeroIsDefined) {
  expect("div.u32 rd, ra, rb;", 'r', {7, 0}, 0xFFFFFFFF);
  expect("div.s32 rd, ra, rb;", 'r', {0x80000000, 0xFFFFFFFF}, 0x80000000);
  expect("rem.s32 rd, ra, rb;", 'r', {0x80000000, 0xFFFFFFFF}, 0);
  expect("rem.u64 ld, la, lb;", 'l', {7, 0}, 7);
}

TEST(Integer, SaturatingAddition) {
  expect("add.sat.s32 rd, ra, rb;", 'r', {0x7FFFFFFF, 1}, 0x7FFFFFFF);
  expect("sub.sat.s32 rd, ra, rb;", 'r', {0x80000000, 1}, 0x80000000);
  expect("add.sat.s32 rd, ra, rb;", 'r', {5, 0xFFFFFFFE}, 3);
}

TEST(Integer, CarryChainsAddWideNumbers) {
  sweep("mov.b64 {ra, rb}, la; mov.b64 {rc, rd}, lb; add.cc.u32 ra, ra, rc; addc.u32 rb, rb, rd; mov.b64 ld, {ra, rb};",
        'l', [](U64 a, U64 b, U64) { return a + b; });
  sweep("mov.b64 {ra, rb}, la; mov.b64 {rc, rd}, lb; sub.cc.u32 ra, ra, rc; subc.u32 rb, rb, rd; mov.b64 ld, {ra, rb};",
        'l', [](U64 a, U64 b, U64) { return a - b; });
  sweep("add.cc.u64 x, la, lb; addc.u64 ld, 0, 0;", 'l', [](U64 a, U64 b, U64) { return U64{a + b < a}; });
  // 64 × 32 bits: low products with their carries.
  sweep(
      "mov.b64 {ra, rb}, la; cvt.u32.u64 rc, lb; mul.lo.u32 rd, ra, rc; mul.hi.u32 t, ra, rc; mad.lo.cc.u32 rb, rb, "
      "rc, t; mov.b64 ld, {rd, rb};",
      'l', [](U64 a, U64 b, U64) { return a * (b & 0xFFFFFFFF); });
}

TEST(Integer, DotProductsOfBytes) {
  sweep("dp4a.s32.u32 rd, ra, rb, rc;", 'r', [](U64 a, U64 b, U64 c) {
    for (int i = 0; i < 4; ++i)
      c += static_cast<U64>(I64{static_cast<std::int8_t>(a >> 8 * i)} * static_cast<std::uint8_t>(b >> 8 * i));
    return c;
  });
  sweep("dp2a.hi.s32.s32 rd, ra, rb, rc;", 'r', [](U64 a, U64 b, U64 c) {
    for (int i = 0; i < 2; ++i)
      c += static_cast<U64>(I64{static_cast<std::int16_t>(a >> 16 * i)} * static_cast<std::int8_t>(b >> (16 + 8 * i)));
    return c;
  });
}

TEST(Bits, FieldsAreExtractedAndInserted) {
  expect("bfe.u32 rd, ra, rb, rc;", 'r', {0xABCD1234, 8, 12}, 0xD12);
  expect("bfe.s32 rd, ra, rb, rc;", 'r', {0xABCD1234, 8, 12}, 0xFFFFFD12);
  expect("bfe.s32 rd, ra, rb, rc;", 'r', {0x80000000, 31, 8}, 0xFFFFFFFF);
  expect("bfe.s32 rd, ra, rb, rc;", 'r', {0x80000000, 40, 8}, 0xFFFFFFFF);
  expect("bfe.s32 rd, ra, rb, rc;", 'r', {0x80000000, 40, 1}, 0xFFFFFFFF);
  expect("bfe.u32 rd, ra, rb, rc;", 'r', {0xFFFFFFFF, 40, 8}, 0);
  expect("bfe.u32 rd, ra, rb, rc;", 'r', {0xFFFFFFFF, 4, 0}, 0);
  expect("bfe.u64 ld, la, rb, rc;", 'l', {0xFFFFFFFFFFFFFFFF, 0, 64}, 0xFFFFFFFFFFFFFFFF);
  expect("bfi.b32 rd, ra, rb, 8, 4;", 'r', {0xF, 0x12345678}, 0x12345F78);
  expect("bfi.b32 rd, ra, rb, 28, 16;", 'r', {0xFFFF, 0x12345678}, 0xF2345678);
  expect("bfi.b64 ld, la, lb, 0, 64;", 'l', {7, 9}, 7);
  expect("bmsk.clamp.b32 rd, ra, rb;", 'r', {4, 8}, 0xFF0);
  expect("szext.clamp.s32 rd, ra, rb;", 'r', {0x8F, 8}, 0xFFFFFF8F);
}

TEST(Bits, CountsAndSearches) {
  expect("bfind.u32 rd, ra;", 'r', {0x00800000}, 23);
  expect("bfind.shiftamt.u32 rd, ra;", 'r', {0x00800000}, 8);
  expect("bfind.s32 rd, ra;", 'r', {0xFFFFFFFF}, 0xFFFFFFFF);
  expect("bfind.s64 rd, la;", 'r', {0xFF00000000000000}, 55);
  expect("popc.b64 rd, la;", 'r', {0xF0F0F0F0F0F0F0F0}, 32);
  expect("clz.b64 rd, la;", 'r', {0}, 64);
  expect("brev.b64 ld, la;", 'l', {1}, 0x8000000000000000);
  expect("fns.b32 rd, ra, rb, rc;", 'r', {0b10110, 0, 2}, 2);
  expect("cnot.b32 rd, ra;", 'r', {0}, 1);
}

TEST(Bits, ShiftsClampTheirCount) {
  expect("shl.b32 rd, ra, 32;", 'r', {5}, 0);
  expect("shr.u32 rd, ra, 40;", 'r', {5}, 0);
  expect("shr.s32 rd, ra, 40;", 'r', {0x80000000}, 0xFFFFFFFF);
  expect("shr.s16 hd, ha, 3;", 'h', {0x8000}, 0xF000);
  expect("shf.l.wrap.b32 rd, ra, rb, 40;", 'r', {0x11223344, 0x55667788}, 0x66778811);
  expect("shf.r.clamp.b32 rd, ra, rb, 40;", 'r', {0x11223344, 0x55667788}, 0x55667788);
}

TEST(Bits, PermutesBytes) {
  expect("prmt.b32 rd, ra, rb, rc;", 'r', {0x33221100, 0x77665544, 0x7531}, 0x77553311);
  expect("prmt.b32 rd, ra, rb, 0x9A80;", 'r', {0x80FF7F80, 0}, 0x00FFFF80);
  expect("prmt.b32.f4e rd, ra, rb, rc;", 'r', {0x33221100, 0x77665544, 1}, 0x44332211);
  expect("prmt.b32.rc16 rd, ra, rb, rc;", 'r', {0x33221100, 0, 1}, 0x33223322);
}

TEST(Bits, Lop3TestsItsResult) {
  const std::string text = "setp.eq.u32 q, rb, 1; lop3.or.b32 rd|p, ra, 0, 0, 0xF0, q; selp.b32 rd, 1, 0, p;";
  expect(text, 'r', {0, 1}, 1);
  expect(text, 'r', {0, 2}, 0);
  expect(text, 'r', {5, 2}, 1);
  expect("setp.eq.u32 q, rb, 1; lop3.and.b32 rd|p, ra, 0, 0, 0xF0, q; selp.b32 rd, 1, 0, p;", 'r', {5, 2}, 0);
}

TEST(Moves, WholeAndHalvesOf128Bits) {
  sweep("{ .reg .b128 w, v; mov.b128 w, {la, lb}; mov.b128 v, w; mov.b128 {x, ld}, v; add.s64 ld, ld, x; }", 'l',
        [](U64 a, U64 b, U64) { return a + b; });
  sweep(
      "{ .reg .b128 w; .shared .align 16 .b8 s[16384]; mul.lo.s32 rd, t, 16; mov.u32 re, s; add.s32 rd, rd, re; "
      "mov.b128 "
      "w, {la, lb}; st.shared.b128 [rd], w; ld.shared.u64 ld, [rd+8]; ld.shared.b128 w, [rd]; mov.b128 {x, _}, w; "
      "xor.b64 ld, ld, x; }",
      'l', [](U64 a, U64 b, U64) { return a ^ b; });
}

TEST(Bits, Lop3IsATruthTable) {
  sweep("lop3.b32 rd, ra, rb, rc, 0x96;", 'r', [](U64 a, U64 b, U64 c) { return a ^ b ^ c; });
  sweep("lop3.b32 rd, ra, rb, rc, 0xE8;", 'r', [](U64 a, U64 b, U64 c) { return (a & b) | (a & c) | (b & c); });
  sweep("lop3.b32 rd, ra, rb, rc, 0xCA;", 'r', [](U64 a, U64 b, U64 c) { return (a & b) | (~a & c); });
}

TEST(Compare, JoinsAndSecondPredicate) {
  const std::string out = " selp.u32 rd, 1, 0, p; selp.u32 re, 2, 0, q; or.b32 rd, rd, re;";
  expect("setp.lt.s32 p|q, ra, rb;" + out, 'r', {0xFFFFFFFF, 1}, 1);
  expect("setp.lo.u32 p|q, ra, rb;" + out, 'r', {0xFFFFFFFF, 1}, 2);
  expect("setp.eq.u32 q, rc, 0; setp.lt.and.s32 p|q, ra, rb, q;" + out, 'r', {1, 2, 0}, 1);
  expect("setp.eq.u32 q, rc, 0; setp.lt.or.s32 p|q, ra, rb, !q;" + out, 'r', {3, 2, 1}, 3);
  expect("setp.eq.u32 q, rc, 0; setp.lt.xor.s32 p|q, ra, rb, q;" + out, 'r', {1, 2, 0}, 2);
  expect("setp.ltu.f32 p|q, ra, rb;" + out, 'r', {0x7FC00000, f(1.0f)}, 1);
  expect("setp.ne.f32 p|q, ra, rb;" + out, 'r', {0x7FC00000, f(1.0f)}, 2);
  expect("setp.num.f32 p|q, ra, rb;" + out, 'r', {f(1.0f), f(2.0f)}, 1);
  expect("setp.gt.f16x2 p|q, ra, rb;" + out, 'r', {0x3C004000, 0x40003C00}, 1);
  expect("set.lt.u32.f32 rd, ra, rb;", 'r', {f(1.0f), f(2.0f)}, 0xFFFFFFFF);
  expect("set.ge.f32.s32 rd, ra, rb;", 'r', {3, 2}, f(1.0f));
  expect("slct.u32.s32 rd, ra, rb, rc;", 'r', {1, 2, 0xFFFFFFFF}, 2);
  expect("slct.u64.f32 ld, la, lb, rc;", 'l', {1, 2, 0x80000000}, 1);
  expect("slct.u32.f32 rd, ra, rb, rc;", 'r', {1, 2, 0x7FC00000}, 2);
}

TEST(Predicates, LogicWorksOnMasks) {
  const std::string set = "setp.ne.u32 p, ra, 0; setp.ne.u32 q, rb, 0; ";
  expect(set + "and.pred p, p, q; selp.u32 rd, 1, 0, p;", 'r', {1, 1}, 1);
  expect(set + "xor.pred p, p, q; selp.u32 rd, 1, 0, p;", 'r', {1, 1}, 0);
  expect(set + "not.pred p, q; selp.u32 rd, 1, 0, p;", 'r', {1, 0}, 1);
  expect(set + "mov.pred p, q; selp.u32 rd, 1, 0, p;", 'r', {1, 0}, 0);
  expect(set + "mov.u32 rd, 5; @p mov.u32 rd, 6; @!q mov.u32 rd, 7;", 'r', {1, 1}, 6);
}

TEST(Move, PacksAndUnpacks) {
  expect("mov.b64 {ra, rb}, la; mov.b64 ld, {rb, ra};", 'l', {0x1122334455667788}, 0x5566778811223344);
  expect("mov.b32 {ha, hb}, ra; mov.b32 rd, {hb, ha};", 'r', {0x11223344}, 0x33441122);
  expect("mov.b64 {ha, hb, hc, hd}, la; mov.b64 ld, {hd, hc, hb, ha};", 'l', {0x1111222233334444}, 0x4444333322221111);
  expect("mov.b64 {_, rd}, la;", 'r', {0x1122334455667788}, 0x11223344);
}

}  // namespace
}  // namespace kiln::test::instructions

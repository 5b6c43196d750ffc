// One instruction at a time on chosen values: the families and modifiers that LLVM's plain operations do not reach.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <random>

#include "tests/sim/ptx_fixture.h"

namespace kiln::test {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using I32 = std::int32_t;
using I64 = std::int64_t;

U32 f(float v) { return std::bit_cast<U32>(v); }
float f(U64 v) { return std::bit_cast<float>(static_cast<U32>(v)); }

struct Args {
  U64 a = 0, b = 0, c = 0;
};

/// Results of `text` for each row of operands. It reads ra rb rc (32 bits), la lb lc (64 bits), ha hb hc (16 bits) and
/// writes rd, ld or hd, whose first letter is `result`.
std::vector<U64> run_each(const std::string& text, char result, const std::vector<Args>& rows) {
  const std::string store = result == 'l' ? "" : result == 'r' ? "cvt.u64.u32 ld, rd;" : "cvt.u64.u16 ld, hd;";
  const std::string ptx = R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred p, q; .reg .b16 ha, hb, hc, hd; .reg .b32 ra, rb, rc, rd, re, t; .reg .b64 la, lb, lc, ld, le, x, y, i, o;
  ld.param.u64 i, [in]; ld.param.u64 o, [out]; mov.u32 t, %tid.x;
  mul.wide.u32 x, t, 24; add.s64 i, i, x; mul.wide.u32 y, t, 8; add.s64 o, o, y;
  ld.global.u64 la, [i]; ld.global.u64 lb, [i+8]; ld.global.u64 lc, [i+16];
  cvt.u32.u64 ra, la; cvt.u32.u64 rb, lb; cvt.u32.u64 rc, lc; cvt.u16.u64 ha, la; cvt.u16.u64 hb, lb; cvt.u16.u64 hc, lc;
)" + text + "\n" + store + R"(
  st.global.u64 [o], ld;
  ret;
}
)";
  const Device device = Device::simulator("sm_100a");
  Buffer<U64> in(device, rows.size() * 3), out(device, rows.size());
  std::vector<U64> flat;
  for (const Args& r : rows) flat.insert(flat.end(), {r.a, r.b, r.c});
  in.upload(flat);
  run(device, ptx, "k", {{1, 1, 1}, {static_cast<U32>(rows.size()), 1, 1}, 0}, Params().add(in).add(out));
  return out.to_vector();
}

void expect(const std::string& text, char result, const Args& in, U64 want) {
  EXPECT_EQ(run_each(text, result, {in})[0], want)
      << text << std::hex << " of 0x" << in.a << ", 0x" << in.b << ", 0x" << in.c;
}

/// `text` on 1000 random rows against a function of the three operands; NaN equals NaN if `nan` says so of both.
void sweep(const std::string& text, char result, const std::function<U64(U64, U64, U64)>& want,
           const std::function<bool(U64)>& nan = {}) {
  std::mt19937_64 random(3);
  std::vector<Args> rows(1000);
  for (Args& r : rows) r = {random(), random(), random()};
  const U64 mask = result == 'l' ? ~U64{0} : result == 'r' ? 0xFFFFFFFF : 0xFFFF;
  const auto got = run_each(text, result, rows);
  int shown = 0;
  for (std::size_t i = 0; i < rows.size() && shown < 3; ++i) {
    const U64 w = want(rows[i].a, rows[i].b, rows[i].c) & mask;
    if (got[i] == w || (nan && nan(got[i]) && nan(w))) continue;
    ++shown;
    ADD_FAILURE() << text << std::hex << " of 0x" << rows[i].a << ", 0x" << rows[i].b << ", 0x" << rows[i].c
                  << ": got 0x" << got[i] << ", want 0x" << w;
  }
}
bool nan32(U64 v) { return (v & 0x7FFFFFFF) > 0x7F800000; }

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

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

TEST(Convert, SingleHalvesSaturateToTheLargest) {
  expect("mov.b32 ra, 0f7F000000; cvt.rn.satfinite.f16.f32 hd, ra;", 'h', {}, 0x7BFF);
  expect("mov.b32 ra, 0fFF800000; cvt.rn.satfinite.bf16.f32 hd, ra;", 'h', {}, 0xFF7F);
  expect("mov.b32 ra, 0f7FC00000; cvt.rn.satfinite.f16.f32 hd, ra;", 'h', {}, 0x7FFF);
}

TEST(Bits, Lop3IsATruthTable) {
  sweep("lop3.b32 rd, ra, rb, rc, 0x96;", 'r', [](U64 a, U64 b, U64 c) { return a ^ b ^ c; });
  sweep("lop3.b32 rd, ra, rb, rc, 0xE8;", 'r', [](U64 a, U64 b, U64 c) { return (a & b) | (a & c) | (b & c); });
  sweep("lop3.b32 rd, ra, rb, rc, 0xCA;", 'r', [](U64 a, U64 b, U64 c) { return (a & b) | (~a & c); });
}

/// a op b in a rounding mode of the host.
U64 in_mode(int mode, const std::function<float()>& op) {
  std::fesetround(mode);
  const volatile float r = op();
  std::fesetround(FE_TONEAREST);
  return f(r);
}

TEST(Float, DirectedRoundingOfF32) {
  static constexpr std::pair<const char*, int> kModes[] = {
      {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& [word, m] : kModes) {
    const int mode = m;
    const std::string w = word;
    const auto two = [&](const std::string& op, auto fn) {
      sweep(
          op + "." + w + ".f32 rd, ra, rb;", 'r',
          [=](U64 a, U64 b, U64) {
            const volatile float x = f(a), y = f(b);
            return in_mode(mode, [&] { return fn(x, y); });
          },
          nan32);
    };
    two("add", [](volatile const float& x, volatile const float& y) { return x + y; });
    two("sub", [](volatile const float& x, volatile const float& y) { return x - y; });
    two("mul", [](volatile const float& x, volatile const float& y) { return x * y; });
    two("div", [](volatile const float& x, volatile const float& y) { return x / y; });
    sweep(
        "fma." + w + ".f32 rd, ra, rb, rc;", 'r',
        [=](U64 a, U64 b, U64 c) { return in_mode(mode, [&] { return std::fma(f(a), f(b), f(c)); }); }, nan32);
    sweep(
        "sqrt." + w + ".f32 rd, ra;", 'r',
        [=](U64 a, U64, U64) {
          const volatile float x = f(a);
          return in_mode(mode, [&] { return std::sqrt(x); });
        },
        nan32);
  }
  expect("add.rm.f32 rd, ra, rb;", 'r', {f(1.0f), f(-1.0f)}, f(-0.0f));
  expect("add.rp.f32 rd, ra, rb;", 'r', {f(1.0f), f(-1.0f)}, f(0.0f));
}

TEST(Float, DirectedRoundingOfF64) {
  const U64 one = std::bit_cast<U64>(1.0), three = std::bit_cast<U64>(3.0), third = std::bit_cast<U64>(1.0 / 3);
  expect("div.rp.f64 ld, la, lb;", 'l', {one, three}, third + 1);
  expect("div.rz.f64 ld, la, lb;", 'l', {one, three}, third);
  expect("add.rm.f64 ld, la, lb;", 'l', {one, std::bit_cast<U64>(-0x1p-80)}, one - 1);
}

TEST(Float, SubnormalsAreKeptUnlessFtz) {
  expect("add.f32 rd, ra, rb;", 'r', {1, 2}, 3);
  expect("add.ftz.f32 rd, ra, rb;", 'r', {1, 2}, 0);
  expect("mul.ftz.f32 rd, ra, rb;", 'r', {f(0x1p-100f), f(-0x1p-40f)}, 0x80000000);
  expect("mul.f32 rd, ra, rb;", 'r', {f(0x1p-100f), f(-0x1p-40f)}, f(-0x1p-140f));
  expect("max.ftz.f32 rd, ra, rb;", 'r', {5, 0x80000007}, 0);
}

TEST(Float, SaturationClampsToOneAndNanToZero) {
  expect("add.sat.f32 rd, ra, rb;", 'r', {f(0.75f), f(0.5f)}, f(1.0f));
  expect("add.sat.f32 rd, ra, rb;", 'r', {f(-0.75f), f(0.5f)}, 0);
  expect("mul.sat.f32 rd, ra, rb;", 'r', {0x7FC00000, f(0.5f)}, 0);
  expect("fma.rn.sat.f16 hd, ha, hb, hc;", 'h', {0x4000, 0x3C00, 0}, 0x3C00);
  expect("fma.rn.relu.f16 hd, ha, hb, hc;", 'h', {0xC000, 0x3C00, 0}, 0);
}

TEST(Float, NanResultsAreCanonical) {
  expect("add.f32 rd, ra, rb;", 'r', {0x7FC12345, f(1.0f)}, 0x7FFFFFFF);
  expect("sub.f32 rd, ra, rb;", 'r', {f(HUGE_VALF), f(HUGE_VALF)}, 0x7FFFFFFF);
  expect("add.f16 hd, ha, hb;", 'h', {0x7E01, 0}, 0x7FFF);
}

TEST(Float, MinimumAndMaximumModifiers) {
  expect("min.f32 rd, ra, rb;", 'r', {0, 0x80000000}, 0x80000000);
  expect("max.f32 rd, ra, rb;", 'r', {0x80000000, 0}, 0);
  expect("max.f32 rd, ra, rb;", 'r', {0x7FC00000, f(-3.0f)}, f(-3.0f));
  expect("max.NaN.f32 rd, ra, rb;", 'r', {0x7FC00000, f(-3.0f)}, 0x7FFFFFFF);
  expect("max.NaN.f32 rd, ra, rb, rc;", 'r', {f(1.0f), f(-3.0f), 0x7FC00000}, 0x7FFFFFFF);
  expect("min.f32 rd, ra, rb, rc;", 'r', {f(1.0f), f(-3.0f), f(-4.0f)}, f(-4.0f));
  expect("min.f32 rd, ra, rb, rc;", 'r', {0x7FC00000, f(2.0f), 0x7FC00000}, f(2.0f));
  expect("min.xorsign.abs.f32 rd, ra, rb;", 'r', {f(-2.0f), f(3.0f)}, f(-2.0f));
  expect("max.xorsign.abs.f32 rd, ra, rb;", 'r', {f(-2.0f), f(-3.0f)}, f(3.0f));
  expect("max.NaN.bf16x2 rd, ra, rb;", 'r', {0x7FC0BF80, 0x3F803F80}, 0x7FFF3F80);
  expect("min.f16x2 rd, ra, rb;", 'r', {0x3C00C000, 0xBC003C00}, 0xBC00C000);
}

TEST(Float, PackedArithmeticWorksOnHalves) {
  expect("add.rn.f16x2 rd, ra, rb;", 'r', {0x3C004000, 0x3C003C00}, 0x40004200);
  expect("mul.bf16x2 rd, ra, rb;", 'r', {0x3F804000, 0x40404040}, 0x404040C0);
  expect("fma.rn.f16x2 rd, ra, rb, rc;", 'r', {0x3C004000, 0x40004000, 0x3C003C00}, 0x42004500);
  expect("neg.bf16x2 rd, ra;", 'r', {0x3F80BF80}, 0xBF803F80);
  expect("abs.f16x2 rd, ra;", 'r', {0xBC00BC00}, 0x3C003C00);
  expect("add.rn.f32x2 ld, la, lb;", 'l', {U64{f(1.0f)} << 32 | f(2.0f), U64{f(3.0f)} << 32 | f(5.0f)},
         U64{f(4.0f)} << 32 | f(7.0f));
  expect("fma.rn.f32x2 ld, la, lb, lc;", 'l',
         {U64{f(1.0f)} << 32 | f(2.0f), U64{f(3.0f)} << 32 | f(5.0f), U64{f(1.0f)} << 32 | f(1.0f)},
         U64{f(4.0f)} << 32 | f(11.0f));
}

TEST(Float, MixedPrecisionAddsToF32) {
  expect("add.rn.f32.f16 rd, ha, rb;", 'r', {0x3C00, f(0x1p-20f)}, f(1.0f + 0x1p-20f));
  expect("sub.rn.f32.bf16 rd, ha, rb;", 'r', {0x4000, f(0.5f)}, f(1.5f));
  expect("fma.rn.f32.f16 rd, ha, hb, rc;", 'r', {0x4200, 0x4400, f(1.0f)}, f(13.0f));
}

TEST(Float, NarrowFmaRoundsOnce) {
  // 1 + 2^-11 is a tie of f16; a product just above it must round up although its f32 or f64 sum is the tie.
  expect("fma.rn.f16 hd, ha, hb, hc;", 'h', {0x0001, 0x0001, 0x3C00}, 0x3C00);
  expect("fma.rn.bf16 hd, ha, hb, hc;", 'h', {0x3F81, 0x3F80, 0x0001}, 0x3F81);
  // (1 + 2^-7)² = 1 + 2^-6 + 2^-14; minus a subnormal it is below the tie of the last bit.
  expect("fma.rn.bf16 hd, ha, hb, hc;", 'h', {0x3F88, 0x3F88, 0x8001}, 0x3F90);
  expect("fma.rn.bf16 hd, ha, hb, hc;", 'h', {0x3F88, 0x3F88, 0x0001}, 0x3F91);
}

TEST(Float, ApproximationsAreCloseToTheFunction) {
  const auto near = [](const std::string& op, double (*fn)(double), float low, float high) {
    std::vector<Args> rows;
    for (int i = 0; i < 1000; ++i) rows.push_back({f(low + (high - low) * static_cast<float>(i) / 999)});
    const auto got = run_each(op + " rd, ra;", 'r', rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double want = fn(f(rows[i].a));
      ASSERT_NEAR(f(got[i]), want, std::fabs(want) * 0x1p-23) << op << " of " << f(rows[i].a);
    }
  };
  near("ex2.approx.f32", std::exp2, -120, 120);
  near("lg2.approx.f32", std::log2, 1e-3f, 1e3f);
  near("sin.approx.f32", std::sin, -3, 3);
  near("cos.approx.f32", std::cos, -3, 3);
  near("tanh.approx.f32", std::tanh, -4, 4);
  near(
      "rcp.approx.f32", [](double x) { return 1 / x; }, 0.1f, 10);
  near(
      "rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }, 0.1f, 10);
  near("sqrt.approx.f32", std::sqrt, 0.1f, 10);
  expect("ex2.approx.ftz.f32 rd, ra;", 'r', {f(-130.0f)}, 0);
  expect("ex2.approx.f16 hd, ha;", 'h', {0x4200}, 0x4800);
  expect("ex2.approx.ftz.bf16x2 rd, ra;", 'r', {0x40003F80}, 0x40804000);
  expect("div.full.f32 rd, ra, rb;", 'r', {f(7.0f), f(2.0f)}, f(3.5f));
  expect("lg2.approx.f32 rd, ra;", 'r', {0}, f(-HUGE_VALF));
}

TEST(Float, PropertiesAndSigns) {
  const auto test = [](const std::string& property, U64 v) {
    return run_each("testp." + property + ".f32 p, ra; selp.u32 rd, 1, 0, p;", 'r', {{v}})[0];
  };
  EXPECT_EQ(test("finite", f(1.0f)), 1u);
  EXPECT_EQ(test("infinite", f(-HUGE_VALF)), 1u);
  EXPECT_EQ(test("number", 0x7FC00000), 0u);
  EXPECT_EQ(test("notanumber", 0x7FC00000), 1u);
  EXPECT_EQ(test("subnormal", 1), 1u);
  EXPECT_EQ(test("normal", 1), 0u);
  expect("copysign.f32 rd, ra, rb;", 'r', {f(-1.0f), f(5.0f)}, f(-5.0f));
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

TEST(Convert, IntegersTruncateExtendAndSaturate) {
  expect("cvt.s32.s8 rd, ra;", 'r', {0x1FF}, 0xFFFFFFFF);
  expect("cvt.u32.u8 rd, ra;", 'r', {0x1FF}, 0xFF);
  expect("cvt.s64.s8 ld, la;", 'l', {0x80}, 0xFFFFFFFFFFFFFF80);
  expect("cvt.sat.s8.s32 rd, ra;", 'r', {0x12345678}, 127);
  expect("cvt.sat.u8.s32 rd, ra;", 'r', {0x80000000}, 0);
  expect("cvt.sat.u16.u64 hd, la;", 'h', {0x100000000}, 0xFFFF);
  expect("cvt.sat.s32.u32 rd, ra;", 'r', {0xFFFFFFFF}, 0x7FFFFFFF);
  expect("cvt.pack.sat.u8.s32.b32 rd, ra, rb, rc;", 'r', {300, 0xFFFFFFFF, 0x1234}, 0x1234FF00);
  expect("cvt.pack.sat.s16.s32 rd, ra, rb;", 'r', {0x80000000, 40000}, 0x80007FFF);
}

TEST(Convert, FloatsToIntegersRoundAndClamp) {
  expect("cvt.rni.s32.f32 rd, ra;", 'r', {f(2.5f)}, 2);
  expect("cvt.rzi.s32.f32 rd, ra;", 'r', {f(-2.7f)}, 0xFFFFFFFE);
  expect("cvt.rmi.s32.f32 rd, ra;", 'r', {f(-2.1f)}, 0xFFFFFFFD);
  expect("cvt.rpi.s32.f32 rd, ra;", 'r', {f(2.1f)}, 3);
  expect("cvt.rzi.s32.f32 rd, ra;", 'r', {f(3e9f)}, 0x7FFFFFFF);
  expect("cvt.rzi.u32.f32 rd, ra;", 'r', {f(-1.0f)}, 0);
  expect("cvt.rzi.s32.f32 rd, ra;", 'r', {0x7FC00000}, 0);
  expect("cvt.rzi.u64.f32 ld, ra;", 'l', {f(1e30f)}, 0xFFFFFFFFFFFFFFFF);
  expect("cvt.rzi.s64.f64 ld, la;", 'l', {std::bit_cast<U64>(-1e30)}, 0x8000000000000000);
  expect("cvt.rzi.ftz.u32.f32 rd, ra;", 'r', {1}, 0);
}

TEST(Convert, IntegersToFloatsRoundOnce) {
  expect("cvt.rn.f32.s64 rd, la;", 'r', {0x4000004000000001}, f(0x1.000002p62f));
  expect("cvt.rz.f32.u32 rd, ra;", 'r', {0xFFFFFFFF}, f(4294967040.0f));
  expect("cvt.rp.f32.u32 rd, ra;", 'r', {0xFFFFFFFF}, f(4294967296.0f));
  expect("cvt.rm.f32.s32 rd, ra;", 'r', {0x80000001}, f(-2147483648.0f));
  expect("cvt.rn.f16.u32 hd, ra;", 'h', {70000}, 0x7C00);
  expect("cvt.rm.f64.s64 ld, la;", 'l', {0x7FFFFFFFFFFFFFFF}, std::bit_cast<U64>(9223372036854774784.0));
}

TEST(Convert, FloatsBetweenFormats) {
  expect("cvt.rn.f16.f32 hd, ra;", 'h', {f(1.0f + 0x1p-11f)}, 0x3C00);
  expect("cvt.rz.f16.f32 hd, ra;", 'h', {f(1.0f + 0x1.8p-11f)}, 0x3C00);
  expect("cvt.rn.bf16.f32 hd, ra;", 'h', {0x3F808001}, 0x3F81);
  expect("cvt.rn.relu.bf16.f32 hd, ra;", 'h', {f(-1.0f)}, 0);
  expect("cvt.rn.f32.f64 rd, la;", 'r', {std::bit_cast<U64>(1.0 + 0x1p-24 + 0x1p-50)}, f(1.0f + 0x1p-23f));
  expect("cvt.rn.bf16x2.f32 rd, ra, rb;", 'r', {f(2.0f), f(1.0f)}, 0x40003F80);
  expect("cvt.rn.relu.f16x2.f32 rd, ra, rb;", 'r', {f(-2.0f), f(1.0f)}, 0x00003C00);
  expect("cvt.rmi.f32.f32 rd, ra;", 'r', {f(-0.5f)}, f(-1.0f));
  expect("cvt.rni.f32.f32 rd, ra;", 'r', {f(-0.5f)}, f(-0.0f));
  expect("cvt.sat.f32.f32 rd, ra;", 'r', {f(1.5f)}, f(1.0f));
  expect("cvt.rna.tf32.f32 rd, ra;", 'r', {0x3F801000}, 0x3F802000);
  expect("cvt.f32.f16 rd, ha;", 'r', {0x0001}, f(0x1p-24f));
  expect("cvt.f32.bf16 rd, ha;", 'r', {0x0001}, 0x00010000);
}

TEST(Convert, EightBitFloatsSaturate) {
  const auto e4m3 = [](float v) {
    return run_each("cvt.rn.satfinite.e4m3x2.f32 hd, ra, rb;", 'h', {{f(v), f(0.0f)}})[0] >> 8;
  };
  EXPECT_EQ(e4m3(1.0f), 0x38u);
  EXPECT_EQ(e4m3(448.0f), 0x7Eu);
  EXPECT_EQ(e4m3(1e9f), 0x7Eu);
  EXPECT_EQ(e4m3(-HUGE_VALF), 0xFEu);
  EXPECT_EQ(e4m3(std::nanf("")), 0x7Fu);
  EXPECT_EQ(e4m3(0x1p-9f), 0x01u);
  EXPECT_EQ(e4m3(0x1p-10f), 0x00u);
  EXPECT_EQ(e4m3(1.0625001f), 0x39u);  // just above the tie of 1 and 1.125: one rounding, not two
  expect("cvt.rn.satfinite.e5m2x2.f32 hd, ra, rb;", 'h', {f(1e9f), f(1.0f)}, 0x7B3C);
  expect("cvt.rn.satfinite.e4m3x2.f16x2 hd, ra;", 'h', {0x3C00C000}, 0x38C0);
  // Every code of both formats survives the way through f16.
  for (U64 b = 0; b < 256; ++b) {
    if ((b & 0x7F) < 0x7F)
      expect("cvt.rn.f16x2.e4m3x2 rd, ha; cvt.rn.satfinite.e4m3x2.f16x2 hd, rd;", 'h', {b << 8 | b}, b << 8 | b);
    if ((b & 0x7F) < 0x7C)
      expect("cvt.rn.f16x2.e5m2x2 rd, ha; cvt.rn.satfinite.e5m2x2.f16x2 hd, rd;", 'h', {b << 8 | b}, b << 8 | b);
  }
}

TEST(Move, PacksAndUnpacks) {
  expect("mov.b64 {ra, rb}, la; mov.b64 ld, {rb, ra};", 'l', {0x1122334455667788}, 0x5566778811223344);
  expect("mov.b32 {ha, hb}, ra; mov.b32 rd, {hb, ha};", 'r', {0x11223344}, 0x33441122);
  expect("mov.b64 {ha, hb, hc, hd}, la; mov.b64 ld, {hd, hc, hb, ha};", 'l', {0x1111222233334444}, 0x4444333322221111);
  expect("mov.b64 {_, rd}, la;", 'r', {0x1122334455667788}, 0x11223344);
}

}  // namespace
}  // namespace kiln::test

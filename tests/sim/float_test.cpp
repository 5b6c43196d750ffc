// Instructions of floats, and conversions, against C++.
#include <cfenv>
#include <cmath>

#include "tests/sim/instruction_row.h"

namespace kiln::test::instructions {
namespace {

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

TEST(Convert, SingleHalvesSaturateToTheLargest) {
  expect("mov.b32 ra, 0f7F000000; cvt.rn.satfinite.f16.f32 hd, ra;", 'h', {}, 0x7BFF);
  expect("mov.b32 ra, 0fFF800000; cvt.rn.satfinite.bf16.f32 hd, ra;", 'h', {}, 0xFF7F);
  expect("mov.b32 ra, 0f7FC00000; cvt.rn.satfinite.f16.f32 hd, ra;", 'h', {}, 0x7FFF);
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
  expect("cvt.rn.satfinite.relu.e4m3x2.f32 hd, ra, rb;", 'h', {f(-0.0f), f(1.0f)}, 0x0038);
  // Every code of both formats survives the way through f16.
  for (U64 b = 0; b < 256; ++b) {
    if ((b & 0x7F) < 0x7F)
      expect("cvt.rn.f16x2.e4m3x2 rd, ha; cvt.rn.satfinite.e4m3x2.f16x2 hd, rd;", 'h', {b << 8 | b}, b << 8 | b);
    if ((b & 0x7F) < 0x7C)
      expect("cvt.rn.f16x2.e5m2x2 rd, ha; cvt.rn.satfinite.e5m2x2.f16x2 hd, rd;", 'h', {b << 8 | b}, b << 8 | b);
  }
}

}  // namespace
}  // namespace kiln::test::instructions

// wgmma of every type against a plain product: operands in shared memory in each layout that a descriptor can say,
// written there by formulas of their own, or A in registers.
#include "tests/sim/wgmma_case.h"

namespace kiln::test::wgmma {
namespace {

TEST(Wgmma, Of16Bits) {
  expect_exact({{"f32", "f16", "f16", 64}, {"f16", "f16", "f16", 64}, {"f32", "bf16", "bf16", 64}});
}
TEST(Wgmma, OfTf32) {
  expect_exact({{"f32", "tf32", "tf32", 32}, {.d = "f32", .a = "tf32", .b = "tf32", .n = 40, .a_in_registers = true}});
}
TEST(Wgmma, OfFloatsOf8Bits) {
  std::vector<Case> cases;
  for (const char* a : {"e4m3", "e5m2"})
    for (const char* b : {"e4m3", "e5m2"})
      for (const char* d : {"f32", "f16"}) {
        cases.push_back({d, a, b, 24});
        cases.push_back({.d = d, .a = a, .b = b, .n = 16, .a_in_registers = true});
      }
  expect_exact(cases);
}
TEST(Wgmma, OfBytes) {
  std::vector<Case> cases;
  for (const char* a : {"s8", "u8"})
    for (const char* b : {"s8", "u8"}) {
      cases.push_back({"s32", a, b, 48});
      cases.push_back({.d = "s32", .a = a, .b = b, .n = 16, .a_in_registers = true});
      cases.push_back({.d = "s32", .a = a, .b = b, .n = 8, .modifiers = ".satfinite"});
    }
  expect_exact(cases);
}

TEST(Wgmma, NarrowAndWide) {
  std::vector<Case> cases;
  for (const int n : {8, 16, 104, 256}) cases.push_back({"f32", "bf16", "bf16", n});
  expect_exact(cases);
}

TEST(Wgmma, EveryLayoutOfKMajorOperands) {
  std::vector<Case> cases;
  const std::pair<int, int> widths[] = {{16, 16}, {32, 32}, {64, 64}, {128, 128}, {16, 128}, {128, 16}};
  for (const auto& [wa, wb] : widths) {
    const int steps = std::min(wa == 16 ? 4 : wa / 32, wb == 16 ? 4 : wb / 32);
    cases.push_back({.d = "f32", .a = "bf16", .b = "bf16", .n = 24, .la = {wa}, .lb = {wb}, .steps = steps});
  }
  cases.push_back(
      {.d = "s32", .a = "s8", .b = "u8", .n = 24, .la = {16, false, 0, 48}, .lb = {16, false, 0, 16}, .steps = 2});
  expect_exact(cases);
}

TEST(Wgmma, EveryLayoutOfMnMajorOperands) {
  std::vector<Case> cases;
  for (const int width : {16, 32, 64, 128})
    cases.push_back({.d = "f32",
                     .a = "bf16",
                     .b = "bf16",
                     .n = width == 128 ? 128 : 40,
                     .la = {width, true},
                     .lb = {width, true},
                     .steps = 2});
  cases.push_back({.d = "f32", .a = "f16", .b = "f16", .n = 16, .la = {128, false}, .lb = {16, true}, .steps = 4});
  cases.push_back({.d = "f32", .a = "f16", .b = "f16", .n = 16, .la = {32, true}, .lb = {128, false}, .steps = 3});
  expect_exact(cases);
}

TEST(Wgmma, ThePatternMayStartAtAnyRow) {
  std::vector<Case> cases;
  for (const int rows : {1, 4, 6})
    cases.push_back(
        {.d = "f32", .a = "bf16", .b = "bf16", .n = 16, .la = {128, false, rows}, .lb = {128, false, 8 - rows}});
  expect_exact(cases);
}

TEST(Wgmma, AInRegisters) {
  expect_exact({{.d = "f32", .a = "bf16", .b = "bf16", .n = 64, .a_in_registers = true, .steps = 4},
                {.d = "f16", .a = "f16", .b = "f16", .n = 16, .lb = {64, true}, .a_in_registers = true}});
}

TEST(Wgmma, Scales) {
  std::vector<Case> cases;
  for (const int a : {1, -1})
    for (const int b : {1, -1})
      for (const bool d : {false, true})
        cases.push_back({.d = "f32", .a = "f16", .b = "f16", .n = 8, .scale_d = d, .scale_a = a, .scale_b = b});
  cases.push_back({.d = "s32", .a = "s8", .b = "s8", .n = 8, .scale_d = false});
  expect_exact(cases);
}

/// When a product is carried out makes no difference to a kernel that waits for it.
TEST(Wgmma, EverySchedule) {
  for (const char* schedule : {"early", "random:1", "random:2"}) {
    SCOPED_TRACE(schedule);
    const Knob knob("KILN_SIM_SCHEDULE", schedule);
    expect_exact({{.d = "f32", .a = "bf16", .b = "bf16", .n = 16, .steps = 4},
                  {.d = "f32", .a = "f16", .b = "f16", .n = 16, .a_in_registers = true, .steps = 4}});
  }
}

/// As that of mma: k + 1 terms lose less than 2^-23 of the largest each.
TEST(Wgmma, SumsStayWithinTheBound) {
  std::minstd_rand random(13);
  std::normal_distribution<float> normal;
  const Case c{"f32", "bf16", "bf16", 64};
  const auto value = [&] { return decode("bf16", encode("bf16", normal(random))); };
  const Matrix a = filled(kM, 16, value), b = filled(64, 16, value),
               d = filled(kM, 64, [&] { return static_cast<double>(normal(random)); }), want = product(c, a, b, d);
  Program p;
  p.add(c, a, b, d);
  p.program.judge = [&](const std::vector<std::uint32_t>& data) {
    const Matrix got = p.result(0, data);
    for (int r = 0; r < kM; ++r)
      for (int n = 0; n < c.n; ++n) {
        double largest = std::fabs(d.at(r, n));
        for (int k = 0; k < 16; ++k) largest = std::max(largest, std::fabs(a.at(r, k) * b.at(n, k)));
        ASSERT_NEAR(got.at(r, n), want.at(r, n), 17 * 0x1p-23 * largest + 0x1p-23 * std::fabs(want.at(r, n)));
      }
  };
  p.run();
}

}  // namespace
}  // namespace kiln::test::wgmma

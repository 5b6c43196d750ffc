// mma.sync of every shape and type against a plain matrix product, its fragments laid out by formulas of their own:
// what element i of a lane's fragment is, written for each shape as the instruction set has it.
#include "tests/sim/mma_case.h"

namespace kiln::test::mma {
namespace {

TEST(Mma, Of16Bits) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_16()) {
    cases.push_back({"f32", "f16", "f16", s});
    cases.push_back({"f16", "f16", "f16", s});
    cases.push_back({"f32", "bf16", "bf16", s});
  }
  expect_exact(cases);
}

TEST(Mma, OfTf32AndF64) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_32()) cases.push_back({"f32", "tf32", "tf32", s});
  for (const Shape& s : shapes_64()) cases.push_back({"f64", "f64", "f64", s});
  expect_exact(cases);
}

TEST(Mma, OfBytes) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_8(true))
    for (const char* a : {"s8", "u8"})
      for (const char* b : {"s8", "u8"}) {
        cases.push_back({"s32", a, b, s});
        cases.push_back({"s32", a, b, s, ".satfinite"});
      }
  expect_exact(cases);
}

TEST(Mma, OfFloatsOf8Bits) {
  std::vector<Case> cases;
  for (const Shape& s : shapes_8(false))
    for (const char* a : {"e4m3", "e5m2"})
      for (const char* b : {"e4m3", "e5m2"}) {
        cases.push_back({"f32", a, b, s});
        cases.push_back({"f16", a, b, s});
      }
  expect_exact(cases);
}

TEST(Mma, IntegersWrapOrAreClamped) {
  Program p;
  std::vector<std::uint32_t> want;
  for (const double start : {2147483647.0, -2147483648.0}) {
    const double factor = start < 0 ? -128 : 127;
    Matrix a = filled(16, 32, [=] { return factor; }), b = filled(32, 8, [] { return 127.0; }),
           c = filled(16, 8, [=] { return start; });
    for (const bool saturates : {false, true}) {
      p.add({"s32", "s8", "s8", shapes_8(false)[1], saturates ? ".satfinite" : ""}, a, b, c);
      want.push_back(
          static_cast<std::uint32_t>(static_cast<std::int64_t>(saturates ? start : start + 32 * 127 * factor)));
    }
  }
  p.run();
  for (std::size_t i = 0; i < want.size(); ++i)
    for (const std::uint32_t got : p.result(i)) ASSERT_EQ(got, want[i]) << i;
}

/// In the order of k, one rounding a step.
TEST(Mma, F64IsAChainOfFusedMultiplyAdds) {
  std::minstd_rand random(3);
  std::normal_distribution<double> normal;
  const auto value = [&] { return normal(random); };
  Program p;
  std::vector<std::vector<std::uint32_t>> want;
  for (const Shape& s : shapes_64()) {
    Matrix a = filled(s.m, s.k, value), b = filled(s.k, 8, value), c = filled(s.m, 8, value), d = c;
    for (int r = 0; r < s.m; ++r)
      for (int n = 0; n < 8; ++n)
        for (int k = 0; k < s.k; ++k) d.at({r, n}) = std::fma(a.at({r, k}), b.at({k, n}), d.at({r, n}));
    p.add({"f64", "f64", "f64", s}, a, b, c);
    want.push_back(pack(d, "f64", place_of_c));
  }
  p.run();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(p.result(i), want[i]) << shapes_64()[i].name;
}

TEST(Mma, F64RoundsAsItSays) {
  const Shape s = shapes_64()[1];
  const std::pair<const char*, double> modes[] = {{".rn", 1.0}, {".rz", 1.0}, {".rm", 1.0}, {".rp", 1.0 + 0x1p-52}};
  Matrix a{16, 4}, b{4, 8}, c = filled(16, 8, [] { return 1.0; });
  for (int r = 0; r < 16; ++r) a.at({r, 2}) = 0x1p-30;
  for (int n = 0; n < 8; ++n) b.at({2, n}) = 0x1p-30;
  Program p;
  for (const auto& [modifier, sum] : modes) p.add({"f64", "f64", "f64", s, modifier}, a, b, c);
  p.run();
  for (std::size_t i = 0; i < 4; ++i) {
    Matrix d = filled(16, 8, [&] { return modes[i].second; });
    EXPECT_EQ(p.result(i), pack(d, "f64", place_of_c)) << modes[i].first;
  }
}

/// Sums that are not exact: tensor cores align the terms and cut them off, so a bound is all there is. It is that of
/// k + 1 terms that lose less than 2^-23 of the largest each, and the result's rounding.
TEST(Mma, SumsStayWithinTheBound) {
  struct Run {
    std::string type;
    Shape shape;
    Matrix a, b, c, d;
  };
  std::minstd_rand random(11);
  std::normal_distribution<float> normal;
  std::vector<Run> runs;
  Program p;
  for (const auto& [type, shape] :
       {std::pair<std::string, Shape>{"bf16", shapes_16()[1]}, {"f16", shapes_16()[0]}, {"tf32", shapes_32()[1]}}) {
    const auto value = [&, t = type] { return decode(t, encode(t, normal(random))); };
    Matrix a = filled(16, shape.k, value), b = filled(shape.k, 8, value),
           c = filled(16, 8, [&] { return static_cast<double>(normal(random)); });
    p.add({"f32", type, type, shape}, a, b, c);
    runs.push_back({type, shape, a, b, c, product(a, b, c)});
  }
  p.program.judge = [&](const std::vector<std::uint32_t>& data) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Run& run = runs[i];
      const auto got = p.result(i, data);
      for (std::size_t w = 0; w < got.size(); ++w) {
        const int lane = static_cast<int>(w) % 32;
        const Place at = place_of_c(static_cast<int>(w) / 32, lane / 4, lane % 4);
        double largest = std::fabs(run.c.at(at));
        for (int k = 0; k < run.shape.k; ++k)
          largest = std::max(largest, std::fabs(run.a.at({at.row, k}) * run.b.at({k, at.col})));
        EXPECT_NEAR(std::bit_cast<float>(got[w]), run.d.at(at),
                    (run.shape.k + 1) * 0x1p-23 * largest + 0x1p-23 * std::fabs(run.d.at(at)))
            << run.type;
      }
    }
  };
  p.run();
}

TEST(Mma, InfinityAndNan) {
  Matrix a{16, 16}, b{16, 8}, c{16, 8};
  const double inf = std::numeric_limits<double>::infinity();
  for (int n = 0; n < 8; ++n) b.at({0, n}) = 1;
  a.at({0, 0}) = inf;
  a.at({1, 0}) = -inf;
  a.at({2, 1}) = inf;  // times 0
  a.at({3, 0}) = inf;
  c.at({3, 0}) = -inf;
  Program p;
  p.add({"f32", "f16", "f16", shapes_16()[1]}, a, b, c);
  p.run();
  const auto got = p.result(0);
  EXPECT_EQ(got[0], 0x7F800000u);
  EXPECT_EQ(got[4], 0xFF800000u);
  EXPECT_EQ(got[8], 0x7FFFFFFFu);
  EXPECT_EQ(got[12], 0x7FFFFFFFu);
}

TEST(Mma, FormsThatDoNotExistAreNamed) {
  const auto refusal = [](const std::string& instruction, const std::string& target = "sm_90a") {
    ThreadProgram p{instruction, target};
    return [p]() mutable {
      try {
        (void)load(Device::simulator(p.target), thread_program(p.body, p.target), "k");
      } catch (const DeviceError& e) {
        return std::string(e.what());
      }
      return std::string("taken");
    }();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal("mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32 "
              "{%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%r8,%r9},{%r0,%r1,%r2,%r3};"),
      "matrices of s4 elements are not simulated");
  has(refusal("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc "
              "{%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%r8,%r9},{%r0,%r1,%r2,%r3};"),
      "matrices of b1 elements are not simulated");
  has(refusal("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 "
              "{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7},{%r0,%r1},{%r2,%r3},{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7};"),
      "m8n8k4 of f16 is of sm_70");
  has(refusal("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
              "{%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%f0,%f1,%f2,%f3},%r8,0x0;"),
      "sparse matrices are not simulated");
  has(refusal("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
              "{%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5},{%f0,%f1,%f2,%f3};",
              "sm_80"),
      "needs sm_89 or later, the module is for sm_80");
  has(refusal(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%r0,%r1},{%r4,%r5},{%f0,%f1,%f2,%f3};"),
      "a fragment has another number of registers");
  has(refusal("mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 "
              "{%f0,%f1,%f2,%f3},{%r0,%r1,%r2,%r3},{%r4,%r5},{%f0,%f1,%f2,%f3};"),
      "this form is not supported");
  has(refusal("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%r4];"), "needs sm_100");
}

TEST(Mma, NeedsAllLanes) {
  const std::string instruction =
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%r0,%r2},{%r3},{%f0,%f1,%f2,%f3};\n";
  const std::string error = fault_of(
      {" setp.lt.u32 %p1, %r1, 8;\n mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n"
       " mov.u32 %r0, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;\n @%p1 " +
       instruction});
  EXPECT_NE(error.find("active lanes 0x000000ff; needs all 32"), std::string::npos) << error;
}

}  // namespace
}  // namespace kiln::test::mma

// Every pair of element types, saturating and not, over special and random values and every pattern of types of at most
// 16 bits, on the interpreter, the simulators and each GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/op/check.h"
#include "tests/op/op_table.h"
#include "tests/op/values.h"

namespace kiln::test {
namespace {

class Cast : public testing::TestWithParam<std::size_t> {};

TEST_P(Cast, ToEveryTypeIsOneRounding) {
  DType from = all_dtypes()[GetParam()];
  Columns columns{sweep_values(from, 4000)};
  for (DType to : all_dtypes())
    for (bool saturate : {false, true})
      if (!saturate || is_float(to)) expect_as_interpreted(cast_kernel(from, to, saturate), columns);
}

TEST_P(Cast, IsTheSameOnTilesScalarsAndConstants) {
  DType from = all_dtypes()[GetParam()];
  const Columns columns = sample({sweep_values(from, 60)}, 60);
  for (DType to : all_dtypes()) {
    Kernel kernel = cast_kernel(from, to, false);
    expect_in_every_form(kernel, columns, interpreter_machine().run(kernel, columns));
  }
}

INSTANTIATE_TEST_SUITE_P(From, Cast, testing::Range<std::size_t>(0, all_dtypes().size()),
                         [](const auto& p) { return std::string(name(all_dtypes()[p.param])); });

/// Floats of a narrow type are checked by what rounding means: no neighbour is nearer, and a tie goes to the even
/// pattern.
TEST(CastToNarrowFloat, GivesTheNearestValue) {
  for (DType from : {DType::f32, DType::f64})
    for (DType to : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
      Columns columns{sweep_values(from, 4000)};
      Kernel kernel = cast_kernel(from, to, false);
      std::vector<std::uint64_t> got = interpreter_machine().run(kernel, columns);
      Failures failures(interpreter_machine(), kernel);
      for (std::size_t i = 0; i < got.size(); ++i) {
        double x = value_of(from, columns[0][i]), y = value_of(to, got[i]);
        if (!std::isfinite(x) || !std::isfinite(y)) continue;
        std::uint64_t sign = 1ull << (bits(to) - 1), magnitude = got[i] & (sign - 1);
        for (std::uint64_t neighbour : {magnitude + 1, magnitude ? magnitude - 1 : 0}) {
          double d = std::fabs(value_of(to, neighbour) - std::fabs(x)), e = std::fabs(std::fabs(y) - std::fabs(x));
          if (d < e || (d == e && neighbour != magnitude && got[i] & 1)) failures.add(describe(kernel, columns, i));
        }
      }
    }
}

struct Case {
  DType from, to;
  bool saturate;
  std::uint64_t x, want;
};

TEST(CastCases, HoldOnEveryMachineInEveryForm) {
  using D = DType;
  const std::vector<Case> cases = {
      {D::f16, D::f8e5m2, false, 0x7c00, 0x7c},  // infinity stays
      {D::f16, D::f8e5m2, false, 0xfbff, 0xfc},  // -65504 overflows
      {D::f16, D::f8e5m2, true, 0x7c00, 0x7b},
      {D::f32, D::f8e4m3, false, 0x7f800000, 0x7f},  // no infinity: NaN
      {D::f32, D::f8e4m3, true, 0x7f800000, 0x7e},
      {D::f32, D::f8e4m3, true, 0x7fc00000, 0x7f},   // NaN is not clamped
      {D::f32, D::f8e4m3, false, 0x43e80000, 0x7e},  // 464, the tie below overflow
      {D::f32, D::f8e4m3, false, 0x43e80001, 0x7f},
      {D::f32, D::f8e4m3, false, 0x3f880001, 0x39},  // just above the tie 1.0625: through f16 it would be 1
      {D::f32, D::bf16, false, 0x7f800001, 0x7fff},  // a NaN of low payload bits stays NaN
      {D::f32, D::bf16, false, 0xff800000, 0xff80},
      {D::f64, D::bf16, false, 0x3ff0100000000001, 0x3f81},  // just above a tie: through f32 it would be 1
      {D::f64, D::f16, false, 0x3ff0020000000001, 0x3c01},
      {D::i32, D::bf16, false, 0x01010001, 0x4b81},  // likewise
      {D::i64, D::bf16, false, 0x0101000000000001, 0x5b81},
      {D::f32, D::i32, false, 0x7fc00000, 0},
      {D::f32, D::i32, false, 0x7f800000, 0x7fffffff},
      {D::f64, D::i64, false, 0x7ff8000000000000, 0},
      {D::f32, D::i64, false, 0xff800000, 0x8000000000000000},
      {D::f32, D::u8, false, 0xbf800000, 0},
      {D::f32, D::i8, false, 0xc3000000, 0x80},
      {D::i32, D::i8, false, 0xfffffff9, 0xf9},
      {D::f32, D::i1, false, 0x80000000, 0},
      {D::f32, D::i1, false, 0x7fc00000, 1},
  };
  for (const Case& c : cases) {
    Kernel kernel = cast_kernel(c.from, c.to, c.saturate);
    expect_in_every_form(kernel, {{c.x}}, {c.want});
  }
}

/// A constant fills neighbours of one vector store without leaking its sign bits into them.
TEST(CastCases, NegativeBytesStayInTheirLanes) {
  Kernel fill{"fill_i8", {DType::i8}, DType::i8, [](ir::Builder& b, const std::vector<ir::Value>& x) {
                ir::Value seven = b.splat(b.constant(ir::Literal::of_int(DType::i8, -7), {}), {256}, {});
                ir::Value zero = b.elementwise(ir::Op::Xor, {x[0], x[0]}, {});
                return b.elementwise(ir::Op::Or, {zero, seven}, {});
              }};
  Columns columns{std::vector<std::uint64_t>(64, 3)};
  for (const auto& machine : compiled_machines())
    expect_equal(*machine, fill, columns, std::vector<std::uint64_t>(64, 0xf9));
}

/// Rounding to a narrow type and back is never optimised away.
TEST(CastCases, RoundTripRounds) {
  Kernel round{"round_bf16", {DType::f32}, DType::f32, [](ir::Builder& b, const std::vector<ir::Value>& x) {
                 return b.cast(b.cast(x[0], DType::bf16, false, {}), DType::f32, false, {});
               }};
  for (const auto& machine : compiled_machines()) expect_equal(*machine, round, {{0x3f808001}}, {0x3f810000});
}

}  // namespace
}  // namespace kiln::test

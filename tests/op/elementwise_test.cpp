// Every elementwise op on every type it takes, generated from ops.def: over special and random values (every pattern of
// 16-bit types for ops of one operand) on the interpreter, the simulators and each GPU.
#include <gtest/gtest.h>

#include <cstdio>

#include "backend/ir/op.h"
#include "tests/op/accuracy.h"
#include "tests/op/check.h"
#include "tests/op/op_table.h"
#include "tests/op/values.h"

namespace kiln::test {
namespace {

using ir::Op;

void expect_near(Machine& machine, const Kernel& kernel, Op op, bool fast, const Columns& columns) {
  std::vector<std::uint64_t> got = machine.run(kernel, columns);
  DType d = kernel.output;
  Failures failures(machine, kernel);
  for (std::size_t i = 0; i < got.size(); ++i) {
    double x = value_of(d, columns[0][i]), y = columns.size() > 1 ? value_of(d, columns[1][i]) : 0;
    double want = reference(op, x, y), result = value_of(d, got[i]);
    std::optional<double> allowed = tolerance(op, fast, d, x, y, want);
    if (allowed && !near_enough(d, result, want, *allowed)) {
      char text[160];
      std::snprintf(text, sizeof text, ": got %a, want %a within %a", result, want, *allowed);
      failures.add(describe(kernel, columns, i) + text);
    }
  }
}

class Elementwise : public testing::TestWithParam<std::size_t> {};

TEST_P(Elementwise, IsAsTheTableSaysOnEveryMachine) {
  const Row& row = rows()[GetParam()];
  for (DType d : all_dtypes()) {
    if (!takes(row.rule, d)) continue;
    Columns columns = sweep_tuples(d, row.arity, 3000);
    for (bool fast : {false, true}) {
      if (fast && !(row.fast && is_float(d))) continue;
      Kernel kernel = elementwise_kernel(row, d, fast);
      if (row.exact && !fast) {
        expect_as_interpreted(kernel, columns);
      } else {
        if (!fast) expect_near(interpreter_machine(), kernel, row.op, fast, columns);
        for (const auto& machine : compiled_machines()) expect_near(*machine, kernel, row.op, fast, columns);
      }
    }
  }
}

TEST_P(Elementwise, IsTheSameOnTilesScalarsAndConstants) {
  const Row& row = rows()[GetParam()];
  if (!row.exact) return;
  for (DType d : all_dtypes()) {
    if (!takes(row.rule, d)) continue;
    const Columns columns = sample(sweep_tuples(d, row.arity, 60), 60);
    Kernel kernel = elementwise_kernel(row, d, false);
    expect_in_every_form(kernel, columns, interpreter_machine().run(kernel, columns));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Elementwise, testing::Range<std::size_t>(0, rows().size()),
                         [](const auto& p) { return std::string(ir::mnemonic(rows()[p.param].op)); });

/// One case by hand: operands and the result as patterns.
struct Case {
  Op op;
  DType d;
  std::vector<std::uint64_t> operands;
  std::uint64_t want;
};

TEST(ElementwiseCases, HoldOnEveryMachineInEveryForm) {
  const std::vector<Case> cases = {
      {Op::Div, DType::i32, {7, 0}, 0},
      {Op::Div, DType::i32, {0x80000000, 0xffffffff}, 0x80000000},
      {Op::Div, DType::i64, {0xfffffffffffffff9, 2}, 0xfffffffffffffffd},  // -7 / 2 = -3
      {Op::Div, DType::i64, {15, 0xfffffffffffffffe}, 0xfffffffffffffff9},  // 15 / -2 = -7
      {Op::Div, DType::index, {15, 0xfffffffffffffffe}, 0xfffffffffffffff9},
      {Op::Rem, DType::i32, {0xfffffff9, 2}, 0xffffffff},                  // -7 % 2 = -1
      {Op::Rem, DType::i64, {15, 0xfffffffffffffffe}, 1},                  // 15 % -2 = 1
      {Op::Rem, DType::i32, {2, 0}, 0},
      {Op::Rem, DType::i32, {0xfffffffe, 0}, 0},
      {Op::Add, DType::i8, {0x7f, 1}, 0x80},
      {Op::Mul, DType::i32, {0x10000, 0x10000}, 0},
      {Op::Neg, DType::i32, {0x80000000}, 0x80000000},
      {Op::Abs, DType::i64, {0x8000000000000000}, 0x8000000000000000},
      {Op::Shl, DType::i32, {1, 0xffffffff}, 0},  // a negative count
      {Op::Shr, DType::i8, {0x80, 100}, 0xff},
      {Op::Shl, DType::u16, {1, 16}, 0},
      {Op::Shl, DType::i64, {1, 0x100000000}, 0},
      {Op::Max, DType::f16, {0x7e00, 0x3c00}, 0x7e00},
      {Op::Max, DType::f16, {0x3c00, 0x7e00}, 0x7e00},
      {Op::Max, DType::f16, {0xc200, 0x7e00}, 0x7e00},  // NaN in either operand
      {Op::Max, DType::f16, {0x7e00, 0}, 0x7e00},
      {Op::Min, DType::f16, {0x7e00, 0}, 0x7e00},
      {Op::Max, DType::f32, {0x80000000, 0}, 0},
      {Op::Min, DType::f64, {0, 0x8000000000000000}, 0x8000000000000000},
      {Op::Relu, DType::bf16, {0x8000}, 0},
      {Op::Relu, DType::f32, {0x7fc00000}, 0x7fc00000},
      {Op::Ne, DType::f32, {0x7fc00000, 0x7fc00000}, 1},
      {Op::Le, DType::f32, {0x7fc00000, 0x7fc00000}, 0},
      {Op::Eq, DType::f32, {0x80000000, 0}, 1},
      {Op::Add, DType::f32, {1, 1}, 2},                   // denormals
      {Op::Mul, DType::f32, {0x3f000000, 2}, 1},
      {Op::Sub, DType::f16, {0x0401, 0x0400}, 1},
      {Op::Div, DType::f32, {0x00800000, 0x40000000}, 0x00400000},
      {Op::Add, DType::f16, {0x6800, 0x3c00}, 0x6800},    // 2048 + 1, a tie: to even, in f16
      {Op::Round, DType::f32, {0x3f000000}, 0},            // 0.5 → 0
      {Op::Round, DType::f32, {0x40200000}, 0x40000000},   // 2.5 → 2
      {Op::Pow, DType::f32, {0x40400000, 0}, 0x3f800000},  // 3^0
  };
  for (const Case& c : cases) {
    Row row{c.op, ir::info(c.op).rule, static_cast<int>(c.operands.size()), true, false};
    Columns columns;
    for (std::uint64_t v : c.operands) columns.push_back({v});
    Kernel kernel = elementwise_kernel(row, c.d, false);
    expect_in_every_form(kernel, columns, {c.want});
  }
}

/// (1 + e)² - (1 + 2e) is e² with one rounding and 0 with two.
TEST(ElementwiseCases, AProductIsRoundedBeforeTheSum) {
  Body square_minus = [](ir::Builder& b, const std::vector<ir::Value>& x) {
    return b.elementwise(Op::Sub, {b.elementwise(Op::Mul, {x[0], x[0]}, {}), x[1]}, {});
  };
  struct Values {
    DType d;
    std::uint64_t one_e, one_2e;
  };
  for (Values v :
       {Values{DType::f16, 0x3c10, 0x3c20}, Values{DType::bf16, 0x3f88, 0x3f90},
        Values{DType::f32, 0x3f800800, 0x3f801000}, Values{DType::f64, 0x3ff0000002000000, 0x3ff0000004000000}}) {
    Kernel kernel{std::string("square_minus_") + name(v.d), {v.d, v.d}, v.d, square_minus};
    for (const auto& machine : compiled_machines()) expect_equal(*machine, kernel, {{v.one_e}, {v.one_2e}}, {0});
  }
}

}  // namespace
}  // namespace kiln::test

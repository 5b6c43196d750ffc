// Compiled math functions give, bit for bit, what the same templates give on host arithmetic: the sweep of tests/math
// over all floats holds for the code that runs. Functions that refine an approximation are left to their bound: a GPU's
// may differ in its last bits.
#include <gtest/gtest.h>

#include <bit>

#include "backend/llvm/math/activation.h"
#include "backend/llvm/math/trig.h"
#include "tests/math/host_arith.h"
#include "tests/op/check.h"
#include "tests/op/values.h"

namespace kiln::test {
namespace {

namespace m = cg::math;

struct Function {
  ir::Op op;
  float (*host)(HostArith&, float);
};

TEST(MathTemplates, RunAsTheyWereSwept) {
  const Function functions[] = {
      {ir::Op::Exp, [](HostArith& a, float x) { return m::exp(a, x); }},
      {ir::Op::Exp2, [](HostArith& a, float x) { return m::exp2(a, x); }},
      {ir::Op::Log, [](HostArith& a, float x) { return m::log(a, x); }},
      {ir::Op::Log2, [](HostArith& a, float x) { return m::log2(a, x); }},
      {ir::Op::Sin, [](HostArith& a, float x) { return m::sin(a, x); }},
      {ir::Op::Cos, [](HostArith& a, float x) { return m::cos(a, x); }},
      {ir::Op::Erf, [](HostArith& a, float x) { return m::erf(a, x); }},
      {ir::Op::Gelu, [](HostArith& a, float x) { return m::gelu(a, x); }},
  };
  Columns columns{sweep_values(DType::f32, 20000)};
  for (const Function& f : functions) {
    HostArith arithmetic;
    std::vector<std::uint64_t> want;
    for (std::uint64_t x : columns[0])
      want.push_back(
          std::bit_cast<std::uint32_t>(f.host(arithmetic, std::bit_cast<float>(static_cast<std::uint32_t>(x)))));
    Kernel kernel{std::string(ir::mnemonic(f.op)) + "_bits",
                  {DType::f32},
                  DType::f32,
                  [&](ir::Builder& b, const std::vector<ir::Value>& x) { return b.elementwise(f.op, x, {}); }};
    for (const auto& machine : compiled_machines()) expect_equal(*machine, kernel, columns, want);
  }
}

}  // namespace
}  // namespace kiln::test

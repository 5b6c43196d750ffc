// Every op and cast compiles for every architecture at the oldest PTX ISA it may meet. An instruction that the target
// lacks would end the process, so the simulators and GPUs at hand are not enough.
#include <gtest/gtest.h>

#include "backend/compile.h"
#include "tests/op/op_table.h"
#include "tests/op/values.h"

namespace kiln::test {
namespace {

class EveryTarget : public testing::TestWithParam<std::string> {};

void expect_compiles(const Kernel& kernel, const Target& target) {
  EXPECT_NE(compile(trace(kernel), target, {}).ptx.find(".entry"), std::string::npos) << kernel.name;
}

TEST_P(EveryTarget, CompilesEveryOp) {
  Target target = target_named(GetParam());
  for (const Row& row : rows())
    for (DType d : all_dtypes()) {
      if (!takes(row.rule, d)) continue;
      expect_compiles(elementwise_kernel(row, d, false), target);
      if (!row.exact) expect_compiles(elementwise_kernel(row, d, true), target);
    }
}

TEST_P(EveryTarget, CompilesEveryCast) {
  Target target = target_named(GetParam());
  for (DType from : all_dtypes())
    for (DType to : all_dtypes()) expect_compiles(cast_kernel(from, to, is_float(to)), target);
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryTarget, testing::ValuesIn(known_targets()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace kiln::test

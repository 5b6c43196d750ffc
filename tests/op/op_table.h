// The elementwise rows of ops.def as the tests walk them.
#pragma once
#include <vector>

#include "backend/ir/op.h"
#include "tests/op/machine.h"

namespace kiln::test {

struct Row {
  ir::Op op;
  ir::TypeRule rule;
  int arity;
  bool exact, fast;  ///< fast: has a fast form, for floats
};

const std::vector<Row>& rows();
bool takes(ir::TypeRule, DType);
Kernel elementwise_kernel(const Row&, DType, bool fast);
Kernel cast_kernel(DType from, DType to, bool saturate);

}  // namespace kiln::test

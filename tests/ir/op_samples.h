// Small functions that use every op of the table, for tests that must cover all of it.
#pragma once
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir::test {

/// Every dtype there is.
std::vector<DType> all_dtypes();
/// A verified function around `op`; for an elementwise op one use for each dtype it takes.
Function sample(Op op);
/// Every op, in the order of the table.
std::vector<Op> all_ops();

}  // namespace kiln::ir::test

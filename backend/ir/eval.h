// Reference interpreter: runs a function's programs on the host, element by element, with no code shared with the
// compiler. The meaning of every op is its eval here.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

/// A block of host memory that pointers may point into; accesses outside every block are errors with the user's line.
struct EvalBlock {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t address = 0;  ///< pointer value of its first byte, as kernels see it
};

/// One argument: a literal for a scalar, an address (dtype u64) for a pointer.
using EvalArg = Literal;

struct EvalGrid {
  std::array<std::int64_t, 3> programs{1, 1, 1};
};

/// Where print and assert write: a report buffer (runtime/image/report_record.h), and the launch's number. Null:
/// nowhere.
struct EvalReport {
  std::uint64_t* buffer = nullptr;
  std::uint64_t launch = 0;
};

/// Runs every program of the grid in order (x fastest). Throws UserError at the user's line for an access outside
/// `blocks`. Works at every stage.
void eval(const Function&, const EvalGrid&, const std::vector<EvalArg>&, const std::vector<EvalBlock>&,
          EvalReport report = {});

/// One elementwise op on literals (constant folding, tests). `op` must be elementwise.
Literal eval_elementwise(Op op, const std::vector<Literal>& operands);
/// The conversion of ops.def's cast.
Literal eval_cast(const Literal& x, DType to, bool saturate);

}  // namespace kiln::ir

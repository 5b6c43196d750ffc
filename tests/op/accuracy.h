// What a math op may be off by: ops.def's bounds, the fast forms' of docs/semantics.md, and an f64 reference.
#pragma once
#include <optional>

#include "backend/ir/op.h"
#include "runtime/base/dtype.h"

namespace kiln::test {

/// The f64 value of a math op; `y` is the second operand of pow.
double reference(ir::Op op, double x, double y);

/// Largest allowed distance from `want`, for operand x and results of type d. Nothing where no bound is promised:
/// beyond the range of the hardware's sine, say.
std::optional<double> tolerance(ir::Op op, bool fast, DType d, double x, double y, double want);

/// Whether `got` is `want` within `tolerance`: NaN, infinities and the sign of zero must agree, but that a result may
/// round to infinity or away from it at the end of the range.
bool near_enough(DType d, double got, double want, double tolerance);

}  // namespace kiln::test

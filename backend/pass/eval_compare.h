// eval_difference: whether two forms of a kernel do the same to memory, by the reference interpreter on small random
// data.
#pragma once
#include <string>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Runs both with the same arguments (that satisfy the parameters' facts) on a grid of two programs. Empty when every
/// byte agrees (NaNs count as equal), or when `before` cannot run on such data (an access outside the buffers);
/// otherwise the parameter, element and both values.
std::string eval_difference(const Function& before, const Function& after);

}  // namespace kiln::ir

// Verifier: the invariants of the IR and of each stage. The list of what is checked stands at the head of verify.cpp.
#pragma once
#include <string>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

struct Violation {
  InstId inst = kNone;
  SourceLoc loc;
  std::string message;
};

/// Every violation in program order; empty when `f` is well formed at its stage.
std::vector<Violation> verify(const Function& f);
/// Violations printed against the function, one a line.
std::string format(const Function& f, const std::vector<Violation>&);

}  // namespace kiln::ir

// What canonicalise knows of control flow.
#pragma once
#include "backend/ir/function.h"

namespace kiln::ir {

/// Gives loops with the attribute `unroll` the copies it asks for (unroll_loops.cpp), where the number of trips is
/// a constant. Whether there was one. UserError where the copies are too many.
bool unroll_loops(Function& f);
/// Moves pure operations that depend on nothing a loop computes before the loop. Whether it moved any.
bool hoist_invariants(Function& f);
/// Drops results of loops and branches that nothing needs, with what was carried only for them, and results that are
/// the same on every way. Whether it dropped any.
bool drop_unneeded_results(Function& f);

}  // namespace kiln::ir

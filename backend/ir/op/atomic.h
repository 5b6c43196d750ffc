// What the evaluator and the emitter agree on about atomics.
#pragma once
#include "backend/ir/op.h"

namespace kiln::ir {

/// The elementwise op that combines memory and value. Not for Exchange, which has none.
Op elementwise_of(Rmw);

}  // namespace kiln::ir

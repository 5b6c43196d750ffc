// Helpers of passes that rewrite instructions in place.
#pragma once
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Makes an op with inferred result types and puts it before `position`. `stated`: as in infer.h.
InstId insert_op(Function& f, InstId position, Op op, std::vector<Value> operands, std::vector<Attr> attrs,
                 std::vector<Type> stated, SourceLoc loc);
/// A constant, splat if `type` is a tile, before `position`.
Value insert_constant(Function& f, InstId position, const Literal& l, const Type& type, SourceLoc loc);

/// Gives `i` the attribute, which its op must have; an optional one that is 0 is left out. Whether that changed it.
bool set_attr(Function& f, InstId i, AttrKey key, std::int64_t value);

/// Whether nothing of the launch writes what `pointer` reaches.
bool reads_constant_memory(const Function& f, Value pointer);

/// Whether nothing is lost when an op without uses is removed: it is pure or only reads.
bool removable(Op op);

}  // namespace kiln::ir

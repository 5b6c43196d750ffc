// Identities of the ops that rearrange tiles, for canonicalise.
#pragma once
#include <functional>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Makes an instruction before the one that is being rewritten. The last: stated result types (infer.h).
using InsertOp = std::function<Value(Op, std::vector<Value>, std::vector<Attr>, std::vector<Type>)>;

/// A value that the rearranging op `inst` equals; invalid if no rule applies. Holds copies of what it needs of `inst`,
/// since inserting moves instructions.
///
///     reshape(reshape x), reshape(expand_dims x)   reshape x, or x where that is its shape
///     permute(permute x), slice(slice x)           one of them
///     flip(flip x) along one axis                  x
///     slice(cat(a, b)) within a or b               slice of it
///     join of both halves of a split x             x
///     any of splats of one scalar                  its splat
Value rearranged_identity(const Function& f, const Inst& inst, const InsertOp& insert);

/// The halves of `split x`, where x is a join or a splat; otherwise nothing.
std::vector<Value> split_identity(const Function& f, const Inst& inst, const InsertOp& insert);

}  // namespace kiln::ir

// What a launch of a function must be given, and what its facts make possible.
#pragma once
#include <string>

#include "backend/ir/function.h"
#include "runtime/image/arg_sig.h"
#include "runtime/image/tensor_map_recipe.h"

namespace kiln::ir {

/// One argument a parameter, with its facts.
rt::ArgSig signature(const Function&);

/// Why the arguments of this specialisation cannot go through `map`, in words: "argument 1 (x.stride(0)): not known to
/// be a multiple of 16 bytes", "argument 1 (x.size(0)): not known to be 1 to 2^31 - 1". Empty: they can, at every launch.
/// `map` numbers the function's parameters.
std::string tensor_map_obstacle(const Function&, const rt::TensorMapRecipe& map);

}  // namespace kiln::ir

// The forward direction of layout rules: where the result of an op stands when its operands stand where they are.
#pragma once
#include <optional>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Layout of result `result` of `inst` if tile operand `k` has layout `l` and no element changes threads; nothing where
/// the operand does not say (a broadcast), or the op moves elements anyhow.
/// @post operand_layout(f, inst, k, *result_layout(f, inst, k, l)) finds its elements in their threads
std::optional<LinearLayout> result_layout(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l);

}  // namespace kiln::ir

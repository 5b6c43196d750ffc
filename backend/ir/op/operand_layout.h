// Layout rules of ops: which layout an operand tile must have so that every thread finds the elements it needs. One
// function an op, declared from ops.def, so that a forgotten one is an undefined reference that names it.
#pragma once
#include "backend/ir/function.h"

namespace kiln::ir {

/// Layout of tile operand `k` of `inst`, when its result (of a store: the accessed elements) has layout `l`.
/// @post an elementwise op: l itself
LinearLayout operand_layout(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l);

#define KILN_OP(Enum, ...) \
  LinearLayout layout_##Enum(const Function& f, const Inst& inst, std::size_t k, const LinearLayout& l);
#include "backend/ir/ops.def"

}  // namespace kiln::ir

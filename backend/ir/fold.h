// Folding: what an instruction is already known to give. Only rewrites that keep every bit (NaN payloads aside).
#pragma once
#include <optional>
#include <span>
#include <variant>

#include "backend/ir/function.h"

namespace kiln::ir {

/// Literal of a constant, or of a tile whose every element is that constant.
std::optional<Literal> literal_of(const Function& f, Value v);

/// The result of an op, when it needs no instruction of its own: an existing value, or a literal in every element of
/// `result`. std::monostate: nothing known. A cast always rounds: f32 → bf16 → f32 is not a no-op.
using Folded = std::variant<std::monostate, Value, Literal>;
Folded fold(const Function& f, Op op, std::span<const Value> operands, std::span<const Attr> attrs, const Type& result);

/// Whether op(a, b) and op(b, a) are equal bit for bit (NaN payloads aside).
bool commutes(Op op);

/// Whether `op` has one result whose elements are all elements of its operands, in other places.
bool rearranges(Op op);

}  // namespace kiln::ir

// The operations of atomics, for reductions of other instructions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/sim/form.h"

namespace kiln::rt::sim {

enum class AtomicOp : std::uint8_t { Add, Min, Max, And, Or, Xor, Exch, Cas, Inc, Dec };

/// The one that is among the instruction's modifiers.
std::optional<AtomicOp> atomic_op(const Form&);

/// *to = *to op *value, for one element of type t. `global`: as in global memory, where f32 additions flush subnormals.
void combine(AtomicOp, Ty t, std::byte* to, const std::byte* value, bool global);

}  // namespace kiln::rt::sim

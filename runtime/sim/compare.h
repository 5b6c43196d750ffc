// What a comparison decides.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/sim/program.h"

namespace kiln::rt::sim {

/// Lanes of the two results of an instruction with a truth value that another outcome of the comparison would change:
/// of the low halves in the lanes `low`, of the high ones in `high`; both where an operand is one value.
std::array<std::uint32_t, 2> decided(const Warp&, const Inst&, std::uint32_t low, std::uint32_t high);

}  // namespace kiln::rt::sim

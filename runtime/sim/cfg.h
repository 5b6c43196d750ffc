// Control flow of decoded code: where lanes that part at a branch meet again.
#pragma once
#include <cstdint>
#include <vector>

namespace kiln::rt::sim {

/// Successors of each instruction; an empty list: it leaves the kernel.
using Successors = std::vector<std::vector<std::uint32_t>>;

/// The immediate post-dominator of each instruction with more than one successor (UINT32_MAX where its paths meet only
/// outside the kernel, and for all other instructions). Empty if the graph would take too long.
std::vector<std::uint32_t> reconvergence_points(const Successors&);

}  // namespace kiln::rt::sim

// What decoding allows a text to ask for.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::rt::sim {

// Limits that no compiler's code comes near: of what a thread, a block and a kernel may need.
constexpr std::uint64_t kMostShared = 256 << 10, kMostLocal = 512 << 10, kMostParameters = 32764;
constexpr std::uint32_t kMostRegisterWords = 1 << 21;  // 32 a register of up to 32 bits
constexpr std::size_t kMostInstructions = 1 << 20;     // with the functions expanded
constexpr std::size_t kDeepestCalls = 64, kMostOperands = UINT16_MAX;

constexpr std::uint64_t align_up(std::uint64_t v, std::uint64_t a) { return (v + a - 1) / a * a; }

}  // namespace kiln::rt::sim

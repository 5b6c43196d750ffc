// Kernels of many shapes, each with a launch: what the assembler must accept and every machine must agree on.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::test {

struct Sample {
  std::string name;
  ir::Function function;
  std::array<std::int64_t, 3> programs{1, 1, 1};
  /// Per parameter: byte offset into the memory for pointers, value for integers.
  std::vector<std::int64_t> args;
};

/// Bytes of memory that samples may point into.
inline constexpr std::size_t kSampleMemory = 1 << 18;

/// Copies of every dtype, aligned and not, for lengths around vectors and blocks.
std::vector<Sample> copy_samples();
/// Index arithmetic, two and three dimensions, odd extents, broadcasting.
std::vector<Sample> shape_samples();
/// Arrays that overlap, in one program.
std::vector<Sample> overlap_samples();
/// for, while, if.
std::vector<Sample> control_samples();
std::vector<Sample> all_samples();

}  // namespace kiln::test

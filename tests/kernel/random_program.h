// Random straight-line kernels, each with a launch that touches only the memory it was made for.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/ir/function.h"
#include "backend/options.h"

namespace kiln::test {

/// Bytes of memory that one program of the grid owns; programs touch nothing else, so their order does not matter.
inline constexpr std::int64_t kProgramMemory = 1 << 15;

struct RandomProgram {
  ir::Function function;
  std::array<std::int64_t, 3> programs{1, 1, 1};
  /// Per parameter: byte offset into the memory for pointers, bits for scalars.
  std::vector<std::uint64_t> args;
  CompileOptions options;
  std::int64_t program_count() const { return programs[0] * programs[1] * programs[2]; }
  std::string text() const;
};

/// The program of `seed` with at most `steps` steps; fewer steps give a prefix of it. Pointers of several dtypes
/// overlap in one memory; a value that may be NaN is replaced before it is stored, since payloads are not compared.
RandomProgram random_program(std::uint64_t seed, int steps);

}  // namespace kiln::test

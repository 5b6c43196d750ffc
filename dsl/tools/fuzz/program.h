// Random kernels, each with a launch that touches only the memory it was made for.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/ir/function.h"
#include "backend/options.h"

namespace kiln::fuzz {

/// Bytes of memory that one program of the grid owns; programs touch nothing else, so their order does not matter.
inline constexpr std::int64_t kProgramMemory = 1 << 15;
/// Elements of a tile at most.
inline constexpr std::int64_t kMaxElements = 2048;

/// Results of approximate functions are stored as f32 behind the memory of all programs and used nowhere else, so a
/// bound can be asked of them. A slot has the results of one step, behind them its operands (which are exact).
inline constexpr std::int64_t kSlots = 3, kSlotBytes = 2 * 4 * kMaxElements, kLooseMemory = kSlots * kSlotBytes;
struct Slot {
  DType dtype = DType::f32;
  ir::Accuracy accuracy;
};

struct Program {
  std::uint64_t seed = 0;  ///< of the bytes that memory holds before
  ir::Function function;
  std::array<std::int64_t, 3> programs{1, 1, 1};
  /// Per parameter: byte offset into the memory for pointers, bits for scalars.
  std::vector<std::uint64_t> args;
  CompileOptions options;
  std::vector<Slot> slots;

  std::int64_t count() const { return programs[0] * programs[1] * programs[2]; }
  std::int64_t exact_bytes() const { return count() * kProgramMemory; }
  std::int64_t bytes() const { return exact_bytes() + count() * kLooseMemory; }
  /// Its IR behind comments that hold the launch; parse() reads it back.
  std::string text() const;
};

/// The program of `seed` with at most `steps` steps; fewer steps give a prefix of it. Pointers of several dtypes
/// overlap in one memory; a value that may be NaN is replaced before it is stored, since payloads are not compared.
Program random_program(std::uint64_t seed, int steps);

/// Reads text(); throws UserError with `origin` and what is wrong.
Program parse(const std::string& text, const std::string& origin);

}  // namespace kiln::fuzz

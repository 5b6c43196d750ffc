// kiln.value: a comment of the compiler that says which registers hold a variable of the user's program
// (backend/llvm/op/name.cpp writes it). It executes as an instruction without effect, which the debugger notices.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/sim/program.h"

namespace kiln::rt::sim {

inline constexpr std::string_view kNamedValue = "kiln.value";

struct NamedValue {
  std::string name;
  DType dtype = DType::u64;
  bool pointer = false, tile = false;
  std::vector<std::int64_t> shape;
  std::uint32_t warps = 1, blocks = 1;  ///< of the program that the variable belongs to
  /// Of each bit of register, lane, warp and block: the coordinate it moves by.
  std::array<std::vector<std::vector<std::int64_t>>, 4> bases;

  std::uint64_t elements() const;
  /// Number of the element, in row-major order, at a place; absent: outside the tile.
  std::optional<std::uint64_t> element(std::uint32_t reg, std::uint32_t lane, std::uint32_t warp,
                                       std::uint32_t block) const;
};

/// What the text of the statement says; absent if it says nothing that can be read.
std::optional<NamedValue> parse_named_value(std::string_view text);

/// Whether the instruction is one.
bool names_value(const InstInfo&);

}  // namespace kiln::rt::sim

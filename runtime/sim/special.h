// Special registers of PTX: their names, how wide they are, what they need of a module, and who may read them.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "runtime/sim/program.h"

namespace kiln::rt::sim {

struct Form;

/// A register of 32 or 64 bits whose value is set when a warp starts, or that tells the time.
struct SpecialName {
  std::string_view name;
  Special which = Special::Zero;
  std::string_view needs = {};  ///< as in needs.def
  int bits = 32;                ///< 1: a predicate
  bool halves = false;          ///< it was of 16 bits once, and may be read so
  bool clock = false;           ///< it differs at each read; what it holds are the bits above `bits_below` of the time
  std::uint8_t bits_below = 0;
};

/// The one of this name ("%tid.x"; elements of vectors are x, y, z, w, or r, g, b, a).
std::optional<SpecialName> find_special(std::string_view name);
/// The elements x, y, z of one that is a vector ("%tid"); its fourth is 0.
std::optional<std::array<SpecialName, 3>> special_elements(std::string_view vector);

/// Only mov, and cvt between integers, read special registers: fails where another instruction or a mov of another
/// width does.
void check_specials(const Form&);

}  // namespace kiln::rt::sim

// Text form of the IR: print and parse round-trip exactly (locations and layouts included).
#pragma once
#include <string>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

struct PrintOptions {
  bool locations = true;   ///< `loc("file":line:column)` after each instruction
};

/// Canonical text: values and layouts numbered in print order, layouts listed first, one instruction a line. Equal
/// functions print equally whatever the history of their arenas.
/// Without locations it is the identity of a kernel's code (cache keys, replay comparison): names of parameters are
/// left out too, their facts are not.
std::string print(const Function&, PrintOptions = {});
/// The same text, and in line_locs the location of the instruction on each of its lines (unknown for other lines).
std::string print(const Function&, PrintOptions, std::vector<SourceLoc>& line_locs);
/// Lines of `insts` as in print(), without their regions.
std::vector<std::string> print_lines(const Function&, const std::vector<InstId>& insts, PrintOptions = {});
/// A literal as in print(): `i32(-7)`; `f32(0.1)`, the shortest decimal that reads back exactly; `f32(0x7fc00000)`, the
/// bits of a NaN or an infinity.
std::string print(const Literal&);

/// Reads one function; throws UserError with `origin`:line and what was expected there.
Function parse(const std::string& text, const std::string& origin = "<text>");

}  // namespace kiln::ir

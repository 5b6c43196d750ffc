// Text form of the IR: print and parse round-trip exactly (locations and layouts included).
#pragma once
#include <string>
#include <vector>

#include "backend/ir/function.h"

namespace kiln::ir {

struct PrintOptions {
  bool locations = true;   ///< `loc("file":line:column)` after each instruction
};

/// Canonical text: values numbered in print order, layouts listed first, one instruction a line.
/// Without locations it is the identity of a kernel's code (cache keys, replay comparison).
std::string print(const Function&, PrintOptions = {});
/// One instruction as print() would show it; `line_locs` of print: location of each printed line.
std::string print(const Function&, PrintOptions, std::vector<SourceLoc>& line_locs);

/// Reads one function; throws UserError with `origin`:line and what was expected there.
Function parse(const std::string& text, const std::string& origin = "<text>");

}  // namespace kiln::ir

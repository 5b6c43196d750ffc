// The target and the version of PTX that an instruction needs of its module. An assembler refuses an instruction that
// is newer than what the module says of itself; so does the simulator.
#pragma once
#include <string>
#include <string_view>

namespace kiln::rt::sim {

struct Form;

/// Throws, naming what is needed and what the module is, unless the module reaches all that needs.def says of the
/// instruction.
void check_needs(const Form&);

/// What the module misses of `alternatives`, as in needs.def ("90@7.8"), or empty: "needs sm_90 or later, the module is
/// for sm_80". `version`: 10·major + minor.
std::string missing(std::string_view alternatives, std::string_view target, int version);

}  // namespace kiln::rt::sim

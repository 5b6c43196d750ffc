// Messages about what a program did wrong.
#pragma once
#include <string>

#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// "file:line" of the user's program for an instruction, or "ptx line N" where the PTX has no .loc.
std::string place(const Program&, const InstInfo&);

/// Throws the Fault of a cluster in which every warp waits.
[[noreturn]] void report_deadlock(const Cluster&);

/// place() with the PTX line and the instruction's text behind it.
std::string full_place(const Program&, const InstInfo&);

}  // namespace kiln::rt::sim

// Messages about what a program did wrong.
#pragma once
#include <string>

#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// "file:line" of the user's program for an instruction, or "ptx line N" where the PTX has no .loc.
std::string place(const Program&, const InstInfo&);

/// Throws the Fault of a cluster in which every warp waits.
[[noreturn]] void report_deadlock(const Cluster&);

/// What a warp that cannot go on waits for: "waits at barrier 0 (32 of 64 threads arrived)", "has exited".
std::string waits_for(const Warp&);

/// place() with the PTX line and the instruction's text behind it.
std::string full_place(const Program&, const InstInfo&);

}  // namespace kiln::rt::sim

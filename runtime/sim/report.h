// Messages about what a program did wrong.
#pragma once
#include <string>

#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// "file:line" of the user's program for an instruction, or "ptx line N" where the PTX has no .loc.
std::string place(const Program&, const InstInfo&);

/// What is wrong with `lane` (-1: all) of the warp at `inst`, complete.
Finding finding(FindingKind, const Warp&, const Inst&, int lane, const std::string& what);
/// The error of a launch in which these were found: what stopped it, else the first, and how many there are beside it.
std::string launch_error(const std::vector<Finding>&);

/// Throws the Fault of a cluster in which every warp waits.
[[noreturn]] void report_deadlock(const Cluster&);

/// What a warp that cannot go on waits for: "waits at barrier 0 (32 of 64 threads arrived)", "has exited".
std::string waits_for(const Warp&);

/// place() with the PTX line and the instruction's text behind it.
std::string full_place(const Program&, const InstInfo&);

}  // namespace kiln::rt::sim

// Messages about what a program did wrong.
#pragma once
#include <string>

#include <array>
#include <span>
#include <vector>

#include "runtime/sim/shadow.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// "file:line" of the user's program for an instruction, or "ptx line N" where the PTX has no .loc.
std::string place(const Program&, const InstInfo&);

/// What is wrong with `lane` (-1: all) of the warp at `inst`, complete.
Finding finding(FindingKind, const Warp&, const Inst&, int lane, const std::string& what);
/// … with the access of a warp or of an operation that it issued.
Finding finding(FindingKind, const Launch&, const Access&, const std::string& what);
/// "(0, 1, 2)"
std::string id_text(const std::array<std::uint32_t, 3>&);
/// Two accesses of different clusters to global memory at byte `at` of the allocation at `base` that race.
Finding crossing_finding(const Launch&, const std::array<Access, 2>&, std::uint64_t base, std::uint64_t at);
/// "race on shared memory with warp 1, lane 0 at …": `mine` with `rival`. `unfenced`: a proxy fence is what is missing.
std::string race_text(const Launch&, bool shared, const std::string& where, const Access& mine, const Access& rival,
                      bool unfenced);
/// Coordinates in the grid of the block of this rank of a cluster.
std::array<std::uint32_t, 3> block_id(const Launch&, std::uint64_t cluster, std::uint32_t rank);
/// The error of a launch in which these were found: what stopped it, else the first race, else the first;
/// and how many there are beside it.
std::string launch_error(const std::vector<Finding>&);

/// "block (0, 0, 0), warp 1, lane 2 at file.cpp:3 …"
std::string access_text(const Launch&, const Access&);

/// Throws the Fault of clusters in which every warp waits or spins, while so many others have not started.
[[noreturn]] void report_deadlock(std::span<const Cluster>, std::uint64_t waiting);

/// What a warp that cannot go on waits for: "waits at barrier 0 (32 of 64 threads arrived)", "has exited".
std::string waits_for(const Warp&);

/// place() with the PTX line and the instruction's text behind it.
std::string full_place(const Program&, const InstInfo&);

}  // namespace kiln::rt::sim

// Places in shared memory that an instruction names in another way than ld and st do.
#pragma once
#include <cstdint>

#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// The place of a shared, shared::cluster or generic address of `lane`. Throws Fault if it is in no shared memory, or
/// in that of a block which need not have started or has exited.
SharedPlace shared_place(const Warp&, const Inst&, int lane, Space, std::uint64_t address);
/// The block of this rank of the cluster, with the same checks.
Block& reachable_block(const Warp&, const Inst&, int lane, std::uint64_t rank);

/// Throws Fault unless `address` is a multiple of `align`; `what`: "source", "mbarrier".
void check_multiple(const Warp&, const Inst&, int lane, const char* what, std::uint64_t address, std::uint64_t align);

}  // namespace kiln::rt::sim

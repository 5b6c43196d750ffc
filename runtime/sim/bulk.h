// What bulk, tensor and remote copies have in common: addresses among their operands, and the mbarriers they signal.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/sim/atomic.h"
#include "runtime/sim/form.h"
#include "runtime/sim/place.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// An address operand takes two references: its base register or none, and its offset. Bit `which` of inst.imm says
/// that the register is a wide one.
void address_operand(Form&, std::size_t i, unsigned which);
/// Its value for a lane; `first`: index of the first of its references.
std::uint64_t address_value(const Warp&, const Inst&, std::size_t first, unsigned which, int lane);

/// What such an instruction writes: an address in the shared memory of each of some blocks, and an mbarrier in the same
/// block.
struct Destinations {
  std::vector<Block*> blocks;
  std::uint32_t at = 0, barrier = 0;
};
/// The one of `to`, or those of `mask` (a bit for each rank) if it is multicast. Checks that the mbarriers can be
/// signalled. Throws Fault.
Destinations destinations(const Warp&, const Inst&, int lane, Space, std::uint64_t to, std::uint64_t barrier);
Destinations multicast(const Warp&, const Inst&, int lane, Space, std::uint64_t to, std::uint64_t barrier,
                       std::uint32_t mask);

/// As shared_write of order.h, or shared_update. Throws Fault also if an mbarrier lies there.
std::byte* bulk_write(Agent&, Block&, std::uint32_t at, std::uint32_t bytes, bool update = false);

/// Whether bulk reductions into shared or into global memory have the operation on elements of the type.
bool bulk_reduces(AtomicOp, Ty, bool global);

inline Groups& bulk_groups(Warp& w) { return w.groups[static_cast<std::size_t>(GroupKind::Bulk)]; }

}  // namespace kiln::rt::sim

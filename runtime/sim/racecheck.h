// Races and uninitialised reads: every access to shared and global memory is checked against those before it.
//
// Two accesses race if one of them writes, they are not both strong in a scope that holds both threads, and nothing
// orders them (order.h). A store of what is there already changes nothing and is no race, nor are stores of several
// warps of a block to one global address: the language leaves open which of them stays. A read of a generic write by
// the async proxy, or a write over one, also needs the writer's fence.proxy.async.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// Active lanes of one access of a warp: their addresses in one space, of `bytes` each. `data`: what lane l stores, at
/// data + l · bytes; null if that is not known. `loaded`: where what it loads may go, likewise.
struct LaneAccess {
  std::uint32_t mask = 0;
  const std::array<std::uint64_t, kLanes>& address;
  std::uint32_t bytes = 0;
  Use use = Use::Load;
  const std::byte* data = nullptr;
  std::byte* loaded = nullptr;
};

/// Accesses to shared memory of `to`, and to global memory, that are in bounds.
void check_shared(Warp&, const Inst&, Block& to, const LaneAccess&);
/// True if it also carried out the loads or stores: where clusters run in any order, under the lock of the memory's
/// page.
bool check_global(Warp&, const Inst&, const LaneAccess&);
void check_shared(Agent&, Block& to, std::uint64_t at, std::uint32_t bytes, Use);
void check_global(Agent&, std::uint64_t address, std::uint32_t bytes, Use);

/// Whether the warp knows of the access: it happened before what the warp does now.
bool happened_before(const Warp&, const Access&);

/// The last write of a byte of shared memory of `of`, or (null) of global memory, in this launch.
std::optional<Access> last_write(const Warp&, Block* of, std::uint64_t address);

}  // namespace kiln::rt::sim

// Addresses of a warp's access, checked and counted; shared by loads, stores, atomics and matrix instructions.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/sim/form.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// Host addresses of the active lanes of one access; entries of other lanes are unset.
struct LaneAddresses {
  std::array<std::byte*, kLanes> at;
  std::uint32_t global_lanes = 0;  ///< lanes whose access went to global memory
  std::uint32_t contested = 0;     ///< lanes whose store races, if it changes memory
  std::array<Races::Access, kLanes> rivals;  ///< of the contested lanes: the other access
};

/// `address[l]` in `space` for each lane of w.mask: resolves generic addresses, checks bounds and alignment of `bytes`
/// bytes and counts bytes, sectors and bank conflicts. `what`: "load", "store", "atomic". Throws Fault.
enum class Use : std::uint8_t { Load, Store, Atomic };
LaneAddresses access(Warp&, const Inst&, Space, const std::array<std::uint64_t, kLanes>& address, std::uint32_t bytes,
                     Use);

/// Adds a warp's access to the counters: of its block and of the instruction.
void count_shared(Warp&, const Inst&, std::uint32_t mask, const std::array<std::uint64_t, kLanes>& address,
                  std::uint32_t bytes);
void count_global(Warp&, const Inst&, std::uint32_t mask, const std::array<std::uint64_t, kLanes>& address,
                  std::uint32_t bytes, Use);

/// base[l] + offset, where `base` is a slot of 64-bit words if `wide`, or none.
std::array<std::uint64_t, kLanes> address_lanes(const Warp&, Ref base, bool wide, std::uint64_t offset);
/// … of a memory instruction: its own offset and width.
std::array<std::uint64_t, kLanes> address_lanes(const Warp&, const Inst&, Ref base);

/// A number for the warp that no other one of the cluster has.
constexpr std::uint32_t kWarpsOfBlock = 32;
inline std::uint16_t warp_in_cluster(const Warp& w) {
  return static_cast<std::uint16_t>(w.block->rank * kWarpsOfBlock + w.index);
}
/// Throws the Fault of a lane whose access to shared memory races with another.
[[noreturn]] void report_race(const Warp&, const Inst&, int lane, const Races::Access& other);

/// Throws Fault unless [address, address + bytes) of `lane` is global memory, of an alignment of `align`.
void check_global_range(Warp&, const Inst&, int lane, std::uint64_t address, std::size_t bytes, std::uint64_t align,
                        const char* what);

/// Reads the state space, .vN and the ordering words of ld, st, atom and red into inst; kernels with ordered accesses
/// to memory that blocks share are marked as communicating.
void memory_modifiers(Form&);
/// Reads the policy behind the operands of an instruction with .L2::cache_hint; it has no effect that a program can see.
void cache_hint(Form&);

}  // namespace kiln::rt::sim

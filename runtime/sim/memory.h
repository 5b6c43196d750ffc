// Addresses of a warp's access, checked and counted; shared by loads, stores, atomics and matrix instructions.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/sim/form.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

/// Host addresses of the active lanes of one access; entries of other lanes are unset.
struct LaneAddresses {
  std::array<std::byte*, kLanes> at;
  std::uint32_t global_lanes = 0;       ///< lanes whose access went to global memory
  std::uint32_t stored = 0;             ///< lanes whose data is there already
  std::unique_ptr<std::byte[]> loaded;  ///< what `at` points to where loads were carried out already
};

/// `address[l]` in `space` for each lane of w.mask: resolves generic addresses, checks bounds, alignment, races and
/// uninitialised reads of `bytes` bytes, and counts bytes, sectors and bank conflicts. `data`: what lane l stores, at
/// data + l · bytes. Throws Fault.
LaneAddresses access(Warp&, const Inst&, Space, const std::array<std::uint64_t, kLanes>& address, std::uint32_t bytes,
                     Use, const std::byte* data = nullptr);
/// As access(), for an operation that is issued here and accesses memory later: bounds, alignment and counts only.
void access_later(Warp&, const Inst&, Space, const std::array<std::uint64_t, kLanes>& address, std::uint32_t bytes,
                  Use);
/// "load", "store", "atomic"
const char* name(Use);

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
/// Throws Fault unless [address, address + bytes) of `lane` is global memory, of an alignment of `align`.
void check_global_range(Warp&, const Inst&, int lane, std::uint64_t address, std::size_t bytes, std::uint64_t align,
                        const char* what);

/// Reads the state space, .vN and the ordering words of ld, st, atom and red into inst; kernels with ordered accesses
/// to memory that blocks share are marked as communicating.
void memory_modifiers(Form&);
/// Reads the policy behind the operands of an instruction with .L2::cache_hint; it has no effect that a program can
/// see.
void cache_hint(Form&);

}  // namespace kiln::rt::sim

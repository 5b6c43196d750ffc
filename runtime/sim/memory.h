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
};

/// `address[l]` in `space` for each lane of w.mask: resolves generic addresses, checks bounds and alignment of `bytes`
/// bytes and counts bytes, sectors and bank conflicts. `what`: "load", "store", "atomic". Throws Fault.
enum class Use : std::uint8_t { Load, Store, Atomic };
LaneAddresses access(Warp&, const Inst&, Space, const std::array<std::uint64_t, kLanes>& address, std::uint32_t bytes,
                     Use);

/// Addresses of a memory instruction whose first operand is the address.
std::array<std::uint64_t, kLanes> address_lanes(const Warp&, const Inst&, Ref base);

/// Reads the state space, .vN and the ordering words of ld, st, atom and red into inst; kernels with ordered accesses
/// to memory that blocks share are marked as communicating.
void memory_modifiers(Form&);

}  // namespace kiln::rt::sim

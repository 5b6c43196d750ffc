// Counting what accesses cost: sectors of global memory, wavefronts and bank conflicts of shared memory.
#include <algorithm>
#include <bit>

#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Addresses = std::array<U64, kLanes>;

/// Distinct 32-byte sectors; an aligned access of at most 32 bytes lies in one.
U64 sectors(U32 mask, const Addresses& address) {
  U64 n = 0, last = UINT64_MAX;
  std::array<U64, kLanes> seen;
  std::size_t count = 0;
  bool ascending = true;
  for (U32 m = mask; m; m &= m - 1) {
    const U64 s = address[static_cast<std::size_t>(std::countr_zero(m))] >> 5;
    seen[count++] = s;
    if (s == last) continue;
    ascending &= last == UINT64_MAX || s > last;
    last = s;
    ++n;
  }
  if (ascending) return n;
  std::sort(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<U64>(std::unique(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count)) - seen.begin());
}

/// Passes of lanes [first, first + group) through the banks: as many as the most loaded bank has distinct words; 0 if
/// none of them is active.
U64 wavefronts(U32 mask, const Addresses& address, U32 first, U32 group, U32 words) {
  std::array<U64, kLanes> asked;
  std::size_t n = 0;
  for (U32 l = first; l < first + group; ++l)
    if (mask >> l & 1)
      for (U32 k = 0; k < words; ++k) asked[n++] = address[l] / 4 + k;
  U32 used = 0;
  bool clash = false;
  for (std::size_t i = 0; i < n; ++i) {
    const U32 bank = 1u << (asked[i] % 32);
    clash |= (used & bank) != 0;
    used |= bank;
  }
  if (!clash) return n != 0;
  std::sort(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(n));
  const auto end = std::unique(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(n));
  std::array<U32, 32> load{};
  for (auto a = asked.begin(); a != end; ++a) ++load[*a % 32];
  return *std::max_element(load.begin(), load.end());
}

}  // namespace

/// Lanes go in phases that ask for at most 128 bytes. One wavefront a phase is the least; the others are conflicts.
void count_shared(Warp& w, const Inst& in, U32 mask, const Addresses& address, U32 bytes) {
  Tally& t = w.block->tally;
  const U32 words = std::max(1u, bytes / 4), group = kLanes / words;
  ++t.counters.shared_accesses;
  for (U32 first = 0; first < kLanes; first += group) {
    const U64 n = wavefronts(mask, address, first, group, words);
    t.counters.shared_wavefronts += n;
    if (n <= 1) continue;
    t.counters.bank_conflicts += n - 1;
    t.conflicts[in.info] += n - 1;
  }
}

void count_global(Warp& w, const Inst&, U32 mask, const Addresses& address, U32 bytes, Use use) {
  Counters& c = w.block->tally.counters;
  const U64 total = static_cast<U64>(std::popcount(mask)) * bytes, n = sectors(mask, address);
  if (use != Use::Store) c.global_bytes_read += total, c.global_sectors_read += n;
  if (use != Use::Load) c.global_bytes_written += total, c.global_sectors_written += n;
}

}  // namespace kiln::rt::sim

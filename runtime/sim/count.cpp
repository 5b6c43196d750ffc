// Counting what instructions cost: sectors of global memory, wavefronts and bank conflicts of shared memory, lanes.
#include <algorithm>
#include <bit>

#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Addresses = std::array<U64, kLanes>;

/// The sectors of `seen`, each once.
template <class F>
U64 each_sector(U64* seen, std::size_t n, F f) {
  std::sort(seen, seen + n);
  const U64* const end = std::unique(seen, seen + n);
  for (const U64* s = seen; s != end; ++s) f(*s);
  return static_cast<U64>(end - seen);
}

/// Distinct 32-byte sectors, f(each); an aligned access of at most 32 bytes lies in one.
template <class F>
U64 sectors(U32 mask, const Addresses& address, F f) {
  std::array<U64, kLanes> seen;
  std::size_t count = 0;
  bool ascending = true;
  each_lane(mask, [&](int l) {
    const U64 s = address[static_cast<std::size_t>(l)] / kSectorBytes;
    if (count != 0 && s == seen[count - 1]) return;
    ascending &= count == 0 || s > seen[count - 1];
    seen[count++] = s;
  });
  if (!ascending) return each_sector(seen.data(), count, f);
  for (std::size_t i = 0; i < count; ++i) f(seen[i]);
  return count;
}

/// Adds a request of `bytes` bytes in `n` sectors.
void count_request(Counters& c, Use use, U64 bytes, U64 n) {
  if (use != Use::Store) c.global_bytes_read += bytes, c.global_sectors_read += n, ++c.global_requests_read;
  if (use != Use::Load) c.global_bytes_written += bytes, c.global_sectors_written += n, ++c.global_requests_written;
  const U64 least = (bytes + kSectorBytes - 1) / kSectorBytes;
  if (n > least) c.global_sectors_excess += n - least;
}
/// Calls f(sector) with the function that records it in the footprint.
template <class F>
U64 with_footprint(Footprint& footprint, Use use, F f) {
  switch (use) {
    case Use::Load: return f([&](U64 s) { footprint.read(s); });
    case Use::Store: return f([&](U64 s) { footprint.written(s); });
    case Use::Atomic: break;
  }
  return f([&](U64 s) { footprint.read(s), footprint.written(s); });
}

Counters& counts(Warp& w, const Inst& in) { return w.block->tally->counts[in.info]; }

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

void count_lanes(Warp& w, const Inst& in) {
  Executed& e = w.block->tally->executed[in.info];
  e.inactive += static_cast<U64>(kLanes - std::popcount(w.active));
  e.off += static_cast<U64>(kLanes - std::popcount(w.mask));
}

void uncount(Warp& w, const Inst& in) {
  Executed& e = w.block->tally->executed[in.info];
  --e.times;
  e.inactive -= static_cast<U64>(kLanes - std::popcount(w.active));
  e.off -= static_cast<U64>(kLanes - std::popcount(w.mask));
}

void recount(Warp& w, const Inst& in, U32 active, U32 mask) {
  Executed& e = w.block->tally->executed[in.info];
  e.inactive += static_cast<U64>(std::popcount(active) - std::popcount(w.active));
  e.off += static_cast<U64>(std::popcount(mask) - std::popcount(w.mask));
}

void count_divergence(Warp& w, const Inst& in) { ++counts(w, in).divergent_branches; }

/// Lanes go in phases that ask for at most 128 bytes. One wavefront a phase is the least; the others are conflicts.
void count_shared(Warp& w, const Inst& in, U32 mask, const Addresses& address, U32 bytes) {
  Counters& c = counts(w, in);
  const U32 words = std::max(1u, bytes / 4), group = kLanes / words;
  ++c.shared_accesses;
  for (U32 first = 0; first < kLanes; first += group) {
    const U64 n = wavefronts(mask, address, first, group, words);
    c.shared_wavefronts += n;
    if (n > 1) c.bank_conflicts += n - 1;
  }
}

void count_global(Warp& w, const Inst& in, U32 mask, const Addresses& address, U32 bytes, Use use) {
  const U64 n = with_footprint(w.block->tally->footprint, use, [&](auto f) { return sectors(mask, address, f); });
  count_request(counts(w, in), use, static_cast<U64>(std::popcount(mask)) * bytes, n);
}

void count_local(Warp& w, const Inst& in, U32 mask, U32 bytes) {
  counts(w, in).local_bytes += static_cast<U64>(std::popcount(mask)) * bytes;
}

void count_bulk(Warp& w, const Inst& in, Traffic traffic, U64 bytes, const std::vector<GlobalRun>& runs) {
  Counters& c = counts(w, in);
  if (traffic != Traffic::Prefetch) ++c.async_copies, c.async_bytes += bytes;
  if (traffic == Traffic::None) return;
  U64 asked = 0;
  std::vector<U64> seen;
  for (const GlobalRun& r : runs) {
    asked += r.bytes;
    if (r.bytes == 0) continue;
    for (U64 s = r.address / kSectorBytes; s <= (r.address + r.bytes - 1) / kSectorBytes; ++s)
      if (seen.empty() || seen.back() != s) seen.push_back(s);
  }
  if (seen.empty()) return;
  const Use use = traffic == Traffic::Reduced ? Use::Atomic : traffic == Traffic::Written ? Use::Store : Use::Load;
  const U64 n =
      with_footprint(w.block->tally->footprint, use, [&](auto f) { return each_sector(seen.data(), seen.size(), f); });
  count_request(c, use, asked, n);
}

void count_async(Warp& w, const Inst& in, U64 lanes, U64 bytes) {
  Counters& c = counts(w, in);
  c.async_copies += lanes;
  c.async_bytes += bytes;
}

void count_matrix(Warp& w, const Inst& in, U64 flop) {
  if (!w.replays) counts(w, in).matrix_flop += flop;
}

}  // namespace kiln::rt::sim

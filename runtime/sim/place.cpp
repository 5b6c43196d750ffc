#include "runtime/sim/place.h"

#include <fmt/format.h>

namespace kiln::rt::sim {

Block& reachable_block(const Warp& w, const Inst& in, int lane, std::uint64_t rank) {
  Cluster& cluster = *w.block->cluster;
  if (rank >= cluster.blocks.size())
    fault(FindingKind::OutOfBounds, w, in, lane,
          fmt::format("shared memory of block {} of a cluster of {}", rank, cluster.blocks.size()));
  Block& b = cluster.blocks[rank];
  if (&b == w.block) return b;
  if (!cluster.met)
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("shared memory of block {} of the cluster, which need not have started: the cluster has not met "
                      "at its barrier",
                      rank));
  if (b.done)
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("shared memory of block {} of the cluster, which has exited", rank));
  return b;
}

SharedPlace shared_place(const Warp& w, const Inst& in, int lane, Space space, std::uint64_t address) {
  if (space == Space::Shared) return {w.block, static_cast<std::uint32_t>(address)};
  if (space == Space::Generic) {
    if (address >> 56 != kSharedWindow >> 56)
      fault(FindingKind::OutOfBounds, w, in, lane,
            fmt::format("the generic address 0x{:x} is not in shared memory", address));
    address &= (std::uint64_t{1} << 56) - 1;
  }
  const std::uint64_t named = address >> kRankShift;
  return {&reachable_block(w, in, lane, named ? named - 1 : w.block->rank),
          static_cast<std::uint32_t>(address & kInBlock)};
}

void check_multiple(const Warp& w, const Inst& in, int lane, const char* what, std::uint64_t address,
                    std::uint64_t align) {
  if (address % align)
    fault(FindingKind::Misaligned, w, in, lane,
          fmt::format("misaligned {} at 0x{:x}, which is no multiple of {}", what, address, align));
}

}  // namespace kiln::rt::sim

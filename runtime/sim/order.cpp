#include "runtime/sim/order.h"

#include <fmt/format.h>

#include "runtime/sim/memory.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

void order_all(Warp& w) {
  for (Block& b : w.block->cluster->blocks) b.races.order();
}

std::byte* shared_access(Agent& a, Block& b, std::uint64_t at, std::uint32_t bytes, bool writes) {
  Warp& w = *a.issuer;
  if (at < kSharedBase || at > b.shared_end() || bytes > b.shared_end() - at)
    fault(FindingKind::OutOfBounds, w, *a.inst, a.lane,
          fmt::format("out-of-bounds shared {} of {} bytes at 0x{:x}; it has {} bytes from 0x{:x}",
                      writes ? "store" : "load", bytes, at, b.shared_end() - kSharedBase, kSharedBase));
  const Races::Access mine{0, a.inst->info, warp_in_cluster(w), false};
  const Races::Access* other = writes ? b.races.write(at, bytes, mine) : b.races.read(at, bytes, mine);
  if (other) report_race(w, *a.inst, a.lane, *other);
  return b.shared_bytes() + at;
}

}  // namespace

Agent issue(Warp& w, const Inst& in, int lane, Proxy proxy) {
  return {&w, &in, static_cast<std::uint8_t>(lane), proxy};
}

void release(Warp& w, Clock&) { order_all(w); }
void acquire(Warp& w, const Clock&) { order_all(w); }
void release_relaxed(Warp& w, Clock&) { order_all(w); }
void acquire_relaxed(Warp& w, const Clock&) { order_all(w); }
void release(const Agent& a, Clock&) { order_all(*a.issuer); }
void fence_proxy_async(Warp& w) { order_all(w); }

const std::byte* shared_read(Agent& a, Block& b, std::uint64_t at, std::uint32_t bytes) {
  return shared_access(a, b, at, bytes, false);
}
std::byte* shared_write(Agent& a, Block& b, std::uint64_t at, std::uint32_t bytes) {
  return shared_access(a, b, at, bytes, true);
}
std::byte* shared_update(Agent& a, Block& b, std::uint64_t at, std::uint32_t bytes) {
  return shared_access(a, b, at, bytes, true);
}
const std::byte* global_read(Agent& a, std::uint64_t address, std::uint32_t bytes) {
  check_global_range(*a.issuer, *a.inst, a.lane, address, bytes, 1, "global load");
  return reinterpret_cast<const std::byte*>(address);
}
std::byte* global_write(Agent& a, std::uint64_t address, std::uint32_t bytes) {
  check_global_range(*a.issuer, *a.inst, a.lane, address, bytes, 1, "global store");
  return reinterpret_cast<std::byte*>(address);
}

std::byte* global_update(Agent& a, std::uint64_t address, std::uint32_t bytes) {
  check_global_range(*a.issuer, *a.inst, a.lane, address, bytes, 1, "global reduction");
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace kiln::rt::sim

#include "runtime/sim/mbarrier.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/sim/lifetime.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// What the memory of a live one holds.
U64 word(const Mbarrier& m) {
  return U64{0xB6A} << 52 | (m.phase & 0xFFF) << 40 | U64{m.pending} << 20 | (static_cast<U64>(m.bytes) & 0xFFFFF);
}

std::string initialised_at(const Warp& w, const Mbarrier& m) {
  const Program& p = w.block->launch->program;
  return full_place(p, p.infos[m.init.inst]);
}

}  // namespace

std::uint32_t Mbarriers::inside(std::uint32_t at, std::uint32_t bytes) const {
  const auto it = live_.lower_bound(at < 7 ? 0 : at - 7);
  return it != live_.end() && it->first < at + bytes ? it->first : 0;
}

Mbarrier& live_mbarrier(const Warp& w, const Inst& in, int lane, SharedPlace p) {
  Mbarrier* m = p.block->mbarriers.find(p.at);
  if (!m) fault(FindingKind::AsyncMisuse, w, in, lane, fmt::format("the mbarrier at 0x{:x} is not initialised", p.at));
  U64 now;
  std::memcpy(&now, p.block->shared_bytes() + p.at, sizeof now);
  if (now != word(*m))
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("the mbarrier at 0x{:x} was overwritten with 0x{:x}; it was initialised at {}", p.at, now,
                      initialised_at(w, *m)));
  return *m;
}

Mbarrier& used_mbarrier(Warp& w, const Inst& in, int lane, SharedPlace p) {
  Mbarrier& m = live_mbarrier(w, in, lane, p);
  check_initialised(w, in, lane, *p.block, p.at, m.init);
  return m;
}

Mbarrier& signalled_mbarrier(Warp& w, const Inst& in, int lane, SharedPlace p) {
  Mbarrier& m = used_mbarrier(w, in, lane, p);
  if (!m.fenced)
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("the mbarrier at 0x{:x} is used by an asynchronous operation, but no fence.mbarrier_init or "
                      "fence.proxy.async followed its initialisation at {}",
                      p.at, initialised_at(w, m)));
  return m;
}

void settle(SharedPlace p, Mbarrier& m) {
  Block& b = *p.block;
  b.cluster->pending.changed();
  const bool complete = m.pending == 0 && m.bytes == 0;
  if (complete) {
    ++m.phase;
    m.pending = m.expected;
    m.arrived.join(m.arriving);
    m.arriving.clear();
  }
  const U64 now = word(m);
  std::memcpy(b.shared_bytes() + p.at, &now, sizeof now);
  if (!complete) return;
  for (Warp& w : b.warps)
    if (w.state == WarpState::AtMbarrier && (w.awaited == 0 || w.awaited == p.at)) w.state = WarpState::Ready;
}

void count_arrivals(const Warp& w, const Inst& in, int lane, SharedPlace p, Mbarrier& m, U32 count) {
  if (count == 0 || count > kMaxArrivals)
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("{} arrivals at an mbarrier; must be 1 to {}", count, kMaxArrivals));
  if (count > m.pending)
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("{} arrivals at the mbarrier at 0x{:x}, whose phase {} misses {} and {} bytes; it was "
                      "initialised at {}",
                      count, p.at, m.phase, m.pending, m.bytes, initialised_at(w, m)));
  m.pending -= count;
}

void expect_bytes(const Warp& w, const Inst& in, int lane, SharedPlace p, Mbarrier& m, std::int64_t bytes) {
  m.bytes += bytes;
  if (m.bytes > kMaxTransactions || m.bytes < -kMaxTransactions)
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("phase {} of the mbarrier at 0x{:x} would miss {} bytes; the count goes from -{} to {}", m.phase,
                      p.at, m.bytes, kMaxTransactions, kMaxTransactions));
}

void complete_bytes(Signalling& o, U32 bytes) {
  const SharedPlace p{o.block, o.barrier};
  const Agent& a = o.agent;
  Mbarrier& m = live_mbarrier(*a.issuer, *a.inst, a.lane, p);
  release(a, m.arriving);
  expect_bytes(*a.issuer, *a.inst, a.lane, p, m, -std::int64_t{bytes});
  settle(p, m);
}

void fence_mbarriers(Warp& w) {
  for (Block& b : w.block->cluster->blocks)
    for (auto& [at, m] : b.mbarriers)
      if (m.warp == warp_in_cluster(w)) m.fenced = true;
}

std::string awaited_mbarrier(const Warp& w) {
  if (w.awaited == 0) return "several mbarriers";
  const Mbarrier* m = w.block->mbarriers.find(w.awaited);
  if (!m) return fmt::format("the mbarrier at 0x{:x}, which was invalidated", w.awaited);
  return fmt::format("the mbarrier at 0x{:x} (phase {}: {} of {} arrivals and {} bytes are missing)", w.awaited,
                     m->phase, m->pending, m->expected, m->bytes);
}

}  // namespace kiln::rt::sim

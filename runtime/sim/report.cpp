#include "runtime/sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace kiln::rt::sim {

std::string id_text(const std::array<std::uint32_t, 3>& v) { return fmt::format("({}, {}, {})", v[0], v[1], v[2]); }

namespace {

std::array<std::uint32_t, 3> thread_of(const Launch& launch, std::uint32_t warp, int lane) {
  const auto& n = launch.block;
  const std::uint32_t t = warp * kLanes + static_cast<std::uint32_t>(lane);
  return {t % n[0], t / n[0] % n[1], t / n[0] / n[1]};
}

/// Who made an access.
struct Who {
  std::array<std::uint32_t, 3> block;
  std::uint32_t rank, warp;
};
Who who(const Launch& launch, const Access& a) {
  const std::uint32_t warps = (launch.threads() + kLanes - 1) / kLanes, number = a.component / kComponents;
  return {block_id(launch, a.cluster, number / warps), number / warps, number % warps};
}

Finding finding(FindingKind kind, const Launch& launch, const std::array<std::uint32_t, 3>& block, std::uint32_t warp,
                std::uint32_t inst, int lane, const std::string& what) {
  const Program& p = launch.program;
  const InstInfo& i = p.infos[inst];
  Finding f{
      kind,        p.kernel, block, warp, lane, thread_of(launch, warp, std::max(lane, 0)), i.line, std::string(i.text),
      place(p, i), {}};
  const std::string by = lane < 0 ? fmt::format("warp {}", warp)
                                  : fmt::format("warp {}, lane {}, thread {}", warp, lane, id_text(f.thread));
  f.message = fmt::format("{}: kernel {}: {} (block {}, {}; ptx line {}: {})", f.where, f.kernel, what,
                          id_text(f.block), by, f.ptx_line, f.ptx);
  return f;
}

}  // namespace

std::string place(const Program& p, const InstInfo& i) {
  const auto file = p.module->files.find(i.loc.file);
  if (i.loc.line == 0 || file == p.module->files.end()) return fmt::format("ptx line {}", i.line);
  return fmt::format("{}:{}", file->second, i.loc.line);
}

std::string full_place(const Program& p, const InstInfo& i) {
  if (i.loc.line == 0) return fmt::format("{}: {}", place(p, i), i.text);
  return fmt::format("{} (ptx line {}: {})", place(p, i), i.line, i.text);
}

std::array<std::uint32_t, 3> block_id(const Launch& launch, std::uint64_t cluster, std::uint32_t rank) {
  std::array<std::uint32_t, 3> id;
  for (std::size_t i = 0; i < 3; ++i) {  // both numbers count along x first
    const std::uint32_t n = launch.cluster[i], along = launch.grid[i] / n;
    id[i] = static_cast<std::uint32_t>(cluster % along) * n + rank % n;
    cluster /= along;
    rank /= n;
  }
  return id;
}

Finding finding(FindingKind kind, const Warp& w, const Inst& in, int lane, const std::string& what) {
  return finding(kind, *w.block->launch, w.block->id, w.index, in.info, lane, what);
}

std::string race_text(const Launch& launch, bool shared, const std::string& where, const Access& mine,
                      const Access& rival, bool unfenced) {
  const Who me = who(launch, mine), other = who(launch, rival);
  const bool one_block = mine.cluster == rival.cluster && me.rank == other.rank;
  return fmt::format("race on {} memory with {}warp {}, lane {} at {}: {} ({})", shared ? "shared" : "global",
                     one_block ? "" : fmt::format("block {}, ", id_text(other.block)), other.warp, rival.lane,
                     full_place(launch.program, launch.program.infos[rival.inst]),
                     unfenced ? "no fence.proxy.async by that warp between them" : "nothing orders them", where);
}

Finding finding(FindingKind kind, const Launch& launch, const Access& a, const std::string& what) {
  const Who by = who(launch, a);
  return finding(kind, launch, by.block, by.warp, a.inst, a.lane, what);
}

Finding crossing_finding(const Launch& launch, const std::array<Access, 2>& pair, std::uint64_t base,
                         std::uint64_t at) {
  const Access& later = pair[1];
  return finding(
      FindingKind::Race, launch, later,
      race_text(launch, false, fmt::format("byte {} of the allocation 0x{:x}", at, base), later, pair[0], false));
}

void fault(FindingKind kind, const Warp& w, const Inst& in, int lane, const std::string& what) {
  throw Fault{finding(kind, w, in, lane, what), w.block->cluster->number};
}
void fault(FindingKind kind, const Warp& w, const Inst& in, const std::string& what) { fault(kind, w, in, -1, what); }
void fault(const Warp& w, const Inst& in, int lane, const std::string& what) {
  fault(FindingKind::Invalid, w, in, lane, what);
}
void fault(const Warp& w, const Inst& in, const std::string& what) { fault(FindingKind::Invalid, w, in, -1, what); }

std::string launch_error(const std::vector<Finding>& found) {
  // A read too early is a race and, the first time, uninitialised too: the race says what is missing.
  const auto least = [](FindingKind k) { return k == FindingKind::Uninitialised ? 2 : k == FindingKind::Race ? 1 : 0; };
  const Finding& named = *std::min_element(
      found.begin(), found.end(), [&](const Finding& a, const Finding& b) { return least(a.kind) < least(b.kind); });
  if (found.size() == 1) return named.message;
  return fmt::format("{}; and {} more finding{} in this launch", named.message, found.size() - 1,
                     found.size() == 2 ? "" : "s");
}

std::string waits_for(const Warp& w) {
  const Block& b = *w.block;
  if (w.state == WarpState::Done) return "has exited";
  if (spins(w)) return spin_text(w);
  if (w.state == WarpState::AtBarrier) {
    const Barrier& bar = b.barriers[w.barrier];
    return fmt::format("waits at barrier {} ({} of {} threads arrived)", w.barrier, bar.arrived, bar.expected);
  }
  if (w.state == WarpState::AtWarpgroup)
    return "waits for products that other warps of its warpgroup have not committed";
  if (w.state == WarpState::AtMbarrier) {
    const Program& p = b.launch->program;
    return fmt::format("waits for {} since {}", awaited_mbarrier(w), full_place(p, p.infos[p.code[w.pc].info]));
  }
  if (w.state == WarpState::AtRegisterPool) {
    const Inst& in = b.launch->program.code[w.pc];
    return fmt::format("waits for {} registers a thread (it has {}, the block's pool {})", in.imm, w.registers,
                       b.free_registers);
  }
  int arrived = 0, live = 0;
  for (const Block& other : b.cluster->blocks)
    for (const Warp& v : other.warps) arrived += std::popcount(v.cluster_arrived), live += std::popcount(v.live);
  return fmt::format("waits at the cluster's barrier ({} of {} threads arrived)", arrived, live);
}

std::string access_text(const Launch& launch, const Access& a) {
  const Who by = who(launch, a);
  return fmt::format("block {}, warp {}, lane {} at {}", id_text(by.block), by.warp, a.lane,
                     full_place(launch.program, launch.program.infos[a.inst]));
}

void report_deadlock(std::span<const Cluster> clusters, std::uint64_t waiting) {
  constexpr std::size_t kMostNamed = 16;
  std::string who;
  const Warp* first = nullptr;
  std::size_t named = 0, more = 0;
  const bool several = clusters.size() > 1 || clusters[0].blocks.size() > 1;
  for (const Cluster& c : clusters) {
    if (!c.started) continue;
    for (const Block& b : c.blocks) {
      if (several && named < kMostNamed) who += fmt::format("{}block {}: ", who.empty() ? "" : "; ", id_text(b.id));
      for (const Warp& w : b.warps) {
        if (w.state != WarpState::Done && !first) first = &w;
        if (named == kMostNamed) more += w.state != WarpState::Done;
        else who += fmt::format("{}warp {} {}", w.index == 0 ? "" : ", ", w.index, waits_for(w)), ++named;
      }
    }
  }
  if (more) who += fmt::format("; and {} more warps wait", more);
  if (waiting) who += fmt::format("; {} clusters have not started, as no more fit on the device at a time", waiting);
  // A barrier of the block has been passed and is waited for inside; the cluster's is tried again.
  const std::uint32_t at = first->state == WarpState::AtBarrier ? first->pc - 1 : first->pc;
  const Program& p = first->block->launch->program;
  if (spins(*first) && !first->spin->reads().empty())
    fault(FindingKind::Deadlock, *first, *first->spin->reads()[0].inst, first->spin->reads()[0].lane,
          "deadlock: " + who);
  fault(FindingKind::Deadlock, *first, p.code[at], "deadlock: " + who);
}

}  // namespace kiln::rt::sim

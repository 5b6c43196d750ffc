#include "runtime/sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace kiln::rt::sim {
namespace {

std::string id_text(const std::array<std::uint32_t, 3>& v) { return fmt::format("({}, {}, {})", v[0], v[1], v[2]); }

std::array<std::uint32_t, 3> thread_of(const Warp& w, int lane) {
  const auto& n = w.block->launch->block;
  const std::uint32_t t = w.index * kLanes + static_cast<std::uint32_t>(lane);
  return {t % n[0], t / n[0] % n[1], t / n[0] / n[1]};
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

Finding finding(FindingKind kind, const Warp& w, const Inst& in, int lane, const std::string& what) {
  const Program& p = w.block->launch->program;
  const InstInfo& i = p.infos[in.info];
  Finding f{
      kind,        p.kernel, w.block->id, w.index, lane, thread_of(w, std::max(lane, 0)), i.line, std::string(i.text),
      place(p, i), {}};
  const std::string who = lane < 0 ? fmt::format("warp {}", w.index)
                                   : fmt::format("warp {}, lane {}, thread {}", w.index, lane, id_text(f.thread));
  f.message = fmt::format("{}: kernel {}: {} (block {}, {}; ptx line {}: {})", f.where, f.kernel, what,
                          id_text(f.block), who, f.ptx_line, f.ptx);
  return f;
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
  const bool stopped = found.back().kind != FindingKind::Race && found.back().kind != FindingKind::Uninitialised;
  const Finding& named = stopped ? found.back() : found.front();
  if (found.size() == 1) return named.message;
  return fmt::format("{}; and {} more finding{} in this launch", named.message, found.size() - 1,
                     found.size() == 2 ? "" : "s");
}

std::string waits_for(const Warp& w) {
  const Block& b = *w.block;
  if (w.state == WarpState::Done) return "has exited";
  if (w.state == WarpState::AtBarrier) {
    const Barrier& bar = b.barriers[w.barrier];
    return fmt::format("waits at barrier {} ({} of {} threads arrived)", w.barrier, bar.arrived, bar.expected);
  }
  if (w.state == WarpState::AtMbarrier) {
    const Program& p = b.launch->program;
    return fmt::format("waits for {} since {}", awaited_mbarrier(w), full_place(p, p.infos[p.code[w.pc].info]));
  }
  int arrived = 0, live = 0;
  for (const Block& other : b.cluster->blocks)
    for (const Warp& v : other.warps) arrived += std::popcount(v.cluster_arrived), live += std::popcount(v.live);
  return fmt::format("waits at the cluster's barrier ({} of {} threads arrived)", arrived, live);
}

void report_deadlock(const Cluster& c) {
  std::string who;
  const Warp* waiting = nullptr;
  for (const Block& b : c.blocks) {
    if (c.blocks.size() > 1) who += fmt::format("{}block {}: ", who.empty() ? "" : "; ", id_text(b.id));
    for (const Warp& w : b.warps) {
      who += fmt::format("{}warp {} {}", w.index == 0 ? "" : ", ", w.index, waits_for(w));
      if (w.state != WarpState::Done && !waiting) waiting = &w;
    }
  }
  // A barrier of the block has been passed and is waited for inside; the cluster's is tried again.
  const std::uint32_t at = waiting->state == WarpState::AtBarrier ? waiting->pc - 1 : waiting->pc;
  fault(FindingKind::Deadlock, *waiting, waiting->block->launch->program.code[at], "deadlock: " + who);
}

}  // namespace kiln::rt::sim

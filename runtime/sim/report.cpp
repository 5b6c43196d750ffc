#include "runtime/sim/report.h"

#include <fmt/format.h>

#include <bit>

namespace kiln::rt::sim {
namespace {

std::string id_text(const std::array<std::uint32_t, 3>& v) { return fmt::format("({}, {}, {})", v[0], v[1], v[2]); }

std::string thread_text(const Warp& w, int lane) {
  const auto& n = w.block->launch->block;
  const std::uint32_t t = w.index * kLanes + static_cast<std::uint32_t>(lane);
  return id_text({t % n[0], t / n[0] % n[1], t / n[0] / n[1]});
}

const InstInfo& info(const Warp& w, const Inst& in) { return w.block->launch->program.infos[in.info]; }

[[noreturn]] void raise(const Warp& w, const Inst& in, const std::string& who, const std::string& what) {
  const Program& p = w.block->launch->program;
  const InstInfo& i = info(w, in);
  throw Fault{fmt::format("{}: kernel {}: {} (block {}, {}; ptx line {}: {})", place(p, i), p.kernel, what,
                          id_text(w.block->id), who, i.line, i.text),
              w.block->cluster->number};
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

void fault(const Warp& w, const Inst& in, int lane, const std::string& what) {
  raise(w, in, fmt::format("thread {}", thread_text(w, lane)), what);
}

void fault(const Warp& w, const Inst& in, const std::string& what) {
  raise(w, in, fmt::format("warp {}", w.index), what);
}

std::string waits_for(const Warp& w) {
  const Block& b = *w.block;
  if (w.state == WarpState::Done) return "has exited";
  if (w.state == WarpState::AtBarrier) {
    const Barrier& bar = b.barriers[w.barrier];
    return fmt::format("waits at barrier {} ({} of {} threads arrived)", w.barrier, bar.arrived, bar.expected);
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
  fault(*waiting, waiting->block->launch->program.code[at], "deadlock: " + who);
}

}  // namespace kiln::rt::sim

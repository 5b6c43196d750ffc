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
              w.block->linear};
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

void report_deadlock(const Block& b) {
  std::string who;
  const Warp* waiting = nullptr;
  for (const Warp& w : b.warps) {
    who += fmt::format("{}warp {} ", who.empty() ? "" : ", ", w.index);
    if (w.state == WarpState::Done) {
      who += "has exited";
    } else {
      const Barrier& bar = b.barriers[w.barrier];
      who += fmt::format("waits at barrier {} ({} of {} threads arrived)", w.barrier, bar.arrived, bar.expected);
      if (!waiting) waiting = &w;
    }
  }
  const Warp& w = *waiting;
  fault(w, b.launch->program.code[w.pc - 1], "deadlock: " + who);
}

}  // namespace kiln::rt::sim

// The loop that executes the instructions of one warp.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/debug_hook.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

template <bool kDebug>
void run(Warp& w, std::uint64_t quantum) {
  const Launch& launch = *w.block->launch;
  const Inst* const code = launch.program.code.data();
  Executed* const counts = w.block->tally->executed.data();
  std::uint64_t& clock = w.block->instructions;
  const std::uint64_t end = clock + quantum;
  while (w.state == WarpState::Ready && clock < end) {
    if (w.pc == w.reconverge) {
      w.resume_parked();
      continue;
    }
    const Inst& in = code[w.pc];
    w.mask = w.active;
    if (in.guard >= 0) w.mask &= w.regs[in.guard] ^ in.guard_flip;
    if constexpr (kDebug)
      if (!launch.debug->before(w, in)) return;
    ++w.pc;
    ++clock;
    ++counts[in.info].times;
    if (w.mask != kAllLanes) count_lanes(w, in);
    if (in.watched && w.mask != 0 && launch.checks.registers) w.wgmma.touch(w, in);
    if (w.mask != 0 || in.control) in.run(w, in);
    if constexpr (kDebug) launch.debug->after(w, in);
  }
}

}  // namespace

void run_warp(Warp& w, std::uint64_t quantum) {
  const Launch& launch = *w.block->launch;
  const std::uint64_t left = launch.steps - w.steps, begin = w.block->instructions;
  if (left == 0)
    fault(FindingKind::Limit, w, launch.program.code[w.pc],
          fmt::format("an endless loop: the warp has executed {} instructions, as many as KILN_SIM_STEPS allows",
                      w.steps));
  quantum = std::min(quantum, left);
  if (launch.debug) run<true>(w, quantum);
  else run<false>(w, quantum);
  w.steps += w.block->instructions - begin;
}

}  // namespace kiln::rt::sim

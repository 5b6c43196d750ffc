// The loop that executes the instructions of one warp.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/debug_hook.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

constexpr std::uint64_t kLook =
    64;  // instructions after which alternative registers may be found to be like the warp's

/// `kAlternative`: the warp has alternative registers. True if it returns because that changed.
template <bool kDebug, bool kAlternative>
bool run(Warp& w, std::uint64_t end) {
  const Launch& launch = *w.block->launch;
  const Inst* const code = launch.program.code.data();
  Executed* const counts = w.block->tally->executed.data();
  std::uint64_t& clock = w.block->instructions;
  while (w.state == WarpState::Ready && clock < end) {
    if (w.pc == w.reconverge) {
      w.resume_parked();
      continue;
    }
    const Inst& in = code[w.pc];
    w.mask = w.active;
    if (in.guard >= 0) w.mask &= w.regs[in.guard] ^ in.guard_flip;
    if constexpr (kDebug)
      if (!launch.debug->before(w, in)) return false;
    ++w.pc;
    ++clock;
    ++counts[in.info].times;
    if (w.mask != kAllLanes) count_lanes(w, in);
    if (in.watched && w.mask != 0 && launch.checks.registers) w.wgmma.touch(w, in);
    if constexpr (kAlternative) {
      w.alternative->run(w, in);
    } else if (w.mask != 0 || in.control) {
      const std::uint32_t mask = w.mask;
      in.run(w, in);
      if (w.alternative) [[unlikely]]
        w.alternative->finish_load(w, in, mask);
    }
    if constexpr (kDebug) launch.debug->after(w, in);
    if constexpr (kAlternative) {
      if (clock % kLook == 0 && w.alternative->same(w)) w.alternative.reset();
    }
    if (bool{w.alternative} != kAlternative) [[unlikely]]
      return true;
  }
  return false;
}

}  // namespace

void run_warp(Warp& w, std::uint64_t quantum) {
  const Launch& launch = *w.block->launch;
  const std::uint64_t left = launch.steps - w.steps, begin = w.block->instructions;
  if (left == 0)
    fault(FindingKind::Limit, w, launch.program.code[w.pc],
          fmt::format("an endless loop: the warp has executed {} instructions, as many as KILN_SIM_STEPS allows",
                      w.steps));
  const std::uint64_t end = begin + std::min(quantum, left);
  for (bool again = true; again;) {
    if (w.alternative) again = launch.debug ? run<true, true>(w, end) : run<false, true>(w, end);
    else again = launch.debug ? run<true, false>(w, end) : run<false, false>(w, end);
  }
  w.steps += w.block->instructions - begin;
}

}  // namespace kiln::rt::sim

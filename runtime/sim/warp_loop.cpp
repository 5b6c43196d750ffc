// The loop that executes the instructions of one warp.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/debug_hook.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

constexpr std::uint64_t kLook =
    64;  // instructions after which alternative registers may be found to be like the warp's

/// Instructions of a program that may spin between looks at whether it does.
constexpr std::uint64_t kStretch = 256;

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

void run(Warp& w, std::uint64_t end) {
  const bool debug = w.block->launch->debug;
  for (bool again = true; again;) {
    if (w.alternative) again = debug ? run<true, true>(w, end) : run<false, true>(w, end);
    else again = debug ? run<true, false>(w, end) : run<false, false>(w, end);
  }
}

/// … instruction by instruction, until it is known whether the warp spins.
void follow(Warp& w, std::uint64_t end) {
  std::uint64_t& clock = w.block->instructions;
  while (w.state == WarpState::Ready && clock < end) {
    const std::uint64_t before = clock;
    run(w, clock + 1);
    if (clock == before) return;  // a debugger holds it
    if (w.state == WarpState::Ready && look_at_spin(w)) return;
  }
  if (w.state != WarpState::Ready) w.spin.reset();
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
  if (w.spin) {
    w.spin->resume(w);
    w.idle_since = *w.block->changes;
    follow(w, end);
  } else if (!launch.program.polls) {
    run(w, end);
  } else {
    // A spinning warp is noticed before its slice is over: there may be thousands.
    for (std::uint64_t at = begin; at < end && w.state == WarpState::Ready && !w.spin; at = w.block->instructions) {
      run(w, std::min(end, at + kStretch));
      if (w.block->instructions == at) break;
      if (w.state == WarpState::Ready) watch_spin(w, w.block->instructions - at);
    }
    if (w.spin) follow(w, end);
  }
  w.steps += w.block->instructions - begin;
  if (!launch.program.polls && !w.spin && w.state == WarpState::Ready) watch_spin(w, w.block->instructions - begin);
}

}  // namespace kiln::rt::sim

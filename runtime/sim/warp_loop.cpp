// The loop that executes the instructions of one warp.
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

void run_warp(Warp& w, std::uint64_t quantum) {
  const Inst* const code = w.block->launch->program.code.data();
  Counters& counters = w.block->tally.counters;
  std::uint64_t executed = 0;
  while (w.state == WarpState::Ready && executed < quantum) {
    if (w.pc == w.reconverge) {
      w.resume_parked();
      continue;
    }
    const Inst& in = code[w.pc++];
    w.mask = w.active;
    if (in.guard >= 0) w.mask &= w.regs[in.guard] ^ in.guard_flip;
    ++executed;
    ++counters.instructions;
    if (w.mask != 0 || in.control) in.run(w, in);
  }
}

}  // namespace kiln::rt::sim

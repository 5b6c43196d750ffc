// setmaxnreg: warps hand registers to each other through a pool of their block.
//
// A block starts with as many registers a thread as its .maxnreg says, else with as many as 65536 leave to the
// .minnctapersm blocks of .maxntid (or .reqntid) threads, in steps of 8, and with an empty pool. A kernel that says
// none of these has no count to start from; assemblers leave its setmaxnreg out, and so does this.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/matrix.h"
#include "runtime/sim/tally.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;

constexpr U32 kRegistersOfSm = 65536, kMostRegisters = 256, kStep = 8, kLeast = 24, kMostThreads = 1024;

void wake(Block& b) {
  for (Warp& w : b.warps)
    if (w.state == WarpState::AtRegisterPool) w.state = WarpState::Ready;
}

void require(const Warp& w, const Inst& in, bool possible, const char* than) {
  if (possible) return;
  fault(w, in,
        fmt::format("the warp has {} registers a thread, {} than {}", w.registers, than, static_cast<U32>(in.imm)));
}

/// in.imm: registers a thread.
void decrease(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  w.block->warpgroups[w.index / kWarpgroup].step(w, {&in});
  if (w.registers == 0) return;
  const auto count = static_cast<U32>(in.imm);
  require(w, in, count <= w.registers, "less");
  w.block->free_registers += w.registers - count;
  w.registers = count;
  wake(*w.block);
}

void increase(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  const auto count = static_cast<U32>(in.imm);
  if (w.registers != 0) {
    require(w, in, count >= w.registers, "more");
    if (count - w.registers > w.block->free_registers) {
      w.state = WarpState::AtRegisterPool;
      --w.pc;
      uncount(w, in);
      return;
    }
    w.block->free_registers -= count - w.registers;
    w.registers = count;
  }
  w.block->warpgroups[w.index / kWarpgroup].step(w, {&in});
}

}  // namespace

std::uint32_t first_registers(const Program& p) {
  if (p.maxnreg) return p.maxnreg;
  const auto& threads = p.reqntid[0] ? p.reqntid : p.maxntid;
  if (threads[0] == 0) return 0;
  std::uint64_t all = 1;
  for (const U32 n : threads) all *= std::clamp(n, 1u, kMostThreads);
  const std::uint64_t blocks = std::max(p.minnctapersm, 1u);
  return static_cast<U32>(std::min<std::uint64_t>(kMostRegisters, kRegistersOfSm / (all * blocks) / kStep * kStep));
}

Handler make_setmaxnreg(Form& f) {
  if (f.has("inc") == f.has("dec") || f.count() != 1 || f.types.size() != 1 || f.type() != Ty::u32) return nullptr;
  f.inst.imm = f.immediate(0);
  if (f.inst.imm < kLeast || f.inst.imm > kMostRegisters || f.inst.imm % kStep)
    f.fail(
        fmt::format("{} registers; must be a multiple of {} from {} to {}", f.inst.imm, kStep, kLeast, kMostRegisters));
  return f.has("inc") ? increase : decrease;
}

}  // namespace kiln::rt::sim

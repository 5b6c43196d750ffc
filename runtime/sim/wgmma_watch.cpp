#include "runtime/sim/wgmma_watch.h"

#include <fmt/format.h>

#include "runtime/sim/report.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

std::string at(const Warp& w, const Inst& in) {
  const Program& p = w.block->launch->program;
  return full_place(p, p.infos[in.info]);
}

}  // namespace

void WgmmaWatch::start(const Program& p) {
  registers_.assign(p.watched.size(), {});
  flights_.clear();
  committed_ = 0;
  fenced_ = false;
}

void WgmmaWatch::touch(const Warp& w, const Inst& in) {
  // What it reads comes first, so that x = x + y is said to read x.
  touch(w, in, OperandRole::Read);
  touch(w, in, OperandRole::Written);
}

void WgmmaWatch::touch(const Warp& w, const Inst& in, OperandRole role) {
  const Program& p = w.block->launch->program;
  const bool writes = role == OperandRole::Written;
  for (std::uint16_t i = 0; i < in.n_ops; ++i) {
    const int number = p.use(in, i).role == role ? p.watch_number(in, i) : -1;
    if (number < 0) continue;
    Register& r = registers_[static_cast<std::size_t>(number)];
    if (r.accumulating || (r.reading && writes))
      fault(FindingKind::Registers, w, in,
            fmt::format("register {} is {} while it is {} a wgmma that was not waited for, issued at {}",
                        p.watched[static_cast<std::size_t>(number)], writes ? "written" : "read",
                        r.accumulating ? "an accumulator of" : "part of A of", at(w, *r.owner)));
    if (!writes && r.written) continue;
    r.touched = &in;
    r.written = writes;
  }
}

void WgmmaWatch::fence() {
  fenced_ = true;
  for (Register& r : registers_) r.touched = nullptr, r.written = false;
}

void WgmmaWatch::require_fence(const Warp& w, const Inst& in, std::uint32_t n_d, std::uint32_t n_a) const {
  if (!fenced_) fault(FindingKind::Registers, w, in, "no wgmma.fence before the first wgmma of the warp");
  const Program& p = w.block->launch->program;
  for (const bool written : {true, false})
    for (std::uint32_t i = 0; i < n_d + (written ? n_a : 0); ++i) {
      const int number = p.watch_number(in, i);
      if (number < 0) continue;
      const Register& r = registers_[static_cast<std::size_t>(number)];
      if (r.touched && r.written == written)
        fault(FindingKind::Registers, w, in,
              fmt::format("no wgmma.fence since register {}, {}, was {} at {}",
                          p.watched[static_cast<std::size_t>(number)], i < n_d ? "an accumulator" : "part of A",
                          written ? "written" : "read", at(w, *r.touched)));
    }
}

void WgmmaWatch::issue(const Warp& w, const Inst& in, std::uint32_t n_d, std::uint32_t n_a) {
  require_fence(w, in, n_d, n_a);
  const Program& p = w.block->launch->program;
  for (std::uint32_t i = 0; i < n_d + n_a; ++i) {
    const bool accumulator = i < n_d;
    const int number = p.watch_number(in, i);
    if (number < 0) continue;  // a sink
    const auto n = static_cast<std::size_t>(number);
    Register& r = registers_[n];
    // Accumulators may go from one wgmma to the next of the same shape; any other sharing needs a wait.
    const bool handed_on = accumulator && r.position == i && r.owner && r.owner->n_ops == in.n_ops;
    if ((r.accumulating && !handed_on) || (accumulator && r.reading))
      fault(FindingKind::Registers, w, in,
            fmt::format(
                "register {}, {} here, is {} a wgmma of another shape or use that was not waited for, issued at {}",
                p.watched[n], accumulator ? "an accumulator" : "part of A",
                r.accumulating ? "an accumulator of" : "part of A of", at(w, *r.owner)));
    ++(accumulator ? r.accumulating : r.reading);
    r.owner = &in;
    r.position = i;
  }
  flights_.push_back({&in, n_d, n_a, committed_});
}

void WgmmaWatch::wait(const Program& p, std::uint32_t left) {
  std::erase_if(flights_, [&](const Flight& f) {
    if (f.group + left >= committed_) return false;
    for (std::uint32_t i = 0; i < f.n_d + f.n_a; ++i)
      if (const int number = p.watch_number(*f.inst, i); number >= 0) {
        Register& r = registers_[static_cast<std::size_t>(number)];
        --(i < f.n_d ? r.accumulating : r.reading);
      }
    return true;
  });
}

}  // namespace kiln::rt::sim

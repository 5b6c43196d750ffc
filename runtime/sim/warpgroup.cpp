#include "runtime/sim/warpgroup.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/report.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

std::string text(const Warp& w, const Warpgroup::Step& s) {
  const Program& p = w.block->launch->program;
  return full_place(p, p.infos[s.inst->info]);
}

}  // namespace

void Warpgroup::start() { *this = {}; }

std::uint32_t Warpgroup::farthest() const { return *std::max_element(taken_.begin(), taken_.end()); }

void Warpgroup::step(const Warp& w, const Step& s) {
  const Block& b = *w.block;
  const std::uint32_t begin = w.index / kWarpgroup * kWarpgroup, mine = w.index - begin;
  if (begin + kWarpgroup > b.warps.size())
    fault(FindingKind::Divergence, w, *s.inst,
          fmt::format("an instruction of a warpgroup, of which the block has {} of {} warps", b.warps.size() - begin,
                      kWarpgroup));
  const std::uint32_t number = taken_[mine]++;
  ++*b.changes;
  for (std::uint32_t i = 0; i < kWarpgroup; ++i)
    if (b.warps[begin + i].state == WarpState::Done && taken_[i] <= number)
      fault(FindingKind::Divergence, w, *s.inst,
            fmt::format("all warps of a warpgroup must execute this, but warp {} has exited", begin + i));
  if (number - first_ == steps_.size()) steps_.push_back(s);
  const Step& other = steps_[number - first_];
  if (other.inst != s.inst)
    fault(FindingKind::Divergence, w, *s.inst,
          fmt::format("all warps of a warpgroup must execute the same, but another one executed {}", text(w, other)));
  if (other != s)
    fault(FindingKind::Descriptor, w, *s.inst,
          other.a != s.a
              ? fmt::format("the descriptor of A is 0x{:x}, in another warp of the warpgroup 0x{:x}", s.a, other.a)
              : fmt::format("the descriptor of B is 0x{:x}, in another warp of the warpgroup 0x{:x}", s.b, other.b));
  if (*std::min_element(taken_.begin(), taken_.end()) > first_) {
    steps_.erase(steps_.begin());
    ++first_;
  }
}

void Warpgroup::exits(const Warp& w, const Inst& in) const {
  if (taken_[w.index % kWarpgroup] == farthest()) return;
  fault(FindingKind::Divergence, w, in,
        fmt::format("the warp exits, but another warp of its warpgroup executed {}",
                    text(w, steps_[taken_[w.index % kWarpgroup] - first_])));
}

}  // namespace kiln::rt::sim

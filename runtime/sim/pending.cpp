#include "runtime/sim/pending.h"

#include <algorithm>

#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

void Groups::add(std::unique_ptr<Operation> o) {
  const std::uint32_t group = committed_[o->agent.lane];
  operations_.push_back({std::move(o), group});
}

void Groups::commit(std::uint32_t lanes) {
  each_lane(lanes, [&](int l) { ++committed_[static_cast<std::size_t>(l)]; });
}

void Groups::wait(Warp& w, std::uint32_t lanes, std::uint32_t left) {
  Clock done;
  std::erase_if(operations_, [&](const Entry& e) {
    const std::uint8_t lane = e.operation->agent.lane;
    if (!(lanes >> lane & 1) || e.group + left >= committed_[lane]) return false;
    e.operation->run();
    release(e.operation->agent, done);
    return true;
  });
  acquire(w, done);
}

void Groups::clear() {
  operations_.clear();
  committed_ = {};
}

}  // namespace kiln::rt::sim

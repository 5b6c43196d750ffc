#include "runtime/sim/spin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/sim/racecheck.h"
#include "runtime/sim/report.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

/// Instructions of a warp without any change before it is watched; doubled each time that was in vain.
constexpr std::uint64_t kIdle = 512;
constexpr std::uint32_t kMostDoubt = 20;
constexpr std::size_t kMostNamed = 3;  // addresses in a message

std::uint64_t changes(const Warp& w) { return *w.block->changes; }

}  // namespace

Spin::Spin(const Warp& w) { remember(w); }

void Spin::remember(const Warp& w) {
  registers_.assign(w.regs, w.regs + w.block->launch->program.register_words);
  alternatives_.clear();
  if (w.alternative && !w.alternative->same(w)) alternatives_ = w.alternative->registers();
  parked_ = w.parked;
  held_ = w.held;
  pc_ = w.pc;
  active_ = w.active;
  reconverge_ = w.reconverge;
  changes_ = changes(w);
  steps_ = 0;
  reads_.clear();
}

bool Spin::same(const Warp& w) const {
  if (w.active != active_ || w.reconverge != reconverge_ || w.parked != parked_ || w.held != held_) return false;
  if (std::memcmp(w.regs, registers_.data(), registers_.size() * sizeof(std::uint32_t)) != 0) return false;
  if (alternatives_.empty()) return !w.alternative || w.alternative->same(w);
  return w.alternative && w.alternative->registers() == alternatives_;
}

bool Spin::returned(const Warp& w) {
  ++steps_;
  if (w.pc == pc_ && same(w)) return found_ = true;
  if (steps_ < longest_) return false;
  // A state that is not part of the loop never comes back: later ones are tried (Brent's method).
  longest_ = tries_ == 1 ? kLongest + 1 : longest_ * 2;
  if (tries_ > 1) --tries_;
  remember(w);
  return false;
}

bool Spin::found(const Warp& w) const { return found_ && changes_ == changes(w); }

void Spin::resume(const Warp& w) {
  if (changes_ == changes(w)) return;
  // In the middle of a loop, what it still does there comes of what it read before the change: it need not come back to
  // this state, but to the next that is remembered. One that came back is as long as it was: steps_.
  if (found_) tries_ = kTries;
  longest_ = std::max<std::uint64_t>(found_ ? 2 * steps_ : 0, 64);
  found_ = false;
  remember(w);
}

bool spins(const Warp& w) { return w.spin && w.spin->found(w); }

void watch_spin(Warp& w, std::uint64_t executed) {
  if (w.idle_since != changes(w)) {
    w.idle_since = changes(w);
    w.idle = 0;
    return;
  }
  w.idle += executed;
  if (w.idle < kIdle << w.doubt) return;
  w.idle = 0;
  w.spin = std::make_unique<Spin>(w);
}

bool look_at_spin(Warp& w) {
  const auto stop = [&] {
    w.spin.reset();
    w.idle = 0;
    return true;
  };
  if (w.idle_since != changes(w)) {  // by the warp itself
    w.idle_since = changes(w);
    return stop();
  }
  if (w.spin->returned(w)) {
    // Lanes that run on beside these may be what they wait for.
    if (w.spun_since != changes(w)) w.spun = 0;
    w.spun_since = changes(w);
    w.spun |= w.active;
    if ((w.live & ~w.spun) && w.let_others_run()) return stop();
    if (w.spin->reads().empty())
      fault(FindingKind::Limit, w, w.block->launch->program.code[w.pc],
            "an endless loop: the warp repeats itself and reads no memory that anybody could change");
    return true;
  }
  if (!w.spin->hopeless()) return false;
  w.doubt = std::min(w.doubt + 1, kMostDoubt);
  return stop();
}

namespace {

std::string value_text(const std::byte* at, const Inst& in) {
  const std::uint32_t bytes = std::uint32_t{in.size} * std::max<std::uint32_t>(in.count, 1);
  if (bytes == 0 || bytes > 8) return {};
  std::uint64_t v = 0;
  std::memcpy(&v, at, bytes);
  return fmt::format("it holds 0x{:x}, ", v);
}

std::string read_text(const Warp& w, const Spin::Read& r) {
  const Launch& launch = *w.block->launch;
  std::byte* const at = r.shared ? r.shared->shared_bytes() + r.address : reinterpret_cast<std::byte*>(r.address);
  std::string where = fmt::format("shared memory at 0x{:x}", r.address);
  if (r.shared && r.shared != w.block) where += fmt::format(" of block {}", id_text(r.shared->id));
  if (!r.shared) {
    const HeapRange& range = launch.heap.live[launch.heap.find(r.address, 1)];
    where = fmt::format("byte {} of the allocation 0x{:x}", r.address - range.base, range.base);
  }
  std::string writer = "nobody looks for who wrote it";
  if (launch.checks.races) {
    const auto last = last_write(w, r.shared, r.address);
    writer = last ? "last written by " + access_text(launch, *last) : "nobody has written it in this launch";
  }
  return fmt::format("{} ({}{})", where, value_text(at, *r.inst), writer);
}

}  // namespace

std::string spin_text(const Warp& w) {
  const Program& p = w.block->launch->program;
  const auto& reads = w.spin->reads();
  std::string text;
  std::vector<std::pair<Block*, std::uint64_t>> named;
  for (const Spin::Read& r : reads) {
    const std::pair place{r.shared, r.address};
    if (named.size() == kMostNamed || std::find(named.begin(), named.end(), place) != named.end()) continue;
    named.push_back(place);
    text += fmt::format("{}{} at {}", text.empty() ? "spins on " : " and ", read_text(w, r),
                        full_place(p, p.infos[r.inst->info]));
  }
  return text;
}

}  // namespace kiln::rt::sim

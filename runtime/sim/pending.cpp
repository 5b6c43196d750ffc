#include "runtime/sim/pending.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

/// Rounds of all warps in which nothing happened that a waiting one may be waiting for. Then the others are taken to
/// wait too, in loops that read memory.
constexpr std::uint32_t kRounds = 64;
/// Looks of waiting warps at mbarriers that have not changed, and will not unless a look decides what happens next.
constexpr std::uint32_t kLooks = 64;
/// Operations of a warp that are kept, sources read, for a wait that may never come.
constexpr std::size_t kKept = 64;
/// Longest stretch of instructions of one warp in a random schedule.
constexpr std::uint64_t kRandomSlice = 64;

template <class F>
void each_warp(Cluster& c, F&& f) {
  for (Block& b : c.blocks)
    for (Warp& w : b.warps) f(w);
}

bool any_ready(Cluster& c) {
  bool ready = false;
  each_warp(c, [&](const Warp& w) { ready |= w.state == WarpState::Ready; });
  return ready;
}

}  // namespace

Schedule Schedule::from_environment() {
  const std::string& text = env::KILN_SIM_SCHEDULE();
  constexpr std::string_view kRandom = "random:";
  if (text.empty() || text == "late") return {};
  if (text == "early") return {Kind::Early, 0};
  if (text.starts_with(kRandom)) {
    Schedule s{Kind::Random, 0};
    const char *from = text.data() + kRandom.size(), *end = text.data() + text.size();
    const auto [at, error] = std::from_chars(from, end, s.seed);
    if (error == std::errc{} && at == end) return s;
  }
  throw DeviceError(fmt::format("KILN_SIM_SCHEDULE is '{}'; must be late, early or random:SEED, a number", text));
}

Operation::Operation(Agent a) : agent(std::move(a)), lanes(1u << agent.lane) {}

// --- Groups ----------------------------------------------------------------------------------------------------------

void Groups::run(Entry& e) {
  if (e.done) return;
  e.done = true;
  ++*e.operation->agent.issuer->block->changes;
  read_sources(*e.operation);
  e.operation->run();
}

void Groups::read_sources(Operation& o) {
  Block& own = *o.agent.issuer->block;
  if (!o.reads_shared(own)) return;
  o.read();
  visit(o.agent, own, Visit::By::GroupReader);
}

void Groups::add(std::unique_ptr<Operation> o) {
  Cluster& cluster = *o->agent.issuer->block->cluster;
  const auto lane = static_cast<std::size_t>(std::countr_zero(o->lanes));
  entries_.push_back({std::move(o), issued_++, committed_[lane]});
  if (cluster.pending.early()) run(entries_.back());
  else cluster.pending.moment(cluster);
}

void Groups::commit(std::uint32_t lanes) {
  each_lane(lanes, [&](int l) { ++committed_[static_cast<std::size_t>(l)]; });
}

std::uint32_t Groups::due(const Entry& e, std::uint32_t lanes, std::uint32_t left) const {
  std::uint32_t out = 0;
  for (std::uint32_t m = e.operation->lanes & lanes; m; m &= m - 1)
    if (e.group + left < committed(std::countr_zero(m))) out |= m & -m;
  return out;
}

void Groups::part(std::size_t index, std::uint32_t lanes) {
  Entry& e = entries_[index];
  if (lanes == 0 || lanes == e.operation->lanes) return;
  Entry other{e.operation->split(lanes), e.number, e.group, e.done};
  entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(index), std::move(other));
}

void Groups::wait(Warp& w, std::uint32_t lanes, std::uint32_t left) {
  Cluster& cluster = *w.block->cluster;
  cluster.pending.moment(cluster);
  Clock done;
  done.join(finished_);
  for (std::size_t i = 0; i < entries_.size(); ++i) part(i, due(entries_[i], lanes, left));
  std::erase_if(entries_, [&](Entry& e) {
    if (due(e, lanes, left) == 0) return false;
    run(e);
    release(e.operation->agent, done);
    return true;
  });
  finished_.join(done);
  acquire(w, done);
}

void Groups::wait_read(Warp& w, std::uint32_t lanes, std::uint32_t left) {
  Cluster& cluster = *w.block->cluster;
  cluster.pending.moment(cluster);
  Clock read;
  for (Entry& e : entries_) {
    if (due(e, lanes, left) == 0) continue;
    if (!e.done) read_sources(*e.operation);
    release(e.operation->agent, read);
  }
  acquire(w, read);
  while (entries_.size() > kKept) {
    run(entries_.front());
    release(entries_.front().operation->agent, finished_);
    entries_.erase(entries_.begin());
  }
}

void Groups::finish(std::uint32_t lanes, std::uint64_t number, Clock& into) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].number >= number) continue;
    part(i, entries_[i].operation->lanes & lanes);
    if (!(entries_[i].operation->lanes & lanes)) continue;
    run(entries_[i]);
    release(entries_[i].operation->agent, into);
  }
}

void Groups::finish_groups(std::uint32_t groups, Clock& into) {
  into.join(finished_);
  for (Entry& e : entries_) {
    if (e.group >= groups) continue;
    run(e);
    release(e.operation->agent, into);
  }
}

std::size_t Groups::unfinished() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.done; }));
}

void Groups::run(std::size_t index) {
  for (Entry& e : entries_)
    if (!e.done && index-- == 0) return run(e);
}

void Groups::run_all() {
  for (Entry& e : entries_) run(e);
}

const Operation* Groups::reader_of(const Block& b) const {
  for (const Entry& e : entries_)
    if (!e.done && e.operation->reads_shared(b)) return e.operation.get();
  return nullptr;
}

void Groups::clear() {
  entries_.clear();
  committed_ = {};
  finished_.clear();
  issued_ = 0;
}

// --- Pending ---------------------------------------------------------------------------------------------------------

void Pending::start(const Schedule& s, std::uint64_t cluster, std::uint64_t* changes) {
  schedule_ = s;
  changes_ = changes;
  state_ = s.seed * 0x9E3779B97F4A7C15 + cluster;
  queue_.clear();
  changed();
}

/// SplitMix64.
std::uint64_t Pending::random() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

std::uint64_t Pending::slice(std::uint64_t usual) {
  return schedule_.kind == Schedule::Kind::Random ? 1 + random() % kRandomSlice : usual;
}

void Pending::add(std::unique_ptr<Signalling> o) {
  Cluster& cluster = *o->agent.issuer->block->cluster;
  queue_.push_back(std::move(o));
  if (early()) run(queue_.size() - 1);
  else moment(cluster);
}

void Pending::run(std::size_t index) {
  const std::unique_ptr<Signalling> o = std::move(queue_[index]);
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(index));
  changed();
  Block& own = *o->agent.issuer->block;
  const bool reads = o->reads_shared(own);
  o->run();
  if (o->writes()) visit(o->agent, *o->block, Visit::By::Writer);
  if (reads) visit(o->agent, own, Visit::By::Reader);
}

void Pending::choose(Cluster& c) {
  if (random() % 2) return;
  std::size_t n = queue_.size();
  const auto ready = [](const Groups& g, std::size_t kind) {
    // The matrix operations of a warp work on one accumulator, in order.
    const std::size_t under_way = g.unfinished();
    return kind == static_cast<std::size_t>(GroupKind::Wgmma) ? std::min<std::size_t>(under_way, 1) : under_way;
  };
  each_warp(c, [&](const Warp& w) {
    for (std::size_t k = 0; k < kGroupKinds; ++k) n += ready(w.groups[k], k);
  });
  if (n == 0) return;
  std::size_t chosen = random() % n;
  if (chosen < queue_.size()) return run(chosen);
  chosen -= queue_.size();
  bool found = false;
  each_warp(c, [&](Warp& w) {
    for (std::size_t k = 0; k < kGroupKinds && !found; ++k) {
      const std::size_t here = ready(w.groups[k], k);
      found = chosen < here;
      if (found) w.groups[k].run(chosen);
      else chosen -= here;
    }
  });
}

/// Operations on the mbarrier that the warp waits for, the oldest first, until it may go on.
bool Pending::run_awaited(const Warp& w) {
  for (std::size_t i = 0; i < queue_.size();) {
    const Signalling& o = *queue_[i];
    if (o.block != w.block || (w.awaited != 0 && o.barrier != w.awaited)) {
      ++i;
      continue;
    }
    run(i);
    if (w.state == WarpState::Ready) return true;
  }
  return false;
}

bool Pending::unblock(Cluster& c) {
  while (schedule_.kind == Schedule::Kind::Random && !queue_.empty()) {
    run(random() % queue_.size());
    if (any_ready(c)) return true;
  }
  bool moved = false;
  each_warp(c, [&](const Warp& w) { moved = moved || (w.state == WarpState::AtMbarrier && run_awaited(w)); });
  if (moved) return true;
  if (idle_ >= kLooks) return false;
  ++idle_;
  each_warp(c, [&](Warp& w) { moved |= w.state == WarpState::AtMbarrier && w.let_others_run(); });
  if (moved) return true;
  each_warp(c, [&](Warp& w) {
    if (w.state != WarpState::AtMbarrier) return;
    w.state = WarpState::Ready;
    w.look = moved = true;
  });
  return moved;
}

bool Pending::help_spinning(Cluster& c) {
  if (!c.any_spins()) return false;
  if (!queue_.empty()) return run(0), true;
  bool helped = false;
  each_warp(c, [&](Warp& w) {
    for (Groups& g : w.groups)
      if (!helped && g.unfinished()) g.run(0), helped = true;
  });
  return helped;
}

void Pending::round(Cluster& c) {
  if (++rounds_ < kRounds * (schedule_.kind == Schedule::Kind::Random ? kRandomSlice : 1)) return;
  rounds_ = 0;
  const std::uint32_t idle = idle_;
  if (!unblock(c) && !queue_.empty()) run(0);
  idle_ = idle;  // others run: no deadlock
}

void Pending::block_exits(Block& b) {
  const auto report = [](const Operation& o, Visit::By by) {
    fault(FindingKind::AsyncMisuse, *o.agent.issuer, *o.agent.inst, o.agent.lane, unawaited(by));
  };
  for (const auto& o : queue_) {
    if (o->reads_shared(b)) report(*o, Visit::By::Reader);
    if (o->block == &b && o->writes()) report(*o, Visit::By::Writer);
  }
  for (const Warp& w : b.warps)
    for (const Groups& g : w.groups)
      if (const Operation* o = g.reader_of(b)) report(*o, Visit::By::GroupReader);
  check_visits(b);
}

void Pending::finish(Cluster& c) {
  each_warp(c, [](Warp& w) { w.groups[static_cast<std::size_t>(GroupKind::Bulk)].run_all(); });
  queue_.clear();
}

}  // namespace kiln::rt::sim

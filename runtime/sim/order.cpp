#include "runtime/sim/order.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/memory.h"
#include "runtime/sim/racecheck.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

void join_times(std::vector<U32>& to, const std::vector<U32>& from) {
  if (to.size() < from.size()) to.resize(from.size());
  U32* t = to.data();
  const U32* f = from.data();
  for (std::size_t i = 0, n = from.size(); i < n; ++i) t[i] = std::max(t[i], f[i]);
}

Timeline& timeline(const Warp& w) { return w.block->cluster->time; }

/// What the warp does from now on, nobody knows yet.
void tick(Warp& w) {
  Knowledge& k = w.order;
  k.clock.known[k.self] = ++timeline(w).now[k.self];
  k.snapshot.reset();
}

const std::shared_ptr<const Clock>& snapshot(Warp& w) {
  Knowledge& k = w.order;
  if (!k.snapshot) k.snapshot = std::make_shared<const Clock>(k.clock);
  return k.snapshot;
}

void learn(Warp& w, const Clock& from) {
  w.order.clock.join(from);
  w.order.snapshot.reset();
}

/// An entry of the journal that tells what the clock holds.
U32 tell(const Warp& w, const Clock& c) {
  auto times = std::make_shared<Journal::Times>(c.known);
  times->resize(timeline(w).now.size());
  times->insert(times->end(), c.fenced.begin(), c.fenced.end());
  times->resize(2 * timeline(w).now.size());
  return c.journal->add(static_cast<U32>(w.block->cluster->number), std::move(times), c.told.known);
}

bool holds(const std::vector<U32>& all, const std::vector<U32>& part) {
  for (std::size_t i = 0; i < part.size(); ++i)
    if (part[i] > (i < all.size() ? all[i] : 0)) return false;
  return true;
}
/// The clock tells all that the other one does; false if that is not seen at once.
bool holds(const Clock& all, const Clock& part) {
  return (part.told.known == 0 || part.told.known == all.told.known) && holds(all.known, part.known) &&
         holds(all.fenced, part.fenced);
}
std::shared_ptr<const Clock> joined(const std::shared_ptr<const Clock>& a, const std::shared_ptr<const Clock>& b) {
  if (!b || a == b || (a && holds(*a, *b))) return a;
  if (!a || holds(*b, *a)) return b;
  auto both = std::make_shared<Clock>(*a);
  both->join(*b);
  return both;
}

/// An entry of the journal that tells what fence.sc before the clock knew, of any cluster; `kept`: made before.
U32 tell_published(const Warp& w, const Clock& c, Knowledge::Published& kept) {
  if (c.published != kept.clock) kept = {c.published, c.published ? tell(w, *c.published) : 0};
  return kept.entry == 0 ? c.told.published : c.journal->join(c.told.published, kept.entry);
}

/// A strong access to a variable at which fence.sc leave what they knew.
void order_fences(Warp& w, Use use, std::unordered_map<U64, U32>& fences, U64 key) {
  Knowledge& k = w.order;
  Told& told = k.clock.told;
  if (use != Use::Store && !fences.empty())
    if (const auto v = fences.find(key); v != fences.end()) {
      told.observed = k.clock.journal->join(told.observed, v->second);
      k.snapshot.reset();
    }
  if (use == Use::Load || (told.published == 0 && !k.clock.published)) return;
  U32& variable = fences[key];
  variable = k.clock.journal->join(variable, tell_published(w, k.clock, k.published));
}

}  // namespace

void Clock::join(const Clock& other) {
  join_times(known, other.known);
  join_times(fenced, other.fenced);
  if (other.published && other.published != published) published = joined(published, other.published);
  if (other.told.empty()) return;
  journal = other.journal;
  journal->join(told, other.told);
}

void Timeline::start(std::size_t warps, bool races, Journal* of_launch) {
  on = races;
  variables.clear();
  fences.clear();
  if (!on) return;
  now.resize(warps * kComponents);
  origin = now;
  journal = of_launch ? of_launch : &own;
  if (!of_launch) own = {};
}

void start(Warp& w) {
  Timeline& t = timeline(w);
  if (!t.on) return;
  Knowledge& k = w.order;
  const auto number = static_cast<U32>(w.block->rank * w.block->warps.size() + w.index);
  k.self = number * kComponents;
  k.issued = 0;
  k.clock.known = k.clock.fenced = t.origin;
  k.clock.told = {};
  k.clock.published.reset();
  k.clock.journal = t.journal;
  k.at_fence.reset();
  k.at_issue.reset();
  k.fence_entry = 0;
  k.taken.clear();
  k.published = k.published_at_fence = {};
  tick(w);
}

Agent issue(Warp& w, const Inst& in, int lane, Proxy proxy) {
  Agent a{&w, &in, static_cast<std::uint8_t>(lane), proxy, 0, 0, nullptr};
  if (!timeline(w).on) return a;
  Knowledge& k = w.order;
  a.component = static_cast<std::uint16_t>(k.self + 1 + k.issued++ % kOperationComponents);
  // What the warp accesses from here on, the operations of this instruction do not know.
  if (const U64 now = w.block->instructions; !k.at_issue || k.issued_at != now) {
    k.at_issue = snapshot(w);
    k.issued_at = now;
    tick(w);
  }
  a.known = k.at_issue;
  return a;
}

void release(Warp& w, Clock& into) {
  if (!timeline(w).on) return;
  into.join(w.order.clock);
  tick(w);
}
void acquire(Warp& w, const Clock& from) {
  if (timeline(w).on) learn(w, from);
}
void release_relaxed(Warp& w, Clock& into) {
  if (w.order.at_fence) into.join(*w.order.at_fence);
}
void acquire_relaxed(Warp& w, const Clock& from) {
  if (timeline(w).on) w.order.taken.join(from);
}
void release(const Agent& a, Clock& into) {
  if (!a.known) return;
  into.join(*a.known);
  if (into.known.size() <= a.component) into.known.resize(a.component + 1u);
  into.known[a.component] = std::max(into.known[a.component], a.time);
}

void fence(Warp& w, FenceKind kind) {
  if (!timeline(w).on) return;
  Knowledge& k = w.order;
  if (kind.acquires) {
    learn(w, k.taken);
    k.taken.clear();
  }
  if (!kind.releases) return;
  k.fence_entry = 0;
  if (kind.sc) {
    Told& told = k.clock.told;
    told.known = k.clock.journal->join(told.known, told.observed);
    told.observed = told.published = 0;
    k.clock.published.reset();
    k.clock.published = std::make_shared<const Clock>(k.clock);
    k.snapshot.reset();
  }
  k.at_fence = snapshot(w);
  tick(w);
}

void fence_proxy_async(Warp& w) {
  if (!timeline(w).on) return;
  Knowledge& k = w.order;
  for (U32 c = k.self; c < k.self + kComponents; ++c) k.clock.fenced[c] = k.clock.known[c];
  tick(w);
}

void synchronise_shared(Warp& w, const Inst& in, Use use, U32 rank, U64 address) {
  Timeline& t = timeline(w);
  if (!t.on) return;
  const U64 key = U64{rank} << 32 | address;
  order_fences(w, use, t.fences, key);
  if (use != Use::Store)
    if (const auto v = t.variables.find(key); v != t.variables.end()) {
      if (in.acquires) acquire(w, v->second);
      else acquire_relaxed(w, v->second);
    }
  if (use == Use::Load) return;
  if (in.releases) release(w, t.variables[key]);
  else if (w.order.at_fence) release_relaxed(w, t.variables[key]);
}

void synchronise_global(Warp& w, const Inst& in, Use use, U64 address) {
  Timeline& t = timeline(w);
  if (!t.on) return;
  Knowledge& k = w.order;
  Journal& j = *t.journal;
  order_fences(w, use, j.fences, address);
  if (use != Use::Store)
    if (const auto v = j.variables.find(address); v != j.variables.end()) {
      Clock& to = in.acquires ? k.clock : k.taken;
      to.journal = &j;
      j.join(to.told, v->second);
      if (in.acquires) k.snapshot.reset();
    }
  if (use == Use::Load) return;
  const auto release_there = [&](U32 known, const Clock& c, Knowledge::Published& kept) {
    j.join(j.variables[address], {known, tell_published(w, c, kept), c.told.observed});
  };
  if (in.releases) {
    release_there(tell(w, k.clock), k.clock, k.published);
    tick(w);
  } else if (k.at_fence) {
    if (k.fence_entry == 0) k.fence_entry = tell(w, *k.at_fence);
    release_there(k.fence_entry, *k.at_fence, k.published_at_fence);
  }
}

namespace {

std::byte* shared_access(Agent& a, Block& b, U64 at, U32 bytes, Use use) {
  Warp& w = *a.issuer;
  if (at < kSharedBase || at > b.shared_end() || bytes > b.shared_end() - at)
    fault(FindingKind::OutOfBounds, w, *a.inst, a.lane,
          fmt::format("out-of-bounds shared {} of {} bytes at 0x{:x}; it has {} bytes from 0x{:x}", name(use), bytes,
                      at, b.shared_end() - kSharedBase, kSharedBase));
  check_shared(a, b, at, bytes, use);
  return b.shared_bytes() + at;
}

std::byte* global_access(Agent& a, U64 address, U32 bytes, Use use) {
  const char* what = use == Use::Load ? "global load" : use == Use::Store ? "global store" : "global reduction";
  check_global_range(*a.issuer, *a.inst, a.lane, address, bytes, 1, what);
  check_global(a, address, bytes, use);
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace

const std::byte* shared_read(Agent& a, Block& b, U64 at, U32 bytes) {
  return shared_access(a, b, at, bytes, Use::Load);
}
std::byte* shared_write(Agent& a, Block& b, U64 at, U32 bytes) { return shared_access(a, b, at, bytes, Use::Store); }
std::byte* shared_update(Agent& a, Block& b, U64 at, U32 bytes) { return shared_access(a, b, at, bytes, Use::Atomic); }
const std::byte* global_read(Agent& a, U64 address, U32 bytes) { return global_access(a, address, bytes, Use::Load); }
std::byte* global_write(Agent& a, U64 address, U32 bytes) { return global_access(a, address, bytes, Use::Store); }
std::byte* global_update(Agent& a, U64 address, U32 bytes) { return global_access(a, address, bytes, Use::Atomic); }

}  // namespace kiln::rt::sim

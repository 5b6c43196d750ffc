#include "runtime/sim/racecheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "runtime/sim/crossing.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// A warp or an asynchronous operation at an access.
struct Actor {
  Warp& warp;
  const Inst& inst;
  const Clock& knows;
  Access mine;
  bool to_registers = false;  ///< what it loads goes to registers of the warp, whose use is looked at
};

/// Memory that has one shadow. Positions in it count from the shadow's first byte.
struct Target {
  Shadow& shadow;
  std::byte* memory;   ///< of position 0
  U64 base;            ///< address of position 0
  const Block* block;  ///< whose shared memory it is; null: global memory
  bool crossing;       ///< clusters run in any order, by several threads
};

/// Bytes that lanes next to each other access.
struct Span {
  U64 at;
  U32 bytes;
  int lane;        ///< the first
  U32 lane_bytes;  ///< of each
  const std::byte* data;
  std::byte* loaded;
  int lane_of(U64 position) const { return lane + static_cast<int>((position - at) / lane_bytes); }
};

enum class Order : std::uint8_t { Before, Unfenced, None };

U32 block_of(const Actor& x, U32 component) {
  return component / kComponents / static_cast<U32>(x.warp.block->warps.size());
}

/// Whether two strong accesses include each other in their scopes.
bool both_strong(const Actor& x, const Access& a) {
  const U32 least = std::min<U32>(x.mine.scope, a.scope);
  if (least == 0 || least == 3) return least == 3;
  if (a.cluster != x.mine.cluster) return false;
  return least == 2 || block_of(x, a.component) == block_of(x, x.mine.component);
}

/// `a`, which was before, as the actor sees it.
Order order(const Actor& x, const Access& a) {
  const Clock& k = x.knows;
  const auto told = [&](U32 component) {
    return k.told.known && k.journal->knows(k.told.known, a.cluster, component, a.time);
  };
  if (a.cluster != x.mine.cluster) return told(a.component) ? Order::Before : Order::None;
  if (a.component == x.mine.component && a.time == x.mine.time && a.async == x.mine.async) return Order::Before;
  if (!k.knows(a.component, a.time) && !told(a.component)) return Order::None;
  if (!x.mine.async || a.async) return Order::Before;
  const auto n = static_cast<U32>(x.warp.block->cluster->time.now.size());
  const bool fenced = a.component < k.fenced.size() && k.fenced[a.component] >= a.time;
  return fenced || told(n + a.component) ? Order::Before : Order::Unfenced;
}

struct Rival {
  Access access;
  Order order;
};

bool same_agent(const Access& a, const Access& b) { return a.component == b.component && a.cluster == b.cluster; }

/// The rival of a read, if it has one; the read is remembered.
std::optional<Rival> note_read(const Actor& x, const Target& t, Page& page, Cell& c) {
  std::optional<Rival> rival;
  if (c.write.time && !(t.crossing && c.write.cluster != x.mine.cluster)) {
    const Order o = order(x, c.write);
    if (o != Order::Before && !both_strong(x, c.write)) rival = {c.write, o};
  }
  const Access last = c.read;
  c.read = x.mine;
  if (last.time == 0 || same_agent(last, x.mine)) return rival;
  if (t.crossing && last.cluster != x.mine.cluster) {
    if (c.readers) page.readers_of(c).clear();
    return rival;
  }
  if (order(x, last) == Order::Before) return rival;
  std::vector<Access>& others = page.readers_of(c);
  std::erase_if(others, [&](const Access& a) { return same_agent(a, last) || same_agent(a, x.mine); });
  others.push_back(last);
  return rival;
}

/// The rival of a write, if it has one; the write is remembered.
std::optional<Rival> note_write(const Actor& x, const Target& t, Page& page, Cell& c) {
  std::optional<Rival> rival;
  const auto look = [&](const Access& a, bool wrote) {
    if (rival || a.time == 0 || (t.crossing && a.cluster != x.mine.cluster) || both_strong(x, a)) return;
    Order o = order(x, a);
    if (o == Order::Unfenced && !wrote) o = Order::Before;  // a read leaves nothing behind
    if (o != Order::Before) rival = {a, o};
  };
  const bool one_block = c.write.cluster == x.mine.cluster && block_of(x, c.write.component) == x.warp.block->rank;
  if (t.block || !one_block) look(c.write, true);
  look(c.read, false);
  if (c.readers) {
    std::vector<Access>& others = page.readers_of(c);
    for (const Access& a : others) look(a, false);
    others.clear();
  }
  c.write = x.mine;
  return rival;
}

/// Bytes of [position, position + n) that the data would change.
std::uint16_t changes(const Target& t, const Span& s, U64 position, U32 n) {
  const auto all = static_cast<std::uint16_t>((1u << n) - 1);
  if (!s.data) return all;
  const std::byte *now = t.memory + position, *next = s.data + (position - s.at);
  if (std::memcmp(now, next, n) == 0) return 0;
  U32 mask = 0;
  for (U32 i = 0; i < n; ++i) mask |= static_cast<U32>(now[i] != next[i]) << i;
  return static_cast<std::uint16_t>(mask);
}

std::string where(const Target& t, U64 position) {
  if (t.block) return fmt::format("0x{:x}", t.base + position);
  return fmt::format("byte {} of the allocation 0x{:x}", position, t.base);
}

Findings& findings(const Actor& x) { return *x.warp.block->cluster->findings; }
ShadowRange range_of(const Target& t, U64 position, U32 bytes) {
  return t.crossing ? ShadowRange{&t.shadow, position, bytes, t.base} : ShadowRange{};
}

void report_race(const Actor& x, const Target& t, const Rival& r, U64 position, U32 bytes, int lane) {
  const Findings::Key key{FindingKind::Race, x.inst.info, r.access.inst};
  if (!findings(x).wants(key)) return;
  findings(x).add(key, x.mine.cluster,
                  finding(FindingKind::Race, x.warp, x.inst, lane,
                          race_text(*x.warp.block->launch, t.block != nullptr, where(t, position), x.mine, r.access,
                                    r.order == Order::Unfenced)),
                  range_of(t, position, bytes));
}

void report_unwritten(const Actor& x, const Target& t, const Span& s, U64 position) {
  const Findings::Key key{FindingKind::Uninitialised, x.inst.info, 0};
  if (!findings(x).wants(key)) return;
  const int lane = s.lane_of(position);
  const U64 at = s.at + static_cast<U64>(lane - s.lane) * s.lane_bytes;
  findings(x).add(key, x.mine.cluster,
                  finding(FindingKind::Uninitialised, x.warp, x.inst, lane,
                          fmt::format("uninitialised {} load of {} bytes at 0x{:x}: nobody wrote {}",
                                      t.block ? "shared" : "global", s.lane_bytes, t.base + at, where(t, position))),
                  range_of(t, position, 1));
}

/// A load to registers of shared memory that was not written, at `missing` first.
void load_unwritten(const Actor& x, const Target& t, const Span& s, U64 missing) {
  Warp& w = x.warp;
  if (!w.alternative) w.alternative = std::make_unique<Alternative>(w);
  const UnknownBytes* unknown = t.block->unknown.get();
  for (const U64 end = s.at + s.bytes; missing != end; missing = t.shadow.written.first_unset(missing, end - missing)) {
    const int lane = s.lane_of(missing);
    std::byte* const at = t.memory + missing;
    UnknownByte b{{&w, &x.inst, lane, s.at + static_cast<U64>(lane - s.lane) * s.lane_bytes, missing, s.lane_bytes},
                  Alternative::unwritten(missing, *at)};
    if (unknown)
      if (const auto stored = unknown->shared.find(missing); stored != unknown->shared.end()) b = stored->second;
    w.alternative->loads(at, b);
    ++missing;
  }
}

void check_order(Actor&, const Target&, const Span&, Use);

void check(Actor& x, const Target& t, const Span& s, Use use) {
  const Checks& checks = x.warp.block->launch->checks;
  if (checks.uninit) {
    if (use != Use::Store)
      if (const U64 missing = t.shadow.written.first_unset(s.at, s.bytes); missing != s.at + s.bytes) {
        if (t.block && x.to_registers) load_unwritten(x, t, s, missing);
        else report_unwritten(x, t, s, missing);
      }
    if (use != Use::Load) t.shadow.written.set(s.at, s.bytes);
  }
  if (checks.races) check_order(x, t, s, use);
}

/// … against the accesses before it, which it joins.
void check_order(Actor& x, const Target& t, const Span& s, Use use) try {
  const U32 launch = t.block ? t.block->starts : x.warp.block->launch->number;
  t.shadow.each(s.at, s.bytes, launch, t.crossing, [&](Page& page, Cell& c, U64 position, U32 n) {
    x.mine.lane = static_cast<std::uint8_t>(s.lane_of(position));
    if (t.crossing) {
      const std::uint16_t changed = use == Use::Load ? std::uint16_t{0} : changes(t, s, position, n);
      if (note_crossing(x.mine, page, c, use != Use::Store, use != Use::Load, changed))
        findings(x).cross({&t.shadow, position, n, t.base});
    }
    // An atomic is a write as far as order goes: whatever races with its read races with that too.
    const auto rival = use == Use::Load ? note_read(x, t, page, c) : note_write(x, t, page, c);
    if (rival && (use != Use::Store || changes(t, s, position, n))) report_race(x, t, *rival, position, n, x.mine.lane);
    if (!t.crossing) return;
    if (s.data) std::memcpy(t.memory + position, s.data + (position - s.at), n);
    if (s.loaded) std::memcpy(s.loaded + (position - s.at), t.memory + position, n);
  });
} catch (const ShadowsAreFull& full) {
  fault(
      FindingKind::Limit, x.warp, x.inst, std::countr_zero(x.warp.mask ? x.warp.mask : 1u),
      fmt::format("the kernel touches so much memory that what the check for races keeps of it is more than {} bytes; "
                  "KILN_SIM_CHECK=uninit,registers turns that check off",
                  full.bytes));
}

/// Calls f for spans of lanes whose addresses follow each other; lanes that repeat the load of the one before are left
/// out.
template <class F>
void each_span(const LaneAccess& a, F&& f) {
  for (U32 left = a.mask; left;) {
    const int first = std::countr_zero(left);
    const auto i = static_cast<std::size_t>(first);
    const U64 at = a.address[i];
    U32 n = 1;
    left &= left - 1;
    int next = first + 1;
    if (a.use == Use::Load)
      while (next < kLanes && (left >> next & 1) && a.address[static_cast<std::size_t>(next)] == at)
        left &= left - 1, ++next;
    if (next == first + 1)
      while (next < kLanes && (left >> next & 1) && a.address[static_cast<std::size_t>(next)] == at + U64{n} * a.bytes)
        left &= left - 1, ++next, ++n;
    f(Span{at, n * a.bytes, first, a.bytes, a.data ? a.data + i * a.bytes : nullptr,
           a.loaded ? a.loaded + i * a.bytes : nullptr});
    // Lanes that repeat the load of the first.
    if (a.loaded)
      for (int l = first + static_cast<int>(n); l < next; ++l)
        std::memcpy(a.loaded + static_cast<std::size_t>(l) * a.bytes, a.loaded + i * a.bytes, a.bytes);
  }
}

/// A warp. Atomics without a scope are operations on mbarriers, which threads of the cluster may share.
Actor actor(Warp& w, const Inst& in, Use use) {
  const Knowledge& k = w.order;
  Access mine;
  mine.cluster = static_cast<U32>(w.block->cluster->number);
  mine.inst = in.info;
  mine.component = static_cast<std::uint16_t>(k.self);
  mine.time = w.block->cluster->time.on ? k.clock.known[k.self] : 0;
  mine.scope = (use == Use::Atomic && in.scope == 0 ? 2 : in.scope) & 3;
  return {w, in, k.clock, mine, in.unknowns == Unknowns::Loads};
}

Actor actor(Agent& a, Use use) {
  static const Clock kNothing;
  Warp& w = *a.issuer;
  if (a.time == 0 && a.known) a.time = ++w.block->cluster->time.now[a.component];
  Access mine;
  mine.cluster = static_cast<U32>(w.block->cluster->number);
  mine.inst = a.inst->info;
  mine.component = a.component;
  mine.time = a.time;
  mine.lane = a.lane;
  mine.async = a.proxy == Proxy::Async;
  mine.scope = use == Use::Atomic ? 3 : 0;
  return {w, *a.inst, a.known ? *a.known : kNothing, mine};
}

Target shared(Block& to) { return {*to.shadow, to.shared_bytes(), 0, &to, false}; }
Target global(const Warp& w, const HeapRange& r) {
  return {*r.shadow, reinterpret_cast<std::byte*>(r.base), r.base, nullptr, crossing(*w.block->launch)};
}

bool any(const Warp& w) { return w.block->launch->checks.races || w.block->launch->checks.uninit; }

const HeapRange& allocation(Warp& w, U64 address, U32 bytes) {
  const HeapView& heap = w.block->launch->heap;
  const auto inside = [&](std::size_t i) {
    return i < heap.live.size() && address >= heap.live[i].base && address + bytes <= heap.live[i].end();
  };
  if (!inside(w.allocation_hint)) w.allocation_hint = heap.find(address, bytes);
  return heap.live[w.allocation_hint];
}

}  // namespace

bool happened_before(const Warp& w, const Access& a) {
  const Clock& k = w.order.clock;
  const bool told = k.told.known && k.journal->knows(k.told.known, a.cluster, a.component, a.time);
  return told || (a.cluster == static_cast<U32>(w.block->cluster->number) && k.knows(a.component, a.time));
}

std::optional<Access> last_write(const Warp& w, Block* of, U64 address) {
  const Launch& launch = *w.block->launch;
  std::optional<Access> last;
  const auto look = [&](Page&, const Cell& c, U64, U32) {
    if (c.write.time) last = c.write;
  };
  if (of) {
    of->shadow->each(address, 1, of->starts, false, look);
  } else {
    const HeapRange& r = launch.heap.live[launch.heap.find(address, 1)];
    r.shadow->each(address - r.base, 1, launch.number, crossing(launch), look);
  }
  return last;
}

void check_shared(Warp& w, const Inst& in, Block& to, const LaneAccess& a) {
  if (!any(w)) return;
  Actor x = actor(w, in, a.use);
  const Target t = shared(to);
  each_span(a, [&](const Span& s) { check(x, t, s, a.use); });
}

bool check_global(Warp& w, const Inst& in, const LaneAccess& a) {
  if (!any(w)) return false;
  Actor x = actor(w, in, a.use);
  bool carried_out = false;
  each_span(a, [&](Span s) {
    // Lanes next to each other are in one allocation: there is a gap between two.
    const HeapRange& r = allocation(w, s.at, s.bytes);
    s.at -= r.base;
    const Target t = global(w, r);
    carried_out = t.crossing;
    check(x, t, s, a.use);
  });
  return carried_out;
}

void check_shared(Agent& a, Block& to, U64 at, U32 bytes, Use use) {
  if (!any(*a.issuer) || bytes == 0) return;
  Actor x = actor(a, use);
  check(x, shared(to), {at, bytes, a.lane, bytes, nullptr, nullptr}, use);
}

void check_global(Agent& a, U64 address, U32 bytes, Use use) {
  if (!any(*a.issuer) || bytes == 0) return;
  Actor x = actor(a, use);
  const HeapRange& r = allocation(*a.issuer, address, bytes);
  check(x, global(*a.issuer, r), {address - r.base, bytes, a.lane, bytes, nullptr, nullptr}, use);
}

}  // namespace kiln::rt::sim

// Addresses of a warp's access: resolved to host memory and checked.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "runtime/sim/crossing.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/racecheck.h"
#include "runtime/sim/report.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Addresses = std::array<U64, kLanes>;

const char* name(Space s) {
  switch (s) {
    case Space::Shared:
    case Space::Cluster: return "shared";
    case Space::Local: return "local";
    case Space::Param: return "parameter";
    default: return "global";
  }
}

FindingKind wild_kind(std::string_view kind) {
  return kind == "use-after-free" ? FindingKind::UseAfterFree : FindingKind::OutOfBounds;
}

/// A warp's global access: every lane inside some live allocation.
void check_global(Warp& w, const Inst& in, U32 mask, const Addresses& address, U32 bytes, Use use) {
  const HeapView& heap = w.block->launch->heap;
  U64 low = UINT64_MAX, high = 0;
  each_lane(mask, [&](int l) {
    low = std::min(low, address[static_cast<std::size_t>(l)]);
    high = std::max(high, address[static_cast<std::size_t>(l)]);
  });
  if (w.allocation_hint < heap.live.size()) {
    const HeapRange& r = heap.live[w.allocation_hint];
    if (low >= r.base && high <= r.end() && bytes <= r.end() - high) return;
  }
  w.allocation_hint = heap.find(low, high - low + bytes);
  if (w.allocation_hint < heap.live.size()) return;
  for (U32 m = mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const U64 a = address[static_cast<std::size_t>(l)];
    if (heap.find(a, bytes) < heap.live.size()) continue;
    const auto [kind, where] = heap.describe(a);
    fault(wild_kind(kind), w, in, l,
          fmt::format("{} global {} of {} bytes at 0x{:x}, {}", kind, name(use), bytes, a, where));
  }
}

/// A space that has the addresses from `begin` up to `end`.
void check_window(Warp& w, const Inst& in, Space space, U32 mask, const Addresses& address, U32 bytes, Use use,
                  U64 begin, U64 end) {
  for (U32 m = mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const U64 a = address[static_cast<std::size_t>(l)];
    if (a >= begin && a <= end && bytes <= end - a) continue;
    fault(FindingKind::OutOfBounds, w, in, l,
          fmt::format("out-of-bounds {} {} of {} bytes at 0x{:x}; it has {} bytes from 0x{:x}", name(space), name(use),
                      bytes, a, end - begin, begin));
  }
}

void check_alignment(Warp& w, const Inst& in, Space space, U32 mask, const Addresses& address, U32 bytes, Use use) {
  U64 low_bits = 0;
  each_lane(mask, [&](int l) { low_bits |= address[static_cast<std::size_t>(l)]; });
  if ((low_bits & (bytes - 1)) == 0) return;
  for (U32 m = mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const U64 a = address[static_cast<std::size_t>(l)];
    if (a & (bytes - 1))
      fault(FindingKind::Misaligned, w, in, l,
            fmt::format("misaligned {} {} of {} bytes at 0x{:x}, which is no multiple of {}", name(space), name(use),
                        bytes, a, bytes));
  }
}

/// One access of a warp, on its way.
struct Going {
  Warp& w;
  const Inst& in;
  const U32 bytes;
  const Use use;
  const std::byte* data;
  const bool now;  ///< it happens here for the first time, and is checked against others
  LaneAddresses& out;

  LaneAccess lanes(U32 mask, const Addresses& address) const { return {mask, address, bytes, use, data, nullptr}; }
};

/// f(address), once for lanes next to each other that have the same.
template <class F>
void each_variable(U32 mask, const Addresses& address, F&& f) {
  U64 last = ~U64{0};
  each_lane(mask, [&](int l) {
    const U64 a = address[static_cast<std::size_t>(l)];
    if (std::exchange(last, a) != a) f(a);
  });
}

void note_read(const Going& g, Block* shared, U32 mask, const Addresses& address) {
  const int lane = std::countr_zero(mask);
  g.w.spin->reads(g.in, lane, shared, address[static_cast<std::size_t>(lane)]);
}

/// Shared memory of `to`, in bounds.
void go_shared(const Going& g, Block& to, U32 mask, const Addresses& address) {
  if (!g.w.replays) count_shared(g.w, g.in, mask, address, g.bytes);
  if (g.w.spin && g.use != Use::Store) note_read(g, &to, mask, address);
  if (g.now) {
    if (&to != g.w.block) visit(g.w, g.in, std::countr_zero(mask), to);
    check_shared(g.w, g.in, to, g.lanes(mask, address));
    if (g.in.scope) each_variable(mask, address, [&](U64 a) { synchronise_shared(g.w, g.in, g.use, to.rank, a); });
  }
  each_lane(mask, [&](int l) {
    const U64 a = address[static_cast<std::size_t>(l)];
    g.out.at[static_cast<std::size_t>(l)] = to.shared_bytes() + a;
    if (g.now && g.w.alternative && g.use == Use::Store)
      g.w.alternative->stores({to.shared_bytes() + a, g.bytes, l, &to, true, a});
  });
}

/// Global memory, in bounds.
void go_global(const Going& g, U32 mask, const Addresses& address) {
  if (!g.w.replays) count_global(g.w, g.in, mask, address, g.bytes, g.use);
  g.out.global_lanes |= mask;
  if (g.w.spin && g.use != Use::Store) note_read(g, nullptr, mask, address);
  each_lane(mask, [&](int l) {
    g.out.at[static_cast<std::size_t>(l)] = reinterpret_cast<std::byte*>(address[static_cast<std::size_t>(l)]);
  });
  if (!g.now) return;
  if (g.w.alternative && g.use == Use::Store) g.w.alternative->stores_global(g.w, g.in, mask);
  LaneAccess a = g.lanes(mask, address);
  if (g.use == Use::Load && crossing(*g.w.block->launch)) {
    if (!g.out.loaded) g.out.loaded = std::make_unique_for_overwrite<std::byte[]>(std::size_t{kLanes} * g.bytes);
    a.loaded = g.out.loaded.get();
    each_lane(mask,
              [&](int l) { g.out.at[static_cast<std::size_t>(l)] = a.loaded + static_cast<std::size_t>(l) * g.bytes; });
  }
  if (check_global(g.w, g.in, a) && g.data) g.out.stored |= mask;
  if (g.in.scope) each_variable(mask, address, [&](U64 at) { synchronise_global(g.w, g.in, g.use, at); });
}

/// Why a block's shared memory cannot be accessed from another of its cluster, or empty.
std::string unreachable(const Block& from, const Block& to) {
  if (to.rank == from.rank) return {};
  if (!from.cluster->met) return "which need not have started: the cluster has not met at its barrier";
  return to.done ? "which has exited" : "";
}

/// Lanes that access shared memory of some blocks of the cluster: block after block.
void access_cluster(const Going& g, U32 mask, const Addresses& address) {
  Warp& w = g.w;
  const Inst& in = g.in;
  Block& own = *w.block;
  const auto rank_of = [&](int l) {
    const U64 named = address[static_cast<std::size_t>(l)] >> kRankShift;
    return named ? named - 1 : own.rank;
  };
  for (U32 left = mask; left;) {
    const int first = std::countr_zero(left);
    const U64 rank = rank_of(first);
    Addresses inside;
    U32 same = 0;
    each_lane(left, [&](int l) {
      inside[static_cast<std::size_t>(l)] = address[static_cast<std::size_t>(l)] & kInBlock;
      if (rank_of(l) == rank) same |= 1u << l;
    });
    left &= ~same;
    if (rank >= own.cluster->blocks.size())
      fault(FindingKind::OutOfBounds, w, in, first,
            fmt::format("out-of-bounds shared {} of {} bytes at 0x{:x}, which is in no block of the cluster",
                        name(g.use), g.bytes, address[static_cast<std::size_t>(first)]));
    Block& to = own.cluster->blocks[rank];
    if (const std::string why = unreachable(own, to); !why.empty())
      fault(FindingKind::OutOfBounds, w, in, first,
            fmt::format("shared {} in block {} of the cluster, {}", name(g.use), rank, why));
    check_window(w, in, Space::Shared, same, inside, g.bytes, g.use, kSharedBase, to.shared_end());
    go_shared(g, to, same, inside);
  }
}

/// Bytes of local memory, by their place in that of the block, where values may lie that depend on what nobody wrote.
void touch_local(const Going& g, int lane, U64 at) {
  Block& b = *g.w.block;
  if (b.unknown) {
    std::map<U64, UnknownByte>& unknown = b.unknown->local;
    const auto begin = unknown.lower_bound(at), end = unknown.lower_bound(at + g.bytes);
    if (g.use == Use::Load) {
      if (begin != end && !g.w.alternative) g.w.alternative = std::make_unique<Alternative>(g.w);
      for (auto i = begin; i != end; ++i) g.w.alternative->loads(b.local_bytes() + i->first, i->second);
    } else {
      unknown.erase(begin, end);
    }
  }
  if (g.w.alternative && g.use == Use::Store)
    g.w.alternative->stores({b.local_bytes() + at, g.bytes, lane, &b, false, at});
}

/// Lanes that all access the same, known space.
void access_in(const Going& g, Space space, U32 mask, const Addresses& address) {
  Warp& w = g.w;
  const Inst& in = g.in;
  const U32 bytes = g.bytes;
  const Use use = g.use;
  LaneAddresses& out = g.out;
  Block& b = *w.block;
  const Program& p = b.launch->program;
  check_alignment(w, in, space, mask, address, bytes, use);
  switch (space) {
    case Space::Shared:
      check_window(w, in, space, mask, address, bytes, use, kSharedBase, b.shared_end());
      return go_shared(g, b, mask, address);
    case Space::Cluster: return access_cluster(g, mask, address);
    case Space::Local:
      check_window(w, in, space, mask, address, bytes, use, 0, p.local_bytes);
      each_lane(mask, [&](int l) {
        const U64 thread = w.index * U64{kLanes} + static_cast<U64>(l);
        const U64 at = thread * p.local_bytes + address[static_cast<std::size_t>(l)];
        out.at[static_cast<std::size_t>(l)] = b.local_bytes() + at;
        if (g.now && (b.unknown || w.alternative)) touch_local(g, l, at);
      });
      if (!w.replays) count_local(w, in, mask, bytes);
      return;
    case Space::Param:
      check_window(w, in, space, mask, address, bytes, use, 0, p.param_bytes);
      if (use != Use::Load) fault(w, in, "store to a kernel parameter");
      each_lane(mask, [&](int l) {
        out.at[static_cast<std::size_t>(l)] =
            const_cast<std::byte*>(b.launch->params.data()) + address[static_cast<std::size_t>(l)];
      });
      return;
    default: check_global(w, in, mask, address, bytes, use); return go_global(g, mask, address);
  }
}

Space window_space(U64 address) {
  switch (address >> 56) {
    case kSharedWindow >> 56: return Space::Cluster;
    case kLocalWindow >> 56: return Space::Local;
    case kParamWindow >> 56: return Space::Param;
    default: return Space::Global;
  }
}

}  // namespace

std::array<U64, kLanes> address_lanes(const Warp& w, Ref base, bool wide, U64 offset) {
  Addresses out;
  if (base == kNoRef) {
    out.fill(offset);
  } else if (wide) {
    const auto* a = w.in<U64>(base);
    for (std::size_t l = 0; l < kLanes; ++l) out[l] = a[l] + offset;
  } else {
    const auto* a = w.in<U32>(base);
    for (std::size_t l = 0; l < kLanes; ++l) out[l] = static_cast<U32>(a[l] + static_cast<U32>(offset));
  }
  return out;
}
std::array<U64, kLanes> address_lanes(const Warp& w, const Inst& in, Ref base) {
  return address_lanes(w, base, in.wide_address, static_cast<U64>(in.imm));
}

void check_global_range(Warp& w, const Inst& in, int lane, U64 address, std::size_t bytes, U64 align,
                        const char* what) {
  if (address % align)
    fault(FindingKind::Misaligned, w, in, lane,
          fmt::format("misaligned {} at 0x{:x}, which is no multiple of {}", what, address, align));
  const HeapView& heap = w.block->launch->heap;
  if (bytes == 0 || heap.find(address, bytes) < heap.live.size()) return;
  const auto [kind, where] = heap.describe(address);
  fault(wild_kind(kind), w, in, lane,
        fmt::format("{} {} of {} bytes at 0x{:x}, {}", kind, what, bytes, address, where));
}

namespace {

void go(const Going& g, Space space, const Addresses& address) {
  if (space != Space::Generic) return access_in(g, space, g.w.mask, address);
  // Lanes of a generic access may point into different spaces.
  for (U32 left = g.w.mask; left;) {
    const Space s = window_space(address[static_cast<std::size_t>(std::countr_zero(left))]);
    Addresses local = address;
    U32 same = 0;
    each_lane(left, [&](int l) {
      const auto i = static_cast<std::size_t>(l);
      if (window_space(address[i]) != s) return;
      same |= 1u << l;
      if (s != Space::Global) local[i] = address[i] & ((U64{1} << 56) - 1);
    });
    access_in(g, s, same, local);
    left &= ~same;
  }
}

}  // namespace

const char* name(Use use) {
  switch (use) {
    case Use::Load: return "load";
    case Use::Store: return "store";
    case Use::Atomic: return "atomic";
  }
  return "";
}

LaneAddresses access(Warp& w, const Inst& in, Space space, const Addresses& address, U32 bytes, Use use,
                     const std::byte* data) {
  LaneAddresses out;
  go({w, in, bytes, use, data, !w.replays, out}, space, address);
  return out;
}

void access_later(Warp& w, const Inst& in, Space space, const Addresses& address, U32 bytes, Use use) {
  LaneAddresses out;
  go({w, in, bytes, use, nullptr, false, out}, space, address);
}

}  // namespace kiln::rt::sim

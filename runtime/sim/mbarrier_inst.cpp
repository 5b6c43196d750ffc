// The instructions on mbarriers, and the fences that belong to them.
//
// A test that fails does not fail at once: the warp waits until the phase ends, or until nothing else can run.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "runtime/sim/lifetime.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/place.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

enum : std::uint16_t { kDrop = 1, kNoComplete = 2, kExpectTx = 4, kRelaxed = 8, kParity = 16 };
constexpr U32 kBytes = 8;

/// f(lane, place) for each lane of the mask, its address in ops[0] checked.
template <class F>
void each_place(Warp& w, const Inst& in, Use use, F&& f) {
  const auto address = address_lanes(w, in, in.ops[0]);
  access(w, in, in.space, address, kBytes, use);
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    f(l, shared_place(w, in, l, in.space, address[static_cast<std::size_t>(l)]));
  }
}

/// What arrive returns: the phase and the arrivals it missed. Only of a state of .noComplete may those be asked.
constexpr U64 kToken = U64{0x5A} << 56, kCountable = U64{1} << 55;
U64 token(const Mbarrier& m, bool countable) {
  return kToken | (countable ? kCountable : 0) | (m.phase & 0x7FFFFFFFF) << 20 | m.pending;
}
U64 token_phase(U64 t) { return t >> 20 & 0x7FFFFFFFF; }

void check_token(const Warp& w, const Inst& in, int lane, U64 t) {
  if (t >> 56 != kToken >> 56)
    fault(FindingKind::AsyncMisuse, w, in, lane, fmt::format("0x{:x} is no state that mbarrier.arrive returned", t));
}

/// ops: address, count
void init(Warp& w, const Inst& in) {
  const auto* count = w.in<U32>(in.ops[1]);
  each_place(w, in, Use::Store, [&](int l, SharedPlace p) {
    if (count[l] == 0 || count[l] > kMaxArrivals)
      fault(FindingKind::AsyncMisuse, w, in, l,
            fmt::format("an mbarrier of {} arrivals; must be 1 to {}", count[l], kMaxArrivals));
    if (p.block->mbarriers.find(p.at))
      fault(FindingKind::AsyncMisuse, w, in, l,
            fmt::format("the mbarrier at 0x{:x} is initialised again without mbarrier.inval", p.at));
    Mbarrier& m = p.block->mbarriers.init(p.at);
    m.expected = m.pending = count[l];
    m.init = access_of(w, in, l);
    m.warp = warp_in_cluster(w);
    settle(p, m);
  });
}

void inval(Warp& w, const Inst& in) {
  each_place(w, in, Use::Store, [&](int l, SharedPlace p) {
    used_mbarrier(w, in, l, p);
    p.block->mbarriers.invalidate(p.at);
  });
}

/// ops: address, bytes. flags: kExpectTx, else the bytes are completed.
void transaction(Warp& w, const Inst& in) {
  const auto* bytes = w.in<U32>(in.ops[1]);
  each_place(w, in, Use::Atomic, [&](int l, SharedPlace p) {
    Mbarrier& m = used_mbarrier(w, in, l, p);
    const std::int64_t n = bytes[l];
    expect_bytes(w, in, l, p, m, in.flags & kExpectTx ? n : -n);
    settle(p, m);
  });
}

/// ops: address, state or none, count or bytes or none.
void arrive_lanes(Warp& w, const Inst& in) {
  each_place(w, in, Use::Atomic, [&](int l, SharedPlace p) {
    Mbarrier& m = used_mbarrier(w, in, l, p);
    const U32 operand = in.ops[2] == kNoRef ? 1 : w.in<U32>(in.ops[2])[l];
    const U32 count = in.flags & kExpectTx ? 1 : operand;
    if (in.ops[1] != kNoRef) w.out<U64>(in.ops[1])[l] = token(m, in.flags & kNoComplete);
    if (in.flags & kExpectTx) expect_bytes(w, in, l, p, m, operand);
    if (in.flags & kRelaxed) release_relaxed(w, m.arriving);
    else release(w, m.arriving);
    count_arrivals(w, in, l, p, m, count);
    if (in.flags & kNoComplete && m.pending == 0)
      fault(FindingKind::AsyncMisuse, w, in, l,
            fmt::format("the arrival at the mbarrier at 0x{:x} would complete phase {}, in spite of .noComplete", p.at,
                        m.phase));
    if (in.flags & kDrop) m.expected -= count;
    settle(p, m);
  });
}

/// Whether the phase that a lane asks for has ended.
bool ended(const Warp& w, const Inst& in, int l, const Mbarrier& m) {
  if (in.flags & kParity) {
    const U32 parity = w.in<U32>(in.ops[2])[l];
    if (parity > 1)
      fault(FindingKind::AsyncMisuse, w, in, l, fmt::format("a phase of parity {}; must be 0 or 1", parity));
    return (m.phase & 1) != parity;
  }
  const U64 state = w.in<U64>(in.ops[2])[l];
  check_token(w, in, l, state);
  const U64 passed = (m.phase - token_phase(state)) & 0x7FFFFFFFF;
  if (passed > 1)
    fault(FindingKind::AsyncMisuse, w, in, l,
          fmt::format("a state of phase {}, but the mbarrier is in phase {} already", token_phase(state), m.phase));
  return passed == 1;
}

/// ops: address, result, state or parity.
void wait(Warp& w, const Inst& in) {
  Cluster& cluster = *w.block->cluster;
  cluster.pending.moment(cluster);
  U32 done = 0, awaited = 0, last = 0;
  bool several = false;
  each_place(w, in, Use::Atomic, [&](int l, SharedPlace p) {
    Mbarrier& m = used_mbarrier(w, in, l, p);
    if (!ended(w, in, l, m)) {
      several |= awaited != 0 && awaited != p.at;
      awaited = p.at;
      return;
    }
    done |= 1u << l;
    if (std::exchange(last, p.at) == p.at) return;
    if (in.flags & kRelaxed) acquire_relaxed(w, m.arrived);
    else acquire(w, m.arrived);
  });
  if (done == 0 && !w.look && w.mask) {
    w.awaited = several ? 0 : awaited;
    w.state = WarpState::AtMbarrier;
    uncount(w, in);
    --w.pc;
    return;
  }
  w.look = false;
  U32& result = *w.out<U32>(in.ops[1]);
  result = (result & ~w.mask) | done;
}

/// ops: count, state
void pending_count(Warp& w, const Inst& in) {
  auto* d = w.out<U32>(in.ops[0]);
  const auto* state = w.in<U64>(in.ops[1]);
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    check_token(w, in, l, state[l]);
    if (!(state[l] & kCountable))
      fault(FindingKind::AsyncMisuse, w, in, l,
            fmt::format("0x{:x} is no state that an arrival with .noComplete returned", state[l]));
    d[l] = static_cast<U32>(state[l] & 0xFFFFF);
  }
}

void fence_init(Warp& w, const Inst&) {
  fence_mbarriers(w);
  fence(w, {.acquires = false, .releases = true});
}
void fence_async(Warp& w, const Inst&) {
  fence_mbarriers(w);
  fence_proxy_async(w);
}
void nothing(Warp&, const Inst&) {}

/// The address is operand `i`; in the block's own shared memory unless `remote`.
void place_operand(Form& f, std::size_t i, bool remote) {
  f.inst.space = Space::Generic;
  if (f.has("shared") || f.has("shared::cta")) f.inst.space = Space::Shared;
  if (f.has("shared::cluster")) f.inst.space = Space::Cluster;
  if (f.inst.space == Space::Cluster && !remote) f.fail("takes no mbarrier of another block");
  if (f.types.size() != 1 || f.type() != Ty::b64) f.fail("needs the type .b64");
  f.inst.size = kBytes;
  f.address(f.operand(i));
}

Handler transaction_form(Form& f, std::uint16_t flags) {
  if (f.count() != 2 || (f.has("cta") && f.has("cluster"))) return nullptr;
  place_operand(f, 0, true);
  f.src(1, Ty::u32);
  f.inst.flags = flags;
  return transaction;
}

Handler arrive_form(Form& f, std::uint16_t flags) {
  const bool expect = f.has("expect_tx"), partly = f.has("noComplete");
  const std::size_t n = f.count();
  if (n < 2 || n > 3 || (expect && partly) || ((expect || partly) && n != 3)) return nullptr;
  place_operand(f, 1, true);
  const bool sink = f.operand(0).kind == ptx::Operand::Kind::Sink;
  if (f.inst.space == Space::Cluster && (!sink || partly)) f.fail("returns no state of another block's mbarrier");
  if (sink) f.none();
  else f.dst(0, Ty::b64);
  if (n == 3) f.src(2, Ty::u32);
  else f.none();
  if (expect) flags |= kExpectTx;
  if (partly) flags |= kNoComplete;
  if (f.has("relaxed")) flags |= kRelaxed;
  f.inst.flags = flags;
  return arrive_lanes;
}

Handler wait_form(Form& f, bool hint) {
  if (f.count() < 3 || f.count() > 3u + hint) return nullptr;
  place_operand(f, 1, false);
  f.dst(0, Ty::pred);
  f.src(2, f.has("parity") ? Ty::u32 : Ty::b64);
  if (f.count() == 4) f.src(3, Ty::u32);
  f.inst.flags = f.has("parity") ? kParity : 0;
  if (f.has("relaxed")) f.inst.flags |= kRelaxed;
  return wait;
}

}  // namespace

Handler make_mbarrier_init(Form& f) {
  if (f.count() != 2) return nullptr;
  place_operand(f, 0, false);
  f.src(1, Ty::u32);
  return init;
}
Handler make_mbarrier_inval(Form& f) {
  if (f.count() != 1) return nullptr;
  place_operand(f, 0, false);
  return inval;
}
Handler make_mbarrier_expect_tx(Form& f) { return transaction_form(f, kExpectTx); }
Handler make_mbarrier_complete_tx(Form& f) { return transaction_form(f, 0); }
Handler make_mbarrier_arrive(Form& f) { return arrive_form(f, 0); }
Handler make_mbarrier_arrive_drop(Form& f) { return arrive_form(f, kDrop); }
Handler make_mbarrier_test_wait(Form& f) { return wait_form(f, false); }
Handler make_mbarrier_try_wait(Form& f) { return wait_form(f, true); }
Handler make_mbarrier_pending_count(Form& f) {
  if (f.count() != 2 || f.types.size() != 1 || f.type() != Ty::b64) return nullptr;
  f.dst(0, Ty::u32);
  f.src(1, Ty::b64);
  return pending_count;
}

Handler make_fence_mbarrier_init(Form& f) {
  return f.count() == 0 && f.has("release") && f.has("cluster") ? fence_init : nullptr;
}
Handler make_fence_proxy_async(Form& f) { return f.count() == 0 && f.mods.size() <= 1 ? fence_async : nullptr; }
Handler make_fence_async_generic(Form& f) {
  const bool acquires = f.has("acquire") && f.has("sync_restrict::shared::cluster");
  const bool releases = f.has("release") && f.has("sync_restrict::shared::cta");
  return f.count() == 0 && acquires != releases && f.has("cluster") && f.mods.size() == 3 ? fence_async : nullptr;
}
Handler make_fence_proxy_tensormap(Form& f) {
  const bool acquires = f.has("acquire");
  if (acquires == f.has("release") || f.count() != (acquires ? 2u : 0u)) return nullptr;
  if (acquires && f.immediate(1) != 128) f.fail("needs an address and 128");
  if (acquires) f.address(f.operand(0));
  return nothing;
}

}  // namespace kiln::rt::sim

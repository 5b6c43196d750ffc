// Branches, exits, calls and block barriers.
//
// Lanes of a warp share one pc. Where they part, one side runs on to the instruction at which all paths meet again (the
// immediate post-dominator), the other is parked with the place it continues at; the two are one again there.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/sim/decode.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

void Warp::resume_parked() {
  while (!parked.empty()) {
    const Parked p = parked.back();
    parked.pop_back();
    reconverge = p.reconverge;
    pc = p.pc;
    active = p.mask & live & ~held_lanes;
    if (active) return;
  }
  reconverge = UINT32_MAX;
  active = held_lanes ? held.front().mask : 0;
  if (active == 0) {
    state = WarpState::Done;
    return;
  }
  pc = held.front().pc;
  held_lanes &= ~active;
  held.erase(held.begin());
}

bool Warp::gather(const Inst& in, std::uint32_t needed) {
  const std::uint32_t here = pc - 1, alone_active = active, alone_mask = mask;
  for (auto h = held.begin(); h != held.end();) {
    if (h->pc != here) {
      ++h;
      continue;
    }
    active |= h->mask;
    held_lanes &= ~h->mask;
    h = held.erase(h);
  }
  mask = in.guard >= 0 ? active & (regs[in.guard] ^ in.guard_flip) : active;
  if (active != alone_active) recount(*this, in, alone_active, alone_mask);
  const std::uint32_t missing = needed & live & ~active;
  std::uint32_t elsewhere = 0;
  for (const Held& h : held)
    if (!h.polls) elsewhere |= h.mask;
  // Nobody is on the way here when all others wait elsewhere: the instruction reports it.
  if (missing == 0 || (live & ~active & ~elsewhere) == 0) return true;
  uncount(*this, in);
  held.push_back({active, here});
  held_lanes |= active;
  resume_parked();
  return false;
}

bool Warp::let_others_run() {
  bool others = (live & ~active & ~held_lanes) != 0;
  for (const Held& h : held) others |= h.polls;
  if (!others) return false;
  held.push_back({active, pc, true});
  held_lanes |= active;
  state = WarpState::Ready;
  resume_parked();
  return true;
}

void Warp::exit_lanes(std::uint32_t lanes) {
  ++*block->changes;
  live &= ~lanes;
  active &= ~lanes;
  if (block->launch->cluster_blocks() > 1) block->cluster->meet_if_all_arrived();
  if (active == 0) resume_parked();
}

void Warp::branch(std::uint32_t taken, std::uint32_t target, std::uint32_t meet) {
  const std::uint32_t others = active & ~taken;
  if (taken == 0) return;
  if (others == 0) {
    pc = target;
    return;
  }
  // The lanes of both sides wait at `meet` in one entry; a loop whose lanes leave one by one shares it.
  if (reconverge != meet || meet == UINT32_MAX) {
    if (meet != UINT32_MAX) parked.push_back({reconverge, active, meet});
    reconverge = meet;
  }
  if (target == meet) {
    active = others;
  } else if (pc == meet) {
    active = taken;
    pc = target;
  } else {
    parked.push_back({meet, taken, target});
    active = others;
  }
}

namespace {

void bra(Warp& w, const Inst& in) {
  if (w.mask && w.mask != w.active) count_divergence(w, in);
  w.branch(w.mask, static_cast<std::uint32_t>(in.imm), in.meet);
}

/// Lanes with the same index go together, one index after the other.
void brx(Warp& w, const Inst& in) {
  const auto* index = w.in<std::uint32_t>(in.ops[0]);
  const std::uint32_t lanes = w.mask, others = w.active & ~lanes;
  if (lanes == 0) return;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sides;  // target, lanes
  if (others) sides.push_back({w.pc, others});
  for (std::uint32_t m = lanes; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (index[l] + 1 >= in.n_ops)
      fault(w, in, l, fmt::format("branch index {} of a table of {}", index[l], in.n_ops - 1));
    const auto target = static_cast<std::uint32_t>(in.ops[index[l] + 1]);
    bool found = false;
    for (auto& [t, mask] : sides)
      if (t == target) mask |= 1u << l, found = true;
    if (!found) sides.push_back({target, 1u << l});
  }
  if (sides.size() > 1) count_divergence(w, in);
  if (sides.size() > 1 && in.meet != UINT32_MAX) w.parked.push_back({w.reconverge, w.active, in.meet});
  if (sides.size() > 1) w.reconverge = in.meet;
  for (std::size_t i = 1; i < sides.size(); ++i) w.parked.push_back({in.meet, sides[i].second, sides[i].first});
  w.pc = sides[0].first;
  w.active = sides[0].second;
}

void leave(Warp& w, const Inst& in) {
  w.exit_lanes(w.mask);
  if (w.state == WarpState::Done) w.block->warpgroups[w.index / kWarpgroup].exits(w, in);
}
void trap(Warp& w, const Inst& in) {
  if (w.mask) fault(FindingKind::Trap, w, in, std::countr_zero(w.mask), "the program executed trap");
}
void nothing(Warp&, const Inst&) {}

// --- barriers ---

/// Operands of a barrier: id, number of threads (or none), then for .red the result, source predicate.
struct BarrierArgs {
  std::uint32_t id, threads;
};

BarrierArgs barrier_args(Warp& w, const Inst& in) {
  const int lane = std::countr_zero(w.mask);
  const std::uint32_t id = w.in<std::uint32_t>(in.ops[0])[lane];
  if (id >= w.block->barriers.size())
    fault(w, in, lane, fmt::format("barrier {}, there are {}", id, w.block->barriers.size()));
  const std::uint32_t all = static_cast<std::uint32_t>(w.block->warps.size()) * kLanes;
  const std::uint32_t threads = in.ops[1] == kNoRef ? all : w.in<std::uint32_t>(in.ops[1])[lane];
  if (threads == 0 || threads % kLanes || threads > all)
    fault(w, in, lane, fmt::format("barrier {} for {} threads; must be a multiple of 32 up to {}", id, threads, all));
  return {id, threads};
}

void barrier_sync(Warp&, const Inst&);

constexpr std::uint16_t kUnaligned = 1;  ///< Inst::flags of barrier.sync: lanes may come to it from several places

/// Where all other lanes of the warp wait at instructions of their own without .aligned for the same barrier, the warp
/// is there: they go on behind those, each path on its own.
void join_elsewhere(Warp& w, const Inst& in, const BarrierArgs& a) {
  if (in.run != barrier_sync || !(in.flags & kUnaligned)) return;
  const auto& code = w.block->launch->program.code;
  const auto same = [&](const Held& h) {
    const Inst& other = code[h.pc];
    if (h.polls || other.run != barrier_sync || !(other.flags & kUnaligned) || other.guard >= 0) return false;
    const auto value = [&](Ref r) { return w.in<std::uint32_t>(r)[std::countr_zero(h.mask)]; };
    return value(other.ops[0]) == a.id &&
           (in.ops[1] == kNoRef ? other.ops[1] == kNoRef : other.ops[1] != kNoRef && value(other.ops[1]) == a.threads);
  };
  if (!std::all_of(w.held.begin(), w.held.end(), same) || (w.mask | w.held_lanes) != w.live) return;
  for (Held& h : w.held) ++h.pc, h.polls = true;
  w.mask = w.live;
}

void require_whole_warp(Warp& w, const Inst& in, const BarrierArgs& a) {
  const std::uint32_t threads = w.block->launch->threads(), first = w.index * kLanes;
  const std::uint32_t exist = threads - first >= kLanes ? kAllLanes : (1u << (threads - first)) - 1;
  if (w.mask != w.live)
    fault(FindingKind::Divergence, w, in,
          fmt::format("barrier {} reached by {} of the {} threads of the warp: lanes diverge", a.id,
                      std::popcount(w.mask), std::popcount(w.live)));
  if (w.live != exist)
    fault(FindingKind::Divergence, w, in,
          fmt::format("barrier {} reached by a warp of which {} threads have exited", a.id,
                      std::popcount(exist & ~w.live)));
  if (in.ops[1] != kNoRef) return;
  for (const Warp& other : w.block->warps)
    if (other.state == WarpState::Done)
      fault(FindingKind::Deadlock, w, in,
            fmt::format("barrier {} for all threads, but warp {} has exited", a.id, other.index));
}

/// Counts the warp in; a full barrier releases those that wait. `each(participant)` is called for all of them then.
template <class Each>
void arrive(Warp& w, const Inst& in, bool wait, Each&& each) {
  const BarrierArgs a = barrier_args(w, in);
  join_elsewhere(w, in, a);
  require_whole_warp(w, in, a);
  Barrier& bar = w.block->barriers[a.id];
  if (bar.arrived == 0) bar.expected = a.threads;
  if (bar.expected != a.threads)
    fault(w, in, fmt::format("barrier {} for {} threads, but others arrived for {}", a.id, a.threads, bar.expected));
  bar.arrived += kLanes;
  ++*w.block->changes;
  release(w, bar.clock);
  w.barrier = a.id;
  if (wait) w.state = WarpState::AtBarrier;
  if (bar.arrived < bar.expected) return;
  bar.arrived = 0;
  for (Warp& other : w.block->warps) {
    if (other.state != WarpState::AtBarrier || other.barrier != a.id) continue;
    other.state = WarpState::Ready;
    acquire(other, bar.clock);
    each(other);
  }
  bar.clock.clear();
}

void barrier_sync(Warp& w, const Inst& in) {
  if (w.gather(in, w.live)) arrive(w, in, true, [](Warp&) {});
}
void barrier_arrive(Warp& w, const Inst& in) {
  if (w.gather(in, w.live)) arrive(w, in, false, [](Warp&) {});
}

/// bar.red: ops = id, threads, result, source. The results of all are written when the barrier is full.
enum : std::uint16_t { kRedPopc, kRedAnd, kRedOr };

void barrier_red(Warp& w, const Inst& in) {
  if (!w.gather(in, w.live)) return;
  const BarrierArgs a = barrier_args(w, in);
  Barrier& bar = w.block->barriers[a.id];
  bar.popc += static_cast<std::uint32_t>(std::popcount(w.pred(in.ops[3]) & w.mask));
  bar.threads += static_cast<std::uint32_t>(std::popcount(w.mask));
  arrive(w, in, true, [&](Warp& other) {
    const Inst& own = other.block->launch->program.code[other.pc - 1];
    if (own.run != barrier_red) return;
    if (own.flags == kRedPopc) {
      for (int l = 0; l < kLanes; ++l) other.out<std::uint32_t>(own.ops[2])[l] = bar.popc;
    } else {
      *other.out<std::uint32_t>(own.ops[2]) =
          (own.flags == kRedAnd ? bar.popc == bar.threads : bar.popc > 0) ? kAllLanes : 0;
    }
    if (other.alternative) other.alternative->settle(other, own, kAllLanes);
  });
  if (w.state != WarpState::AtBarrier) bar.popc = bar.threads = 0;
}

void barrier_operands(Form& f, std::size_t at, std::size_t last) {
  if (at < last) f.src(at, Ty::u32);
  else f.fail("names no barrier");
  if (at + 1 < last) f.src(at + 1, Ty::u32);
  else f.none();
}

}  // namespace

Handler exit_handler() { return leave; }
Handler branch_handler() { return bra; }

Handler make_bra(Form& f) {
  if (f.count() != 1 || f.operand(0).kind != ptx::Operand::Kind::Symbol) f.fail("needs one label");
  f.decoder.jumps(f.operand(0).name, f.stmt);
  return bra;
}

Handler make_brx(Form& f) {
  if (f.count() != 2 || f.operand(1).kind != ptx::Operand::Kind::Symbol) f.fail("needs an index and a table");
  f.src(0, Ty::u32);
  f.decoder.jumps_by_table(f.operand(1).name, f.stmt);
  return brx;
}

Handler make_call(Form& f) { return f.decoder.expand_call(f); }

Handler make_ret(Form& f) { return f.decoder.returns() ? leave : bra; }
Handler make_exit(Form& f) { return f.decoder.exits(), leave; }
Handler make_trap(Form&) { return trap; }
Handler make_nothing(Form&) { return nothing; }

Handler make_barrier(Form& f) {
  if (f.has("sync") == f.has("arrive")) return nullptr;
  if (f.has("arrive") && f.count() != 2) f.fail("needs a barrier and a number of threads");
  barrier_operands(f, 0, f.count());
  if (f.name.starts_with("barrier") && !f.has("aligned")) f.inst.flags = kUnaligned;
  return f.has("sync") ? barrier_sync : barrier_arrive;
}

Handler make_barrier_red(Form& f) {
  // bar.red.popc.u32 d, id{, n}, p
  if (f.count() < 3) f.fail("needs a result, a barrier and a predicate");
  barrier_operands(f, 1, f.count() - 1);
  f.dst(0, f.has("popc") ? Ty::u32 : Ty::pred);
  f.src(f.count() - 1, Ty::pred);
  f.inst.flags = f.has("popc") ? kRedPopc : f.has("and") ? kRedAnd : kRedOr;
  return barrier_red;
}

}  // namespace kiln::rt::sim

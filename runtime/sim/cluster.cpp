// Clusters: their barrier, and addresses of shared memory in their other blocks.
#include <fmt/format.h>

#include <bit>

#include "runtime/sim/form.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// The lanes that are live, all of them here; false if some are on their way and the instruction comes again.
bool whole_warp(Warp& w, const Inst& in) {
  if (!w.gather(in, w.live)) return false;
  if (w.mask != w.live)
    fault(FindingKind::Divergence, w, in,
          fmt::format("the cluster's barrier reached by {} of the {} threads of the warp: lanes diverge",
                      std::popcount(w.mask), std::popcount(w.live)));
  return true;
}

void arrive(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  if (w.cluster_unwaited)
    fault(FindingKind::AsyncMisuse, w, in, "arrives at the cluster's barrier again without having waited there");
  w.cluster_arrived = w.cluster_unwaited = w.mask;
  ++*w.block->changes;
  Clock& clock = w.block->cluster->arriving;
  if (in.releases) release(w, clock);
  else release_relaxed(w, clock);
  w.block->cluster->meet_if_all_arrived();
}

void wait(Warp& w, const Inst& in) {
  if (!whole_warp(w, in)) return;
  if (!w.cluster_unwaited)
    fault(FindingKind::AsyncMisuse, w, in, "waits at the cluster's barrier without having arrived there");
  if (w.cluster_arrived) {  // others are missing: again when they came
    uncount(w, in);
    w.state = WarpState::AtClusterBarrier;
    --w.pc;
    return;
  }
  w.cluster_unwaited = 0;
  acquire(w, w.block->cluster->passed);
}

/// ops: d, address, rank. imm: the window of the result, 0 in the shared space itself.
template <class T>
void mapa(Warp& w, const Inst& in) {
  auto* d = w.out<T>(in.ops[0]);
  const auto* a = w.in<T>(in.ops[1]);
  const auto* rank = w.in<U32>(in.ops[2]);
  const auto blocks = static_cast<U32>(w.block->cluster->blocks.size());
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    if (rank[l] >= blocks) fault(w, in, l, fmt::format("block {} of a cluster of {}", rank[l], blocks));
    const U64 inside = a[l] & kInBlock;
    d[l] = static_cast<T>(static_cast<U64>(in.imm) | U64{rank[l] + 1} << kRankShift | inside);
  }
}

/// ops: d, address
template <class T>
void rank_of(Warp& w, const Inst& in) {
  auto* d = w.out<U32>(in.ops[0]);
  const auto* a = w.in<T>(in.ops[1]);
  const U32 own = w.block->rank;
  each_lane(w.mask, [=](int l) {
    const U32 named = static_cast<U32>(a[l] >> kRankShift) & 0xFF;
    d[l] = named ? named - 1 : own;
  });
}

}  // namespace

Handler make_cluster_arrive(Form& f) {
  f.inst.releases = !f.has("relaxed");
  return f.count() == 0 ? arrive : nullptr;
}
Handler make_cluster_wait(Form& f) { return f.count() == 0 ? wait : nullptr; }

Handler make_mapa(Form& f) {
  const Ty t = f.type();
  if (f.count() != 3 || (t != Ty::u32 && t != Ty::u64)) return nullptr;
  // A generic address of 32 bits is that of the shared space.
  const bool generic = !f.has("shared::cluster") && t == Ty::u64;
  f.dst(0, t);
  f.src(1, t);
  f.src(2, Ty::u32);
  f.inst.imm = generic ? static_cast<std::int64_t>(kSharedWindow) : 0;
  return t == Ty::u64 ? mapa<U64> : mapa<U32>;
}

Handler make_getctarank(Form& f) {
  const Ty t = f.type();
  if (f.count() != 2 || (t != Ty::u32 && t != Ty::u64)) return nullptr;
  f.dst(0, Ty::u32);
  f.src(1, t);
  return t == Ty::u64 ? rank_of<U64> : rank_of<U32>;
}

}  // namespace kiln::rt::sim

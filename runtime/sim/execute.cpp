// Running a launch: the warps of a block and the blocks of a cluster taking turns, clusters over
// host threads. Without clusters each block is one of its own.
//
// Results do not depend on the number of host threads. Clusters of a kernel without operations between them are
// independent, so each host thread runs whole clusters. A kernel with such operations (atomics, volatile and acquire
// accesses, fences on global memory) is run by one thread, resident clusters taking turns in fixed slices, so that one
// may wait for another.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/sim/debug_hook.h"
#include "runtime/sim/report.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

constexpr std::uint64_t kWarpSlice = 4096;      // instructions before the next warp of the block gets its turn
constexpr std::uint64_t kBlockSlice = 1 << 16;  // and before the next resident block does
constexpr std::uint64_t kBlocksPerThread = 4;   // fewer are not worth a host thread of their own
constexpr std::uint32_t kThreadsPerSm = 2048, kBlocksPerSm = 32, kSharedPerSm = 228 << 10;

/// Registers, shared and local memory start with all bits set (a NaN, an address no access is allowed to), so that a
/// value nobody wrote is seen.
constexpr std::uint64_t kFresh = ~std::uint64_t{0};

/// The value is not the same for all lanes of a warp.
bool differs_by_lane(Special which) {
  switch (which) {
    case Special::TidX:
    case Special::TidY:
    case Special::TidZ:
    case Special::LaneId:
    case Special::MaskEq:
    case Special::MaskLt:
    case Special::MaskLe:
    case Special::MaskGt:
    case Special::MaskGe: return true;
    default: return false;
  }
}

void broadcast(Warp& w, const SpecialInit& s, std::uint64_t (*value)(const Warp&, std::uint32_t lane, Special)) {
  const bool differs = differs_by_lane(s.which);
  std::uint64_t v = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    if (l == 0 || differs) v = value(w, l, s.which);
    if (s.wide) w.out<std::uint64_t>(s.slot)[l] = v;
    else w.out<std::uint32_t>(s.slot)[l] = static_cast<std::uint32_t>(v);
  }
}

}  // namespace

std::uint64_t special_value(const Warp& w, std::uint32_t lane, Special which) {
  const Block& b = *w.block;
  const Launch& launch = *b.launch;
  const std::uint32_t t = w.index * kLanes + lane, nx = launch.block[0], ny = launch.block[1];
  const auto& in_cluster = launch.cluster;
  switch (which) {
    case Special::TidX: return t % nx;
    case Special::TidY: return t / nx % ny;
    case Special::TidZ: return t / nx / ny;
    case Special::NtidX: return nx;
    case Special::NtidY: return ny;
    case Special::NtidZ: return launch.block[2];
    case Special::CtaX: return b.id[0];
    case Special::CtaY: return b.id[1];
    case Special::CtaZ: return b.id[2];
    case Special::NctaX: return launch.grid[0];
    case Special::NctaY: return launch.grid[1];
    case Special::NctaZ: return launch.grid[2];
    case Special::LaneId: return lane;
    case Special::WarpId: return w.index;
    case Special::NWarpId: return b.warps.size();
    case Special::SmId: return b.linear % launch.sms;
    case Special::NSmId: return launch.sms;
    case Special::MaskEq: return 1u << lane;
    case Special::MaskLt: return (1u << lane) - 1;
    case Special::MaskLe: return (2u << lane) - 1;
    case Special::MaskGt: return ~((2u << lane) - 1);
    case Special::MaskGe: return ~((1u << lane) - 1);
    case Special::IsCluster: return launch.cluster_blocks() > 1 ? kAllLanes : 0;
    case Special::Zero: return 0;
    case Special::ReservedEnd: return kSharedBase;
    case Special::DynamicSmem: return launch.dynamic_smem;
    case Special::TotalSmem: return b.shared_end() - kSharedBase;
    case Special::AggregateSmem: return b.shared_end();  // with what the system has
    case Special::ClusterX: return b.id[0] / in_cluster[0];
    case Special::ClusterY: return b.id[1] / in_cluster[1];
    case Special::ClusterZ: return b.id[2] / in_cluster[2];
    case Special::NclusterX: return launch.grid[0] / in_cluster[0];
    case Special::NclusterY: return launch.grid[1] / in_cluster[1];
    case Special::NclusterZ: return launch.grid[2] / in_cluster[2];
    case Special::CtaInClusterX: return b.id[0] % in_cluster[0];
    case Special::CtaInClusterY: return b.id[1] % in_cluster[1];
    case Special::CtaInClusterZ: return b.id[2] % in_cluster[2];
    case Special::NctaInClusterX: return in_cluster[0];
    case Special::NctaInClusterY: return in_cluster[1];
    case Special::NctaInClusterZ: return in_cluster[2];
    case Special::CtaRank: return b.rank;
    case Special::NctaRank: return launch.cluster_blocks();
  }
  return 0;
}

namespace {

/// The fault of the first faulting cluster.
class FirstFault {
 public:
  bool before(std::uint64_t cluster) const { return cluster_.load(std::memory_order_relaxed) < cluster; }
  void record(const Fault& f) {
    const std::scoped_lock lock(mutex_);
    if (f.cluster >= cluster_) return;
    cluster_ = f.cluster;
    fault_ = f;
  }
  const Fault* fault() const { return fault_ ? &*fault_ : nullptr; }

 private:
  std::atomic<std::uint64_t> cluster_{UINT64_MAX};
  std::mutex mutex_;
  std::optional<Fault> fault_;
};

void run_independent(const Launch& launch, std::atomic<std::uint64_t>& next, FirstFault& first, Tally& tally,
                     Findings& found) {
  Cluster cluster;
  for (std::uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < launch.clusters();) {
    if (first.before(i)) break;
    try {
      cluster.start(launch, tally, found, nullptr, i);
      while (!cluster.run(UINT64_MAX)) {
      }
    } catch (const Fault& f) {
      if (launch.debug) launch.debug->faulted(f);
      first.record(f);
    }
  }
}

void run_communicating(const Launch& launch, FirstFault& first, Tally& tally, Findings& found) {
  Cluster::Common common;
  const std::uint64_t places =
      std::uint64_t{resident_per_sm(launch.program, launch.threads(), launch.dynamic_smem)} * launch.sms;
  std::vector<Cluster> resident(
      std::min(launch.clusters(), std::max<std::uint64_t>(1, places / launch.cluster_blocks())));
  std::uint64_t next = 0, left = launch.clusters();
  try {
    while (left > 0) {
      const std::uint64_t before = common.changes;
      bool stuck = true;
      // A place whose cluster ends within its slice takes the next one at once; so few are alive unless they wait.
      for (Cluster& c : resident) {
        while (c.started || next < launch.clusters()) {
          if (!c.started) c.start(launch, tally, found, &common, next++);
          if (!c.run(kBlockSlice)) break;
          c.started = false;
          --left;
        }
        stuck &= !c.started || c.stuck;
      }
      if (left > 0 && stuck && common.changes == before) report_deadlock(resident, launch.clusters() - next);
    }
  } catch (const Fault& f) {
    if (launch.debug) launch.debug->faulted(f);
    first.record(f);
  }
}

}  // namespace

std::uint32_t resident_per_sm(const Program& program, std::uint32_t threads, std::uint32_t dynamic_smem) {
  const std::uint32_t warps = (threads + kLanes - 1) / kLanes;
  const std::uint32_t by_threads = std::min(kBlocksPerSm, kThreadsPerSm / (warps * kLanes));
  return std::max(1u, std::min(by_threads, kSharedPerSm / (program.dynamic_at + dynamic_smem)));
}

void Block::start(const Launch& l, Tally& own_tally, Cluster& own_cluster, std::uint64_t cluster_number,
                  std::uint32_t own_rank) {
  launch = &l;
  cluster = &own_cluster;
  tally = &own_tally;
  rank = own_rank;
  done = false;
  id = block_id(l, cluster_number, own_rank);
  linear = id[0] + std::uint64_t{l.grid[0]} * (id[1] + std::uint64_t{l.grid[1]} * id[2]);
  const Program& p = l.program;
  const std::uint32_t threads = l.threads(), n_warps = (threads + kLanes - 1) / kLanes;
  registers.assign(std::size_t{n_warps} * p.register_words / 2, kFresh);
  shared.assign((shared_end() + 7) / 8, kFresh);
  local.assign((std::size_t{threads} * p.local_bytes + 7) / 8, kFresh);
  barriers = {};
  mbarriers.clear();
  visits.clear();
  ++starts;
  if (!l.checks.races && !l.checks.uninit) shadow.reset();
  else if (!shadow) shadow = std::make_unique<Shadow>(shared_end());
  else shadow->written.clear();
  unknown.reset();
  instructions = 0;
  warpgroups.resize((n_warps + kWarpgroup - 1) / kWarpgroup);
  for (Warpgroup& g : warpgroups) g.start();
  free_registers = 0;
  warps.resize(n_warps);
  for (std::uint32_t i = 0; i < n_warps; ++i) {
    Warp& w = warps[i];
    w.block = this;
    w.index = i;
    w.regs = reinterpret_cast<std::uint32_t*>(registers.data()) + std::size_t{i} * p.register_words;
    w.consts = reinterpret_cast<const std::uint32_t*>(p.constants.data());
    const std::uint32_t lanes = std::min<std::uint32_t>(kLanes, threads - i * kLanes);
    w.active = w.live = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    w.pc = 0;
    w.reconverge = UINT32_MAX;
    w.state = WarpState::Ready;
    w.steps = 0;
    w.parked.clear();
    w.held.clear();
    w.held_lanes = 0;
    w.cluster_arrived = w.cluster_unwaited = 0;
    w.awaited = 0;
    w.look = false;
    w.alternative.reset();
    w.replays = false;
    w.spin.reset();
    w.idle = w.idle_since = w.spun_since = 0;
    w.spun = w.doubt = 0;
    for (Groups& g : w.groups) g.clear();
    sim::start(w);
    w.wgmma.start(p);
    w.registers = first_registers(p);
    for (const SpecialInit& s : p.specials) broadcast(w, s, special_value);
  }
}

bool Block::run(std::uint64_t quantum) {
  const std::uint64_t begin = instructions;
  bool ran = false;
  while (instructions - begin < quantum) {
    bool ready = false;
    done = true;
    for (Warp& w : warps) {
      if (w.state == WarpState::Ready && !spins(w)) {
        run_warp(w, cluster->pending.slice(kWarpSlice));
        cluster->pending.moment(*cluster);
        ready = true;
      }
      done &= w.state == WarpState::Done;
    }
    ran |= ready;
    if (!done && ready) cluster->pending.round(*cluster);
    if (done || !ready) break;
  }
  return ran;
}

void Cluster::start(const Launch& launch, Tally& tally, Findings& found, Common* common, std::uint64_t n) {
  findings = &found;
  number = n;
  started = true;
  met = stuck = false;
  alone = common == nullptr || launch.clusters() == 1;
  std::uint64_t* const changes = common ? &common->changes : &own_changes;
  arriving.clear();
  passed.clear();
  blocks.resize(launch.cluster_blocks());
  pending.start(launch.schedule, n, changes);
  time.start(blocks.size() * ((launch.threads() + kLanes - 1) / kLanes), launch.checks.races,
             common ? &common->journal : nullptr);
  for (std::uint32_t r = 0; r < blocks.size(); ++r) {
    blocks[r].changes = changes;
    blocks[r].start(launch, tally, *this, n, r);
  }
  if (launch.debug) launch.debug->started(*this);
}

bool Cluster::run(std::uint64_t quantum) {
  // One block may wait for another by spinning, so they take turns.
  const std::uint64_t slice = blocks.size() == 1 ? quantum : std::min(quantum, kBlockSlice);
  for (std::uint64_t spent = 0; spent < quantum; spent += slice) {
    bool ran = false, all_done = true;
    for (Block& b : blocks) {
      if (!b.done) {
        ran |= b.run(slice);
        if (b.done) pending.block_exits(b);
      }
      all_done &= b.done;
    }
    if (all_done) {
      pending.finish(*this);
      return true;
    }
    stuck = !ran && !pending.unblock(*this) && !pending.help_spinning(*this);
    if (stuck && (alone || !any_spins())) report_deadlock({this, 1}, 0);
    if (stuck) return false;
  }
  return false;
}

bool Cluster::any_spins() const {
  for (const Block& b : blocks)
    if (std::any_of(b.warps.begin(), b.warps.end(), [](const Warp& w) { return spins(w); })) return true;
  return false;
}

void Cluster::meet_if_all_arrived() {
  for (const Block& b : blocks)
    for (const Warp& w : b.warps)
      if (w.live & ~w.cluster_arrived) return;
  met = true;
  passed = std::move(arriving);
  arriving.clear();
  for (Block& b : blocks) {
    for (Warp& w : b.warps) {
      w.cluster_arrived = 0;
      if (w.state == WarpState::AtClusterBarrier) w.state = WarpState::Ready;
    }
  }
}

namespace {

std::size_t host_threads(const Launch& launch) {
  if (launch.debug || launch.program.communicates) return 1;
  const std::uint64_t n = env::KILN_SIM_THREADS() > 0 ? static_cast<std::uint64_t>(env::KILN_SIM_THREADS())
                                                      : std::max(1u, std::thread::hardware_concurrency());
  return std::max<std::uint64_t>(1, std::min(n, launch.clusters() / kBlocksPerThread));
}

}  // namespace

std::vector<Finding> execute(const Launch& launch, Tally& tally) {
  FirstFault first;
  tally.start(launch.program);
  const std::size_t n = host_threads(launch);
  std::vector<Findings> found(n, Findings(launch.debug));
  if (launch.program.communicates) {
    run_communicating(launch, first, tally, found[0]);
    return Findings::conclude(launch, found, first.fault());
  }
  std::atomic<std::uint64_t> next{0};
  std::vector<Tally> totals(n - 1);
  for (Tally& t : totals) t.start(launch.program);
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < n; ++i)
      others.emplace_back([&, i] { run_independent(launch, next, first, totals[i - 1], found[i]); });
    run_independent(launch, next, first, tally, found[0]);
  }
  for (const Tally& t : totals) tally.add(t);
  return Findings::conclude(launch, found, first.fault());
}

}  // namespace kiln::rt::sim

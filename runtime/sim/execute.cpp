// Running a launch: the loop of a warp, the warps of a block taking turns, blocks over host threads.
//
// Results do not depend on the number of host threads. Blocks of a kernel without operations between blocks are
// independent, so each host thread runs whole blocks. A kernel with such operations (atomics, volatile and acquire
// accesses, fences on global memory) is run by one thread, resident blocks taking turns in fixed slices, so that a
// block may wait for another.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
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

void broadcast(Warp& w, const SpecialInit& s, std::uint64_t (*value)(const Warp&, std::uint32_t lane, Special)) {
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    const std::uint64_t v = value(w, l, s.which);
    if (s.wide) w.out<std::uint64_t>(s.slot)[l] = v;
    else w.out<std::uint32_t>(s.slot)[l] = static_cast<std::uint32_t>(v);
  }
}

std::uint64_t special_value(const Warp& w, std::uint32_t lane, Special which) {
  const Block& b = *w.block;
  const Launch& launch = *b.launch;
  const std::uint32_t t = w.index * kLanes + lane, nx = launch.block[0], ny = launch.block[1];
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
    case Special::GridId:
    case Special::Zero: return 0;
    case Special::One: return 1;
    case Special::DynamicSmem: return launch.dynamic_smem;
    case Special::TotalSmem: return b.shared_end();
  }
  return 0;
}

void run_warp(Warp& w, std::uint64_t quantum) {
  const Inst* const code = w.block->launch->program.code.data();
  Counters& counters = w.block->tally.counters;
  std::uint64_t executed = 0;
  while (w.state == WarpState::Ready && executed < quantum) {
    if (w.pc == w.reconverge) {
      w.resume_parked();
      continue;
    }
    const Inst& in = code[w.pc++];
    w.mask = w.active;
    if (in.guard >= 0) w.mask &= w.regs[in.guard] ^ in.guard_flip;
    ++executed;
    ++counters.instructions;
    if (w.mask != 0 || in.control) in.run(w, in);
  }
}

/// The block's place in the order of the lowest faulting one, and the report of it.
class FirstFault {
 public:
  bool before(std::uint64_t block) const { return block_.load(std::memory_order_relaxed) < block; }
  void record(const Fault& f) {
    const std::scoped_lock lock(mutex_);
    if (f.block >= block_) return;
    block_ = f.block;
    message_ = f.message;
  }
  std::string message() const { return message_; }

 private:
  std::atomic<std::uint64_t> block_{UINT64_MAX};
  std::mutex mutex_;
  std::string message_;
};

void run_independent(const Launch& launch, std::atomic<std::uint64_t>& next, FirstFault& first, Tally& tally) {
  Block block;
  for (std::uint64_t id; (id = next.fetch_add(1, std::memory_order_relaxed)) < launch.blocks();) {
    if (first.before(id)) break;
    try {
      block.start(launch, id);
      while (!block.run(UINT64_MAX)) {
      }
    } catch (const Fault& f) {
      first.record(f);
    }
  }
  tally = std::move(block.tally);
}

void run_communicating(const Launch& launch, FirstFault& first, Tally& tally) {
  const std::uint64_t places =
      std::uint64_t{resident_per_sm(launch.program, launch.threads(), launch.dynamic_smem)} * launch.sms;
  std::vector<Block> resident(std::min(launch.blocks(), places));
  std::uint64_t next = 0, left = launch.blocks();
  try {
    while (left > 0) {
      // A place whose block ends within its slice takes the next one at once; so few blocks are alive unless they wait.
      for (Block& b : resident) {
        while (b.started || next < launch.blocks()) {
          if (!b.started) b.start(launch, next++);
          if (!b.run(kBlockSlice)) break;
          b.started = false;
          --left;
        }
      }
    }
  } catch (const Fault& f) {
    first.record(f);
  }
  for (const Block& b : resident) tally.add(b.tally);
}

}  // namespace

std::uint32_t resident_per_sm(const Program& program, std::uint32_t threads, std::uint32_t dynamic_smem) {
  const std::uint32_t warps = (threads + kLanes - 1) / kLanes;
  const std::uint32_t by_threads = std::min(kBlocksPerSm, kThreadsPerSm / (warps * kLanes));
  return std::max(1u, std::min(by_threads, kSharedPerSm / (program.dynamic_at + dynamic_smem)));
}

void add(Counters& to, const Counters& from) {
  to.launches += from.launches;
  to.global_bytes_read += from.global_bytes_read;
  to.global_bytes_written += from.global_bytes_written;
  to.global_sectors_read += from.global_sectors_read;
  to.global_sectors_written += from.global_sectors_written;
  to.instructions += from.instructions;
  to.shared_accesses += from.shared_accesses;
  to.shared_wavefronts += from.shared_wavefronts;
  to.bank_conflicts += from.bank_conflicts;
}

void Tally::add(const Tally& other) {
  sim::add(counters, other.counters);
  for (const auto& [inst, n] : other.conflicts) conflicts[inst] += n;
}

void Block::start(const Launch& l, std::uint64_t linear_id) {
  launch = &l;
  linear = linear_id;
  started = true;
  id = {static_cast<std::uint32_t>(linear_id % l.grid[0]),
        static_cast<std::uint32_t>(linear_id / l.grid[0] % l.grid[1]),
        static_cast<std::uint32_t>(linear_id / l.grid[0] / l.grid[1])};
  const Program& p = l.program;
  const std::uint32_t threads = l.threads(), n_warps = (threads + kLanes - 1) / kLanes;
  registers.assign(std::size_t{n_warps} * p.register_words / 2, kFresh);
  shared.assign((shared_end() + 7) / 8, kFresh);
  local.assign((std::size_t{threads} * p.local_bytes + 7) / 8, kFresh);
  barriers = {};
  started_at = tally.counters.instructions;
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
    w.parked.clear();
    w.held.clear();
    w.held_lanes = 0;
    for (const SpecialInit& s : p.specials) broadcast(w, s, special_value);
  }
}

bool Block::run(std::uint64_t quantum) {
  const std::uint64_t begin = tally.counters.instructions;
  while (tally.counters.instructions - begin < quantum) {
    bool ran = false, done = true;
    for (Warp& w : warps) {
      if (w.state == WarpState::Ready) {
        run_warp(w, kWarpSlice);
        ran = true;
      }
      done &= w.state == WarpState::Done;
    }
    if (done) return true;
    if (!ran) report_deadlock(*this);
  }
  return false;
}

std::string execute(const Launch& launch, Tally& tally) {
  FirstFault first;
  if (launch.program.communicates) {
    run_communicating(launch, first, tally);
    return first.message();
  }
  std::uint64_t n = env::KILN_SIM_THREADS() > 0 ? static_cast<std::uint64_t>(env::KILN_SIM_THREADS())
                                                : std::max(1u, std::thread::hardware_concurrency());
  n = std::max<std::uint64_t>(1, std::min(n, launch.blocks() / kBlocksPerThread));
  std::atomic<std::uint64_t> next{0};
  std::vector<Tally> totals(n);
  {
    std::vector<std::jthread> others;
    for (std::uint64_t i = 1; i < n; ++i)
      others.emplace_back([&, i] { run_independent(launch, next, first, totals[i]); });
    run_independent(launch, next, first, totals[0]);
  }
  for (const Tally& t : totals) tally.add(t);
  return first.message();
}

}  // namespace kiln::rt::sim

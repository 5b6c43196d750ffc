// State of a warp, its block and the launch while a kernel runs, and access to the lanes of operands for handlers.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/device.h"
#include "runtime/finding.h"
#include "runtime/sim/alternative.h"
#include "runtime/sim/checks.h"
#include "runtime/sim/findings.h"
#include "runtime/sim/heap.h"
#include "runtime/sim/lifetime.h"
#include "runtime/sim/mbarrier.h"
#include "runtime/sim/order.h"
#include "runtime/sim/pending.h"
#include "runtime/sim/program.h"
#include "runtime/sim/shadow.h"
#include "runtime/sim/spin.h"
#include "runtime/sim/tally.h"
#include "runtime/sim/warpgroup.h"
#include "runtime/sim/wgmma_watch.h"

namespace kiln::rt::sim {

class DebugHook;

/// One launch: shared by all blocks and host threads, never written while they run.
struct Launch {
  const Program& program;
  const HeapView& heap;
  std::array<std::uint32_t, 3> grid, block, cluster;  ///< blocks, threads of a block, blocks of a cluster
  std::vector<std::byte> params;
  std::uint32_t dynamic_smem = 0;
  std::uint32_t sms = 1;
  Checks checks;
  std::uint64_t steps = UINT64_MAX;  ///< instructions that a warp may execute
  std::uint32_t number = 1;          ///< of the device's launches; what the shadow of global memory holds is of one
  DebugHook* debug = nullptr;        ///< sees every instruction; null: nobody looks
  Schedule schedule = Schedule::from_environment();

  std::uint32_t threads() const { return block[0] * block[1] * block[2]; }
  std::uint64_t blocks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
  std::uint32_t cluster_blocks() const { return cluster[0] * cluster[1] * cluster[2]; }
  std::uint64_t clusters() const { return blocks() / cluster_blocks(); }
};

struct Block;
struct Cluster;

/// Lanes that wait for others: where they continue, and the instruction at which they are joined.
struct Parked {
  std::uint32_t reconverge, mask, pc;
  bool operator==(const Parked&) const = default;
};

/// Lanes that reached an instruction which needs others of the warp too, and wait at it. They need not come back to the
/// place where all paths of their branch meet, which may be the end of the kernel if one path returns early.
struct Held {
  std::uint32_t mask, pc;
  bool polls = false;  ///< they look again and again: nobody comes to them
  bool operator==(const Held&) const = default;
};

enum class WarpState : std::uint8_t {
  Ready,
  AtBarrier,
  AtClusterBarrier,
  AtMbarrier,
  AtRegisterPool,
  AtWarpgroup,
  Done
};

struct Warp {
  Block* block = nullptr;
  std::uint32_t* regs = nullptr;
  const std::uint32_t* consts = nullptr;
  std::uint32_t mask = 0;    ///< lanes the current instruction acts on
  std::uint32_t active = 0;  ///< lanes at pc
  std::uint32_t live = 0;    ///< lanes that exist and have not exited
  std::uint32_t pc = 0;      ///< next instruction
  std::uint32_t reconverge = UINT32_MAX;
  std::uint32_t index = 0;             ///< in the block
  std::uint32_t barrier = 0;           ///< the barrier it waits at
  std::uint32_t cluster_arrived = 0;   ///< lanes that arrived at the cluster's barrier and still miss others there
  std::uint32_t cluster_unwaited = 0;  ///< lanes that arrived there and have not waited yet
  WarpState state = WarpState::Ready;
  std::uint64_t steps = 0;  ///< instructions it has executed
  std::vector<Parked> parked;
  std::vector<Held> held;
  std::uint32_t held_lanes = 0;            ///< union of the masks in held
  std::uint32_t awaited = 0;               ///< AtMbarrier: the address of the mbarrier, 0 if the lanes wait for several
  bool look = false;                       ///< the test of an mbarrier that comes next gives its result, whatever it is
  std::array<Groups, kGroupKinds> groups;  ///< asynchronous operations under way that the warp waits for
  std::uint32_t registers = 0;             ///< a thread, as setmaxnreg counts them; 0: not counted
  WgmmaWatch wgmma;                        ///< of the registers of those
  std::unique_ptr<Alternative> alternative;  ///< where a register depends on bytes that nobody wrote
  bool replays = false;                      ///< the instruction is executed again, on the alternative registers
  std::unique_ptr<Spin> spin;                ///< while it is watched
  std::uint64_t idle_since = 0, idle = 0;    ///< the block's changes when they were last others, and instructions since
  std::uint64_t spun_since = 0;              ///< the block's changes when …
  std::uint32_t spun = 0;                    ///< … these lanes were found to spin
  std::uint32_t doubt = 0;                   ///< times it was watched in vain
  Knowledge order;
  std::size_t allocation_hint = 0;  ///< index in the heap view of the last access

  /// Lanes of a slot as words of 32 or 64 bits.
  template <class Word>
  const Word* in(Ref r) const {
    return reinterpret_cast<const Word*>(r >= 0 ? regs + r : consts + ~r);
  }
  template <class Word>
  Word* out(Ref r) const {
    return reinterpret_cast<Word*>(regs + r);
  }
  std::uint32_t pred(Ref r) const { return *in<std::uint32_t>(r); }

  void exit_lanes(std::uint32_t lanes);
  /// Sends `taken` (part of active) to `target`; the others fall through.
  void branch(std::uint32_t taken, std::uint32_t target, std::uint32_t meet);
  /// Continues with lanes that wait, after the current ones arrived or exited.
  void resume_parked();
  /// At an instruction for which `needed` lanes must be there: takes in those that wait at it. If some are still on
  /// their way, puts the present ones aside, continues with the others and returns false; the instruction comes again.
  bool gather(const Inst&, std::uint32_t needed);
  /// Puts the present lanes, which wait at pc, aside for those that can go on; false if there are none.
  bool let_others_run();
};

struct Barrier {
  std::uint32_t arrived = 0, expected = 0;  ///< threads
  std::uint32_t popc = 0, threads = 0;      ///< bar.red: threads with a true predicate, and all
  Clock clock;                              ///< what those that arrived know
};

/// One block in flight.
struct Block {
  const Launch* launch = nullptr;
  Cluster* cluster = nullptr;
  std::array<std::uint32_t, 3> id{0, 0, 0};
  std::uint32_t rank = 0;    ///< in the cluster
  std::uint64_t linear = 0;  ///< in the grid
  std::vector<Warp> warps;
  std::vector<std::uint64_t> registers;      ///< all register files
  std::vector<std::uint64_t> shared, local;  ///< 64-bit words for alignment
  std::array<Barrier, 16> barriers;
  Mbarriers mbarriers;
  Visits visits;  ///< of its shared memory
  std::vector<Warpgroup> warpgroups;
  std::uint32_t free_registers = 0;  ///< that setmaxnreg gave back: a thread of one warp
  std::unique_ptr<Shadow> shadow;    ///< of its shared memory; null: nothing is checked there
  std::unique_ptr<UnknownBytes> unknown;
  std::uint32_t starts = 0;          ///< blocks that were started in this object
  Tally* tally = nullptr;            ///< of the host thread that runs it
  std::uint64_t instructions = 0;    ///< that its warps have executed; the clock of %clock and %globaltimer
  bool done = false;                 ///< every warp is
  std::uint64_t* changes = nullptr;  ///< of all that a warp may wait for, by any that it may wait for

  std::byte* shared_bytes() { return reinterpret_cast<std::byte*>(shared.data()); }
  std::byte* local_bytes() { return reinterpret_cast<std::byte*>(local.data()); }
  std::uint32_t shared_end() const { return launch->program.dynamic_at + launch->dynamic_smem; }

  /// The block of this rank of the cluster with this number.
  void start(const Launch&, Tally&, Cluster&, std::uint64_t cluster_number, std::uint32_t rank);
  /// Runs up to about `quantum` warp instructions; false when it could run none, because every warp waits or is done.
  bool run(std::uint64_t quantum);
};

/// The blocks that run together: one, where the launch has no clusters. Reused for the next of the same host thread.
struct Cluster {
  std::vector<Block> blocks;
  std::uint64_t number = 0;
  Pending pending;
  bool started = false;
  bool met = false;        ///< its barrier was complete once: every block runs
  Clock arriving, passed;  ///< at its barrier: of those that arrived, and of the last time it was complete
  Timeline time;
  Findings* findings = nullptr;  ///< of the host thread that runs it
  std::uint64_t own_changes = 0;
  bool alone = true;   ///< no other cluster can help it
  bool stuck = false;  ///< it can go on only if another cluster changes something

  /// What clusters of a launch have in common that may wait for one another.
  struct Common {
    Journal journal;
    std::uint64_t changes = 0;
  };
  /// `common`: null where they cannot.
  void start(const Launch&, Tally&, Findings&, Common* common, std::uint64_t number);
  /// Runs up to about `quantum` instructions of each block; true when all are done. Throws the Fault of a deadlock, or
  /// sets `stuck` where another cluster may end it.
  bool run(std::uint64_t quantum);
  /// Whether a warp of it spins.
  bool any_spins() const;
  /// Completes the barrier if every live thread of the cluster has arrived, and wakes those that wait.
  void meet_if_all_arrived();
};

/// A program error that ends the launch.
struct Fault {
  Finding finding;
  std::uint64_t cluster;  ///< number of the cluster that it belongs to
};

/// Throws Fault for `lane` of the warp at `inst`.
[[noreturn]] void fault(FindingKind, const Warp&, const Inst&, int lane, const std::string& what);
/// Throws Fault for the warp as a whole.
[[noreturn]] void fault(FindingKind, const Warp&, const Inst&, const std::string& what);
/// Of the kind Invalid.
[[noreturn]] void fault(const Warp&, const Inst&, int lane, const std::string& what);
[[noreturn]] void fault(const Warp&, const Inst&, const std::string& what);

/// Executes instructions of the warp until it waits, is done, or has executed about `quantum`.
void run_warp(Warp&, std::uint64_t quantum);

/// Registers a thread that a block starts with, as setmaxnreg counts them; 0 if the kernel does not say.
std::uint32_t first_registers(const Program&);

/// What a special register that never changes has in a lane.
std::uint64_t special_value(const Warp&, std::uint32_t lane, Special);

/// Blocks that one multiprocessor of the modelled device holds at the same time; at least 1.
std::uint32_t resident_per_sm(const Program&, std::uint32_t threads, std::uint32_t dynamic_smem);

/// Runs every block of the launch; adds to `tally`; returns what was found wrong, by block. A fault is the last of
/// them.
std::vector<Finding> execute(const Launch&, Tally& tally);

// --- lanes as values -------------------------------------------------------------------------------------------------

template <class T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// The value of type T in the low bits of a word, and back.
template <class T>
inline T from_word(Word<T> w) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(w);
  else if constexpr (sizeof(T) == 2) return std::bit_cast<T>(static_cast<std::uint16_t>(w));
  else return std::bit_cast<T>(w);
}
template <class T>
inline Word<T> to_word(T v) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::make_unsigned_t<T>>(v);
  else if constexpr (sizeof(T) == 2) return std::bit_cast<std::uint16_t>(v);
  else return std::bit_cast<Word<T>>(v);
}

/// f(lane) for every lane of the mask; the loop over all lanes is one the compiler vectorises.
template <class F>
inline void each_lane(std::uint32_t mask, F&& f) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) f(l);
  } else {
    for (; mask; mask &= mask - 1) f(std::countr_zero(mask));
  }
}

/// Handlers of pure functions of 1, 2 or 3 lanes' values: dst[l] = F(a[l], …), operand types A, B, C, result R.
template <class R, class A, class F>
constexpr Handler map1(F) {
  return [](Warp& w, const Inst& in) {
    auto* d = w.out<Word<R>>(in.ops[0]);
    const auto* a = w.in<Word<A>>(in.ops[1]);
    each_lane(w.mask, [=](int l) { d[l] = to_word<R>(F{}(from_word<A>(a[l]))); });
  };
}
template <class R, class A, class B, class F>
constexpr Handler map2(F) {
  return [](Warp& w, const Inst& in) {
    auto* d = w.out<Word<R>>(in.ops[0]);
    const auto* a = w.in<Word<A>>(in.ops[1]);
    const auto* b = w.in<Word<B>>(in.ops[2]);
    each_lane(w.mask, [=](int l) { d[l] = to_word<R>(F{}(from_word<A>(a[l]), from_word<B>(b[l]))); });
  };
}
template <class R, class A, class B, class C, class F>
constexpr Handler map3(F) {
  return [](Warp& w, const Inst& in) {
    auto* d = w.out<Word<R>>(in.ops[0]);
    const auto* a = w.in<Word<A>>(in.ops[1]);
    const auto* b = w.in<Word<B>>(in.ops[2]);
    const auto* c = w.in<Word<C>>(in.ops[3]);
    each_lane(w.mask,
              [=](int l) { d[l] = to_word<R>(F{}(from_word<A>(a[l]), from_word<B>(b[l]), from_word<C>(c[l]))); });
  };
}
/// As map1…3 for functions that also look at the instruction (rounding, flags).
template <class R, class A, class F>
constexpr Handler imap1(F) {
  return [](Warp& w, const Inst& in) {
    auto* d = w.out<Word<R>>(in.ops[0]);
    const auto* a = w.in<Word<A>>(in.ops[1]);
    each_lane(w.mask, [=, &in](int l) { d[l] = to_word<R>(F{}(in, from_word<A>(a[l]))); });
  };
}
template <class R, class A, class B, class F>
constexpr Handler imap2(F) {
  return [](Warp& w, const Inst& in) {
    auto* d = w.out<Word<R>>(in.ops[0]);
    const auto* a = w.in<Word<A>>(in.ops[1]);
    const auto* b = w.in<Word<B>>(in.ops[2]);
    each_lane(w.mask, [=, &in](int l) { d[l] = to_word<R>(F{}(in, from_word<A>(a[l]), from_word<B>(b[l]))); });
  };
}
template <class R, class A, class B, class C, class F>
constexpr Handler imap3(F) {
  return [](Warp& w, const Inst& in) {
    auto* d = w.out<Word<R>>(in.ops[0]);
    const auto* a = w.in<Word<A>>(in.ops[1]);
    const auto* b = w.in<Word<B>>(in.ops[2]);
    const auto* c = w.in<Word<C>>(in.ops[3]);
    each_lane(w.mask, [=, &in](int l) {
      d[l] = to_word<R>(F{}(in, from_word<A>(a[l]), from_word<B>(b[l]), from_word<C>(c[l])));
    });
  };
}
/// Predicate result from two operands: bit l = F(a[l], b[l]); lanes outside the mask keep theirs.
template <class T, class F>
inline std::uint32_t lanes_where(const Word<T>* a, const Word<T>* b, F f) {
  std::uint32_t m = 0;
  for (int l = 0; l < kLanes; ++l) m |= static_cast<std::uint32_t>(f(from_word<T>(a[l]), from_word<T>(b[l]))) << l;
  return m;
}
inline void set_pred(const Warp& w, Ref r, std::uint32_t bits) {
  std::uint32_t* p = w.out<std::uint32_t>(r);
  *p = (*p & ~w.mask) | (bits & w.mask);
}

}  // namespace kiln::rt::sim

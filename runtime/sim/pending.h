// Asynchronous operations under way: issued, and carried out when the schedule says.
//
// A program must be right whenever an operation takes effect between its issue and the moment something waits for it.
// The simulator therefore chooses the moment (KILN_SIM_SCHEDULE): late, when the program can no longer do without it;
// early, at its issue; random, at moments that a seed decides, in an order that it decides too.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/sim/order.h"

namespace kiln::rt::sim {

struct Cluster;

/// When asynchronous operations take effect.
struct Schedule {
  enum class Kind : std::uint8_t { Late, Early, Random };
  Kind kind = Kind::Late;
  std::uint64_t seed = 0;
  /// KILN_SIM_SCHEDULE. Throws DeviceError if it is none of late, early and random:SEED.
  static Schedule from_environment();
};

/// All of an operation's reads and writes happen in run(), but for those that read() made before.
class Operation {
 public:
  explicit Operation(Agent);
  virtual ~Operation() = default;
  virtual void run() = 0;
  /// Reads the sources now, so that they may change before run(). By default they are read by run() only.
  virtual void read() {}
  /// Whether run() would still read shared memory of this block.
  virtual bool reads_shared(const Block&) const { return false; }
  /// The part that these of its lanes issued, taken out of it; only asked of operations of several lanes.
  virtual std::unique_ptr<Operation> split(std::uint32_t) { return nullptr; }

  Agent agent;
  std::uint32_t lanes;  ///< that issued it; at first the agent's one
};

/// One that tells an mbarrier when it is done.
class Signalling : public Operation {
 public:
  Signalling(Agent a, Block& b, std::uint32_t at) : Operation(std::move(a)), block(&b), barrier(at) {}
  /// Whether it writes shared memory of the mbarrier's block, besides the mbarrier.
  virtual bool writes() const { return true; }
  Block* block;           ///< whose shared memory holds the mbarrier
  std::uint32_t barrier;  ///< its address there
};

/// What a thread commits operations to and waits for: cp.async.wait_group, cp.async.bulk.wait_group, wgmma.wait_group.
enum class GroupKind : std::uint8_t { CpAsync, Bulk, Wgmma };
constexpr std::size_t kGroupKinds = 3;

/// The operations of one kind of a warp, by thread and group.
class Groups {
 public:
  /// All lanes of the operation have committed equally many groups.
  void add(std::unique_ptr<Operation>);
  void commit(std::uint32_t lanes);
  /// Groups that a lane has committed.
  std::uint32_t committed(int lane) const { return committed_[static_cast<std::size_t>(lane)]; }
  /// Carries out the operations of `lanes` in the order of issue, but for those of each lane's last `left` committed
  /// groups and those not committed; what they did is known to the warp afterwards.
  void wait(Warp&, std::uint32_t lanes, std::uint32_t left);
  /// As wait(), but only their sources must have been read.
  void wait_read(Warp&, std::uint32_t lanes, std::uint32_t left);
  /// Number of the next operation; those below it were issued before.
  std::uint64_t issued() const { return issued_; }
  /// Carries out the operations of `lanes` that were issued before `number`; `into` gets what they did.
  void finish(std::uint32_t lanes, std::uint64_t number, Clock& into);
  /// Carries out the operations of the first `groups` groups, which stay for their own wait; `into` gets what they did,
  /// and those that were waited for.
  void finish_groups(std::uint32_t groups, Clock& into);
  /// Carries out one that is under way: the one at `index`, of those that unfinished() counts.
  void run(std::size_t index);
  std::size_t unfinished() const;
  /// … all of them.
  void run_all();
  /// The first that still has to read shared memory of `b`, or null.
  const Operation* reader_of(const Block& b) const;
  bool empty() const { return entries_.empty(); }
  void clear();

 private:
  struct Entry {
    std::unique_ptr<Operation> operation;
    std::uint64_t number;
    std::uint32_t group;  ///< of its lanes, counted from 0
    bool done = false;
  };
  /// Its lanes among these whose wait for all but `left` groups covers it.
  std::uint32_t due(const Entry&, std::uint32_t lanes, std::uint32_t left) const;
  /// Gives these lanes of the entry one of their own, in front of it.
  void part(std::size_t index, std::uint32_t lanes);
  static void run(Entry&);
  /// Has it read its sources in shared memory.
  static void read_sources(Operation&);

  std::vector<Entry> entries_;
  Clock finished_;  ///< what those did that are forgotten
  std::array<std::uint32_t, 32> committed_{};
  std::uint64_t issued_ = 0;
};

/// The schedule of one cluster, and those of its operations that complete on mbarriers.
class Pending {
 public:
  /// `changes`: the count that grows when something happens.
  void start(const Schedule&, std::uint64_t cluster, std::uint64_t* changes);
  void add(std::unique_ptr<Signalling>);
  bool early() const { return schedule_.kind == Schedule::Kind::Early; }
  /// Every warp waits: carries out operations until one may go on, or lets one look again. False if nothing helps.
  bool unblock(Cluster&);
  /// Every warp waits or spins: carries out the oldest operation, which may be what one spins for. False if there is
  /// none.
  bool help_spinning(Cluster&);
  /// A moment at which an operation may take effect: between slices of warps, and where operations are issued and
  /// waited for.
  void moment(Cluster& c) {
    if (schedule_.kind == Schedule::Kind::Random) choose(c);
  }
  /// All warps that can had a slice. If nothing happens for long, those that wait are helped, since the others may wait
  /// too, in loops that read memory.
  void round(Cluster&);
  /// Instructions until the next such moment, at most `usual`.
  std::uint64_t slice(std::uint64_t usual);
  /// Something happened that a waiting warp may be waiting for.
  void changed() {
    idle_ = rounds_ = 0;
    ++*changes_;
  }
  /// The block's last warp has exited. Throws Fault if an operation still reads or writes its shared memory.
  void block_exits(Block&);
  /// Every block has exited: what is under way takes effect.
  void finish(Cluster&);

 private:
  void choose(Cluster&);
  bool run_awaited(const Warp&);
  void run(std::size_t index);
  std::uint64_t random();

  Schedule schedule_;
  std::uint64_t* changes_ = nullptr;
  std::uint64_t state_ = 0;                         ///< of the random numbers
  std::vector<std::unique_ptr<Signalling>> queue_;  ///< in order of issue
  std::uint32_t idle_ = 0;                          ///< looks of waiting warps since something changed
  std::uint32_t rounds_ = 0;                        ///< of the cluster's warps since something changed
};

}  // namespace kiln::rt::sim

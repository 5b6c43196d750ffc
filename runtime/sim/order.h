// Order: what happened before what, so that a race is told from an access that is ordered.
//
// Warps are agents, and so is each asynchronous operation (cp.async, bulk and tensor copies, wgmma), which starts with
// what its issuer knew. Synchronisation hands knowledge on: the one that arrives releases what it knows into a Clock,
// those that pass acquire it. Accesses to shared and global memory are checked against what their agent knows.
//
// Time is counted by component: each warp of a cluster has one for itself and some for its asynchronous operations,
// which take them in turn. A warp's time grows when it releases, an operation's is taken when it first accesses memory.
//
// fence.sc order even where the thread that fences is not the one that accesses a variable:
//
//   data = 1;  fence.sc;  barrier          another thread of the block:  barrier;  flag = 1 (strong)
//   flag read as 1 (strong);  barrier      another thread of the block:  barrier;  fence.sc;  read data
//
// All fence.sc of an execution are in one order, and were the second of these before the first, then the read of the
// flag would happen before the write that it read. So what a fence.sc knew follows what it happened before (published),
// a strong write leaves it at its variable, a strong read takes it along (observed), and the next fence.sc behind makes
// it known. Which of two fence.sc that no variable ties together comes first says nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/sim/journal.h"

namespace kiln::rt::sim {

struct Block;
struct Inst;
struct Warp;

/// Generic: ld, st, atom, cp.async, ldmatrix … Async: bulk and tensor copies, wgmma operands in shared memory. What one
/// proxy wrote the other sees only behind a proxy fence (or the completion of the asynchronous operation).
enum class Proxy : std::uint8_t { Generic, Async };

/// What an access does. An Atomic reads and writes.
enum class Use : std::uint8_t { Load, Store, Atomic };

/// What an agent knows: how far the others had come.
struct Clock {
  std::vector<std::uint32_t> known;   ///< time by component; those beyond the end have none
  std::vector<std::uint32_t> fenced;  ///< … up to which generic writes may be seen by the async proxy
  Told told;                          ///< of other clusters, and through fences
  Journal* journal = nullptr;
  std::shared_ptr<const Clock> published;  ///< what fence.sc of this cluster that happened before knew; null: nothing

  void join(const Clock&);
  void clear() { known.clear(), fenced.clear(), told = {}, published.reset(); }
  bool knows(std::uint32_t component, std::uint32_t time) const {
    return component < known.size() && known[component] >= time;
  }
};

constexpr std::uint32_t kOperationComponents = 4;
constexpr std::uint32_t kComponents = 1 + kOperationComponents;  ///< of a warp

/// What a warp knows.
struct Knowledge {
  Clock clock;
  std::uint32_t self = 0;                 ///< its component; those of its operations follow
  std::uint32_t issued = 0;               ///< operations
  std::uint64_t issued_at = 0;            ///< the block's instructions when the last was issued …
  std::shared_ptr<const Clock> at_issue;  ///< … and what was known then; null: none was
  std::shared_ptr<const Clock> snapshot;  ///< a copy of the clock; null: changed since
  std::shared_ptr<const Clock> at_fence;  ///< the clock at the last fence; null: there was none
  std::uint32_t fence_entry = 0;          ///< of the journal, for at_fence; 0: none yet
  Clock taken;                            ///< by relaxed operations since the last fence
  /// Entries of the journal for what fence.sc knew: as the clock has it, and as at_fence has it.
  struct Published {
    std::shared_ptr<const Clock> clock;
    std::uint32_t entry = 0;
  } published, published_at_fence;
};

/// The times of a cluster's components, and its variables by which agents synchronise.
struct Timeline {
  bool on = false;                                          ///< races are looked for
  std::vector<std::uint32_t> now;                           ///< the latest of each component
  std::vector<std::uint32_t> origin;                        ///< … when the cluster started
  std::unordered_map<std::uint64_t, Clock> variables;       ///< in shared memory: by rank and address
  std::unordered_map<std::uint64_t, std::uint32_t> fences;  ///< … what fence.sc before strong writes there knew
  Journal own;
  Journal* journal = &own;  ///< that of the launch if its clusters may wait for one another

  void start(std::size_t warps, bool races, Journal* of_launch);
};
/// The first moment of a warp: all that came before its cluster is known.
void start(Warp&);

/// One asynchronous operation. Copies are cheap.
struct Agent {
  Warp* issuer = nullptr;
  const Inst* inst = nullptr;  ///< that issued it
  std::uint8_t lane = 0;       ///< … of the issuer
  Proxy proxy = Proxy::Async;
  std::uint16_t component = 0;
  std::uint32_t time = 0;              ///< 0 until it accesses memory
  std::shared_ptr<const Clock> known;  ///< null: races are not looked for
};

/// The operation that `lane` issues now.
Agent issue(Warp&, const Inst&, int lane, Proxy);

/// What the warp did and knows goes into the clock, and from it to those that acquire it.
void release(Warp&, Clock& into);
void acquire(Warp&, const Clock& from);
/// Relaxed forms: what the warp knew at its last fence goes into the clock; what it takes from one counts from its next
/// fence on.
void release_relaxed(Warp&, Clock& into);
void acquire_relaxed(Warp&, const Clock& from);
/// The completion of an operation.
void release(const Agent&, Clock& into);
/// membar and fence.
struct FenceKind {
  bool acquires, releases;
  bool sc = false;  ///< fence.sc of a scope that holds the device
};
void fence(Warp&, FenceKind);
/// fence.proxy.async: what the warp wrote so far, the async proxy may see. A fence by another warp does not count.
void fence_proxy_async(Warp&);

/// A strong access (volatile, relaxed, acquire, release, atomic) to a variable by which agents may synchronise: an
/// address in global memory, or in shared memory of the block of this rank.
void synchronise_global(Warp&, const Inst&, Use, std::uint64_t address);
void synchronise_shared(Warp&, const Inst&, Use, std::uint32_t rank, std::uint64_t address);

/// Host addresses of [at, at + bytes) of the block's shared memory, or of global memory, for a read or write that the
/// operation makes now. Throw Fault at the issuing instruction where nothing may be accessed; races and uninitialised
/// reads are collected.
const std::byte* shared_read(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
std::byte* shared_write(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
const std::byte* global_read(Agent&, std::uint64_t address, std::uint32_t bytes);
std::byte* global_write(Agent&, std::uint64_t address, std::uint32_t bytes);
/// The same for a reduction, which is atomic.
std::byte* shared_update(Agent&, Block&, std::uint64_t at, std::uint32_t bytes);
std::byte* global_update(Agent&, std::uint64_t address, std::uint32_t bytes);

}  // namespace kiln::rt::sim

// Shared memory ends with its block, and an mbarrier begins with its initialisation: what is used must be ordered
// against both, whichever happened to come first in this run.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/sim/pending.h"
#include "runtime/sim/shadow.h"

namespace kiln::rt::sim {

struct Block;
struct Inst;
struct Warp;

/// An access to a block's shared memory that must be over when the block exits: by a warp of another block, or by an
/// asynchronous operation.
struct Visit {
  /// GroupReader: one that a thread waits for by its group.
  enum class By : std::uint8_t { Thread, Reader, GroupReader, Writer };
  Access access;
  By by = By::Thread;
};

/// Those of one block; of each component the last, which is known only to those that know the ones before.
class Visits {
 public:
  void clear() { last_.clear(); }
  void add(const Visit& v) {
    if (v.access.time == 0) return;  // races are not looked for, or nothing was accessed
    if (last_.size() <= v.access.component) last_.resize(v.access.component + std::size_t{1});
    last_[v.access.component] = v;
  }
  const std::vector<Visit>& last() const { return last_; }

 private:
  std::vector<Visit> last_;
};

/// An access of the lane that happens now.
Access access_of(const Warp&, const Inst&, int lane);

/// The warp uses the mbarrier at `at`, which `init` made: a race unless that happened before.
void check_initialised(Warp&, const Inst&, int lane, const Block&, std::uint32_t at, const Access& init);

/// A warp accesses shared memory of another block.
void visit(const Warp&, const Inst&, int lane, Block& to);
/// An operation has accessed shared memory of `of`.
void visit(const Agent&, Block& of, Visit::By);

/// What is wrong with an operation that is not over when its block exits.
const char* unawaited(Visit::By);
/// The block's last warp has exited: every visit must have happened before the exit of one of its warps. An operation
/// for which that does not hold ends the launch: throws Fault. An access of a warp is a race.
void check_visits(Block&);

}  // namespace kiln::rt::sim

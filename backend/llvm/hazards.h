// Hazards: where a barrier of the team is needed to keep the program order of memory operations.
//
// A program's loads and stores happen in program order, element by element, whatever pointers overlap. Within one
// thread the hardware keeps that order. Between threads nothing does: thread 1 may already store what thread 0 has yet
// to load. So before an access Y, each earlier access X of the program (one of them a store) falls into one of three
// cases:
//
//   same elements in the same threads  same pattern of addresses, all of them distinct, nothing replicated, and the
//   same
//                                      base: each element is touched by one thread only. No barrier.
//   bounded                            both spans of bytes are known relative to their bases: a barrier predicated on
//                                      "the spans overlap" (and, for equal patterns, "the bases differ"), which is the
//                                      same in all threads. c = a + b on separate or equal arrays never executes it.
//   anything else                      a barrier.
//
// An unconditional barrier orders everything before it, so later accesses are compared only with those after it. What
// was accessed inside a region is of the third kind outside of it. A loop body that stores ends with a barrier, which
// orders one iteration before the next.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "backend/llvm/tile_value.h"

namespace kiln::cg {

struct MemoryAccess {
  bool store = false;
  bool bounded = false;          ///< base, lo and hi hold
  llvm::Value* base = nullptr;   ///< uniform pointer
  std::int64_t lo = 0, hi = 0;   ///< bytes [base + lo, base + hi) hold every element
  bool private_pattern = false;  ///< each address belongs to one thread; regs and scale say which
  llvm::SmallVector<TileValue::Reg, 4> regs;
  std::int64_t scale = 1;
};

class Hazards {
 public:
  /// `cluster`: the program's team spans several blocks, so its barriers do.
  explicit Hazards(bool cluster) : cluster_(cluster) {}

  /// To be called before the code of `access` is emitted at `b`.
  void before(llvm::IRBuilder<>& b, MemoryAccess access);

  // Around the regions of a control-flow instruction.
  struct Mark {
    std::vector<MemoryAccess> pending;
    int stores = 0;
  };
  Mark mark() const { return {pending_, stores_}; }
  /// Continues from an earlier point: the other way through a branch, or the exit of a loop.
  void resume(const Mark& at) { pending_ = at.pending; }
  /// The accesses of `other` may have happened too.
  void add(const Mark& other) { pending_.insert(pending_.end(), other.pending.begin(), other.pending.end()); }
  /// Leaves a region entered at `before`: what was accessed since is known only as "some loads, some stores".
  void leave(const Mark& before);
  /// End of a loop body entered at `before`: orders this iteration before the next.
  void end_iteration(llvm::IRBuilder<>& b, const Mark& before);

  /// An unconditional barrier.
  void barrier(llvm::IRBuilder<>& b);

 private:
  void barrier_where(llvm::IRBuilder<>& b, llvm::Value* active);

  const bool cluster_;
  std::vector<MemoryAccess> pending_;  ///< since the last unconditional barrier on every path
  int stores_ = 0;                     ///< seen so far
};

}  // namespace kiln::cg

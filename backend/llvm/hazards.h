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
// Two accesses through different parameters never need one, if the launch guarantees that one of them overlaps no other
// (ir::Param::disjoint).
//
// An unconditional barrier orders everything before it, so later accesses are compared only with those after it. What
// was accessed inside a region is of the third kind outside of it.
//
// Shared memory is known by ranges of bytes: two accesses, one of them a write, conflict iff their ranges overlap. An
// op that exchanges elements between threads says what it does in the order it does it:
//
//     e.hazards.shared_write(b, range);   … st.shared …
//     e.hazards.shared_read(b, range);    … ld.shared …     a barrier stands between them, and before the next write
//
// A loop body is followed by itself: it ends with a barrier if something that is pending at its end conflicts with
// something it does before its first barrier. Addresses of global memory differ between iterations, so there any two
// accesses conflict of which one is a store.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "backend/ir/function.h"
#include "backend/ir/op/scratch.h"
#include "backend/llvm/tile_value.h"

namespace kiln::cg {

struct MemoryAccess {
  /// Scratch: shared memory of ops, known by bytes [lo, hi) of the program's. Shared: what pointers reach of it, which
  /// no scratch overlaps.
  enum class Space : std::uint8_t { Global, Shared, Scratch };
  Space space = Space::Global;
  bool store = false;
  int commutes = 0;              ///< stores of one kind, not 0, may come in any order: updates that nobody reads back
  bool bounded = false;          ///< lo and hi hold
  llvm::Value* base = nullptr;   ///< uniform pointer; null: unknown
  std::int64_t lo = 0, hi = 0;   ///< bytes [base + lo, base + hi) hold every element
  bool private_pattern = false;  ///< each address belongs to one thread; regs and scale say which
  llvm::SmallVector<TileValue::Reg, 4> regs;
  std::int64_t scale = 1;
  std::size_t number = 0;  ///< in the order of emission
};

class Hazards {
 public:
  /// `exec`: whose threads a barrier waits for.
  explicit Hazards(const ir::Exec& exec) : team_(exec.team), named_(exec.producer > 0 ? 32 * exec.warps : 0) {}

  /// To be called before the code of `access` is emitted at `b`.
  void before(llvm::IRBuilder<>& b, MemoryAccess access);
  // The same for bytes of the program's shared memory, whichever threads touch them.
  void shared_write(llvm::IRBuilder<>& b, ir::SharedRange range) { shared(b, range, /*store=*/true); }
  void shared_read(llvm::IRBuilder<>& b, ir::SharedRange range) { shared(b, range, /*store=*/false); }

  /// For what is ordered in another way: only later accesses are ordered behind it.
  void shared_touched(ir::SharedRange range, bool store);

  /// After a write of the same range: each warp reads only what it wrote itself.
  void shared_read_in_warp(llvm::IRBuilder<>& b, ir::SharedRange range);

  // Around the regions of a control-flow instruction.
  struct Mark {
    std::vector<MemoryAccess> pending;
    std::size_t seen = 0;
    int epoch = 0;
  };
  Mark mark() const { return {pending_, log_.size(), epoch_}; }
  /// Continues from an earlier point: the other way through a branch, or the exit of a loop.
  void resume(const Mark& at);
  /// The accesses of `other` may have happened too.
  void add(const Mark& other);
  /// Leaves a region entered at `before`: what was accessed since is known only as "loads and stores through
  /// these parameters".
  void leave(const Mark& before);
  /// End of a loop body entered at `before`: orders this iteration before the next.
  void end_iteration(llvm::IRBuilder<>& b, const Mark& before);

  /// The same of a walk's region, whose next iteration is another program: only shared memory is the same.
  void end_program(llvm::IRBuilder<>& b, const Mark& before);

  /// An unconditional barrier.
  void barrier(llvm::IRBuilder<>& b);
  /// All threads of the program are at a barrier that somebody else emits.
  void reached();

 private:
  struct Logged {
    MemoryAccess access;
    int epoch;
  };
  void shared(llvm::IRBuilder<>& b, ir::SharedRange range, bool store);
  void barrier_where(llvm::IRBuilder<>& b, llvm::Value* active);
  void end(llvm::IRBuilder<>& b, const Mark& before, bool same_program);
  void record(MemoryAccess access);

  const ir::Team team_;
  const int named_;                    ///< threads of the barrier where they are not the whole block; else 0
  std::vector<MemoryAccess> pending_;  ///< since the last unconditional barrier on every path
  std::vector<Logged> log_;            ///< every access so far
  int epoch_ = 0;                      ///< unconditional barriers so far, on the path with the fewest
};

}  // namespace kiln::cg

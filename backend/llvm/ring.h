// The ring as both roles see it: addresses of slots and mbarriers, waiting, and going on to the next slot.
#pragma once
#include "backend/ir/op/ring.h"
#include "backend/llvm/emitter.h"

namespace kiln::cg {

inline constexpr int kWarpgroup = 128;  ///< threads

/// i32: the thread's number in its block.
llvm::Value* thread_number(llvm::IRBuilder<>& b);
/// i32: the warpgroup's number in its block, equal in all its threads as far as the assembler can see.
llvm::Value* warpgroup_number(Emitter& e);
/// i32: the block's number in its cluster.
llvm::Value* cluster_rank(Emitter& e);
/// i1, equal in the whole launch: the two blocks of a cluster run neighbours and share operands. Null where the
/// program's walk has no pairs.
llvm::Value* pair_shares(Emitter& e);
/// i32: an index as the coordinate of a copy. What 32 bits do not hold is outside of every array, as -2^31 is, which
/// keeps the alignment that coordinates along lines must have (ir::kCopyUnit).
llvm::Value* coordinate(Emitter& e, ir::Value v);

class Ring {
 public:
  explicit Ring(Emitter& e);

  /// Before the roles part: mbarriers start, and every thread knows it.
  void open();
  /// i32: shared address of the slot this role stands at.
  llvm::Value* slot();
  /// Waits until it is full, or empty.
  void wait_full() { wait(full_, phase()); }
  void wait_empty() { wait(empty_, e_.b.CreateXor(phase(), e_.b.getInt32(1))); }
  /// i32: address of the mbarrier that says the slot is full.
  llvm::Value* full() { return mbarrier(full_, position()); }
  /// This warpgroup reads the slot no more.
  void release() { arrive(position(), nullptr); }
  /// The same for the slot before, if it has not been released; `then`: whether the slot at hand is still read.
  void release_behind(bool then);
  void next();
  /// Until every slot is empty: no other block signals here any more.
  void drain();

 private:
  llvm::Value* phase();
  llvm::Value* position();
  llvm::Value* mbarrier(std::int64_t first, llvm::Value* slot);
  void arrive(llvm::Value* slot, llvm::Value* where);
  void arrive_at_both(llvm::Value* slot, llvm::Value* where, llvm::Value* shares);
  void wait(std::int64_t first, llvm::Value* parity);

  Emitter& e_;
  const std::int64_t stages_, slot_bytes_;
  std::int64_t full_ = 0, empty_ = 0;  ///< offsets of the first mbarrier of each kind
  llvm::Value* base_;                  ///< i32: shared address of the ring
};

}  // namespace kiln::cg

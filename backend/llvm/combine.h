// Combine: the combining region of a reduction or scan as code, for one pair of element groups at a time, and the ways
// in which such groups move between threads. What is combined in which order stands in backend/ir/reduce_order.h.
#pragma once
#include <optional>
#include <vector>

#include "backend/ir/reduce_order.h"
#include "backend/llvm/emitter.h"

namespace kiln::cg {

/// One element of each operand of a reduction. Empty: there is none.
using Group = llvm::SmallVector<llvm::Value*, 2>;

/// A condition that may be known. Null: always true; the constant false: never.
using Condition = llvm::Value*;
inline bool always(Condition c) { return c == nullptr; }
bool never(Condition c);

class Combine {
 public:
  Combine(Emitter& e, const ir::Inst& inst);

  std::size_t components() const { return types.size(); }
  /// left ∘ right.
  Group operator()(const Group& left, const Group& right);
  /// `right` exists only if `exists`: left ∘ right, or left.
  Group append(const Group& left, const Group& right, Condition exists);
  /// `left` exists only if `exists`: left ∘ right, or right.
  Group prepend(const Group& left, const Group& right, Condition exists);
  Group select(Condition condition, const Group& yes, const Group& no);

  /// What the thread has whose lane number differs in these bits.
  Group exchange_lanes(const Group& mine, unsigned bits);
  /// All 32 lanes' elements in one instruction, where the target has it for this combination; empty otherwise.
  Group reduce_warp(const Group& mine);

  const bool commutes;
  std::vector<DType> types;
  Group identity;  ///< empty: not known

 private:
  Emitter& e_;
  ir::RegionId region_;
};

/// The elements' numbers along the axis of a reduction or scan, and which exist.
class AxisNumbers {
 public:
  AxisNumbers(Emitter& e, const ir::Type& tile, const Geometry& g, int axis);
  /// Whether the element exists whose number has `set`, what register `reg` stands for, and this thread's bits outside
  /// `cleared`.
  Condition exists(std::int64_t reg, std::int64_t set = 0, std::int64_t cleared = 0) const;

 private:
  Emitter& e_;
  const Geometry& g_;
  std::size_t axis_;
  std::int64_t thread_bits_ = 0;
};

/// Partial results of all warps along a run of warp bits, through shared memory. One use of each object.
class WarpSlots {
 public:
  /// `offset`: where in the scratch of `inst`.
  WarpSlots(Emitter& e, const ir::Inst& inst, ir::WarpExchange x, std::vector<DType> types, std::int64_t offset);
  /// Writes one group a register of the exchange, a barrier, reads: result [register][warp along the axis].
  std::vector<std::vector<Group>> exchange(llvm::ArrayRef<Group> mine);
  std::int64_t bytes() const { return offsets_.back(); }
  /// i32: this warp's number along the axis.
  llvm::Value* place() const { return place_; }

 private:
  void write(llvm::ArrayRef<Group> mine);
  void read(std::vector<std::vector<Group>>& all, std::size_t reg, std::size_t component, llvm::Value* from);

  Emitter& e_;
  ir::WarpExchange x_;
  std::vector<DType> types_;
  std::vector<std::int64_t> offsets_;
  Scratch scratch_;
  llvm::Value *place_, *others_, *lane_slot_ = nullptr;
  int place_bits_;
};

/// Partial results of all blocks of a cluster along a run of block bits, through their shared memory.
class BlockSlots {
 public:
  /// `offset`: where in the scratch of `inst`.
  BlockSlots(Emitter& e, const ir::Inst& inst, ir::WarpExchange x, std::vector<DType> types, std::int64_t offset);
  /// Writes one group a register of the exchange, the cluster's barrier, reads: result [register][block along the axis].
  std::vector<std::vector<Group>> exchange(llvm::ArrayRef<Group> mine);
  std::int64_t bytes() const { return offsets_.back(); }
  /// i32: this block's number along the axis.
  llvm::Value* place();

 private:
  /// i32: the rank of block `number` along the axis.
  llvm::Value* rank(std::size_t number);

  Emitter& e_;
  ir::WarpExchange x_;
  std::vector<DType> types_;
  std::vector<std::int64_t> offsets_;
  Scratch scratch_;
};

/// i32: number of this thread's lane; of its warp in the team.
llvm::Value* lane_number(Emitter& e);
llvm::Value* warp_number(Emitter& e);
/// i1: bit `bit` of `x`.
llvm::Value* bit_of(llvm::IRBuilder<>& b, llvm::Value* x, int bit);

}  // namespace kiln::cg

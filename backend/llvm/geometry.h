// Geometry: a register layout seen from one thread. Which element each register holds, which registers exist at all,
// and which thread may write an element.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <utility>
#include <vector>

#include "backend/ir/function.h"
#include "backend/llvm/tile_value.h"

namespace kiln::cg {

/// Coordinate of register r along an axis = thread part (equal for all registers) + register part, or, where the two
/// share bits (a swizzle), their exclusive or.
struct Geometry {
  struct Axis {
    llvm::Value* thread = nullptr;  ///< i32; null: no bit of the thread moves along this axis
    Known thread_known = Known::constant(0);
    std::int64_t extent = 1;  ///< of the tile; the layout may be padded beyond it
    bool swizzled = false;
  };
  std::vector<Axis> axes;
  std::vector<std::vector<std::int64_t>> parts;  ///< [register][axis]
  std::vector<bool> live;                        ///< false: every element of this register lies outside the tile
  std::vector<int> first;        ///< lowest register that holds the same elements (r itself, but for replication)
  llvm::Value* owner = nullptr;  ///< i1: this thread writes; null: every thread does
  bool replicated = false;       ///< some element is in several threads or registers
  std::int64_t replicated_threads = 0;  ///< bits of the thread's number in the team along which elements repeat

  int regs() const { return int(parts.size()); }
};

/// Makes geometries; what they compute stands in the function's entry block, so that it dominates every use.
class GeometryCache {
 public:
  /// `entry`: inserts into the entry block.
  GeometryCache(llvm::IRBuilder<>& entry, const ir::Function& f);

  const Geometry& of(const ir::Type&);
  /// Coordinate of one register as a sum; swizzled axes compute their exclusive or at `b`.
  static TileValue::Reg coordinate(llvm::IRBuilder<>& b, const Geometry& g, int reg, int axis);
  /// i1: the register's element is inside the tile; null if it always is.
  static llvm::Value* inside(llvm::IRBuilder<>& b, const Geometry& g, int reg);
  llvm::IRBuilder<>& entry() { return entry_; }

  // Functions of the thread: bit k of its number (lane, warp and block bits) selects entry k.
  /// XOR of the selected entries.
  Geometry::Axis linear(const std::vector<std::int64_t>& bases) { return axis(bases); }
  /// i1: an odd number of the bits in `thread_bits` is set.
  llvm::Value* parity(std::int64_t thread_bits);
  /// i1: all of them are 0; null if there are none.
  llvm::Value* owner_where_zero(std::int64_t thread_bits);
  int thread_bits() const { return thread_bits_; }

 private:
  Geometry scalar();
  std::vector<std::int64_t> thread_basis(const ir::LinearLayout&, int bit) const;
  std::int64_t replicated_threads(const ir::LinearLayout&) const;
  Geometry tile(const ir::LinearLayout&, const ir::Shape&);
  Geometry::Axis axis(const std::vector<std::int64_t>& bases);

  llvm::IRBuilder<>& entry_;
  const ir::Function& f_;
  int warp_bits_, block_bits_, thread_bits_;
  llvm::Value* tid_;  ///< of the team: lane, warp and block bits
  std::map<std::pair<ir::LayoutId, ir::Shape>, Geometry> tiles_;
  std::map<std::vector<std::int64_t>, Geometry::Axis> axes_;
  Geometry scalar_;
};

}  // namespace kiln::cg

// Lanes: which elements of a tile a thread acts on, one predicate a register: for accesses, atomics, and reports.
#pragma once
#include <vector>

#include "backend/llvm/emitter.h"

namespace kiln::cg {

class Lanes {
 public:
  using Value = llvm::Value;
  Lanes(llvm::IRBuilder<>& b, const Geometry& g) : b_(b), g_(g), lanes_(std::size_t(g.regs())) {}

  // Which lanes are active, in any combination:
  void add_extents();                    ///< those inside a padded tile
  void add_mask(const TileValue& mask);  ///< plain i1
  void add_owner();                      ///< one of those that hold the same element

  /// Whether register `reg` holds an element to act on; when `active(reg)`, which is null for always.
  bool acts(int reg) const {
    return g_.live[std::size_t(reg)] && g_.first[std::size_t(reg)] == reg && !lanes_[std::size_t(reg)].off;
  }
  Value* active(int reg) const { return lanes_[std::size_t(reg)].active; }

 protected:
  /// A predicate a register: null = always active; `off` = never.
  struct Lane {
    Value* active = nullptr;
    bool off = false;
    bool operator==(const Lane&) const = default;
  };

  llvm::IRBuilder<>& b_;
  const Geometry& g_;
  std::vector<Lane> lanes_;
};

}  // namespace kiln::cg

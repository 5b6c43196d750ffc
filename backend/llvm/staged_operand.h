// StagedOperand: one operand of a product on its way from registers of any layout through shared memory.
#pragma once
#include <vector>

#include "backend/llvm/emitter.h"
#include "backend/llvm/shared_place.h"

namespace kiln::cg {

struct StagedOperand {
  ir::Value value;
  int row = 0, depth = 0;    ///< axes: M and K of a, N and K of b; `row` is the same axis of the result
  bool along_depth = false;  ///< vectors run along k
  DType dtype = DType::f32;  ///< of its elements in shared memory
  std::int64_t slice = 1;    ///< positions along k that are there at a time
  int store_vector = 1;      ///< elements
  bool zero_beyond = false;  ///< positions along k beyond the tile's extent hold zeros
  SharedPlace place;

  int fast() const { return along_depth ? depth : row; }
  int slow() const { return along_depth ? row : depth; }
};

/// Elements along `axis` that neighbouring registers of one thread hold, from an aligned one on.
int register_run(const ir::LinearLayout& l, int axis);

/// Axes and direction of operand 0 or 1 of the product `dot`: vectors run the way its layout has them.
StagedOperand staged_operand(const Emitter& e, const ir::Inst& dot, std::size_t operand);

/// Writes slice number `number` of `elements`, the operand in its staged dtype, to the shared address `shared` (i32).
void stage(Emitter& e, const StagedOperand& side, const TileValue& elements, llvm::Value* shared, std::int64_t number);

}  // namespace kiln::cg

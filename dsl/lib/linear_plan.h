// How the work of linear is cut: from shape, element types and target to block sizes.
#pragma once
#include <string>

#include "dsl/lang/dot.h"
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// The blocks of a product: a program computes BM rows and BN columns of the result, BK steps of k at a time. All of it
/// is in the kernel's key.
struct LinearBlocks {
  int BM = 0, BN = 0, BK = 0;
  bool weights_first = false;  ///< the product is computed as (w xᵀ)ᵀ: few rows of x beside many of w
};

/// What is multiplied: sizes, element types, and where it runs.
struct LinearShape {
  std::int64_t M = 0, N = 0, K = 0;
  DType x = DType::bf16, w = DType::bf16;
  std::string target;                      ///< "sm_90a"
  int sms = 132;                           ///< multiprocessors there
  bool direct = false;                     ///< operands are multiplied as they lie in memory, in rows of whole 16 bytes
  bool crowded = false;                    ///< the chain, or on mma.sync sums of parts of k, need many registers beside
  Precision precision = Precision::exact;  ///< of f32 beside f32
};

struct LinearPlan {
  LinearBlocks blocks;
  int num_warps = 0;
};
/// How many warps run a program with these blocks.
int linear_warps(const LinearShape&, const LinearBlocks&);
/// The blocks and warps for a shape; `any_rows`: the same whatever M is.
LinearPlan linear_plan(const LinearShape&, bool any_rows);

}  // namespace kiln::lib

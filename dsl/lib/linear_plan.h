// How linear's work is cut: one function from shape, element types and target to block sizes, and the checks of its
// arguments.
#pragma once
#include <string>

#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// The blocks of a product: a program computes BM rows and BN columns of the result, BK steps of k at a time. 0 in a
/// field that linear is given means: as linear_blocks says. All of it is in the kernel's key.
struct LinearBlocks {
  int BM = 0, BN = 0, BK = 0;
  bool weights_first = false;  ///< the product is computed as (w xᵀ)ᵀ: few rows of x beside many of w
  bool x_columns = false;      ///< x lies in memory by columns (stride 1 along its rows)
  bool w_columns = false;      ///< so does w: it is stored as [K, N]
};

/// What is multiplied: sizes, element types, and where it runs.
struct LinearShape {
  std::int64_t M = 0, N = 0, K = 0;
  DType x = DType::bf16, w = DType::bf16;
  std::string target;  ///< "sm_90a"
};

/// The blocks and warps for a shape. `any_rows`: they must not depend on M.
struct LinearPlan {
  LinearBlocks blocks;
  int num_warps = 0;
};
LinearPlan linear_plan(const LinearShape&, bool any_rows);

namespace chain {

/// What a matrix touches in memory, for checks of overlap.
struct Reach {
  const char* name;
  DevicePtr address;
  std::int64_t rows, cols, row_stride, col_stride;  ///< in elements
  std::int64_t element_bytes;
};
template <class T>
Reach reach(const char* name, const Matrix<T>& m) {
  return {name, m.data.address, m.size[0], m.size[1], m.stride[0], m.stride[1], std::int64_t(sizeof(T))};
}
/// Whether an element of one may be one of the other's. Exact for disjoint ranges and for parts of the same rows.
bool may_overlap(const Reach&, const Reach&);
/// UserError where `written` may overlap `read`.
void refuse_overlap(const char* function, SourceLoc, const Reach& written, const Reach& read);
/// Checks x [M, K], w [N, K] and, once for each result, y [M, N].
void check_product(const char* function, SourceLoc, const std::array<std::int64_t, 2>& x,
                   const std::array<std::int64_t, 2>& w);
void check_written(const char* function, SourceLoc, const std::array<std::int64_t, 2>& y, std::int64_t rows,
                   std::int64_t cols);

}  // namespace chain
}  // namespace kiln::lib

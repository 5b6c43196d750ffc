// Which plans of linear are worth measuring, and what a measuring found.
#pragma once
#include <vector>

#include "dsl/lang/tuned.h"
#include "dsl/lib/linear_plan.h"
#include "runtime/explain.h"

namespace kiln::lib {

/// "128x256x64 num_warps=8", with " weights first" where the product is turned.
std::string name(const LinearPlan&);

/// The plans to measure for a shape, the table's first.
std::vector<LinearPlan> linear_candidates(const LinearShape&);

/// What results are kept under: the kind of product, the element types, and the class of the shape: M by its power of
/// two, since batches vary, N and K exactly.
std::string linear_subject(const char* kind, const LinearShape&);

/// The plan that was found fastest for a shape's class on `device`, else the table's. The cache folder is read once for
/// each class. / From now on it is `found`.
LinearPlan tuned_linear_plan(const Device& device, const char* kind, const LinearShape&);
void keep_linear_plan(const Device& device, const char* kind, const LinearShape&, const LinearPlan& found);

/// What a product does on a device, for people. See Linear::explain().
struct LinearExplanation {
  std::string plan;            ///< the blocks and warps
  std::string why;             ///< where they come from, and what they make of the multiprocessors
  double flop = 0, bytes = 0;  ///< of the product alone; bytes: each operand and the result moved once
  std::string bound;           ///< what it takes at least, where the device's rates are known
  std::vector<Explanation> kernels;

  std::string text() const;
};

}  // namespace kiln::lib

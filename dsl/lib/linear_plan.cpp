#include "dsl/lib/linear_plan.h"

#include <algorithm>

#include "dsl/lib/blocks.h"

namespace kiln::lib {
namespace {

/// The table: the first row whose limits hold gives the blocks. `rows` and `cols` are the largest M and N that it is
/// for, `bytes` the largest element.
struct Rule {
  std::int64_t rows, cols;
  int bytes;
  LinearPlan plan;
};
constexpr std::int64_t kAny = std::int64_t(1) << 62;
constexpr Rule kRules[] = {
    // few rows: the weights are the wide side, and k is long
    {8, kAny, 2, {{8, 64, 128, true}, 4}},
    {16, kAny, 2, {{16, 64, 128, true}, 4}},
    {32, kAny, 2, {{32, 64, 64, true}, 4}},
    {64, kAny, 2, {{64, 64, 64, false}, 4}},
    {8, kAny, 8, {{8, 64, 32, true}, 4}},
    {16, kAny, 8, {{16, 64, 32, true}, 4}},
    // few columns
    {kAny, 16, 8, {{64, 16, 32, false}, 4}},
    {kAny, 64, 2, {{64, 64, 64, false}, 4}},
    {kAny, 64, 8, {{64, 64, 16, false}, 4}},
    // the rest: small results in more blocks
    {256, 1024, 2, {{64, 64, 64, false}, 4}},
    {kAny, kAny, 1, {{128, 128, 128, false}, 8}},
    {kAny, kAny, 2, {{128, 128, 64, false}, 8}},
    {kAny, kAny, 4, {{64, 64, 32, false}, 4}},
    {kAny, kAny, 8, {{32, 32, 16, false}, 4}},
};

}  // namespace

LinearPlan linear_plan(const LinearShape& s, bool any_rows) {
  const int widest = std::max(bytes(s.x), bytes(s.w));
  const std::int64_t rows = any_rows ? kAny : s.M;
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                                 [&](const Rule& r) { return rows <= r.rows && s.N <= r.cols && widest <= r.bytes; });
  LinearPlan plan = rule->plan;
  // Steps beyond the end of k are work for nothing.
  plan.blocks.BK = std::max(16, block_for(s.K, plan.blocks.BK));
  return plan;
}

}  // namespace kiln::lib

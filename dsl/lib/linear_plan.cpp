#include "dsl/lib/linear_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "dsl/lib/blocks.h"
#include "runtime/base/error.h"

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

namespace chain {
namespace {

/// The bytes from the first to behind the last element; empty for a matrix of no elements.
struct Range {
  std::int64_t first = 0, end = 0;
};
Range range_of(const Reach& r) {
  if (r.rows <= 0 || r.cols <= 0) return {};
  Range x{std::int64_t(r.address), std::int64_t(r.address) + r.element_bytes};
  for (const std::int64_t far : {(r.rows - 1) * r.row_stride, (r.cols - 1) * r.col_stride})
    (far < 0 ? x.first : x.end) += far * r.element_bytes;
  return x;
}

}  // namespace

bool may_overlap(const Reach& a, const Reach& b) {
  const Range x = range_of(a), y = range_of(b);
  if (x.end <= y.first || y.end <= x.first) return false;
  const std::int64_t pitch = a.row_stride * a.element_bytes;
  const bool same_rows = a.col_stride == 1 && b.col_stride == 1 && pitch > 0 &&
                         pitch == b.row_stride * b.element_bytes && a.cols * a.element_bytes <= pitch &&
                         b.cols * b.element_bytes <= pitch;
  if (!same_rows) return true;
  // b begins `from` bytes into a row of a; both are one stretch of each row.
  const std::int64_t from = ((y.first - x.first) % pitch + pitch) % pitch;
  return from < a.cols * a.element_bytes || from + b.cols * b.element_bytes > pitch;
}

void refuse_overlap(const char* function, SourceLoc at, const Reach& written, const Reach& read) {
  if (may_overlap(written, read))
    throw UserError(at, fmt::format("{}: {} must not overlap {}, which other programs still read", function,
                                    written.name, read.name));
}

void check_product(const char* function, SourceLoc at, const std::array<std::int64_t, 2>& x,
                   const std::array<std::int64_t, 2>& w) {
  check_sizes(function, at, "x", x);
  check_sizes(function, at, "w", w);
  if (x[1] != w[1])
    throw UserError(at, fmt::format("{}: x is {}x{} and w is {}x{}: they must have the same number of columns",
                                    function, x[0], x[1], w[0], w[1]));
}

void check_written(const char* function, SourceLoc at, const std::array<std::int64_t, 2>& y, std::int64_t rows,
                   std::int64_t cols) {
  if (y[0] != rows || y[1] != cols)
    throw UserError(at, fmt::format("{}: y is {}x{}, must be {}x{}", function, y[0], y[1], rows, cols));
}

}  // namespace chain
}  // namespace kiln::lib

#include "dsl/lib/chain.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace kiln::lib::chain {
namespace {

/// "bias", or "tensor 1 of stage 2" of a function without a name.
std::string who(const Fits& f) {
  if (!f.stage) return fmt::format("tensor {} of stage {}", f.argument, f.number);
  return f.argument == 1 ? f.stage : fmt::format("tensor {} of {}", f.argument, f.stage);
}

/// The bytes from the first to behind the last element; empty for an array of no elements.
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

void check_length(const Fits& f, std::int64_t size, std::int64_t expected, const char* of) {
  check_sizes(f.function, f.at, who(f).c_str(), {&size, 1});
  if (size != expected)
    throw UserError(f.at, fmt::format("{}: {} has {} elements, must have {}, one for each of the {}", f.function,
                                      who(f), size, expected, of));
}

void check_matrix(const Fits& f, std::int64_t rows, std::int64_t cols, std::int64_t expected_rows) {
  if (rows != expected_rows || cols != f.cols)
    throw UserError(
        f.at, fmt::format("{}: {} is {}x{}, must be {}x{}", f.function, who(f), rows, cols, expected_rows, f.cols));
}

void check_fold(const char* function, SourceLoc at, int fold, std::int64_t cols) {
  if (cols % fold != 0)
    throw UserError(at, fmt::format("{}: {} columns cannot be taken {} at a time", function, cols, fold));
}

void check_result(SourceLoc at, const Place& p, const Tile& t, int stage) {
  const Shape want({p.height, p.width});
  if (t.shape() == want) return;
  throw UserError(at, fmt::format("stage {} of a chain returns a tile of [{}], must be [{},{}]", stage,
                                  fmt::join(t.shape().extents(), ","), p.height, p.width));
}

void check_probability(const char* function, SourceLoc at, double p) {
  if (!(p >= 0 && p < 1)) throw UserError(at, fmt::format("{}: p is {}, must be in [0, 1)", function, p));
}

bool may_overlap(const Reach& a, const Reach& b) {
  const Range x = range_of(a), y = range_of(b);
  if (x.first == x.end || y.first == y.end || x.end <= y.first || y.end <= x.first) return false;
  const std::int64_t pitch = a.row_stride * a.element_bytes;
  const bool same_rows = a.col_stride == 1 && b.col_stride == 1 && pitch > 0 &&
                         pitch == b.row_stride * b.element_bytes && a.cols * a.element_bytes <= pitch &&
                         b.cols * b.element_bytes <= pitch;
  if (!same_rows) return true;
  // b begins `from` bytes into a row of a; both are one stretch of each row.
  const std::int64_t from = ((y.first - x.first) % pitch + pitch) % pitch;
  return from < a.cols * a.element_bytes || from + b.cols * b.element_bytes > pitch;
}

void refuse_overlap(const char* function, SourceLoc at, const Reach& written, const Reach& read, bool in_place) {
  if (in_place && written == read) return;
  if (may_overlap(written, read))
    throw UserError(at, fmt::format("{}: {} must not overlap {}, which other programs still read", function,
                                    written.name, read.name));
}

}  // namespace kiln::lib::chain

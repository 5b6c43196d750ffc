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

}  // namespace

void check_length(const Fits& f, std::int64_t size, std::int64_t expected, const char* of) {
  check_sizes(f.function, f.at, who(f).c_str(), {&size, 1});
  if (size != expected)
    throw UserError(f.at, fmt::format("{}: {} has {} elements, must have {}, one for each of the {}", f.function,
                                      who(f), size, expected, of));
}

void check_matrix(const Fits& f, std::int64_t rows, std::int64_t cols) {
  if (rows != f.rows || cols != f.cols)
    throw UserError(f.at,
                    fmt::format("{}: {} is {}x{}, must be {}x{}", f.function, who(f), rows, cols, f.rows, f.cols));
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

}  // namespace kiln::lib::chain

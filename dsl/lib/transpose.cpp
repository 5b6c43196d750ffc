#include "dsl/lib/transpose.h"

#include <fmt/format.h>

#include "dsl/lang/arrange.h"
#include "dsl/lib/blocks.h"
#include "runtime/base/error.h"

namespace kiln::lib {
namespace {

/// Edge of a program's square. Rows of 256 bytes on both sides are what memory moves best (bf16 16384² on one H200:
/// 128 4142 GB/s, 64 3961); one byte an element would need more registers for that than it gains.
template <class T>
constexpr int kEdge = sizeof(T) == 4 ? 64 : 128;

// Neighbours among the programs write neighbouring parts of the same rows of y (4142 GB/s; along rows of x 4026).
template <class T>
void squares_program(View<const T, 2> x, View<T, 2> y) {
  constexpr int kSide = kEdge<T>;
  Scalar r = program_id(0) * kSide, c = slow_block() * kSide;
  y.store({c, r}, trans(x.load({r, c}, {kSide, kSide})));
}
template <class T>
constinit auto squares = kernel("transpose", squares_program<T>).names("x y");

}  // namespace

template <Element T>
requires(sizeof(T) <= 4) void transpose(On on, Matrix<const T> x, Matrix<T> y) {
  check_rows("transpose", on.at, {named<const T>("x", x)});
  check_rows("transpose", on.at, {named<T>("y", y)});
  const auto [rows, cols] = x.size;
  if (y.size[0] != cols || y.size[1] != rows)
    throw UserError(on.at, fmt::format("transpose: y is {}x{}, must be {}x{} for x of {}x{}", y.size[0], y.size[1],
                                       cols, rows, rows, cols));
  if (x.data.address == y.data.address && rows > 0 && cols > 0)
    throw UserError(on.at, "transpose: y must not be x's own memory");
  squares<T>.launch(on, blocks(cdiv(rows, kEdge<T>), cdiv(cols, kEdge<T>)), x, y);
}

#define KILN_INSTANTIATE(T) template void transpose<T>(On, Matrix<const T>, Matrix<T>);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(f16)
KILN_INSTANTIATE(bf16)
KILN_INSTANTIATE(std::int8_t)
KILN_INSTANTIATE(std::uint8_t)
KILN_INSTANTIATE(std::int16_t)
KILN_INSTANTIATE(std::uint16_t)
KILN_INSTANTIATE(std::int32_t)
KILN_INSTANTIATE(std::uint32_t)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib

// The arguments of the library's functions, and how their kernels reach a row.
//
//   lib::softmax<bf16>(stream, {x, {rows, cols}}, {y, {rows, cols}});                 // dense arrays
//   lib::softmax<bf16>(stream, {x, {rows, cols}, {pitch, 1}}, {y, {rows, cols}});     // rows `pitch` elements apart
//
// Every function takes a stream, inputs, outputs, numbers, in this order; T is the element type of what it reads and
// writes, one of float, f16 and bf16, and what happens between is f32. An output may be an input's memory, with the
// same strides; other overlaps of outputs with anything are the caller's fault. An array of no rows or no columns
// launches nothing, except for what has a result without elements: sum_all, and the losses of rows of no columns.
// Errors: UserError at the caller's line where a size is negative, shapes do not fit each other (it names both), a row
// is not contiguous, or an array reaches beyond its buffer.
#pragma once
#include <span>

#include "dsl/lang/kernel.h"
#include "dsl/lang/ops.h"
#include "dsl/lang/view.h"

namespace kiln::lib {

/// The element types of the library.
template <class T>
concept Real = std::same_as<T, float> || std::same_as<T, f16> || std::same_as<T, bf16>;

/// A stream and the caller's line.
using On = detail::OnStream;
/// {x, {rows, cols}} or {x, {rows, cols}, {stride, 1}}; T is const for what is only read.
template <class T>
using Matrix = typename Param<View<T, 2>>::Host;
/// {w, {cols}}.
template <class T>
using Vector = typename Param<View<T, 1>>::Host;

/// What a row kernel is specialised for. `dense`: rows follow each other without a gap, in every array of the launch.
struct Row {
  int width = 0;
  bool dense = true;
};

/// Rows of up to this many elements are one tile of their exact width; longer ones are worked off in chunks.
inline constexpr std::int64_t kLongestTile = 32768;

/// Pointer to the first element of row `r`. The stride of dense rows is their width, which the compiler knows.
template <class T>
Scalar row_of(const View<T, 2>& x, const Scalar& r, const Row& row) {
  return row.dense ? x.pointer() + r * row.width : x.pointer() + r * x.stride(0);
}

/// One array of a call, for check_rows.
struct Named {
  const char* name;
  std::array<std::int64_t, 2> size, stride;
};
template <class T>
Named named(const char* name, const Matrix<T>& m) {
  return {name, m.size, m.stride};
}

/// Checks that no size of an array is negative, an array of no elements' neither.
void check_sizes(const char* function, SourceLoc, const char* name, std::span<const std::int64_t> sizes);
/// check_sizes, and that all arrays have the first one's shape and contiguous rows; `function` is named in the
/// UserError. Returns whether all are dense.
bool check_rows(const char* function, SourceLoc, std::initializer_list<Named>);
/// check_sizes, and that a vector has `extent` contiguous elements.
void check_vector(const char* function, SourceLoc, const char* name, std::int64_t size, std::int64_t stride,
                  std::int64_t extent);

}  // namespace kiln::lib

// Transposition of a matrix.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// y[c, r] = x[r, c]; x [rows, cols], y [cols, rows], both with contiguous rows; y must not overlap x.
///
/// T: float, f16, bf16, and every integer of 8 to 32 bits; the bits are moved unchanged. Any sizes and row strides;
/// 16-byte accesses on both sides (8-byte ones of one-byte elements) where the matrices are aligned and their sizes and
/// strides divisible by 16. Memory traffic: one read and one write. Errors: UserError where y's shape is not x's with
/// its sides exchanged, or y begins where x does; see also matrix.h. Example: `lib::transpose<bf16>(stream, {x, {rows,
/// cols}}, {y, {cols, rows}});`
template <Element T>
requires(sizeof(T) <= 4) void transpose(On, Matrix<const T> x, Matrix<T> y);

}  // namespace kiln::lib

// Products of matrices.
#pragma once
#include "dsl/lang/tile.h"

namespace kiln {

/// acc + a · b over the last two axes: a [.., M, K], b [.., K, N], acc [.., M, N]; the axes before them are batches and
/// must be equal. M, N and K are any extents from 1 on.
/// Dtypes: acc is f32 or f64 (of float operands, 8-bit ones included) or i32, u32, i64, u64 (of integers); a and b may
/// differ, as long as acc's dtype holds both.
/// Numerics: elements are converted to acc's dtype, which is exact, and added along k in order. f32 and f64 operands:
/// one fma a step, so the result is the same everywhere. Integers wrap, the result is exact modulo 2^bits. 8- and
/// 16-bit floats: within K · 2^-23 · (|acc| + |a| · |b|). Errors: UserError with all types where ranks, extents or
/// dtypes do not fit. Example: `acc = dot(load(a + m * K + k), load(b + k * N + n), acc)`.
[[nodiscard]] Tile dot(const Tile& a, const Tile& b, const Tile& acc, RawLoc l = RawLoc::current());
/// The same with an acc of zeros: f64 if an operand is, f32 for other floats; i64 (u64 beside a u64) if an operand has
/// 64 bits, i32 for other integers.
[[nodiscard]] Tile dot(const Tile& a, const Tile& b, RawLoc l = RawLoc::current());

}  // namespace kiln

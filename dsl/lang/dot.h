// Products of matrices.
#pragma once
#include "dsl/lang/tile.h"

namespace kiln {

/// What f32 elements of a product are multiplied as; it matters where both operands are f32.
///   exact    f32 itself: one fma a step, on the CUDA cores
///   tf32     10 bits of mantissa, rounded to nearest, ties either way: error of a product 2^-10 of it
///   tf32x3   each element as the sum of two tf32, without the product of the two small parts: 2^-20
///   bf16x3   the same with bf16: 2^-15
/// Elements that are infinite, or so large that rounding makes them so, give NaN in the last two.
enum class Precision : std::uint8_t { exact, tf32, tf32x3, bf16x3 };

struct DotOptions {
  Precision precision = Precision::exact;
  /// Positions along k after which a sum of its own is added to the accumulator, a multiple of 32; 0: none. Tensor
  /// cores keep fewer than f32's bits while they add products of 8-bit floats: 128 bounds that by 128 · 2^-13 and costs
  /// an addition of each sum every 128 positions. Matters for f32 accumulators on tensor cores.
  int promote = 0;
};

/// acc + a · b over the last two axes: a [.., M, K], b [.., K, N], acc [.., M, N]; the axes before them are batches and
/// must be equal. M, N and K are any extents from 1 on.
/// Dtypes: acc is f32 or f64 (of float operands, 8-bit ones included) or i32, u32, i64, u64 (of integers); a and b may
/// differ, as long as acc's dtype holds both.
/// Numerics: elements are converted to acc's dtype, which is exact, and added along k in order. f32 and f64 operands:
/// one fma a step, so the result is the same everywhere (f32: unless `options` says otherwise). Integers wrap, the
/// result is exact modulo 2^bits. 8- and 16-bit floats: on tensor cores, within K · 2^-22 · (|acc| + |a| · |b|); 8-bit
/// floats in pairs keep 13 bits of a sum while it is added: K · 2^-13 at worst, see `promote`. Errors: UserError with
/// all types where ranks, extents or dtypes do not fit, and for a `promote` that is negative or no multiple of 32.
/// Example: `acc = dot(load(a + m * K + k), load(b + k * N + n), acc)`, `dot(x, y, acc, {.precision =
/// Precision::tf32})`.
[[nodiscard]] Tile dot(const Tile& a, const Tile& b, const Tile& acc, DotOptions options = {},
                       RawLoc l = RawLoc::current());
/// The same with an acc of zeros: f64 if an operand is, f32 for other floats; i64 (u64 beside a u64) if an operand has
/// 64 bits, i32 for other integers.
[[nodiscard]] Tile dot(const Tile& a, const Tile& b, DotOptions options = {}, RawLoc l = RawLoc::current());

}  // namespace kiln

// Products of matrices with what comes before and after them in the same kernel.
//
//   lib::linear<bf16>({x, {M, K}}, {w, {N, K}})
//       .then(epilogue::bias<bf16>({b, {N}}))
//       .then(epilogue::relu)
//       .then([](Tile acc, Tile r) { return acc * 2 + r; }, lib::per_element<bf16>({r, {M, N}}))
//       .run(stream, {y, {M, N}});
//
// A chain begins with the sums of products, tiles of f32 (of f64 where an operand is, of i32 for integers); what comes
// out of it is rounded to y's type. Stages are functions of tiles, ready-made (epilogue.h) or the caller's (chain.h);
// extra.h has the tensors that they may take.
#pragma once
#include "dsl/lib/linear_product.h"

namespace kiln::lib {

/// y = x · wᵀ as one kernel, with stages `.then(…)`, launched by `.run(stream, y)`; w is stored as in torch's Linear.
///
/// Shapes: x [M, K], w [N, K], y [M, N] (N / 2 behind swiglu). Any sizes and strides: of an array stored as [K, N] the
/// view is {w, {N, K}, {1, N}}. Without rows or columns nothing is launched, without K the sums are 0.
/// Dtypes: X and W are any floats, 8-bit ones included, or integers up to 32 bits; W narrower than X is converted to X
/// in registers (exactly), Int4 are two weights a byte. Sums are f32, f64 where an operand is, i32 of integers.
/// Numerics: f32 and f64 operands are one fma a step in the order of k, never tf32 unless the options name a precision;
/// integers are exact modulo 2^32; 16-bit floats, also beside narrower weights, are within (K + 2) · 2^-22 · Σ |x| |w|
/// of the exact sum; 8-bit floats in pairs: see the options. The same call gives the same bits every time.
///
/// In place: y may be a tensor of the chain element by element (a residual), nothing else that is read.
///
/// Errors: UserError at the line of run() where sizes do not fit (it names both), y overlaps what other programs read,
/// or an array reaches beyond its buffer; where a stage returns a tile of other extents, at this line.
template <chain::Multiplied X, chain::Multiplied W = X>
requires(!std::same_as<X, Int4>) auto linear(Matrix<const X> x, Matrix<const chain::Stored<W>> w,
                                             const LinearOptions& o = {}, RawLoc at = RawLoc::current()) {
  using O = chain::Operands<X, W, 2, 2, chain::Chain<1>, false, false>;
  return Linear<chain::Plain<O>, chain::Chain<1>>({O{x, w, {{}, at}, {}, o}}, {{}, at});
}

/// y[b] = x[b] · w[b]ᵀ: x [B, M, K], w [B, N, K], y [B, M, N]; one w for all has a stride of 0 in front. As linear()
/// otherwise; per_group and per_group_column tensors have an element or row for each b, others are for all.
template <chain::Multiplied X, chain::Multiplied W = X>
requires(!std::same_as<X, Int4>) auto linear_batched(Cube<const X> x, Cube<const chain::Stored<W>> w,
                                                     const LinearOptions& o = {}, RawLoc at = RawLoc::current()) {
  using O = chain::Operands<X, W, 3, 3, chain::Chain<1>, false, false>;
  return Linear<chain::Batched<O>, chain::Chain<1>>({O{x, w, {{}, at}, {}, o}}, {{}, at});
}

/// Rows offsets[g] to offsets[g + 1] - 1 of y are those of x times w[g]ᵀ: x [M, K], w [G, N, K], offsets (int32) [G +
/// 1] in device memory, y [M, N]. For mixtures of experts: x sorted by expert. Offsets must not decrease; rows of no
/// group are not written, a group may be empty. per_group and per_group_column tensors have an element or row for each
/// g. As linear() otherwise.
template <chain::Multiplied X, chain::Multiplied W = X>
requires(!std::same_as<X, Int4>) auto linear_grouped(Matrix<const X> x, Cube<const chain::Stored<W>> w,
                                                     Vector<const std::int32_t> offsets, const LinearOptions& o = {},
                                                     RawLoc at = RawLoc::current()) {
  using O = chain::Operands<X, W, 2, 3, chain::Chain<1>, false, false>;
  return Linear<chain::Grouped<O>, chain::Chain<1>>({O{x, w, {{}, at}, {}, o}, offsets}, {{}, at});
}

}  // namespace kiln::lib

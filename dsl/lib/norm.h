// Normalisations of the rows of a matrix: layernorm, rmsnorm, and rmsnorm of a sum.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// y[r, c] = (x[r, c] - mean_r) / sqrt(variance_r + eps) * weight[c] + bias[c], variance the mean square distance from
/// the mean. x, y [rows, cols], weight, bias [cols], all of T; f32 between load and store.
///
/// Numerics: mean and variance are of the distances from the row's first element, so that nothing cancels where the
/// mean is far greater than the deviation. Results are within 1 ulp of T, and 4e-6 of the greatest normalised element
/// of the row times the weight, of the exact ones; a constant row gives the bias. Σ_k (x[r, k] - mean_r)² must fit f32:
/// a row that reaches beyond gives the bias, or NaN. NaN and inf make their row NaN. Memory traffic: one read, one
/// write; rows longer than kLongestTile are read three times. Example: `lib::layernorm<bf16>(stream, {x, {rows, cols}},
/// {weight, {cols}}, {bias, {cols}}, {y, {rows, cols}});`
template <Real T>
void layernorm(On, Matrix<const T> x, Vector<const T> weight, Vector<const T> bias, Matrix<T> y, float eps = 1e-5f);

/// y[r, c] = x[r, c] / sqrt(Σ_k x[r, k]² / cols + eps) * weight[c]. Shapes as layernorm; a long row is read twice.
///
/// Numerics: each result is within 1 ulp of T and relative 4e-6 of the exact one. Where the sum of squares does not fit
/// f32 the row is 0; so it is beside an inf, which itself gives NaN; NaN makes its row NaN. Source: Zhang and Sennrich,
/// "Root mean square layer normalization" (2019).
template <Real T>
void rmsnorm(On, Matrix<const T> x, Vector<const T> weight, Matrix<T> y, float eps = 1e-6f);

/// sum[r, c] = x[r, c] + residual[r, c], rounded to T, and y = rmsnorm of that sum. sum may be the memory of x or of
/// residual. Example: `lib::add_rmsnorm<bf16>(stream, {x, s}, {residual, s}, {weight, {cols}}, {sum, s}, {y, s});`
template <Real T>
void add_rmsnorm(On, Matrix<const T> x, Matrix<const T> residual, Vector<const T> weight, Matrix<T> sum, Matrix<T> y,
                 float eps = 1e-6f);

}  // namespace kiln::lib

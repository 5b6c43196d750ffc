// Normalisations of the rows of a matrix: layernorm, rmsnorm, and rmsnorm of a sum.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// y[r, c] = (x[r, c] - mean_r) / sqrt(variance_r + eps) * weight[c] + bias[c], variance the mean square distance from
/// the mean. x, y [rows, cols], weight, bias [cols], all of T; f32 between load and store.
///
/// Numerics: the variance is computed about the mean (no cancellation); results within 2 ulp of T (f32: 1e-5 of the
/// row's largest) of the exact ones. NaN and inf make their row NaN. Memory traffic: one read, one write; rows longer
/// than kLongestTile are read three times. Example: `lib::layernorm<bf16>(stream, {x, {rows, cols}}, {weight, {cols}},
/// {bias, {cols}}, {y, {rows, cols}});`
template <Real T>
void layernorm(On, Matrix<const T> x, Vector<const T> weight, Vector<const T> bias, Matrix<T> y, float eps = 1e-5f);

/// y[r, c] = x[r, c] / sqrt(Σ_k x[r, k]² / cols + eps) * weight[c]. Shapes and numerics as layernorm; a long row is
/// read twice. Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
template <Real T>
void rmsnorm(On, Matrix<const T> x, Vector<const T> weight, Matrix<T> y, float eps = 1e-6f);

/// sum[r, c] = x[r, c] + residual[r, c], rounded to T, and y = rmsnorm of that sum. sum may be the memory of x or of
/// residual. Example: `lib::add_rmsnorm<bf16>(stream, {x, s}, {residual, s}, {weight, {cols}}, {sum, s}, {y, s});`
template <Real T>
void add_rmsnorm(On, Matrix<const T> x, Matrix<const T> residual, Vector<const T> weight, Matrix<T> sum, Matrix<T> y,
                 float eps = 1e-6f);

}  // namespace kiln::lib

// Sums: of a whole array, and running along rows.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// out[0] = Σ_i x[i]; x [n] of T, out [1] of float; 0 for n = 0.
///
/// Numerics: f32; the same bits at every launch. |error| <= 2^-24 · (n / 2^26 + 96) · Σ |x[i]|. Memory traffic: one
/// read, in two kernels.
///
/// The sums of the programs meet in `workspace`: at least kSumWorkspace floats that hold nothing of worth, and that no
/// other stream uses meanwhile. Without one a buffer is taken from the stream's pool, which a stream that is captured
/// into a graph has not. Errors: UserError for an out of another size than 1, a workspace that is too small, or none
/// while the stream is captured; see also matrix.h. Example: `lib::sum_all<float>(stream, {x, {n}}, {out, {1}});`
template <Real T>
void sum_all(On, Vector<const T> x, Vector<float> out, Vector<float> workspace);
template <Real T>
void sum_all(On, Vector<const T> x, Vector<float> out);

/// Floats that sum_all needs.
inline constexpr std::int64_t kSumWorkspace = 4096;

/// y[r, c] = Σ_(k <= c) x[r, k]; x, y [rows, cols] of T.
///
/// Numerics: summed in f32, rounded once to T; |error| <= 2^-24 · (c / 2048 + 32) · Σ_(k <= c) |x[r, k]| before that
/// rounding. What follows a NaN in its row is NaN. Memory traffic: one read and one write; a row is one program's, so
/// few rows use few multiprocessors. Example: `lib::cumsum<float>(stream, {x, {rows, cols}}, {y, {rows, cols}});`
template <Real T>
void cumsum(On, Matrix<const T> x, Matrix<T> y);

}  // namespace kiln::lib

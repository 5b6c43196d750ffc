// Softmax and its logarithm over the rows of a matrix.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// y[r, c] = e^x[r, c] / Σ_k e^x[r, k], x and y [rows, cols] of T; no overflow, whatever the values.
///
/// Numerics: f32 between load and store; each result within 2 ulp of T (f32: 1e-6 relative) of the exact one. -inf
/// gives 0; a row of -inf throughout, or one that holds NaN or +inf, gives NaN. Memory traffic: one read and one write
/// of the matrix; rows longer than kLongestTile are read twice. Source: Milakov and Gimelshein, "Online normalizer
/// calculation for softmax" (2018), for the long ones. Example: `lib::softmax<bf16>(stream, {x, {rows, cols}}, {y,
/// {rows, cols}});`
template <Real T>
void softmax(On, Matrix<const T> x, Matrix<T> y);

/// y[r, c] = x[r, c] - log Σ_k e^x[r, k]; as softmax, but -inf stays -inf.
template <Real T>
void log_softmax(On, Matrix<const T> x, Matrix<T> y);

}  // namespace kiln::lib

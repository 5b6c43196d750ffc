// Softmax and its logarithm over the rows of a matrix.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// y[r, c] = e^x[r, c] / Σ_k e^x[r, k], x and y [rows, cols] of T; no overflow, whatever the values.
///
/// Numerics: f32 between load and store. Each result is within 1 ulp of T of the exact one; f32: relative 1e-6, and
/// 2^-24 times the distance of x from its row's largest, which is rounded. Results below 2^-126 may be 0. -inf gives 0;
/// a row of -inf throughout, or one that holds NaN or +inf, gives NaN. Memory traffic: one read and one write of the
/// matrix; rows longer than kLongestTile are read twice. Source: Milakov and Gimelshein, "Online normalizer calculation
/// for softmax" (2018), for the long ones. Example: `lib::softmax<bf16>(stream, {x, {rows, cols}}, {y, {rows, cols}});`
template <Real T>
void softmax(On, Matrix<const T> x, Matrix<T> y);

/// y[r, c] = x[r, c] - log Σ_k e^x[r, k]. As softmax, but -inf stays -inf, and results are within 1 ulp of T (f32:
/// 2^-23 relative) plus 1e-6, however far from 0 the row lies.
template <Real T>
void log_softmax(On, Matrix<const T> x, Matrix<T> y);

}  // namespace kiln::lib

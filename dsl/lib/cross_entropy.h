// Cross-entropy of rows of logits against one right column each, with and without its gradient.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// loss[r] = log Σ_k e^logits[r, k] - logits[r, target[r]]; logits [rows, cols] of T, target [rows], loss [rows] of
/// float.
///
/// A target equal to ignore_index gives 0, whatever its row holds; ignore_index may be a column. Any other target
/// outside [0, cols) gives NaN and is never used as an address.
///
/// Numerics: f32, of any width, without overflow; |error| <= 1e-5 · (1 + loss) for f16 and bf16, 2e-6 · (1 + loss) for
/// float. -inf counts nothing; a row that holds NaN or +inf, or of -inf throughout, gives NaN.
///
/// Memory traffic: one read of the logits. Source: Milakov and Gimelshein, "Online normalizer calculation for softmax"
/// (2018). Errors: UserError where target or loss do not have `rows` contiguous elements; see also matrix.h. Example:
/// `lib::cross_entropy<bf16>(stream, {logits, {rows, cols}}, {target, {rows}}, {loss, {rows}});`
template <Real T>
void cross_entropy(On, Matrix<const T> logits, Vector<const std::int64_t> target, Vector<float> loss,
                   std::int64_t ignore_index = -100);

/// The same, and the logits are overwritten by the gradient of scale · Σ_r loss[r]:
///
///     logits[r, c] = (e^logits[r, c] / Σ_k e^logits[r, k] - (c == target[r])) · scale
///
/// scale is 1 / rows for a mean. A row whose target is ignored gets 0 throughout; another target outside of the columns
/// makes its row NaN. Numerics: f32 between load and store; within 2 ulp of T, or 4e-6 · |scale|, of the exact
/// gradient. Memory traffic: two reads and one write of the logits, in one kernel. Example:
/// `lib::cross_entropy_gradient<bf16>(stream, {logits, {rows, cols}}, {target, {rows}}, {loss, {rows}}, 1.f / rows);`
template <Real T>
void cross_entropy_gradient(On, Matrix<T> logits, Vector<const std::int64_t> target, Vector<float> loss, float scale,
                            std::int64_t ignore_index = -100);

}  // namespace kiln::lib

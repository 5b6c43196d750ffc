// Fused functions of single elements: dropout, SwiGLU, GELU with its neighbours, and a step of AdamW.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// y[i] = x[i] / (1 - p) with probability 1 - p, else 0; x, y [n] of T.
///
/// What is kept is a function of seed and i alone, the same on every device: element i is kept where the number r_i is
/// not below p. r_i is word i % 4 of Philox4x32-10 with counter i / 4 and the seed as key (dsl/lang/random.h), scaled
/// to a multiple of 2^-24 in [0, 1). So the backward pass is the same call with the gradient as x, and no mask is
/// stored. Numerics: x · float(1 / (1 - p)) in f32, rounded to T; what is dropped is +0, NaN too. Memory traffic: one
/// read and one write. Errors: UserError for a p outside [0, 1); see also matrix.h. Example:
/// `lib::dropout<bf16>(stream, {x, {n}}, {y, {n}}, 0.1, seed);`
template <Real T>
void dropout(On, Vector<const T> x, Vector<T> y, double p, std::uint64_t seed);

/// y[r, c] = silu(a[r, c]) · b[r, c] with silu(a) = a / (1 + e^-a); a, b, y [rows, cols] of T. a and b may be the
/// halves of wider rows.
///
/// Numerics: f32 between load and store; within 2 ulp of T (f32: 4 ulp). Memory traffic: two reads and one write.
/// Source: Shazeer, "GLU variants improve transformer" (2020). Example: `lib::swiglu<bf16>(stream, {a, s}, {b, s}, {y,
/// s});` or, of one array of rows [a, b], `lib::swiglu<bf16>(stream, {ab, s, {2 * cols, 1}}, {b_part, s, {2 * cols,
/// 1}}, …)`.
template <Real T>
void swiglu(On, Matrix<const T> a, Matrix<const T> b, Matrix<T> y);

/// y[r, c] = gelu(x[r, c] + bias[c]) · scale[r] + residual[r, c] with the tanh form of gelu; x, residual, y [rows,
/// cols], bias [cols], scale [rows], all of T.
///
/// Numerics: f32 between load and store, the last product and sum rounded once; within 2 ulp of T of the largest term
/// (f32: 4). Memory traffic: two reads and one write; bias and scale come from the L2 cache. Source: Hendrycks and
/// Gimpel, "Gaussian error linear units" (2016). Example: `lib::gelu_bias_scale_residual<bf16>(stream, {x, s}, {bias,
/// {cols}}, {scale, {rows}}, {residual, s}, {y, s});`
template <Real T>
void gelu_bias_scale_residual(On, Matrix<const T> x, Vector<const T> bias, Vector<const T> scale,
                              Matrix<const T> residual, Matrix<T> y);

/// What a step of AdamW is told, with the usual values.
struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
};

/// Step number `step` (the first is 1) of AdamW, in place; param [n] of T, grad [n] of T, m and v [n] of float, 0
/// before the first step:
///
///     m = beta1 · m + (1 - beta1) · grad              v = beta2 · v + (1 - beta2) · grad²
///     param = param · (1 - lr · weight_decay) - lr · (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)
///
/// Numerics: the coefficients are computed in double on the host, the rest in f32; param is rounded to T once, to
/// nearest. Memory traffic: reads all four, writes all but grad. Errors: UserError for a step below 1, a beta outside
/// [0, 1), a negative or NaN eps, lr or weight_decay; see also matrix.h. Source: Loshchilov and Hutter, "Decoupled
/// weight decay regularization" (2019). Example: `lib::adam_step<float>(stream, {param, {n}}, {grad, {n}}, {m, {n}},
/// {v, {n}}, {.lr = 3e-4}, step);`
template <Real T>
void adam_step(On, Vector<T> param, Vector<const T> grad, Vector<float> m, Vector<float> v, const AdamW&,
               std::int64_t step);

}  // namespace kiln::lib

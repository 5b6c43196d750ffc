// Rotary position embedding.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// {x, {tokens, heads, dim}} or, with strides, {x, {tokens, heads, dim}, {token_stride, head_stride, 1}}.
template <class T>
using Heads = typename Param<View<T, 3>>::Host;

/// Which elements of a head turn together: i with i + dim / 2, or 2i with 2i + 1.
enum class Pairs : std::uint8_t { halves, interleaved };

/// Turns pair i of every head of token t by the angle of the token's position p:
///
///     y_a = x_a · cosines[p, i] - x_b · sines[p, i]        y_b = x_b · cosines[p, i] + x_a · sines[p, i]
///
/// x, y [tokens, heads, dim] of T with an even dim of contiguous elements, y may be x; cosines, sines [known positions,
/// dim / 2] of float; positions [tokens], without them p = t. A position outside the tables makes its token NaN, and
/// nothing is read there.
///
/// Numerics: f32 between load and store: two products and their sum, each rounded, then T. Memory traffic: one read and
/// one write; the tables once a token. Source: Su et al., "RoFormer" (2021). Errors: UserError where shapes do not fit,
/// an odd dim, elements of a head that are not contiguous; see also matrix.h. Example: `lib::rope<bf16>(stream, {q, s},
/// {cosines, {4096, 64}}, {sines, {4096, 64}}, {positions, {tokens}}, {q, s}, lib::Pairs::interleaved);`
template <Real T>
void rope(On, Heads<const T> x, Matrix<const float> cosines, Matrix<const float> sines,
          Vector<const std::int32_t> positions, Heads<T> y, Pairs = Pairs::halves);
template <Real T>
void rope(On, Heads<const T> x, Matrix<const float> cosines, Matrix<const float> sines, Heads<T> y,
          Pairs = Pairs::halves);

}  // namespace kiln::lib

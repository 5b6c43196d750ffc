// Math on tiles and scalars: one function for each Float and Math row of the op table (backend/ir/ops.def), which
// states its meaning and error bound.
//
//   exp exp2 log log2 sqrt rsqrt sin cos tanh erf sigmoid silu gelu gelu_tanh floor ceil trunc round   f(x)
//   pow(x, y)   fma(x, y, z)
//
// Dtypes: f16, bf16 and f32 (the exact ones f64 too); f16 and bf16 are computed in f32 and rounded once more. Operands
// of pow and fma are promoted and broadcast like those of operators, and may be C++ numbers. `kiln::fast::exp(x)` is
// the hardware's approximation, for the rows that are not exact, for sqrt and for division (`fast::div(x, y)`); f64, of
// which the hardware approximates nothing, keeps the exact form. Errors: UserError at the caller's line for an operand
// that is not floating.
#pragma once
#include "dsl/lang/tile.h"

namespace kiln {

// The overloads of one function by arity, the mix of operands as for operators.
#define KILN_DECLARE_1(name)                                            \
  [[nodiscard]] Tile name(const Tile& x, RawLoc l = RawLoc::current()); \
  [[nodiscard]] Scalar name(const Scalar& x, RawLoc l = RawLoc::current());
#define KILN_DECLARE_2(name)                          \
  [[nodiscard]] Tile name(const Tile& x, Arg y);      \
  [[nodiscard]] Tile name(SArg x, const Tile& y);     \
  [[nodiscard]] Scalar name(const Scalar& x, SArg y); \
  [[nodiscard]] Scalar name(CArg x, const Scalar& y);
#define KILN_DECLARE_3(name)                                  \
  [[nodiscard]] Tile name(const Tile& x, Arg y, Arg z);       \
  [[nodiscard]] Tile name(SArg x, const Tile& y, Arg z);      \
  [[nodiscard]] Tile name(SArg x, SArg y, const Tile& z);     \
  [[nodiscard]] Scalar name(const Scalar& x, SArg y, SArg z); \
  [[nodiscard]] Scalar name(CArg x, const Scalar& y, SArg z); \
  [[nodiscard]] Scalar name(CArg x, CArg y, const Scalar& z);
// Which rows are functions, by type rule; those of the other rules are operators, or stand in ops.h.
#define KILN_FUNCTION_Float(name, arity) KILN_DECLARE_##arity(name)
#define KILN_FUNCTION_Math(name, arity) KILN_DECLARE_##arity(name)
#define KILN_FUNCTION_Num(name, arity)
#define KILN_FUNCTION_Int(name, arity)
#define KILN_FUNCTION_Bits(name, arity)
#define KILN_FUNCTION_Cmp(name, arity)
#define KILN_EW(Enum, mnemonic, arity, rule, ...) KILN_FUNCTION_##rule(mnemonic, arity)
#include "backend/ir/ops.def"

/// The hardware's approximations: fewer instructions, bounds in docs/semantics.md.
namespace fast {
// Which rows have one, by exactness.
#define KILN_FAST_Exact(name, arity)
#define KILN_FAST_ExactOrFast(name, arity) KILN_DECLARE_##arity(name)
#define KILN_FAST_Ulp(n) KILN_FAST_ExactOrFast
#define KILN_FAST_Rel(n) KILN_FAST_ExactOrFast
#define KILN_EW(Enum, mnemonic, arity, rule, exactness, ...) KILN_FAST_##exactness(mnemonic, arity)
#include "backend/ir/ops.def"
#undef KILN_FAST_Exact
#undef KILN_FAST_ExactOrFast
#undef KILN_FAST_Ulp
#undef KILN_FAST_Rel
}  // namespace fast

#undef KILN_FUNCTION_Float
#undef KILN_FUNCTION_Math
#undef KILN_FUNCTION_Num
#undef KILN_FUNCTION_Int
#undef KILN_FUNCTION_Bits
#undef KILN_FUNCTION_Cmp
#undef KILN_DECLARE_1
#undef KILN_DECLARE_2
#undef KILN_DECLARE_3

}  // namespace kiln

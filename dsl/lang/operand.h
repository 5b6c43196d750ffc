// Operands: what a user may write on either side of an operator, and where it was written.
//
// Operators take no default arguments, but the converting constructor of an operand may: its RawLoc default is
// evaluated at the operator. So each operator overload has exactly one converting parameter, and that one knows the
// user's line.
//   CArg   a C++ number or a Const
//   SArg   … or a Scalar
//   Arg    … or a Tile
#pragma once
#include <bit>
#include <concepts>
#include <limits>
#include <type_traits>

#include "dsl/lang/handle.h"

namespace kiln {

class Scalar;
class Tile;

/// C++ numbers that may stand in traced expressions.
template <class T>
concept Arithmetic = std::is_arithmetic_v<T> && !std::same_as<T, long double>;

/// A kernel parameter whose value is part of the specialisation key: an ordinary C++ value while tracing.
/// T: an integer, bool, enum or floating-point type. Example: `[](Out<float> c, Const<int> BLOCK) { … arange(BLOCK) …
/// }`.
template <class T>
struct Const {
  static_assert(std::is_enum_v<T> || Arithmetic<T>,
                "kiln: Const<T> needs an integer, bool, enum or floating-point type");
  using value_type = T;
  T value{};
  constexpr Const() = default;
  constexpr Const(T v) : value(v) {}
  constexpr operator T() const { return value; }
};
template <class T>
Const(T) -> Const<T>;

// Two Consts are two C++ numbers; without these, the operators of Scalars are candidates, too.
#define KILN_BINARY(sym, op)                                              \
  template <Arithmetic A, Arithmetic B>                                   \
  constexpr auto operator sym(Const<A> a, Const<B> b) requires requires { \
    a.value sym b.value;                                                  \
  }                                                                       \
  { return a.value sym b.value; }
#define KILN_COMPOUND(sym, op)
#include "dsl/lang/operators.def"

namespace detail {

/// A C++ number before it takes the dtype of its context. `own` is its dtype where there is none: i1, i32, i64, u64
/// (the first that holds it) or f32. bits: two's complement, or the bits of the double.
struct Number {
  DType own = DType::i32;
  std::uint64_t bits = 0;

  template <Arithmetic T>
  static constexpr Number of(T v) {
    if constexpr (std::same_as<T, bool>) {
      return {DType::i1, v};
    } else if constexpr (std::floating_point<T>) {
      return {DType::f32, std::bit_cast<std::uint64_t>(double(v))};
    } else {
      const bool small = v <= T(std::numeric_limits<std::int32_t>::max()) || sizeof(T) < 4;
      const bool in_i32 = std::is_signed_v<T> ? std::int64_t(v) == std::int32_t(v) : small;
      const bool in_i64 =
          std::is_signed_v<T> || std::uint64_t(v) <= std::uint64_t(std::numeric_limits<std::int64_t>::max());
      return {in_i32 ? DType::i32 : in_i64 ? DType::i64 : DType::u64, std::uint64_t(v)};
    }
  }
};

/// A variable (handle) or a number, and the place where it was written.
struct Operand {
  const Handle* handle = nullptr;
  Number number;
  SourceLoc at;
  Operand(const Handle& h, SourceLoc l) : handle(&h), at(l) {}
  Operand(Number n, SourceLoc l) : number(n), at(l) {}
};

}  // namespace detail

struct CArg : detail::Operand {
  template <Arithmetic T>
  CArg(T v, RawLoc l = RawLoc::current()) : Operand(detail::Number::of(v), l) {}
  template <Arithmetic T>
  CArg(Const<T> c, RawLoc l = RawLoc::current()) : Operand(detail::Number::of(c.value), l) {}
};
struct SArg : detail::Operand {
  template <Arithmetic T>
  SArg(T v, RawLoc l = RawLoc::current()) : Operand(detail::Number::of(v), l) {}
  template <Arithmetic T>
  SArg(Const<T> c, RawLoc l = RawLoc::current()) : Operand(detail::Number::of(c.value), l) {}
  SArg(const Scalar& s, RawLoc l = RawLoc::current());
};
struct Arg : detail::Operand {
  template <Arithmetic T>
  Arg(T v, RawLoc l = RawLoc::current()) : Operand(detail::Number::of(v), l) {}
  template <Arithmetic T>
  Arg(Const<T> c, RawLoc l = RawLoc::current()) : Operand(detail::Number::of(c.value), l) {}
  Arg(const Scalar& s, RawLoc l = RawLoc::current());
  Arg(const Tile& t, RawLoc l = RawLoc::current());
  explicit Arg(const SArg& s) : Operand(s) {}
};
// Unary operators take these, only for the line.
struct ScalarRef : detail::Operand {
  ScalarRef(const Scalar& s, RawLoc l = RawLoc::current());
};
struct TileRef : detail::Operand {
  TileRef(const Tile& t, RawLoc l = RawLoc::current());
};

}  // namespace kiln

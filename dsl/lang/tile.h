// Tile and Scalar: what kernel authors compute with, and their operators.
//
// Operands of different dtypes are promoted (dsl/lang/promote.h); a C++ number takes the dtype of the other side.
// Shapes broadcast from the right: a missing axis or an extent of 1 is repeated. i1 takes part in no arithmetic. Errors
// carry the line of the operator.
#pragma once
#include <initializer_list>
#include <vector>

#include "backend/ir/op.h"
#include "dsl/lang/operand.h"

namespace kiln {

namespace detail {
// Everything a use of an operator costs a user's object file is one call.
Made constant(const Operand&);  // a number of its own dtype
Made binary(ir::Op, const Operand& a, const Operand& b, SourceLoc at, bool fast = false);
Made unary(ir::Op, const Operand& a, SourceLoc at, bool fast = false);
Made logical_not(const Operand& a);
Made cast(const Handle&, DType, bool saturate, SourceLoc);
Made bitcast(const Handle&, DType, SourceLoc);
void assign_binary(Scalar& a, ir::Op, const Operand& b);  // a = a op b
}  // namespace detail

/// One extent of a shape: any C++ integer, x.extent(0) among them, or a Const of one; never a traced value.
struct Extent {
  std::int64_t value;
  template <std::integral T>
  Extent(T v) : value(std::int64_t(v)) {}
  template <std::integral T>
  Extent(Const<T> v) : value(std::int64_t(v.value)) {}
  operator std::int64_t() const { return value; }
};

/// Extents of a tile.
class Shape {
 public:
  Shape(std::initializer_list<Extent> extents) : extents_(extents.begin(), extents.end()) {}
  explicit Shape(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {}
  int rank() const { return int(extents_.size()); }
  std::int64_t operator[](int axis) const { return extents_.at(std::size_t(axis)); }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::int64_t> extents_;
};

/// One run-time value (or pointer) of a program. `Scalar s = 0` declares an i32 variable, `0.f` (or 0.0) an f32, `true`
/// an i1; a C++ integer that needs 64 bits gives i64 (or u64).
class Scalar : public Handle {
 public:
  Scalar() = default;
  Scalar(const Scalar&) = default;
  explicit Scalar(detail::Made m) : Handle(m) {}
  template <Arithmetic T>
  Scalar(T v, RawLoc l = RawLoc::current()) : Handle(detail::constant(CArg(v, l))) {}
  template <Arithmetic T>
  Scalar(Const<T> v, RawLoc l = RawLoc::current()) : Handle(detail::constant(CArg(v, l))) {}
  Scalar& operator=(const Scalar& o) & { return assign(o), *this; }

  /// The value converted to `d`: integers wrap; float results round to nearest even, once; float to integer truncates,
  /// saturates, and gives 0 for NaN; to i1: x != 0.
  [[nodiscard]] Scalar cast(DType d, RawLoc l = RawLoc::current()) const {
    return Scalar(detail::cast(*this, d, false, l));
  }
  template <Element T>
  [[nodiscard]] Scalar cast(RawLoc l = RawLoc::current()) const {
    return cast(dtype_of<T>, l);
  }
  /// As cast, but a float result is clamped to the largest finite value instead of overflowing; NaN stays NaN.
  [[nodiscard]] Scalar cast_sat(DType d, RawLoc l = RawLoc::current()) const {
    return Scalar(detail::cast(*this, d, true, l));
  }
  template <Element T>
  [[nodiscard]] Scalar cast_sat(RawLoc l = RawLoc::current()) const {
    return cast_sat(dtype_of<T>, l);
  }
  /// The same bits read as another dtype of the same width.
  [[nodiscard]] Scalar bitcast(DType d, RawLoc l = RawLoc::current()) const {
    return Scalar(detail::bitcast(*this, d, l));
  }
  template <Element T>
  [[nodiscard]] Scalar bitcast(RawLoc l = RawLoc::current()) const {
    return bitcast(dtype_of<T>, l);
  }
};

/// A run-time tile; its dtype and shape are C++ values while tracing.
class Tile : public Handle {
 public:
  Tile() = default;
  Tile(const Tile&) = default;
  explicit Tile(detail::Made m) : Handle(m) {}
  Tile& operator=(const Tile& o) & { return assign(o), *this; }

  int rank(RawLoc l = RawLoc::current()) const { return shape(l).rank(); }
  /// Extent along `axis`; a negative axis counts from the last.
  std::int64_t extent(int axis, RawLoc l = RawLoc::current()) const;
  Shape shape(RawLoc l = RawLoc::current()) const;

  /// Conversions: see Scalar.
  [[nodiscard]] Tile cast(DType d, RawLoc l = RawLoc::current()) const {
    return Tile(detail::cast(*this, d, false, l));
  }
  template <Element T>
  [[nodiscard]] Tile cast(RawLoc l = RawLoc::current()) const {
    return cast(dtype_of<T>, l);
  }
  [[nodiscard]] Tile cast_sat(DType d, RawLoc l = RawLoc::current()) const {
    return Tile(detail::cast(*this, d, true, l));
  }
  template <Element T>
  [[nodiscard]] Tile cast_sat(RawLoc l = RawLoc::current()) const {
    return cast_sat(dtype_of<T>, l);
  }
  [[nodiscard]] Tile bitcast(DType d, RawLoc l = RawLoc::current()) const { return Tile(detail::bitcast(*this, d, l)); }
  template <Element T>
  [[nodiscard]] Tile bitcast(RawLoc l = RawLoc::current()) const {
    return bitcast(dtype_of<T>, l);
  }
};

inline SArg::SArg(const Scalar& s, RawLoc l) : Operand(s, l) {}
inline Arg::Arg(const Scalar& s, RawLoc l) : Operand(s, l) {}
inline Arg::Arg(const Tile& t, RawLoc l) : Operand(t, l) {}
inline ScalarRef::ScalarRef(const Scalar& s, RawLoc l) : Operand(s, l) {}
inline TileRef::TileRef(const Tile& t, RawLoc l) : Operand(t, l) {}

// Four overloads cover every mix of operands without ambiguity. On a pointer, + and - take an integer and count
// elements.
#define KILN_BINARY(sym, op)                                  \
  [[nodiscard]] Tile operator sym(const Tile& a, Arg b);      \
  [[nodiscard]] Tile operator sym(SArg a, const Tile& b);     \
  [[nodiscard]] Scalar operator sym(const Scalar& a, SArg b); \
  [[nodiscard]] Scalar operator sym(CArg a, const Scalar& b);
#define KILN_COMPOUND(sym, op)                             \
  Tile& operator sym##=(Tile& a, Arg b);                   \
  template <std::derived_from<Scalar> S>                   \
  S& operator sym##=(S& a, std::type_identity_t<SArg> b) { \
    return detail::assign_binary(a, ir::Op::op, b), a;     \
  }
#include "dsl/lang/operators.def"

[[nodiscard]] inline Tile operator-(TileRef a) { return Tile(detail::unary(ir::Op::Neg, a, a.at)); }
[[nodiscard]] inline Scalar operator-(ScalarRef a) { return Scalar(detail::unary(ir::Op::Neg, a, a.at)); }
[[nodiscard]] inline Tile operator~(TileRef a) { return Tile(detail::unary(ir::Op::Not, a, a.at)); }
[[nodiscard]] inline Scalar operator~(ScalarRef a) { return Scalar(detail::unary(ir::Op::Not, a, a.at)); }

// `a && b`, `a || b` and `!a` compete with the built-in operators on bool, which explicit operator bool admits, so they
// must match exactly: templates, hence without a line of their own (an operand's is used). Both sides are evaluated,
// and both must be i1.
namespace detail {
template <class T>
concept Traced = std::derived_from<T, Handle>;
template <class T>
struct IsConst : std::false_type {};
template <class T>
struct IsConst<Const<T>> : std::true_type {};
template <class T>
concept Operandish = Traced<T> || Arithmetic<T> || IsConst<T>::value;
Made logical(ir::Op, const Operand& a, const Operand& b);
template <class A, class B>
using LogicResult = std::conditional_t<std::derived_from<A, Tile> || std::derived_from<B, Tile>, Tile, Scalar>;
}  // namespace detail
template <detail::Operandish A, detail::Operandish B>
requires(detail::Traced<A> || detail::Traced<B>) [[nodiscard]] auto operator&&(const A& a, const B& b) {
  return detail::LogicResult<A, B>(detail::logical(ir::Op::And, Arg(a, RawLoc{}), Arg(b, RawLoc{})));
}
template <detail::Operandish A, detail::Operandish B>
requires(detail::Traced<A> || detail::Traced<B>) [[nodiscard]] auto operator||(const A& a, const B& b) {
  return detail::LogicResult<A, B>(detail::logical(ir::Op::Or, Arg(a, RawLoc{}), Arg(b, RawLoc{})));
}
[[nodiscard]] inline Tile operator!(const Tile& a) { return Tile(detail::logical_not(detail::Operand(a, {}))); }
template <std::derived_from<Scalar> S>
[[nodiscard]] Scalar operator!(const S& a) {
  return Scalar(detail::logical_not(detail::Operand(a, {})));
}

}  // namespace kiln

// The parameter types of kernels, as the kernel's author sees them. What the host passes for each stands in host.h.
//
//   In<T> Out<T> InOut<T>   pointer to elements of T: read, written, both
//   Int                     an integer of dtype index (64-bit meaning); the host passes any C++ integer
//   Val<T>                  a scalar of dtype T; Int32, Int64, Float, Double, Bool name the common ones
//   Const<T>                a C++ value, part of the specialisation key (operand.h)
//   Tune<S>                 an aggregate of such values: named tuning parameters with defaults
//   View<T, N>              an N-dimensional array (view.h)
//
// Except for Const and Tune they are Scalars, hence variables: assigning one changes the kernel's copy, not the host's.
#pragma once
#include "dsl/lang/tile.h"

namespace kiln {

template <class T>
class In : public Scalar {
  static_assert(
      Element<T>,
      "kiln: In<T>: T is not an element type; use float, double, f16, bf16, f8e4m3, f8e5m2, bool or an integer type");

 public:
  explicit In(detail::Made m) : Scalar(m) {}
  In(const In&) = default;
  In& operator=(const In& o) & { return assign(o), *this; }
  In& operator=(const Scalar& o) & { return assign(o), *this; }
};

template <class T>
class Out : public Scalar {
  static_assert(
      Element<T> && !std::is_const_v<T>,
      "kiln: Out<T>: T is not an element type; use float, double, f16, bf16, f8e4m3, f8e5m2, bool or an integer type");

 public:
  explicit Out(detail::Made m) : Scalar(m) {}
  Out(const Out&) = default;
  Out& operator=(const Out& o) & { return assign(o), *this; }
  Out& operator=(const Scalar& o) & { return assign(o), *this; }
};

template <class T>
class InOut : public Scalar {
  static_assert(Element<T> && !std::is_const_v<T>,
                "kiln: InOut<T>: T is not an element type; use float, double, f16, bf16, f8e4m3, f8e5m2, bool or an "
                "integer type");

 public:
  explicit InOut(detail::Made m) : Scalar(m) {}
  InOut(const InOut&) = default;
  InOut& operator=(const InOut& o) & { return assign(o), *this; }
  InOut& operator=(const Scalar& o) & { return assign(o), *this; }
};

class Int : public Scalar {
 public:
  explicit Int(detail::Made m) : Scalar(m) {}
  Int(const Int&) = default;
  Int& operator=(const Int& o) & { return assign(o), *this; }
  Int& operator=(const Scalar& o) & { return assign(o), *this; }
};

template <class T>
class Val : public Scalar {
  static_assert(Element<T> && !std::is_const_v<T>, "kiln: Val<T>: T is not an element type");

 public:
  explicit Val(detail::Made m) : Scalar(m) {}
  Val(const Val&) = default;
  Val& operator=(const Val& o) & { return assign(o), *this; }
  Val& operator=(const Scalar& o) & { return assign(o), *this; }
};
using Int32 = Val<std::int32_t>;
using Int64 = Val<std::int64_t>;
using Float = Val<float>;
using Double = Val<double>;
using Bool = Val<bool>;

/// Tuning parameters: `struct Cfg { int BM = 128, BN = 64; bool relu = false; };`, parameter `Tune<Cfg> t`, launch with
/// `{.BM = 64}`. S is an aggregate of integers, bools, enums and floating-point numbers; every field is in the key.
template <class S>
struct Tune : S {};

}  // namespace kiln

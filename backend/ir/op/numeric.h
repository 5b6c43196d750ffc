// Host arithmetic on the element types: which C++ type stands for a DType, its bits, and the conversions of ops.def's
// cast. Every conversion to a float type rounds exactly once.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend/ir/op.h"
#include "runtime/base/dtype.h"

namespace kiln::ir::num {

/// C++ type that holds an element: dtype.def's host type, int64_t for index.
template <class T>
struct HostOf {
  using type = T;
};
template <>
struct HostOf<IndexHost> {
  using type = std::int64_t;
};

template <class T>
using Host = typename HostOf<T>::type;

/// Calls f(std::type_identity<T>) with the C++ type of `d`.
template <class F>
decltype(auto) dispatch(DType d, F&& f) {
  switch (d) {
// clang-format off
#define KILN_DTYPE(name, bits, kind, host) case DType::name: return f(std::type_identity<Host<host>>{});
#include "runtime/base/dtype.def"
    // clang-format on
  }
  return f(std::type_identity<bool>{});
}

template <class T>
inline constexpr bool is_half = std::same_as<T, f16> || std::same_as<T, bf16>;
template <class T>
inline constexpr bool is_f8 = std::same_as<T, f8e4m3> || std::same_as<T, f8e5m2>;
template <class T>
inline constexpr bool is_floating = std::floating_point<T> || is_half<T> || is_f8<T>;

/// Whether an elementwise op of this rule takes operands of C++ type T (op.h states the rules).
template <class T>
constexpr bool takes(TypeRule rule) {
  constexpr bool boolean = std::same_as<T, bool>, integer = std::integral<T> && !boolean;
  constexpr bool real = std::floating_point<T> || is_half<T>;
  switch (rule) {
    case TypeRule::None: return false;
    case TypeRule::Num: return integer || real;
    case TypeRule::Float: return real;
    case TypeRule::Math: return real && !std::same_as<T, double>;
    case TypeRule::Int: return integer;
    case TypeRule::Bits: return integer || boolean;
    case TypeRule::Cmp: return integer || boolean || real;
  }
  return false;
}
inline bool takes(TypeRule rule, DType d) {
  return dispatch(d, [&]<class T>(std::type_identity<T>) { return takes<T>(rule); });
}

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (std::same_as<T, bool>) return bits != 0;
  else if constexpr (std::integral<T>) return T(bits);
  else if constexpr (std::same_as<T, float>) return std::bit_cast<float>(std::uint32_t(bits));
  else if constexpr (std::same_as<T, double>) return std::bit_cast<double>(bits);
  else {
    T t;
    t.bits = decltype(t.bits)(bits);
    return t;
  }
}

template <class T>
std::uint64_t to_bits(T v) {
  if constexpr (std::same_as<T, bool>) return v;
  else if constexpr (std::integral<T>) return std::uint64_t(std::make_unsigned_t<T>(v));
  else if constexpr (std::same_as<T, float>) return std::bit_cast<std::uint32_t>(v);
  else if constexpr (std::same_as<T, double>) return std::bit_cast<std::uint64_t>(v);
  else return v.bits;
}

/// `v`, which was rounded to nearest, moved to the neighbour with an odd last bit where that was inexact (`error`:
/// exact value minus v). A later rounding to at most 51 bits then equals one rounding of the exact value.
inline double to_odd(double v, double error) {
  if (error == 0 || !std::isfinite(v) || (std::bit_cast<std::uint64_t>(v) & 1)) return v;
  return std::nextafter(v, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

/// Exact value of any element, except integers beyond 2^53, which are rounded to odd.
template <class T>
double widen(T v) {
  if constexpr (std::integral<T> && sizeof(T) == 8) {
    const auto magnitude = std::uint64_t(v < 0 ? 0 - std::uint64_t(v) : std::uint64_t(v));
    if (magnitude >> 53 == 0) return double(v);
    const int drop = 11 - std::countl_zero(magnitude);
    const bool sticky = (magnitude & ((std::uint64_t(1) << drop) - 1)) != 0;
    const double odd = std::ldexp(double((magnitude >> drop) | std::uint64_t(sticky)), drop);
    return v < 0 ? -odd : odd;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return double(v);
  } else {
    return double(float(v));
  }
}

/// `v` as a T, rounded once to nearest even; integers truncate and saturate, NaN gives 0.
template <class T>
T narrow(double v) {
  if constexpr (std::same_as<T, bool>) return v != 0;
  else if constexpr (std::integral<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(v)) return 0;
    if (v >= std::ldexp(1.0, Limits::digits)) return Limits::max();
    if (v <= double(Limits::min())) return Limits::min();
    return T(v);
  } else if constexpr (std::floating_point<T>) return T(v);
  else if constexpr (std::same_as<T, f16>) return f16_from_double(v);
  else if constexpr (std::same_as<T, bf16>) return bf16_from_double(v);
  else if constexpr (std::same_as<T, f8e4m3>) return f8e4m3_from_double(v, false);
  else return f8e5m2_from_double(v, false);
}

/// Largest finite value of a float type.
template <class T>
constexpr double max_finite() {
  if constexpr (std::floating_point<T>) return double(std::numeric_limits<T>::max());
  else if constexpr (std::same_as<T, f16>) return 65504;
  else if constexpr (std::same_as<T, bf16>) return 0x1.fep127;
  else if constexpr (std::same_as<T, f8e4m3>) return 448;
  else return 57344;
}

/// The conversion of ops.def's cast.
template <class To, class From>
To convert(From v, bool saturate) {
  if constexpr (std::same_as<To, From>) {
    if (!saturate || !is_floating<To>) return v;
  }
  if constexpr (std::same_as<To, bool> && std::integral<From>) return v != 0;
  else if constexpr (std::integral<To> && std::integral<From>) return To(v);
  else if constexpr (std::same_as<To, double> && std::integral<From>) return double(v);
  else {
    double wide = widen(v);
    if constexpr (is_floating<To>) {
      if (saturate && wide > max_finite<To>()) wide = max_finite<To>();
      if (saturate && wide < -max_finite<To>()) wide = -max_finite<To>();
    }
    return narrow<To>(wide);
  }
}

}  // namespace kiln::ir::num

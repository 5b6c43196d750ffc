#include "runtime/tools/element.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace kiln::rt::tools {
namespace {

/// f(T{}) for the host type of a dtype that a buffer may have.
template <class F>
auto with_type(DType t, F f) {
  switch (t) {
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::index:
    case DType::i64: return f(std::int64_t{});
    case DType::i1:
    case DType::u8: return f(std::uint8_t{});
    case DType::u16: return f(std::uint16_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::u64: return f(std::uint64_t{});
    case DType::f8e4m3: return f(f8e4m3{});
    case DType::f8e5m2: return f(f8e5m2{});
    case DType::f16: return f(f16{});
    case DType::bf16: return f(bf16{});
    case DType::f32: return f(float{});
    case DType::f64: break;
  }
  return f(double{});
}

template <class T>
T at(const Bytes& bytes, std::size_t i) {
  T v;
  std::memcpy(&v, bytes.data() + i * sizeof v, sizeof v);
  return v;
}
template <class T>
double number(T v) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(v);
  else return static_cast<double>(static_cast<float>(v));
}

template <class T>
void put(Bytes& to, T v) {
  const std::size_t at = to.size();
  to.resize(at + sizeof v);
  std::memcpy(to.data() + at, &v, sizeof v);
}

template <class T>
T rounded(double v) {
  if constexpr (std::is_same_v<T, f16>) return f16_from_double(v);
  else if constexpr (std::is_same_v<T, bf16>) return bf16_from_double(v);
  else if constexpr (std::is_same_v<T, f8e4m3>) return f8e4m3_from_double(v, false);
  else if constexpr (std::is_same_v<T, f8e5m2>) return f8e5m2_from_double(v, false);
  else return static_cast<T>(v);
}

/// Whether an integer type holds `v`, which may be as large as 2^64.
template <class T>
bool holds(double v) {
  const double below = std::ldexp(1.0, std::numeric_limits<T>::digits);
  return v == std::floor(v) && v >= static_cast<double>(std::numeric_limits<T>::min()) && v < below;
}

template <class I>
bool append_integer(Bytes& to, DType t, I value) {
  return with_type(t, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) return false;
      put(to, static_cast<T>(value));
    } else {
      put(to, rounded<T>(static_cast<double>(value)));
    }
    return true;
  });
}

constexpr DType kTypes[] = {DType::i8,  DType::i16, DType::i32,  DType::i64, DType::u8,  DType::u16,    DType::u32,
                            DType::u64, DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2};

}  // namespace

std::optional<DType> element_type(std::string_view text) {
  if (text == "fp16") return DType::f16;
  if (text == "fp32") return DType::f32;
  if (text == "fp64") return DType::f64;
  for (const DType t : kTypes)
    if (text == name(t)) return t;
  return std::nullopt;
}

std::string element_types() {
  std::string out;
  for (const DType t : kTypes) out += fmt::format("{}{}", out.empty() ? "" : ", ", name(t));
  return out;
}

double element(DType t, const Bytes& b, std::size_t i) {
  return with_type(t, [&](auto zero) { return number(at<decltype(zero)>(b, i)); });
}

std::string element_text(DType t, const Bytes& b, std::size_t i) {
  return with_type(t, [&](auto zero) {
    const auto v = at<decltype(zero)>(b, i);
    if constexpr (std::is_integral_v<decltype(zero)>) return fmt::format("{}", +v);
    else if constexpr (std::is_same_v<decltype(zero), double>) return fmt::format("{}", v);
    else return fmt::format("{}", static_cast<float>(v));
  });
}

bool append(Bytes& to, DType t, double value) {
  return with_type(t, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      if (!holds<T>(value)) return false;
    }
    put(to, rounded<T>(value));
    return true;
  });
}
bool append(Bytes& to, DType t, std::int64_t value) { return append_integer(to, t, value); }
bool append(Bytes& to, DType t, std::uint64_t value) { return append_integer(to, t, value); }

std::string range_text(DType t) {
  return with_type(t, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>)
      return fmt::format("{} to {}", +std::numeric_limits<T>::min(), +std::numeric_limits<T>::max());
    else return std::string("a number");
  });
}

}  // namespace kiln::rt::tools

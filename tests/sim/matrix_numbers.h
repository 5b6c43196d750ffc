// Elements of matrices by the names of their types: bits and values, made without the simulator's own conversions.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace kiln::test {

struct NumberFormat {
  int exponent_bits, mantissa_bits;
};
inline NumberFormat format_of(const std::string& type) {
  if (type == "f16") return {5, 10};
  if (type == "bf16") return {8, 7};
  if (type == "e4m3") return {4, 3};
  if (type == "e5m2") return {5, 2};
  return {8, 23};  // f32, tf32
}
inline bool is_integer_type(const std::string& type) { return type == "s8" || type == "u8" || type == "s32"; }

inline int bits_of(const std::string& type) {
  if (type == "f64") return 64;
  if (type == "f16" || type == "bf16") return 16;
  return type == "f32" || type == "tf32" || type == "s32" ? 32 : 8;
}

/// The bits of `v`, whose mantissa is cut off where it does not fit; zero, infinity or a normal number of the type.
inline std::uint32_t encode(const std::string& type, double v) {
  const int bits = bits_of(type);
  if (is_integer_type(type)) {
    const auto b = static_cast<std::uint32_t>(static_cast<std::int64_t>(v));
    return bits == 32 ? b : b & 0xFFu;
  }
  const auto [exponent_bits, mantissa_bits] = format_of(type);
  const auto f = std::bit_cast<std::uint32_t>(static_cast<float>(v));
  const std::uint32_t sign = f >> 31 << (exponent_bits + mantissa_bits);
  if ((f & 0x7FFFFFFFu) == 0) return sign;
  if (std::isinf(v)) return sign | ((1u << exponent_bits) - 1) << mantissa_bits;
  const int exponent = static_cast<int>(f >> 23 & 0xFF) - 127 + (1 << (exponent_bits - 1)) - 1;
  std::uint32_t mantissa = (f & 0x7FFFFFu) >> (23 - mantissa_bits);
  if (type == "tf32") mantissa &= ~0x1FFFu;
  return sign | static_cast<std::uint32_t>(exponent) << mantissa_bits | mantissa;
}

/// The value of bits that encode() gave.
inline double decode(const std::string& type, std::uint32_t b) {
  if (type == "s8") return static_cast<std::int8_t>(b);
  if (type == "u8") return static_cast<std::uint8_t>(b);
  if (type == "s32") return static_cast<std::int32_t>(b);
  const auto [exponent_bits, mantissa_bits] = format_of(type);
  const int exponent = static_cast<int>(b >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double sign = b >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (exponent == 0) return sign * 0;
  if (exponent == (1 << exponent_bits) - 1 && type != "e4m3") return sign * std::numeric_limits<double>::infinity();
  const double significand = 1 + (b & ((1u << mantissa_bits) - 1)) * std::ldexp(1.0, -mantissa_bits);
  return sign * std::ldexp(significand, exponent - (1 << (exponent_bits - 1)) + 1);
}

/// A number of few bits: sums of 32 products of two are exact in every accumulator's type.
inline double exact_number(const std::string& type, std::uint32_t random) {
  if (type == "u8") return random % 256;
  if (type == "s8") return static_cast<int>(random % 256) - 128;
  if (type == "s32" || type == "f64") return static_cast<int>(random % 100000) - 50000;
  if (type == "e5m2" || type == "e4m3") return static_cast<int>(random % 9) - 4;
  return (static_cast<int>(random % 33) - 16) / 4.0;
}

}  // namespace kiln::test

// Exact arithmetic on PTX's float formats.
//
// Every narrow operation is computed in double with round-to-odd and rounded once more to its format. Round-to-odd
// keeps in the last bit whether anything was cut off, so the second rounding gives the same result as a single one of
// the exact value (Boldo, Melquiond: "When double rounding is odd"); it needs two bits more than the target, and double
// has 29 over f32.
//
// A NaN result of f32, f16 and bf16 arithmetic is the hardware's canonical one.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/sim/program.h"

namespace kiln::rt::sim {

struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};
/// Two values in one register, the first in the low half.
template <class T>
struct Pair {
  T lo, hi;
};

constexpr std::uint32_t kNaN32 = 0x7FFFFFFF;
constexpr std::uint16_t kNaN16 = 0x7FFF;

/// A format with kExp exponent and kMan mantissa bits, IEEE-like (the largest exponent holds infinity and NaN).
template <int kExp, int kMan>
struct Format {
  static constexpr int kBias = (1 << (kExp - 1)) - 1, kMinExp = 1 - kBias;
  static constexpr std::uint32_t kInf = ((1u << kExp) - 1) << kMan, kMax = kInf - 1;
  static constexpr std::uint32_t kSign = 1u << (kExp + kMan);

  /// `v` rounded once, as bits; NaN gives all ones without the sign. `limit`: bits of the largest finite value.
  static constexpr std::uint32_t encode(double v, Round round, std::uint32_t limit = kMax) {
    const std::uint64_t b = std::bit_cast<std::uint64_t>(v);
    const std::uint32_t sign = b >> 63 ? kSign : 0;
    const auto exponent = static_cast<int>(b >> 52 & 0x7FF);
    const std::uint64_t fraction = b & ((1ull << 52) - 1);
    if (exponent == 0x7FF) return fraction ? kSign - 1 : sign | kInf;
    const std::uint64_t significand = exponent ? fraction | 1ull << 52 : fraction;
    const int e = exponent ? exponent - 1023 : -1022;
    int shift = 52 - kMan + (e < kMinExp ? kMinExp - e : 0);
    if (shift > 54) shift = 54;
    std::uint64_t q = significand >> shift;
    const std::uint64_t rest = significand & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    switch (round) {
      case Round::Nearest: q += rest > half || (rest == half && (q & 1)); break;
      case Round::Zero: break;
      case Round::Down: q += sign && rest; break;
      case Round::Up: q += !sign && rest; break;
    }
    std::uint64_t bits = e < kMinExp ? q : (static_cast<std::uint64_t>(e + kBias) << kMan) + (q - (1ull << kMan));
    if (bits > limit) {
      const bool to_inf = round == Round::Nearest || (round == Round::Down && sign) || (round == Round::Up && !sign);
      bits = to_inf ? kInf : limit;
    }
    return sign | static_cast<std::uint32_t>(bits);
  }
};
using Fmt32 = Format<8, 23>;
using FmtTf32 = Format<8, 10>;
using Fmt16 = Format<5, 10>;
using FmtB16 = Format<8, 7>;
using FmtE5M2 = Format<5, 2>;
using FmtE4M3 = Format<4, 3>;  // its largest exponent is used for numbers up to 448; see convert.cpp

inline float to_float(float v) { return v; }
inline float to_float(BF16 v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16); }
inline float to_float(F16 v) {
  // Shifted into place, the exponent is too small by 112; the product is exact, for subnormals too.
  const float magnitude = std::bit_cast<float>((v.bits & 0x7FFFu) << 13) * 0x1p112f;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  if (magnitude >= 65536.0f) bits |= 0x7F800000u;
  return std::bit_cast<float>(bits | (v.bits & 0x8000u) << 16);
}

template <class T>
T rounded(double v, Round round);
template <>
inline float rounded<float>(double v, Round round) {
  return std::bit_cast<float>(Fmt32::encode(v, round));
}
template <>
inline F16 rounded<F16>(double v, Round round) {
  return {static_cast<std::uint16_t>(Fmt16::encode(v, round))};
}
template <>
inline BF16 rounded<BF16>(double v, Round round) {
  return {static_cast<std::uint16_t>(FmtB16::encode(v, round))};
}

inline bool is_nan(float v) { return v != v; }
inline bool is_nan(double v) { return v != v; }
inline bool is_nan(F16 v) { return (v.bits & 0x7FFF) > 0x7C00; }
inline bool is_nan(BF16 v) { return (v.bits & 0x7FFF) > 0x7F80; }

inline float canonical(float v) { return v != v ? std::bit_cast<float>(kNaN32) : v; }
inline double canonical(double v) { return v; }
inline F16 canonical(F16 v) { return is_nan(v) ? F16{kNaN16} : v; }
inline BF16 canonical(BF16 v) { return is_nan(v) ? BF16{kNaN16} : v; }

/// Subnormals become zeros of the same sign.
inline float flushed(float v) { return std::fabs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }
inline double flushed(double v) { return v; }
inline F16 flushed(F16 v) { return (v.bits & 0x7C00) == 0 ? F16{static_cast<std::uint16_t>(v.bits & 0x8000)} : v; }
inline BF16 flushed(BF16 v) { return v; }

/// The nearest double `s` of an exact value s + rest, as the round-to-odd one.
inline double to_odd(double s, double rest) {
  if (rest == 0 || !std::isfinite(s)) return s;
  std::uint64_t b = std::bit_cast<std::uint64_t>(s);
  if (b & 1) return s;
  b = (rest > 0) == (s > 0) ? b + 1 : b - 1;
  return std::bit_cast<double>(b);
}

/// x·y + z with round-to-odd; x·y must be exact in double.
inline double fma_odd(double x, double y, double z, Round round) {
  const double p = x * y, s = p + z;
  if (!std::isfinite(s)) return s;
  if (s == 0) return round == Round::Down && (std::signbit(p) || std::signbit(z)) ? -0.0 : s;
  const double z_part = s - p, rest = (p - (s - z_part)) + (z - z_part);  // Knuth's two-sum
  return to_odd(s, rest);
}
inline double div_odd(double x, double y) {
  const double q = x / y;
  if (!std::isfinite(q) || q == 0) return q;
  const double rest = std::fma(-q, y, x);
  return to_odd(q, y > 0 ? rest : -rest);
}
inline double sqrt_odd(double x) {
  const double r = std::sqrt(x);
  if (!(r > 0) || !std::isfinite(r)) return r;
  return to_odd(r, std::fma(-r, r, x));
}

}  // namespace kiln::rt::sim

// One encoder and one decoder for all four formats, in integer arithmetic on the pattern of a double. A float is
// exactly a double, so every conversion rounds once.
#include "runtime/base/float16.h"

#include <bit>

namespace kiln {
namespace {

struct Format {
  int exponent_bits, mantissa_bits;
  // False (OCP e4m3): the all-ones pattern is the only NaN, the rest of the highest exponent are numbers.
  bool infinity;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  /// Pattern of +infinity; where there is none, one above the largest finite one, which is NaN.
  constexpr std::uint32_t overflow() const {
    return infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : sign_bit() - 1;
  }
  constexpr std::uint32_t nan() const { return sign_bit() - 1; }  // the hardware's canonical NaN: positive, all ones
};

constexpr Format kF16{5, 10, true}, kBF16{8, 7, true}, kE4M3{4, 3, false}, kE5M2{5, 2, true};

template <Format F>
std::uint32_t encode(double v, bool saturate) {
  const auto pattern = std::bit_cast<std::uint64_t>(v);
  const std::uint32_t sign = pattern >> 63 ? F.sign_bit() : 0;
  const int biased = static_cast<int>(pattern >> 52 & 0x7ff);
  const std::uint64_t fraction = pattern & ((1ull << 52) - 1);
  if (biased == 0x7ff && fraction != 0) return F.nan();
  if (biased == 0) return sign;  // zero, or a denormal double: far below half of every format's smallest value

  const int exponent = biased - 1023, smallest = 1 - F.bias();
  const std::uint32_t largest = F.overflow() - 1, over = sign | (saturate ? largest : F.overflow());
  if (exponent > F.bias() + 1) return over;  // also infinity

  // Below the smallest normal exponent the significand loses one more bit per step.
  const int shift = 52 - F.mantissa_bits + (exponent < smallest ? smallest - exponent : 0);
  if (shift > 53) return sign;  // less than half of the smallest denormal
  const std::uint64_t significand = fraction | 1ull << 52;
  std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // The implicit bit counts as one exponent step, so a carry out of the mantissa raises the exponent by itself.
  const int step = exponent < smallest ? 0 : exponent - smallest;
  const auto magnitude = static_cast<std::uint32_t>(kept + (static_cast<std::uint64_t>(step) << F.mantissa_bits));
  return magnitude > largest ? over : sign | magnitude;
}

template <Format F>
float decode(std::uint32_t bits) {
  const std::uint32_t sign = bits & F.sign_bit() ? 0x80000000u : 0, magnitude = bits & (F.sign_bit() - 1);
  const std::uint32_t fraction = magnitude & ((1u << F.mantissa_bits) - 1);
  const int exponent = static_cast<int>(magnitude >> F.mantissa_bits);
  if (F.infinity ? magnitude > F.overflow() : magnitude == F.nan()) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (F.infinity && magnitude == F.overflow()) return std::bit_cast<float>(sign | 0x7f800000u);
  if (exponent == 0) {  // fraction · 2^(1 − bias − mantissa bits): a float normal in every format this is used for
    const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(128 - F.bias() - F.mantissa_bits) << 23);
    const float value = static_cast<float>(fraction) * unit;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | static_cast<std::uint32_t>(exponent - F.bias() + 127) << 23 |
                              fraction << (23 - F.mantissa_bits));
}

template <class T, Format F>
T make(double v, bool saturate) {
  T r;
  r.bits = static_cast<decltype(r.bits)>(encode<F>(v, saturate));
  return r;
}

}  // namespace

f16::f16(float v) : f16(make<f16, kF16>(v, false)) {}
bf16::bf16(float v) : bf16(make<bf16, kBF16>(v, false)) {}
f8e4m3::f8e4m3(float v) : f8e4m3(make<f8e4m3, kE4M3>(v, false)) {}
f8e5m2::f8e5m2(float v) : f8e5m2(make<f8e5m2, kE5M2>(v, false)) {}

f16::operator float() const { return decode<kF16>(bits); }
bf16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
f8e4m3::operator float() const { return decode<kE4M3>(bits); }
f8e5m2::operator float() const { return decode<kE5M2>(bits); }

f16 saturate_f16(float v) { return make<f16, kF16>(v, true); }
bf16 saturate_bf16(float v) { return make<bf16, kBF16>(v, true); }
f8e4m3 saturate_f8e4m3(float v) { return make<f8e4m3, kE4M3>(v, true); }
f8e5m2 saturate_f8e5m2(float v) { return make<f8e5m2, kE5M2>(v, true); }

f16 f16_from_double(double v) { return make<f16, kF16>(v, false); }
bf16 bf16_from_double(double v) { return make<bf16, kBF16>(v, false); }
f8e4m3 f8e4m3_from_double(double v, bool saturate) { return make<f8e4m3, kE4M3>(v, saturate); }
f8e5m2 f8e5m2_from_double(double v, bool saturate) { return make<f8e5m2, kE5M2>(v, saturate); }

}  // namespace kiln

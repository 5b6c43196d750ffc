// Host types of the narrow floating formats: f16, bf16, f8e4m3 (OCP, no infinity), f8e5m2 (OCP).
//
// Each is a bit pattern with exact conversion to float and one round-to-nearest-even conversion from float (never through
// a wider intermediate). NaN stays NaN. Overflow: f16, bf16 and f8e5m2 become infinity; f8e4m3, which has none, becomes
// NaN. Saturating conversion is a separate, named function.
#pragma once
#include <cstdint>

namespace kiln {

struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float v);
  explicit operator float() const;
};
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float v);
  explicit operator float() const;
};
struct f8e4m3 {
  std::uint8_t bits = 0;
  f8e4m3() = default;
  explicit f8e4m3(float v);
  explicit operator float() const;
};
struct f8e5m2 {
  std::uint8_t bits = 0;
  f8e5m2() = default;
  explicit f8e5m2(float v);
  explicit operator float() const;
};

/// One rounding to the named format, clamped to its largest finite value instead of overflowing; NaN stays NaN.
f16 saturate_f16(float v);
bf16 saturate_bf16(float v);
f8e4m3 saturate_f8e4m3(float v);
f8e5m2 saturate_f8e5m2(float v);

/// Single-rounding conversions from double (a double that is rounded to float first would round twice).
f16 f16_from_double(double v);
bf16 bf16_from_double(double v);
f8e4m3 f8e4m3_from_double(double v, bool saturate);
f8e5m2 f8e5m2_from_double(double v, bool saturate);

}  // namespace kiln

// The scalar and packed types of PTX, and the bit formats of its narrow floats as arithmetic types of the simulator.
//
// Nothing here is shared with runtime/base/float16: the simulator is an oracle of its own.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace kiln::rt::sim {

// Name, bits, kind: Bits, UInt, Int, Float, Pred, Packed (several values in one register).
#define KILN_PTX_TYPES(X)                                                                                             \
  X(pred, 1, Pred)                                                                                                    \
  X(b8, 8, Bits)                                                                                                      \
  X(b16, 16, Bits)                                                                                                    \
  X(b32, 32, Bits)                                                                                                    \
  X(b64, 64, Bits) X(b128, 128, Bits) X(u8, 8, UInt) X(u16, 16, UInt) X(u32, 32, UInt) X(u64, 64, UInt) X(s8, 8, Int) \
      X(s16, 16, Int) X(s32, 32, Int) X(s64, 64, Int) X(f16, 16, Float) X(bf16, 16, Float) X(f32, 32, Float)          \
          X(f64, 64, Float) X(tf32, 32, Float) X(f16x2, 32, Packed) X(bf16x2, 32, Packed) X(f32x2, 64, Packed)        \
              X(u16x2, 32, Packed) X(s16x2, 32, Packed) X(e4m3x2, 16, Packed) X(e5m2x2, 16, Packed) X(e4m3, 8, Float) \
                  X(e5m2, 8, Float)

enum class Ty : std::uint8_t {
#define X(name, bits, kind) name,
  KILN_PTX_TYPES(X)
#undef X
      none
};
enum class TyKind : std::uint8_t { Pred, Bits, UInt, Int, Float, Packed };

constexpr int bits(Ty t) {
  switch (t) {
#define X(name, bits, kind) \
  case Ty::name: return bits;
    KILN_PTX_TYPES(X)
#undef X
    case Ty::none: break;
  }
  return 0;
}
constexpr TyKind kind(Ty t) {
  switch (t) {
#define X(name, bits, kind) \
  case Ty::name: return TyKind::kind;
    KILN_PTX_TYPES(X)
#undef X
    case Ty::none: break;
  }
  return TyKind::Pred;
}
/// Its name, without the dot; empty for Ty::none.
constexpr std::string_view name(Ty t) {
  switch (t) {
#define X(name, bits, kind) \
  case Ty::name: return #name;
    KILN_PTX_TYPES(X)
#undef X
    case Ty::none: break;
  }
  return "";
}
/// The type called `name` (without the dot), or Ty::none.
constexpr Ty type_named(std::string_view name) {
#define X(n, bits, kind) \
  if (name == #n) return Ty::n;
  KILN_PTX_TYPES(X)
#undef X
  return Ty::none;
}
/// Bytes in memory and in the parameter buffer.
constexpr std::uint32_t bytes(Ty t) { return t == Ty::pred ? 1 : static_cast<std::uint32_t>(bits(t)) / 8; }
constexpr bool is_signed(Ty t) { return kind(t) == TyKind::Int; }
constexpr bool is_integer(Ty t) { return kind(t) == TyKind::Int || kind(t) == TyKind::UInt; }

}  // namespace kiln::rt::sim

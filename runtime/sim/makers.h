// Makers of names that integers and floats share (arithmetic.cpp chooses), and the choice of C++ types for PTX types.
#pragma once
#include <cstdint>

#include "runtime/sim/form.h"
#include "runtime/sim/numbers.h"

namespace kiln::rt::sim {

Handler int_add(Form&), int_sub(Form&), int_mul(Form&), int_mad(Form&), int_div(Form&), int_abs(Form&), int_neg(Form&),
    int_min(Form&), int_max(Form&);
Handler float_add(Form&), float_sub(Form&), float_mul(Form&), float_fma(Form&), float_div(Form&), float_abs(Form&),
    float_neg(Form&), float_min(Form&), float_max(Form&);
/// f32 operations whose factors or first addend are f16 or bf16.
Handler mixed_add(Form&), mixed_sub(Form&), mixed_fma(Form&);

/// An operand after .ftz.
template <class T>
T prepared(const Inst& in, T v) {
  return in.flags & kFtz ? flushed(v) : v;
}
/// f(T{}) with the C++ integer of a 16-, 32- or 64-bit integer type; nullptr for other types.
template <class F>
Handler for_int(Ty t, F f) {
  switch (t) {
    case Ty::u16: return f(std::uint16_t{});
    case Ty::s16: return f(std::int16_t{});
    case Ty::u32: return f(std::uint32_t{});
    case Ty::s32: return f(std::int32_t{});
    case Ty::u64: return f(std::uint64_t{});
    case Ty::s64: return f(std::int64_t{});
    default: return nullptr;
  }
}
/// f(T{}) with the unsigned C++ integer of the type's width, for untyped bits.
template <class F>
Handler for_bits(Ty t, F f) {
  switch (bits(t)) {
    case 16: return f(std::uint16_t{});
    case 32: return f(std::uint32_t{});
    case 64: return f(std::uint64_t{});
    default: return nullptr;
  }
}

}  // namespace kiln::rt::sim

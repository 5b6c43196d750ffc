#include "runtime/sim/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/sim/numbers.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;

// --- elements

template <class T>
void convert(const std::byte* from, std::size_t n, double* to) {
  for (std::size_t at = 0; at < n; at += 8) {
    T chunk[8];
    std::memcpy(chunk, from + at * sizeof(T), sizeof chunk);
    for (std::size_t i = 0; i < 8; ++i) to[at + i] = static_cast<double>(chunk[i]);
  }
}

template <class T>
void convert_halves(const std::byte* from, std::size_t n, double* to) {
  for (std::size_t at = 0; at < n; at += 8) {
    T chunk[8];
    float wide[8];
    std::memcpy(chunk, from + at * 2, sizeof chunk);
    for (std::size_t i = 0; i < 8; ++i) wide[i] = to_float(chunk[i]);
    for (std::size_t i = 0; i < 8; ++i) to[at + i] = wide[i];
  }
}

/// The low 13 bits are not looked at.
void convert_tf32(const std::byte* from, std::size_t n, double* to) {
  for (std::size_t at = 0; at < n; at += 8) {
    U32 chunk[8];
    std::memcpy(chunk, from + at * 4, sizeof chunk);
    for (std::size_t i = 0; i < 8; ++i) to[at + i] = std::bit_cast<float>(chunk[i] & 0xFFFFE000u);
  }
}

/// Values of the 256 bytes of a float of 8 bits.
using ByteTable = std::array<double, 256>;

constexpr ByteTable byte_table(int mantissa_bits, int bias, bool has_infinity) {
  ByteTable t{};
  const int exponents = 128 >> mantissa_bits, fractions = 1 << mantissa_bits;
  for (int b = 0; b < 128; ++b) {
    const int e = b >> mantissa_bits, m = b % fractions;
    double v = e ? fractions + m : m;
    for (int i = e ? e : 1; i < bias + mantissa_bits; ++i) v /= 2;
    for (int i = bias + mantissa_bits; i < e; ++i) v *= 2;
    const bool last = e == exponents - 1;
    if (has_infinity && last)
      v = m ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    if (!has_infinity && b == 127) v = std::numeric_limits<double>::quiet_NaN();
    t[static_cast<std::size_t>(b)] = v;
    t[static_cast<std::size_t>(b) + 128] = -v;
  }
  return t;
}
constexpr ByteTable kE4M3 = byte_table(3, 7, false), kE5M2 = byte_table(2, 15, true);
static_assert(kE4M3[0x7E] == 448 && kE4M3[0x01] == 0x1p-9 && kE4M3[0x38] == 1);
static_assert(kE5M2[0x7B] == 57344 && kE5M2[0x01] == 0x1p-16 && kE5M2[0x3C] == 1);

template <const ByteTable& kTable>
void convert_bytes(const std::byte* from, std::size_t n, double* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = kTable[static_cast<std::size_t>(from[i])];
}

constexpr Element kElements[] = {
    {Ty::f16, 16, convert_halves<F16>}, {Ty::bf16, 16, convert_halves<BF16>}, {Ty::tf32, 32, convert_tf32},
    {Ty::f64, 64, convert<double>},     {Ty::e4m3, 8, convert_bytes<kE4M3>},  {Ty::e5m2, 8, convert_bytes<kE5M2>},
    {Ty::s8, 8, convert<std::int8_t>},  {Ty::u8, 8, convert<std::uint8_t>},
};

// --- accumulators

/// Lane l has elements 2·l and 2·l + 1 of the block, in a register each.
template <class T>
void load_pair(const Warp& w, const Ref* registers, double* block) {
  const T* even = w.in<T>(registers[0]);
  const T* odd = w.in<T>(registers[1]);
  for (std::size_t l = 0; l < kLanes; ++l) {
    block[2 * l] = static_cast<double>(even[l]);
    block[2 * l + 1] = static_cast<double>(odd[l]);
  }
}

void store_f32(Warp& w, const Ref* registers, const double* block, bool) {
  for (std::size_t odd = 0; odd < 2; ++odd) {
    U32* d = w.out<U32>(registers[odd]);
    for (std::size_t l = 0; l < kLanes; ++l) {
      const auto v = static_cast<float>(block[2 * l + odd]);
      const U32 bits = std::bit_cast<U32>(v);
      d[l] = v == v ? bits : kNaN32;
    }
  }
}

void store_f64(Warp& w, const Ref* registers, const double* block, bool) {
  for (std::size_t odd = 0; odd < 2; ++odd)
    for (std::size_t l = 0; l < kLanes; ++l) w.out<double>(registers[odd])[l] = block[2 * l + odd];
}

void store_s32(Warp& w, const Ref* registers, const double* block, bool saturates) {
  for (std::size_t odd = 0; odd < 2; ++odd)
    for (std::size_t l = 0; l < kLanes; ++l) {
      auto v = static_cast<std::int64_t>(block[2 * l + odd]);
      if (saturates) v = std::clamp<std::int64_t>(v, INT32_MIN, INT32_MAX);
      w.out<U32>(registers[odd])[l] = static_cast<U32>(v);
    }
}

void load_f16(const Warp& w, const Ref* registers, double* block) {
  convert_halves<F16>(reinterpret_cast<const std::byte*>(w.in<U32>(registers[0])), kBlock, block);
}

void store_f16(Warp& w, const Ref* registers, const double* block, bool) {
  const auto half = [](double v) -> U32 { return canonical(rounded<F16>(v, Round::Nearest)).bits; };
  U32* d = w.out<U32>(registers[0]);
  for (std::size_t l = 0; l < kLanes; ++l) d[l] = half(block[2 * l + 1]) << 16 | half(block[2 * l]);
}

constexpr Accumulator kAccumulators[] = {
    {Ty::f32, 2, load_pair<float>, store_f32},
    {Ty::f16, 1, load_f16, store_f16},
    {Ty::s32, 2, load_pair<std::int32_t>, store_s32},
    {Ty::f64, 2, load_pair<double>, store_f64},
};

}  // namespace

const Element* element(Ty t) {
  for (const Element& e : kElements)
    if (e.type == t) return &e;
  return nullptr;
}

const Accumulator* accumulator(Ty t) {
  for (const Accumulator& a : kAccumulators)
    if (a.type == t) return &a;
  return nullptr;
}

void load_rows(const Warp& w, const Element& e, const Ref* registers, std::uint32_t m, std::uint32_t k, double* rows) {
  const U32 p = e.per_register(), width = 4 * p, down = m / 8;
  double block[4 * kBlock / 2];
  for (U32 r = 0; r < down * (k / width); ++r) {
    const auto* from = e.bits == 64 ? reinterpret_cast<const std::byte*>(w.in<std::uint64_t>(registers[r]))
                                    : reinterpret_cast<const std::byte*>(w.in<U32>(registers[r]));
    e.to_doubles(from, kLanes * p, block);
    double* to = rows + (8 * (r % down)) * k + width * (r / down);
    for (U32 row = 0; row < 8; ++row) std::copy_n(block + row * width, width, to + row * k);
  }
}

void transpose(const double* rows, std::uint32_t k, double* out) {
  for (U32 i = 0; i < k; ++i)
    for (U32 row = 0; row < 8; ++row) out[i * 8 + row] = rows[row * k + i];
}

void multiply(const double* a, const double* b, double* c, std::uint32_t m, std::uint32_t k) {
  for (U32 row = 0; row < m; row += 2) {
    double upper[8], lower[8];
    std::copy_n(c + row * 8, 8, upper);
    std::copy_n(c + row * 8 + 8, 8, lower);
    for (U32 i = 0; i < k; ++i) {
      const double u = a[row * k + i], l = a[row * k + k + i];
      for (U32 col = 0; col < 8; ++col) upper[col] += u * b[i * 8 + col];
      for (U32 col = 0; col < 8; ++col) lower[col] += l * b[i * 8 + col];
    }
    std::copy_n(upper, 8, c + row * 8);
    std::copy_n(lower, 8, c + row * 8 + 8);
  }
}

bool whole_warp(Warp& w, const Inst& in) {
  if (!w.gather(in, w.live)) return false;
  if (w.mask != kAllLanes)
    fault(FindingKind::Divergence, w, in,
          fmt::format("a matrix instruction with active lanes 0x{:08x}; needs all 32", w.mask));
  return true;
}

bool fragment(Form& f, std::size_t operand, std::size_t n, Ty type, bool result) {
  if (operand >= f.count()) return false;
  const ptx::Operand& o = f.operand(operand);
  if (o.kind != ptx::Operand::Kind::Vector || o.parts.size() != n) return false;
  for (const ptx::Operand& p : o.parts) {
    if (result) f.dst(p, type);
    else f.src(p, type);
  }
  return true;
}

}  // namespace kiln::rt::sim

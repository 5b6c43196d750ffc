#include "runtime/sim/debug_text.h"

#include <fmt/format.h>

#include <bit>

namespace kiln::rt::sim {
namespace {

std::int64_t extended(std::uint64_t bits, int width) {
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}
std::uint64_t low(std::uint64_t bits, int width) {
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

template <class T>
float narrow(std::uint64_t bits) {
  T v;
  v.bits = static_cast<decltype(v.bits)>(bits);
  return static_cast<float>(v);
}

}  // namespace

std::optional<Format> format_named(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const bool hex = text[0] == 'x' || text[0] == 'b';
  std::string name(text);
  if (hex) name[0] = 'u';
  if (text[0] == 's') name[0] = 'i';
  if (text == "bf16") return Format{DType::bf16, false};
  const auto d = dtype_named(name);
  if (!d || *d == DType::i1 || kind(*d) == DKind::Index) return std::nullopt;
  return Format{*d, hex};
}

Format format_of_register(std::string_view type) {
  if (type == "pred") return {DType::u8, false};
  return format_named(type).value_or(Format{DType::u64, true});
}

double value_number(DType d, std::uint64_t bits) {
  switch (d) {
    case DType::f16: return narrow<f16>(bits);
    case DType::bf16: return narrow<bf16>(bits);
    case DType::f8e4m3: return narrow<f8e4m3>(bits);
    case DType::f8e5m2: return narrow<f8e5m2>(bits);
    case DType::f32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case DType::f64: return std::bit_cast<double>(bits);
    default: break;
  }
  if (is_signed(d)) return static_cast<double>(extended(bits, kiln::bits(d)));
  return static_cast<double>(low(bits, kiln::bits(d)));
}

std::string value_text(Format f, std::uint64_t bits) {
  const int width = f.bits();
  if (f.hex) return fmt::format("0x{:0{}x}", low(bits, width), width / 4);
  switch (f.dtype) {
    case DType::i1: return bits & 1 ? "true" : "false";
    case DType::f64: return fmt::format("{}", std::bit_cast<double>(bits));
    default: break;
  }
  if (is_float(f.dtype)) return fmt::format("{}", static_cast<float>(value_number(f.dtype, bits)));
  if (is_signed(f.dtype)) return fmt::format("{}", extended(bits, width));
  return fmt::format("{}", low(bits, width));
}

}  // namespace kiln::rt::sim

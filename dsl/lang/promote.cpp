#include "dsl/lang/promote.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace kiln::detail {
namespace {

bool narrow_float(DType d) { return d == DType::f8e4m3 || d == DType::f8e5m2; }

std::optional<DType> promote_floats(DType a, DType b) {
  if (narrow_float(a) || narrow_float(b)) return std::nullopt;
  if (bits(a) == bits(b)) return DType::f32;  // f16 with bf16
  return bits(a) > bits(b) ? a : b;
}

bool holds(DType wide, DType narrow) {
  if (wide == DType::index) return narrow != DType::u64;
  if (narrow == DType::index) return false;
  if (is_signed(wide) == is_signed(narrow)) return bits(wide) >= bits(narrow);
  return is_signed(wide) && bits(wide) > bits(narrow);
}

bool fits_int(const Number& n, DType d) {
  const auto v = std::int64_t(n.bits);
  if (n.own == DType::u64) return d == DType::u64;
  if (d == DType::u64) return v >= 0;
  if (d == DType::i64 || d == DType::index) return true;
  const int width = bits(d);
  return is_signed(d) ? v >= -(std::int64_t(1) << (width - 1)) && v < (std::int64_t(1) << (width - 1))
                      : v >= 0 && v < (std::int64_t(1) << width);
}

double value_of(const Number& n) {
  if (n.own == DType::f32) return std::bit_cast<double>(n.bits);
  return n.own == DType::u64 ? double(n.bits) : double(std::int64_t(n.bits));
}

}  // namespace

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::i1 || b == DType::i1) return std::nullopt;
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_float(a) || is_float(b)) {
    const DType f = is_float(a) ? a : b;
    return narrow_float(f) ? std::nullopt : std::optional(f);
  }
  if (holds(a, b)) return a;
  if (holds(b, a)) return b;
  return std::nullopt;
}

DType number_dtype(const Number& n, DType other) {
  if (n.own == DType::i1 || other == DType::i1) return n.own;
  return n.own == DType::f32 && !is_float(other) ? DType::f32 : other;
}

std::optional<ir::Literal> literal_of(const Number& n, DType d) {
  if (n.own == DType::f32 && !is_float(d)) {
    const double v = std::bit_cast<double>(n.bits);
    if (d == DType::i1 || v != std::trunc(v) || std::abs(v) > 0x1p62) return std::nullopt;
    const Number whole{DType::i64, std::uint64_t(std::int64_t(v))};
    return fits_int(whole, d) ? std::optional(ir::Literal::of_int(d, std::int64_t(v))) : std::nullopt;
  }
  if (d == DType::i1) {
    if (n.own != DType::i1 && n.bits > 1) return std::nullopt;
    return ir::Literal::of_int(d, std::int64_t(n.bits));
  }
  if (is_float(d)) {
    const double v = value_of(n);
    const bool small_int = n.own == DType::i32 || n.own == DType::i64;  // of_int rounds once where double would first
    const ir::Literal l = small_int ? ir::Literal::of_int(d, std::int64_t(n.bits)) : ir::Literal::of_float(d, v);
    return std::isfinite(v) && !std::isfinite(l.as_double()) ? std::nullopt : std::optional(l);
  }
  return fits_int(n, d) ? std::optional(ir::Literal::of_int(d, std::int64_t(n.bits))) : std::nullopt;
}

std::string text_of(const Number& n) {
  if (n.own == DType::i1) return n.bits ? "true" : "false";
  if (n.own == DType::f32) return fmt::format("{}", std::bit_cast<double>(n.bits));
  return n.own == DType::u64 ? fmt::format("{}", n.bits) : fmt::format("{}", std::int64_t(n.bits));
}

}  // namespace kiln::detail

#include "runtime/sim/convert_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/form.h"

namespace kiln::rt::sim {
namespace {

enum class Rounding : std::uint8_t { None, Allowed, Required };
/// To an integral value (.rni …), and to a value of the result's type (.rn …).
struct Roundings {
  Rounding integral, plain;
};

bool is_float(Ty t) { return kind(t) == TyKind::Float; }
bool is_bf16(Ty d, Ty s) { return d == Ty::bf16 || s == Ty::bf16; }

Roundings roundings(Ty d, Ty s) {
  if (!is_float(d)) return {is_float(s) ? Rounding::Required : Rounding::None, Rounding::None};
  if (!is_float(s) || bits(d) < bits(s) || d == Ty::tf32) return {Rounding::None, Rounding::Required};
  if (d == s) return {Rounding::Allowed, Rounding::None};
  return {Rounding::None, is_bf16(d, s) ? Rounding::Allowed : Rounding::None};
}

template <class Words>
std::string_view first_of(const Form& f, const Words& words) {
  for (const std::string_view w : words)
    if (f.has(w)) return w;
  return {};
}

std::string judged(Rounding r, std::string_view found, std::string_view example) {
  if (r == Rounding::None && !found.empty()) return fmt::format("these types take no rounding '.{}'", found);
  if (r == Rounding::Required && found.empty())
    return fmt::format("these types need a rounding such as '.{}'", example);
  return {};
}

std::string wrong_modifier(const Form& f, Ty d, Ty s, std::string_view plain) {
  const bool tf32 = d == Ty::tf32, narrows = s == Ty::f32 && (d == Ty::f16 || d == Ty::bf16);
  const bool near = plain == "rn" || plain == "rz";
  if (f.has("rna") && !tf32) return "'.rna' is of conversions to tf32";
  if (f.has("relu") && !((narrows || tf32) && near))
    return "'.relu' needs f32 that becomes f16, bf16 or tf32 by .rn or .rz";
  if (f.has("satfinite") && !near && plain != "rna") return "'.satfinite' needs .rn, .rz or .rna";
  if (f.has("ftz") && s != Ty::f32 && d != Ty::f32) return "'.ftz' needs an f32";
  if (f.has("sat") && (is_bf16(d, s) || (d == s && !is_float(d)))) return "these types take no '.sat'";
  return {};
}

}  // namespace

std::string wrong_conversion(const Form& f) {
  const Ty d = f.type(0), s = f.type(1);
  if (kind(d) == TyKind::Packed || kind(s) == TyKind::Packed) return {};
  static constexpr std::string_view kIntegral[] = {"rni", "rzi", "rmi", "rpi"};
  static constexpr std::string_view kPlain[] = {"rn", "rz", "rm", "rp", "rna"};
  const std::string_view integral = first_of(f, kIntegral), plain = first_of(f, kPlain);
  const Roundings r = roundings(d, s);
  if (std::string why = judged(r.integral, integral, "rzi"); !why.empty()) return why;
  if (std::string why = judged(r.plain, plain, "rn"); !why.empty()) return why;
  if (is_bf16(d, s) && std::min(bits(d), bits(s)) == 8) return "bf16 and integers of 8 bits do not become each other";
  return wrong_modifier(f, d, s, plain);
}

}  // namespace kiln::rt::sim

// cvt: between integers, between floats, and between both, with one rounding.
//
// A float becomes an integer by rounding to an integral value and clamping to the range; NaN gives 0. Narrow floats of
// 8 bits (e4m3: no infinity, largest 448; e5m2) exist only in pairs and only saturate, as PTX has them.
//
// Integers are handled as 64-bit values of a byte count that is data (in.size: source, in.count: result), so that there
// is one handler for each pair of kinds. Registers may be wider than the type: in.wide_address says it of the source,
// in.wide of the destination.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/sim/convert_rules.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using I64 = std::int64_t;

double widen(double v) { return v; }
template <class T>
double widen(T v) {
  return to_float(v);
}

double integral(double v, Round r) {
  switch (r) {
    case Round::Nearest: return std::nearbyint(v);
    case Round::Zero: return std::trunc(v);
    case Round::Down: return std::floor(v);
    case Round::Up: return std::ceil(v);
  }
  return v;
}

// --- integers of n bytes
// -----------------------------------------------------------------------------------------------

I64 low_of(int bytes) { return bytes == 8 ? INT64_MIN : -(I64{1} << (8 * bytes - 1)); }
I64 high_of(int bytes) { return ~low_of(bytes); }
U64 unsigned_high_of(int bytes) { return bytes == 8 ? UINT64_MAX : (U64{1} << (8 * bytes)) - 1; }
I64 sign_extended(U64 v, int bytes) {
  const int shift = 64 - 8 * bytes;
  return static_cast<I64>(v << shift) >> shift;
}

I64 clamp_signed(double v, int bytes) {
  if (v != v) return 0;
  if (v <= static_cast<double>(low_of(bytes))) return low_of(bytes);
  // For 8 bytes the limit as a double is one above the range.
  if (v >= static_cast<double>(high_of(bytes))) return high_of(bytes);
  return static_cast<I64>(v);
}
U64 clamp_unsigned(double v, int bytes) {
  if (!(v > 0)) return 0;
  if (v >= static_cast<double>(unsigned_high_of(bytes))) return unsigned_high_of(bytes);
  return static_cast<U64>(v);
}

__extension__ typedef __int128 Int128;

/// An integer as a double with round-to-odd (odd = true), or rounded once in the given mode.
template <class I>
double int_to_double(I v, Round round, bool odd) {
  const double d = static_cast<double>(v);
  const Int128 rest = Int128{v} - static_cast<Int128>(d);
  if (rest == 0 || (!odd && round == Round::Nearest)) return d;
  if (odd) return to_odd(d, rest > 0 ? 1 : -1);
  const bool toward_zero_is_down = v > 0;
  const bool down = round == Round::Down || (round == Round::Zero && toward_zero_is_down);
  if (down) return rest < 0 ? std::nextafter(d, -HUGE_VAL) : d;
  return rest > 0 ? std::nextafter(d, HUGE_VAL) : d;
}

// --- kinds of source and result
// ----------------------------------------------------------------------------------------

struct Signed {};
struct Unsigned {};

/// Result bits of a double that is exact or rounded to odd.
template <class D>
D finish(const Inst& in, double v) {
  D r;
  if constexpr (std::is_same_v<D, double>) r = v;
  else r = canonical(rounded<D>(v, in.round));
  if (in.flags & kFtz) r = flushed(r);
  if constexpr (sizeof(D) == 2)
    if ((in.flags & kSatFinite) && std::isinf(widen(r))) --r.bits;
  const double x = widen(r);
  if (in.flags & kSat) v = !(x > 0) ? 0.0 : std::min(x, 1.0);
  else if ((in.flags & kRelu) && !(x > 0) && x == x) v = 0.0;
  else return r;
  if constexpr (std::is_same_v<D, double>) return v;
  else return rounded<D>(v, Round::Nearest);
}

template <class D>
U64 from_double(const Inst& in, double v) {
  if constexpr (std::is_same_v<D, Signed>) return static_cast<U64>(clamp_signed(integral(v, in.round), in.count));
  else if constexpr (std::is_same_v<D, Unsigned>) return clamp_unsigned(integral(v, in.round), in.count);
  else return to_word<D>(finish<D>(in, in.flags & kIntegral ? integral(v, in.round) : v));
}

template <class D, class I>
U64 from_int(const Inst& in, I v) {
  if constexpr (std::is_same_v<D, double>) {
    return std::bit_cast<U64>(finish<double>(in, int_to_double(v, in.round, false)));
  } else if constexpr (!std::is_same_v<D, Signed> && !std::is_same_v<D, Unsigned>) {
    return to_word<D>(finish<D>(in, int_to_double(v, in.round, true)));
  } else if (!(in.flags & kSat)) {
    // Truncated, then extended into the register.
    if constexpr (std::is_same_v<D, Signed>) return static_cast<U64>(sign_extended(static_cast<U64>(v), in.count));
    else return static_cast<U64>(v) & unsigned_high_of(in.count);
  } else if constexpr (std::is_same_v<D, Signed>) {
    if constexpr (std::is_signed_v<I>) return static_cast<U64>(std::clamp<I64>(v, low_of(in.count), high_of(in.count)));
    else return std::min<U64>(v, static_cast<U64>(high_of(in.count)));
  } else {
    if constexpr (std::is_signed_v<I>)
      if (v < 0) return 0;
    return std::min<U64>(static_cast<U64>(v), unsigned_high_of(in.count));
  }
}

template <class D, class S>
U64 converted(const Inst& in, U64 v) {
  if constexpr (std::is_same_v<S, Signed>) {
    return from_int<D>(in, sign_extended(v, in.size));
  } else if constexpr (std::is_same_v<S, Unsigned>) {
    return from_int<D>(in, v & unsigned_high_of(in.size));
  } else {
    S s = from_word<S>(static_cast<Word<S>>(v));
    if (in.flags & kFtz) s = flushed(s);
    return from_double<D>(in, widen(s));
  }
}

template <class D, class S>
void convert(Warp& w, const Inst& in) {
  const auto run = [&](auto* d, const auto* a) {
    each_lane(w.mask,
              [&, d, a](int l) { d[l] = static_cast<std::remove_pointer_t<decltype(d)>>(converted<D, S>(in, a[l])); });
  };
  if (in.wide && in.wide_address) run(w.out<U64>(in.ops[0]), w.in<U64>(in.ops[1]));
  else if (in.wide) run(w.out<U64>(in.ops[0]), w.in<U32>(in.ops[1]));
  else if (in.wide_address) run(w.out<U32>(in.ops[0]), w.in<U64>(in.ops[1]));
  else run(w.out<U32>(in.ops[0]), w.in<U32>(in.ops[1]));
}

template <class F>
Handler by_kind(Ty t, F f) {
  switch (t) {
    case Ty::f16: return f(F16{});
    case Ty::bf16: return f(BF16{});
    case Ty::f32: return f(float{});
    case Ty::f64: return f(double{});
    default: return is_signed(t) ? f(Signed{}) : is_integer(t) ? f(Unsigned{}) : nullptr;
  }
}

// --- packed and 8-bit floats
// -------------------------------------------------------------------------------------------

/// e4m3: the largest exponent holds numbers up to 448 (0x7E); 0x7F is NaN.
U32 encode_e4m3(double v) {
  if (v != v) return 0x7F;
  const U32 bits = FmtE4M3::encode(v, Round::Nearest, 0x7E);
  return (bits & 0x7F) > 0x7E || std::isinf(v) || std::fabs(v) > 448 ? (bits & 0x80) | 0x7E : bits;
}
U32 encode_e5m2(double v) {
  if (v != v) return 0x7F;
  const U32 bits = FmtE5M2::encode(v, Round::Nearest);
  return (bits & 0x7F) == FmtE5M2::kInf ? (bits & 0x80) | FmtE5M2::kMax : bits;
}
double decode_e4m3(U32 b) {
  if ((b & 0x7F) == 0x7F) return std::nan("");
  const int e = static_cast<int>(b >> 3 & 15), m = static_cast<int>(b & 7);
  const double v = e ? std::ldexp(8 + m, e - 10) : std::ldexp(m, -9);
  return b & 0x80 ? -v : v;
}
double decode_e5m2(U32 b) { return to_float(F16{static_cast<std::uint16_t>(b << 8)}); }

template <class T>
U32 half_bits(const Inst& in, double v) {
  T r = canonical(rounded<T>(v, in.round));
  if ((in.flags & kRelu) && !is_nan(r) && !(to_float(r) > 0)) r = T{0};
  if ((in.flags & kSatFinite) && std::isinf(to_float(r))) r = T{static_cast<std::uint16_t>(r.bits - 1)};
  return r.bits;
}

/// d = {high: a, low: b}
template <U32 (*kEncode)(const Inst&, double), int kBits>
Handler pack_two() {
  return imap2<U32, float, float>(
      [](const Inst& in, float a, float b) { return kEncode(in, a) << kBits | kEncode(in, b); });
}
U32 relu_e4m3(const Inst& in, double v) { return encode_e4m3((in.flags & kRelu) && v <= 0 ? 0.0 : v); }
U32 relu_e5m2(const Inst& in, double v) { return encode_e5m2((in.flags & kRelu) && v <= 0 ? 0.0 : v); }

template <U32 (*kEncode)(const Inst&, double)>
Handler halves_to_bytes() {
  return imap1<U32, Pair<F16>>(
      [](const Inst& in, Pair<F16> a) { return kEncode(in, to_float(a.hi)) << 8 | kEncode(in, to_float(a.lo)); });
}
template <double (*kDecode)(U32)>
Handler bytes_to_halves() {
  return imap1<U32, U32>([](const Inst& in, U32 a) {
    return half_bits<F16>(in, kDecode(a >> 8 & 0xFF)) << 16 | half_bits<F16>(in, kDecode(a & 0xFF));
  });
}

Handler packed(Form& f) {
  const Ty d = f.type(0), s = f.type(1);
  const bool rounds = f.has("rn") || f.has("rz");
  const bool from_f32 = s == Ty::f32 && f.count() == 3;
  f.dst(0, bits(d) == 16 ? Ty::b16 : Ty::b32);
  f.src(1, s == Ty::f32 ? Ty::f32 : bits(s) == 16 ? Ty::b16 : Ty::b32);
  if (from_f32) f.src(2, Ty::f32);
  if (!rounds) return nullptr;
  if (d == Ty::f16x2 && from_f32) return pack_two<half_bits<F16>, 16>();
  if (d == Ty::bf16x2 && from_f32) return pack_two<half_bits<BF16>, 16>();
  const bool saturates = f.has("satfinite") && f.has("rn");
  if (d == Ty::e4m3x2 && saturates)
    return from_f32 ? pack_two<relu_e4m3, 8>() : s == Ty::f16x2 ? halves_to_bytes<relu_e4m3>() : nullptr;
  if (d == Ty::e5m2x2 && saturates)
    return from_f32 ? pack_two<relu_e5m2, 8>() : s == Ty::f16x2 ? halves_to_bytes<relu_e5m2>() : nullptr;
  if (d == Ty::f16x2 && s == Ty::e4m3x2) return bytes_to_halves<decode_e4m3>();
  if (d == Ty::f16x2 && s == Ty::e5m2x2) return bytes_to_halves<decode_e5m2>();
  return nullptr;
}

/// tf32 keeps f32's place with 10 mantissa bits; .rna rounds ties away from zero.
Handler to_tf32(Form& f) {
  f.dst(0, Ty::b32);
  f.src(1, Ty::f32);
  if (f.type(1) != Ty::f32) return nullptr;
  if (f.has("rna"))
    return map1<U32, U32>([](U32 v) {
      return (v & 0x7FFFFFFF) > 0x7F800000 ? kNaN32 : (v & 0x7F800000) == 0x7F800000 ? v : (v + 0x1000) & ~0x1FFFu;
    });
  if (!f.has("rn") && !f.has("rz")) return nullptr;
  return imap1<U32, float>([](const Inst& in, float v) {
    if (v != v) return kNaN32;
    if ((in.flags & kRelu) && !(v > 0)) return 0u;
    const U32 b = FmtTf32::encode(v, in.round);
    return (b & FmtTf32::kSign ? 0x80000000u : 0u) | (b & (FmtTf32::kSign - 1)) << 13;
  });
}

}  // namespace

Handler make_cvt(Form& f) {
  f.float_modifiers();
  static constexpr std::pair<std::string_view, Round> kIntegralModes[] = {
      {"rni", Round::Nearest}, {"rzi", Round::Zero}, {"rmi", Round::Down}, {"rpi", Round::Up}};
  for (const auto& [word, round] : kIntegralModes)
    if (f.has(word)) f.inst.round = round, f.inst.flags |= kIntegral;
  if (f.count() < 2 || f.types.size() != 2) f.fail("needs two types, a result and an operand");
  const Ty d = f.type(0), s = f.type(1);
  if (const std::string why = wrong_conversion(f); !why.empty()) f.fail(why);
  if (kind(d) == TyKind::Packed || kind(s) == TyKind::Packed) return packed(f);
  if (d == Ty::tf32) return to_tf32(f);
  if (f.count() != 2) f.fail("has too many operands");
  if ((f.inst.flags & kSatFinite) && (s != Ty::f32 || (d != Ty::f16 && d != Ty::bf16))) return nullptr;
  // An operand's register may be wider than its type, not narrower.
  const auto register_type = [&](const ptx::Operand& o, Ty t) {
    const int width = f.register_bits(o);
    f.require_kind(o, t);
    if (width != 0 && width < bits(t)) f.fail("a register is narrower than its type");
    return width == 64 ? Ty::b64 : width == 32 ? Ty::b32 : width == 0 ? t : Ty::b16;
  };
  const Ty to = register_type(f.operand(0), d), from = register_type(f.operand(1), s);
  f.dst(0, to);
  f.src(1, from);
  f.inst.wide = bits(to) == 64;
  f.inst.wide_address = bits(from) == 64;
  f.inst.count = static_cast<std::uint8_t>(bytes(d));
  f.inst.size = static_cast<std::uint8_t>(bytes(s));
  return by_kind(
      d, [&](auto dk) { return by_kind(s, [](auto sk) -> Handler { return convert<decltype(dk), decltype(sk)>; }); });
}

namespace {

/// Two saturated values of kBits below the low bits of c.
template <int kBits, bool kSigned>
U32 packed_low(std::int32_t a, std::int32_t b, U32 c) {
  constexpr std::int32_t kMax = (1 << (kBits - kSigned)) - 1, kMin = kSigned ? -kMax - 1 : 0;
  constexpr U32 kMask = (1u << kBits) - 1;
  const U32 high = static_cast<U32>(std::clamp(a, kMin, kMax)) & kMask;
  const U32 low = static_cast<U32>(std::clamp(b, kMin, kMax)) & kMask;
  if constexpr (kBits == 16) return high << 16 | low;
  else return c << 2 * kBits | high << kBits | low;
}
template <int kBits, bool kSigned>
Handler pack_low() {
  return map3<U32, std::int32_t, std::int32_t, U32>(
      [](std::int32_t a, std::int32_t b, U32 c) { return packed_low<kBits, kSigned>(a, b, c); });
}

}  // namespace

/// cvt.pack.sat.u8.s32.b32 d, a, b, c
Handler make_cvt_pack(Form& f) {
  const Ty d = f.type(0);
  const bool halves = d == Ty::u16 || d == Ty::s16, small = f.has("u4") || f.has("s4") || f.has("u2") || f.has("s2");
  const std::size_t types = (small ? 0 : 1) + (halves ? 1 : 2);
  if (!f.has("sat") || f.types.size() != types || f.type(small ? 0 : 1) != Ty::s32) return nullptr;
  if (!halves && f.type(types - 1) != Ty::b32) return nullptr;
  if (f.count() != (halves ? 3u : 4u)) return nullptr;
  f.dst(0, Ty::b32);
  f.src(1, Ty::s32);
  f.src(2, Ty::s32);
  if (halves) f.zero();
  else f.src(3, Ty::b32);
  if (f.has("u2")) return pack_low<2, false>();
  if (f.has("s2")) return pack_low<2, true>();
  if (f.has("u4")) return pack_low<4, false>();
  if (f.has("s4")) return pack_low<4, true>();
  switch (d) {
    case Ty::u8: return pack_low<8, false>();
    case Ty::s8: return pack_low<8, true>();
    case Ty::u16: return pack_low<16, false>();
    case Ty::s16: return pack_low<16, true>();
    default: return nullptr;
  }
}

}  // namespace kiln::rt::sim

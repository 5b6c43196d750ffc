// Comparison and selection.
#include "runtime/sim/compare.h"

#include <bit>
#include <cmath>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

enum class Cmp : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
enum class Join : std::uint8_t { None, And, Or, Xor };

constexpr std::pair<std::string_view, Cmp> kCompares[] = {
    {"eq", Cmp::Eq},   {"ne", Cmp::Ne},   {"lt", Cmp::Lt},   {"le", Cmp::Le},   {"gt", Cmp::Gt},   {"ge", Cmp::Ge},
    {"lo", Cmp::Lt},   {"ls", Cmp::Le},   {"hi", Cmp::Gt},   {"hs", Cmp::Ge},   {"equ", Cmp::Equ}, {"neu", Cmp::Neu},
    {"ltu", Cmp::Ltu}, {"leu", Cmp::Leu}, {"gtu", Cmp::Gtu}, {"geu", Cmp::Geu}, {"num", Cmp::Num}, {"nan", Cmp::Nan}};

template <class T>
T comparable(T v) {
  return v;
}
inline float comparable(F16 v) { return to_float(v); }
inline float comparable(BF16 v) { return to_float(v); }

/// Ordered comparisons are false for NaN, the unordered ones (…u) true.
template <class T, Cmp kCmp>
bool compare(T x, T y) {
  const auto a = comparable(x), b = comparable(y);
  switch (kCmp) {
    case Cmp::Eq: return a == b;
    case Cmp::Ne: return a != b && a == a && b == b;
    case Cmp::Lt: return a < b;
    case Cmp::Le: return a <= b;
    case Cmp::Gt: return a > b;
    case Cmp::Ge: return a >= b;
    case Cmp::Equ: return a == b || a != a || b != b;
    case Cmp::Neu: return a != b;
    case Cmp::Ltu: return !(a >= b);
    case Cmp::Leu: return !(a > b);
    case Cmp::Gtu: return !(a <= b);
    case Cmp::Geu: return !(a < b);
    case Cmp::Num: return a == a && b == b;
    case Cmp::Nan: return a != a || b != b;
  }
  return false;
}

/// Lanes for which the comparison holds; .ftz for f32 and f16.
template <class T, Cmp kCmp>
std::uint32_t compare_lanes(const void* pa, const void* pb, bool ftz) {
  const auto *a = static_cast<const Word<T>*>(pa), *b = static_cast<const Word<T>*>(pb);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, F16>)
    if (ftz) return lanes_where<T>(a, b, [](T x, T y) { return compare<T, kCmp>(flushed(x), flushed(y)); });
  return lanes_where<T>(a, b, [](T x, T y) { return compare<T, kCmp>(x, y); });
}

using Lanes = std::uint32_t (*)(const void* a, const void* b, bool ftz);

template <class T>
Lanes pick(Cmp c) {
  if constexpr (std::is_integral_v<T>)
    if (c > Cmp::Ge) return nullptr;
  static constexpr Lanes kTable[] = {compare_lanes<T, Cmp::Eq>,  compare_lanes<T, Cmp::Ne>,  compare_lanes<T, Cmp::Lt>,
                                     compare_lanes<T, Cmp::Le>,  compare_lanes<T, Cmp::Gt>,  compare_lanes<T, Cmp::Ge>,
                                     compare_lanes<T, Cmp::Equ>, compare_lanes<T, Cmp::Neu>, compare_lanes<T, Cmp::Ltu>,
                                     compare_lanes<T, Cmp::Leu>, compare_lanes<T, Cmp::Gtu>, compare_lanes<T, Cmp::Geu>,
                                     compare_lanes<T, Cmp::Num>, compare_lanes<T, Cmp::Nan>};
  return kTable[static_cast<int>(c)];
}

/// The first comparison word that is not a boolean operator; both may be present ("setp.lt.and.s32").
bool find_compare(const Form& f, Cmp& c) {
  for (const auto& [word, cmp] : kCompares)
    if (f.has(word)) return c = cmp, true;
  return false;
}

Lanes lanes_for(Form& f, Ty t) {
  Cmp c{};
  if (!find_compare(f, c)) return nullptr;
  switch (t) {
    case Ty::u16:
    case Ty::b16: return pick<std::uint16_t>(c);
    case Ty::s16: return pick<std::int16_t>(c);
    case Ty::u32:
    case Ty::b32: return pick<std::uint32_t>(c);
    case Ty::s32: return pick<std::int32_t>(c);
    case Ty::u64:
    case Ty::b64: return pick<std::uint64_t>(c);
    case Ty::s64: return pick<std::int64_t>(c);
    case Ty::f16: return pick<F16>(c);
    case Ty::bf16: return pick<BF16>(c);
    case Ty::f32: return pick<float>(c);
    case Ty::f64: return pick<double>(c);
    default: return nullptr;
  }
}

Join join_of(const Form& f) {
  return f.has("and") ? Join::And : f.has("or") ? Join::Or : f.has("xor") ? Join::Xor : Join::None;
}

std::uint32_t joined(Join j, std::uint32_t v, std::uint32_t c) {
  switch (j) {
    case Join::And: return v & c;
    case Join::Or: return v | c;
    case Join::Xor: return v ^ c;
    case Join::None: break;
  }
  return v;
}

// in.imm holds the comparison function, in.count the join.
Lanes function(const Inst& in) { return reinterpret_cast<Lanes>(in.imm); }
std::uint32_t holds(const Warp& w, const Inst& in) {
  return function(in)(w.in<std::uint32_t>(in.ops[2]), w.in<std::uint32_t>(in.ops[3]), in.flags & kFtz);
}
Join join(const Inst& in) { return static_cast<Join>(in.count); }

/// ops: p, q or none, a, b, c or none
void setp(Warp& w, const Inst& in) {
  const std::uint32_t v = holds(w, in);
  const std::uint32_t c = in.ops[4] == kNoRef ? 0 : w.pred(in.ops[4]);
  set_pred(w, in.ops[0], joined(join(in), v, c));
  if (in.ops[1] != kNoRef) set_pred(w, in.ops[1], joined(join(in), ~v, c));
}

/// Lanes for which the comparison of the low (shift 0) or high (16) halves holds.
std::uint32_t holds_in_half(const Warp& w, const Inst& in, int shift) {
  std::uint32_t a[kLanes], b[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    a[l] = w.in<std::uint32_t>(in.ops[2])[l] >> shift & 0xFFFF;
    b[l] = w.in<std::uint32_t>(in.ops[3])[l] >> shift & 0xFFFF;
  }
  return function(in)(a, b, in.flags & kFtz);
}

/// f16x2 and bf16x2: p for the low halves, q for the high ones.
void setp_pair(Warp& w, const Inst& in) {
  const std::uint32_t lo = holds_in_half(w, in, 0), hi = holds_in_half(w, in, 16);
  const std::uint32_t c = in.ops[4] == kNoRef ? 0 : w.pred(in.ops[4]);
  set_pred(w, in.ops[0], joined(join(in), lo, c));
  if (in.ops[1] != kNoRef) set_pred(w, in.ops[1], joined(join(in), hi, c));
}

/// ops: d, none, a, b, c or none, what d becomes where it is true.
void set(Warp& w, const Inst& in) {
  const std::uint32_t c = in.ops[4] == kNoRef ? 0 : w.pred(in.ops[4]);
  const std::uint32_t v = joined(join(in), holds(w, in), c);
  const std::uint32_t yes = *w.in<std::uint32_t>(in.ops[5]);
  auto* d = w.out<std::uint32_t>(in.ops[0]);
  each_lane(w.mask, [=](int l) { d[l] = v >> l & 1 ? yes : 0; });
}
/// … of each half, on its own.
void set_pair(Warp& w, const Inst& in) {
  const std::uint32_t c = in.ops[4] == kNoRef ? 0 : w.pred(in.ops[4]);
  const std::uint32_t lo = joined(join(in), holds_in_half(w, in, 0), c);
  const std::uint32_t hi = joined(join(in), holds_in_half(w, in, 16), c);
  const std::uint32_t yes = *w.in<std::uint32_t>(in.ops[5]);
  auto* d = w.out<std::uint32_t>(in.ops[0]);
  each_lane(w.mask, [=](int l) { d[l] = (lo >> l & 1 ? yes : 0) | (hi >> l & 1 ? yes << 16 : 0); });
}

/// All ones, or 1.0 in a float; of half a register for packed results.
std::uint32_t truth(Ty d, bool pair) {
  switch (d) {
    case Ty::f32: return 0x3F800000;
    case Ty::f16:
    case Ty::f16x2: return 0x3C00;
    case Ty::bf16:
    case Ty::bf16x2: return 0x3F80;
    default: return pair || bits(d) == 16 ? 0xFFFF : 0xFFFFFFFF;
  }
}

template <class T>
void selp(Warp& w, const Inst& in) {
  auto* d = w.out<T>(in.ops[0]);
  const auto *a = w.in<T>(in.ops[1]), *b = w.in<T>(in.ops[2]);
  const std::uint32_t p = w.pred(in.ops[3]);
  each_lane(w.mask, [=](int l) { d[l] = p >> l & 1 ? a[l] : b[l]; });
}

template <class T, bool kFloat>
void slct(Warp& w, const Inst& in) {
  auto* d = w.out<T>(in.ops[0]);
  const auto *a = w.in<T>(in.ops[1]), *b = w.in<T>(in.ops[2]);
  const auto* c = w.in<std::uint32_t>(in.ops[3]);
  const bool ftz = in.flags & kFtz;
  each_lane(w.mask, [=](int l) {
    const float x = std::bit_cast<float>(c[l]);
    const bool first = kFloat ? x >= 0 || (ftz && x > -0x1p-126f) : static_cast<std::int32_t>(c[l]) >= 0;
    d[l] = first ? a[l] : b[l];
  });
}

bool comparison_operands(Form& f, std::size_t source_type) {
  Ty t = f.type(source_type);
  const Ty element = t == Ty::f16x2 ? Ty::f16 : t == Ty::bf16x2 ? Ty::bf16 : t;
  const Lanes fn = lanes_for(f, element);
  if (!fn || f.count() < 3) return false;
  const Join j = join_of(f);
  if ((j != Join::None) != (f.count() == 4)) return false;
  f.src(1, t);
  f.src(2, t);
  if (f.count() == 4) f.src(3, Ty::pred);
  else f.none();
  f.inst.imm = reinterpret_cast<std::int64_t>(fn);
  f.inst.count = static_cast<std::uint8_t>(j);
  if (f.has("ftz") && element != Ty::f32 && element != Ty::f16) return false;
  if (f.has("ftz")) f.inst.flags |= kFtz;
  return true;
}

}  // namespace

std::array<std::uint32_t, 2> decided(const Warp& w, const Inst& in, std::uint32_t low, std::uint32_t high) {
  const bool pair = in.run == setp_pair;
  const std::array<std::uint32_t, 2> asked{pair ? low : low | high, pair ? high : low | high};
  if ((!pair && in.run != setp) || join(in) == Join::None || join(in) == Join::Xor) return asked;
  const std::uint32_t c = w.pred(in.ops[4]), free = join(in) == Join::And ? c : ~c;
  return {asked[0] & free, asked[1] & free};
}

Handler make_setp(Form& f) {
  if (f.count() < 3 || f.types.size() != 1) f.fail("needs one type, a result and two operands");
  f.dst(0, Ty::pred);
  if (f.operand(0).parts.empty()) f.none();
  else f.dst(f.operand(0).parts[0], Ty::pred);
  if (!comparison_operands(f, 0)) return nullptr;
  return kind(f.type()) == TyKind::Packed ? setp_pair : setp;
}

Handler make_set(Form& f) {
  if (f.count() < 3 || f.types.size() != 2) return nullptr;
  const Ty d = f.type(0), s = f.type(1);
  const bool pair = kind(s) == TyKind::Packed, half = s == Ty::f16 || s == Ty::bf16;
  if (pair ? d != s && d != Ty::u32 && d != Ty::s32
           : d != Ty::u32 && d != Ty::s32 && d != Ty::f32 && d != Ty::f16 && d != Ty::bf16 &&
                 !(half && (d == Ty::u16 || d == Ty::s16)))
    return nullptr;
  f.dst(0, d);
  f.none();
  if (!comparison_operands(f, 1)) return nullptr;
  f.decoder.add_reference(f.decoder.constant(truth(d, pair), false));
  return pair ? set_pair : set;
}

Handler make_selp(Form& f) { return bits(f.type()) == 64 ? selp<std::uint64_t> : selp<std::uint32_t>; }

Handler make_slct(Form& f) {
  const bool wide = bits(f.type(0)) == 64;
  if (f.type(1) == Ty::f32 && f.has("ftz")) f.inst.flags = kFtz;
  if (f.type(1) == Ty::s32) return wide ? slct<std::uint64_t, false> : slct<std::uint32_t, false>;
  if (f.type(1) == Ty::f32) return wide ? slct<std::uint64_t, true> : slct<std::uint32_t, true>;
  return nullptr;
}

}  // namespace kiln::rt::sim

// Floats by order and sign: minimum, maximum, abs, neg, copysign, testp.
#include <cmath>

#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

bool sign_of(float v) { return std::signbit(v); }
bool sign_of(double v) { return std::signbit(v); }
template <class T>
bool sign_of(T v) {
  return v.bits >> 15;
}
float magnitude(float v) { return std::fabs(v); }
double magnitude(double v) { return std::fabs(v); }
template <class T>
T magnitude(T v) {
  return {static_cast<std::uint16_t>(v.bits & 0x7FFF)};
}
float negated(float v) { return -v; }
double negated(double v) { return -v; }
template <class T>
T negated(T v) {
  return {static_cast<std::uint16_t>(v.bits ^ 0x8000)};
}
double as_double(double v) { return v; }
template <class T>
double as_double(T v) {
  return to_float(v);
}
template <class T>
T nan_of() {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(kNaN32);
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(0x7FFFFFFFFFFFFFFFull);
  else return T{kNaN16};
}

/// −0 is less than +0. One NaN gives the other operand, or NaN with .NaN; .xorsign: the sign is that of the product.
template <class T, bool kMax>
T extreme(const Inst& in, T a, T b) {
  a = prepared(in, a);
  b = prepared(in, b);
  const bool sign = sign_of(a) != sign_of(b);
  if (in.flags & kAbs) a = magnitude(a), b = magnitude(b);
  T r;
  if (is_nan(a) || is_nan(b)) {
    if ((in.flags & kNaN) || (is_nan(a) && is_nan(b))) return nan_of<T>();
    r = is_nan(a) ? b : a;
  } else {
    const double x = as_double(a), y = as_double(b);
    const bool less = x < y || (x == y && sign_of(a) && !sign_of(b));
    r = less == kMax ? b : a;
  }
  if (in.flags & kXorSign) r = sign ? negated(magnitude(r)) : magnitude(r);
  if ((in.flags & kRelu) && !(as_double(r) > 0)) r = T{};
  return r;
}
template <class T, bool kMax>
struct Extreme {
  T operator()(const Inst& in, T a, T b) const { return extreme<T, kMax>(in, a, b); }
};
template <bool kMax>
struct ExtremeOfThree {
  float operator()(const Inst& in, float a, float b, float c) const {
    return extreme<float, kMax>(in, extreme<float, kMax>(in, a, b), c);
  }
};
template <class T, bool kMax>
struct ExtremePair {
  Pair<T> operator()(const Inst& in, Pair<T> a, Pair<T> b) const {
    return {extreme<T, kMax>(in, a.lo, b.lo), extreme<T, kMax>(in, a.hi, b.hi)};
  }
};

/// extreme() of f32 without modifiers, in a form that the vectoriser takes.
template <bool kMax>
float plain_extreme(float a, float b) {
  const auto x = std::bit_cast<std::uint32_t>(a), y = std::bit_cast<std::uint32_t>(b);
  float r = (kMax ? a > b : a < b) ? a : b;
  r = b != b ? a : r;
  // Equal ones differ in the sign of zero at most.
  r = a == b ? std::bit_cast<float>(kMax ? x & y : x | y) : r;
  return canonical(r);
}

template <bool kMax>
Handler extreme_form(Form& f) {
  f.float_modifiers();
  if (f.type() == Ty::f32 && f.inst.flags == 0 && f.count() == 3)
    return map2<float, float, float>([](float a, float b) { return plain_extreme<kMax>(a, b); });
  if ((f.inst.flags & kXorSign) && !f.has("abs")) return nullptr;
  if (f.count() == 4)
    return (f.inst.flags & kXorSign) ? nullptr : imap3<float, float, float, float>(ExtremeOfThree<kMax>{});
  switch (f.type()) {
    case Ty::f32: return imap2<float, float, float>(Extreme<float, kMax>{});
    case Ty::f64: return f.inst.flags ? nullptr : imap2<double, double, double>(Extreme<double, kMax>{});
    case Ty::f16: return imap2<F16, F16, F16>(Extreme<F16, kMax>{});
    case Ty::bf16: return imap2<BF16, BF16, BF16>(Extreme<BF16, kMax>{});
    case Ty::f16x2: return imap2<Pair<F16>, Pair<F16>, Pair<F16>>(ExtremePair<F16, kMax>{});
    case Ty::bf16x2: return imap2<Pair<BF16>, Pair<BF16>, Pair<BF16>>(ExtremePair<BF16, kMax>{});
    default: return nullptr;
  }
}

/// abs and neg change the sign bit alone (NaN too), after .ftz.
template <class F>
Handler sign_form(Form& f, F) {
  f.float_modifiers();
  switch (f.type()) {
    case Ty::f32: return imap1<float, float>([](const Inst& in, float a) { return F{}(prepared(in, a)); });
    case Ty::f64: return imap1<double, double>([](const Inst&, double a) { return F{}(a); });
    case Ty::f16: return imap1<F16, F16>([](const Inst& in, F16 a) { return F{}(prepared(in, a)); });
    case Ty::bf16: return imap1<BF16, BF16>([](const Inst& in, BF16 a) { return F{}(prepared(in, a)); });
    case Ty::f16x2:
      return imap1<Pair<F16>, Pair<F16>>([](const Inst& in, Pair<F16> a) {
        return Pair<F16>{F{}(prepared(in, a.lo)), F{}(prepared(in, a.hi))};
      });
    case Ty::bf16x2:
      return imap1<Pair<BF16>, Pair<BF16>>([](const Inst&, Pair<BF16> a) { return Pair<BF16>{F{}(a.lo), F{}(a.hi)}; });
    default: return nullptr;
  }
}

template <class T>
bool has_property(const Inst& in, T v) {
  const int c = std::fpclassify(v);
  switch (in.imm) {
    case 0: return c != FP_INFINITE && c != FP_NAN;
    case 1: return c == FP_INFINITE;
    case 2: return c != FP_NAN;
    case 3: return c == FP_NAN;
    case 4: return c == FP_NORMAL;
    default: return c == FP_SUBNORMAL;
  }
}
template <class T>
void test_property(Warp& w, const Inst& in) {
  const auto* a = w.in<Word<T>>(in.ops[1]);
  set_pred(w, in.ops[0], lanes_where<T>(a, a, [&](T v, T) { return has_property(in, v); }));
}

}  // namespace

Handler float_min(Form& f) { return extreme_form<false>(f); }
Handler float_max(Form& f) { return extreme_form<true>(f); }
Handler float_abs(Form& f) {
  return sign_form(f, [](auto v) { return magnitude(v); });
}
Handler float_neg(Form& f) {
  return sign_form(f, [](auto v) { return negated(v); });
}

Handler make_copysign(Form& f) {  // the sign of the first operand, the magnitude of the second
  if (f.type() == Ty::f32) return map2<float, float, float>([](float s, float v) { return std::copysign(v, s); });
  if (f.type() == Ty::f64) return map2<double, double, double>([](double s, double v) { return std::copysign(v, s); });
  return nullptr;
}

Handler make_testp(Form& f) {
  static constexpr std::string_view kProperties[] = {"finite",     "infinite", "number",
                                                     "notanumber", "normal",   "subnormal"};
  f.inst.imm = -1;
  for (int i = 0; i < 6; ++i)
    if (f.has(kProperties[i])) f.inst.imm = i;
  if (f.inst.imm < 0) return nullptr;
  return f.type() == Ty::f32 ? test_property<float> : f.type() == Ty::f64 ? test_property<double> : nullptr;
}

}  // namespace kiln::rt::sim

// Float arithmetic: IEEE with one rounding in every format and rounding mode, subnormals kept unless .ftz.
//
// The .approx functions (ex2, lg2, sin, cos, tanh, rcp, rsqrt, sqrt, div) and div.full are the host's double-precision
// function rounded once: correctly rounded except in rare ties. The hardware's are less exact, within the bounds of the
// PTX manual; a test that compares both needs those bounds.
#include <cfenv>
#include <cmath>

#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

// --- the operations on one lane: plain (to nearest, no modifier) and by the instruction's rounding ---

struct Add {
  template <class T>
  static T plain(T a, T b) {
    return a + b;
  }
  static double odd(double a, double b, Round r) { return fma_odd(1.0, a, b, r); }
};
struct Sub {
  template <class T>
  static T plain(T a, T b) {
    return a - b;
  }
  static double odd(double a, double b, Round r) { return fma_odd(1.0, a, -b, r); }
};
struct Mul {
  template <class T>
  static T plain(T a, T b) {
    return a * b;
  }
  static double odd(double a, double b, Round) { return a * b; }
};
struct Div {
  template <class T>
  static T plain(T a, T b) {
    return a / b;
  }
  static double odd(double a, double b, Round) { return div_odd(a, b); }
};
struct Fma {
  static float plain(float a, float b, float c) { return std::fma(a, b, c); }
  static double plain(double a, double b, double c) { return std::fma(a, b, c); }
  static double odd(double a, double b, double c, Round r) { return fma_odd(a, b, c, r); }
};
struct Rcp {
  template <class T>
  static T plain(T a) {
    return T{1} / a;
  }
  static double odd(double a, Round) { return div_odd(1.0, a); }
};
struct Sqrt {
  template <class T>
  static T plain(T a) {
    return std::sqrt(a);
  }
  static double odd(double a, Round) { return sqrt_odd(a); }
};

/// Clamps and canonicalises a result as the modifiers say.
template <class T>
T finish(const Inst& in, T v) {
  v = canonical(v);
  if (in.flags & kFtz) v = flushed(v);
  if (in.flags & kSat) {
    const double x = to_float(v);
    if (!(x > 0)) return rounded<T>(0.0, Round::Nearest);
    if (x > 1) return rounded<T>(1.0, Round::Nearest);
  }
  if (in.flags & kRelu) {
    if (!is_nan(v) && !(to_float(v) > 0)) return rounded<T>(0.0, Round::Nearest);
  }
  return v;
}

template <class Op, class T, class... A>
T narrow(const Inst& in, A... a) {
  return finish(in, rounded<T>(Op::odd(static_cast<double>(to_float(prepared(in, a)))..., in.round), in.round));
}

/// f64 in a directed mode, by the host's rounding mode; volatile keeps the operation between the two switches.
template <class Op, class... A>
double directed(Round round, A... a) {
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const int before = std::fegetround();
  std::fesetround(kModes[static_cast<int>(round)]);
  volatile double result = [](auto... v) {
    return Op::plain(static_cast<double>(v)...);
  }(static_cast<volatile double>(a)...);
  std::fesetround(before);
  return result;
}

template <class Op, class T>
struct Lane {
  T operator()(const Inst& in, T a) const { return narrow<Op, T>(in, a); }
  T operator()(const Inst& in, T a, T b) const { return narrow<Op, T>(in, a, b); }
  T operator()(const Inst& in, T a, T b, T c) const { return narrow<Op, T>(in, a, b, c); }
};
template <class Op, class T>
struct PairLane {
  using P = Pair<T>;
  P operator()(const Inst& in, P a, P b) const {
    return {narrow<Op, T>(in, a.lo, b.lo), narrow<Op, T>(in, a.hi, b.hi)};
  }
  P operator()(const Inst& in, P a, P b, P c) const {
    return {narrow<Op, T>(in, a.lo, b.lo, c.lo), narrow<Op, T>(in, a.hi, b.hi, c.hi)};
  }
};
template <class Op>
struct DirectedLane {
  template <class... A>
  double operator()(const Inst& in, A... a) const {
    return directed<Op>(in.round, a...);
  }
};

#if defined(__x86_64__) && defined(__GNUC__)
/// The plain f32 fma where the host has the instruction, which the build need not assume; else each is a library call.
__attribute__((target("avx2,fma"))) void fused(Warp& w, const Inst& in) {
  auto* d = w.out<float>(in.ops[0]);
  const auto *a = w.in<float>(in.ops[1]), *b = w.in<float>(in.ops[2]), *c = w.in<float>(in.ops[3]);
  const float nan = std::bit_cast<float>(kNaN32);
  const auto one = [=](int l) __attribute__((target("avx2,fma"))) {
    const float v = __builtin_fmaf(a[l], b[l], c[l]);
    d[l] = v != v ? nan : v;
  };
  if (w.mask == kAllLanes) {
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) one(l);
  } else {
    for (std::uint32_t m = w.mask; m; m &= m - 1) one(std::countr_zero(m));
  }
}
Handler fused_handler() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? fused : nullptr; }
#else
Handler fused_handler() { return nullptr; }
#endif

template <int kArity, class T, class F>
Handler imap(F f) {
  if constexpr (kArity == 1) return imap1<T, T>(f);
  else if constexpr (kArity == 2) return imap2<T, T, T>(f);
  else return imap3<T, T, T, T>(f);
}

/// The handler of Op with kArity operands for the form's type and modifiers.
template <class Op, int kArity>
Handler arithmetic(Form& f) {
  f.float_modifiers();
  const bool plain = f.inst.round == Round::Nearest && f.inst.flags == 0;
  switch (f.type()) {
    case Ty::f32:
      if (!plain) return imap<kArity, float>(Lane<Op, float>{});
      if constexpr (kArity == 1) return map1<float, float>([](float a) { return canonical(Op::plain(a)); });
      else if constexpr (kArity == 2)
        return map2<float, float, float>([](float a, float b) { return canonical(Op::plain(a, b)); });
      else if (const Handler h = fused_handler()) return h;
      else
        return map3<float, float, float, float>(
            [](float a, float b, float c) { return canonical(Op::plain(a, b, c)); });
    case Ty::f64:
      if (f.inst.flags) return nullptr;
      if (f.inst.round != Round::Nearest) return imap<kArity, double>(DirectedLane<Op>{});
      if constexpr (kArity == 1) return map1<double, double>([](double a) { return Op::plain(a); });
      else if constexpr (kArity == 2)
        return map2<double, double, double>([](double a, double b) { return Op::plain(a, b); });
      else return map3<double, double, double, double>([](double a, double b, double c) { return Op::plain(a, b, c); });
    default: break;
  }
  if (f.inst.round != Round::Nearest && f.type() != Ty::f32x2) return nullptr;
  if (f.type() == Ty::f16) return imap<kArity, F16>(Lane<Op, F16>{});
  if (f.type() == Ty::bf16) return imap<kArity, BF16>(Lane<Op, BF16>{});
  if constexpr (kArity > 1) {
    if (f.type() == Ty::f16x2) return imap<kArity, Pair<F16>>(PairLane<Op, F16>{});
    if (f.type() == Ty::bf16x2) return imap<kArity, Pair<BF16>>(PairLane<Op, BF16>{});
    if (f.type() == Ty::f32x2) return imap<kArity, Pair<float>>(PairLane<Op, float>{});
  }
  return nullptr;
}

/// f32 and f64 only.
template <class Op, int kArity>
Handler wide_arithmetic(Form& f) {
  return f.type() == Ty::f32 || f.type() == Ty::f64 ? arithmetic<Op, kArity>(f) : nullptr;
}

// --- approximate functions: double(lane) → double, rounded once ---

template <class F>
struct ApproxLane {
  template <class T>
  T operator()(const Inst& in, T a) const {
    return finish(in, rounded<T>(F{}(static_cast<double>(to_float(prepared(in, a)))), Round::Nearest));
  }
};
template <class F>
struct ApproxPair {
  template <class T>
  Pair<T> operator()(const Inst& in, Pair<T> a) const {
    return {ApproxLane<F>{}(in, a.lo), ApproxLane<F>{}(in, a.hi)};
  }
};

template <class F>
Handler approximate(Form& f, F) {
  if (!f.has("approx")) return nullptr;
  f.float_modifiers();
  switch (f.type()) {
    case Ty::f32: return imap1<float, float>(ApproxLane<F>{});
    case Ty::f16: return imap1<F16, F16>(ApproxLane<F>{});
    case Ty::bf16: return imap1<BF16, BF16>(ApproxLane<F>{});
    case Ty::f16x2: return imap1<Pair<F16>, Pair<F16>>(ApproxPair<F>{});
    case Ty::bf16x2: return imap1<Pair<BF16>, Pair<BF16>>(ApproxPair<F>{});
    default: return nullptr;
  }
}
template <class F>
Handler approximate32(Form& f, F fn) {
  return f.type() == Ty::f32 ? approximate(f, fn) : nullptr;
}

}  // namespace

Handler float_add(Form& f) { return arithmetic<Add, 2>(f); }
Handler float_sub(Form& f) { return arithmetic<Sub, 2>(f); }
Handler float_mul(Form& f) {
  f.same_type_operands(3);
  return arithmetic<Mul, 2>(f);
}
Handler float_fma(Form& f) { return arithmetic<Fma, 3>(f); }

namespace {

template <class Op, class T>
Handler mixed_two() {
  return imap2<float, T, float>([](const Inst& in, T a, float b) { return narrow<Op, float>(in, to_float(a), b); });
}
template <class T>
Handler mixed_three() {
  return imap3<float, T, T, float>(
      [](const Inst& in, T a, T b, float c) { return narrow<Fma, float>(in, to_float(a), to_float(b), c); });
}
/// Operands d, narrow ones, and the last of f32; true if the types are such.
bool mixed_operands(Form& f, std::size_t n) {
  const Ty narrow_type = f.type(1);
  if (f.type() != Ty::f32 || (narrow_type != Ty::f16 && narrow_type != Ty::bf16) || f.count() != n) return false;
  f.float_modifiers();
  f.dst(0, Ty::f32);
  for (std::size_t i = 1; i + 1 < n; ++i) f.src(i, narrow_type);
  f.src(n - 1, Ty::f32);
  return true;
}

}  // namespace

Handler mixed_add(Form& f) {
  return !mixed_operands(f, 3) ? nullptr : f.type(1) == Ty::f16 ? mixed_two<Add, F16>() : mixed_two<Add, BF16>();
}
Handler mixed_sub(Form& f) {
  return !mixed_operands(f, 3) ? nullptr : f.type(1) == Ty::f16 ? mixed_two<Sub, F16>() : mixed_two<Sub, BF16>();
}
Handler mixed_fma(Form& f) {
  return !mixed_operands(f, 4) ? nullptr : f.type(1) == Ty::f16 ? mixed_three<F16>() : mixed_three<BF16>();
}

namespace {

/// One of .approx, .full (of div.f32) and a rounding mode.
bool precision_is_known(Form& f, bool full) {
  const int n = f.has("approx") + (full && f.has("full")) + f.has("rn") + f.has("rz") + f.has("rm") + f.has("rp");
  return n == 1;
}

}  // namespace

Handler float_div(Form& f) {
  return precision_is_known(f, f.type() == Ty::f32) && (f.type() == Ty::f32 || !f.has("approx"))
             ? wide_arithmetic<Div, 2>(f)
             : nullptr;
}

namespace {

/// .approx.ftz.f64 sees the upper half of its operand and gives the upper half of a result of some 20 bits; nvcc
/// refines it. Here the result is exact before it is cut.
double upper_half(double v) { return std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) & 0xFFFFFFFF00000000); }
double flushed64(double v) { return std::fabs(v) < 0x1p-1022 ? std::copysign(0.0, v) : v; }
template <class F>
Handler gross_approximation(F) {
  return map1<double, double>([](double a) { return upper_half(flushed64(F{}(flushed64(upper_half(a))))); });
}

}  // namespace

Handler make_rcp(Form& f) {
  if (f.type() == Ty::f64 && f.has("approx"))
    return f.has("ftz") ? gross_approximation([](double a) { return 1 / a; }) : nullptr;
  return precision_is_known(f, false) ? wide_arithmetic<Rcp, 1>(f) : nullptr;
}
Handler make_sqrt(Form& f) {
  return precision_is_known(f, false) && (f.type() == Ty::f32 || !f.has("approx")) ? wide_arithmetic<Sqrt, 1>(f)
                                                                                   : nullptr;
}

Handler make_rsqrt(Form& f) {
  if (!f.has("approx")) return nullptr;
  if (f.type() == Ty::f64 && f.has("ftz")) return gross_approximation([](double a) { return 1 / std::sqrt(a); });
  if (f.type() == Ty::f64) return map1<double, double>([](double a) { return 1.0 / std::sqrt(a); });
  return approximate32(f, [](double a) { return 1.0 / std::sqrt(a); });
}
Handler make_ex2(Form& f) {
  return approximate(f, [](double a) { return std::exp2(a); });
}
Handler make_lg2(Form& f) {
  return approximate32(f, [](double a) { return std::log2(a); });
}
Handler make_sin(Form& f) {
  return approximate32(f, [](double a) { return std::sin(a); });
}
Handler make_cos(Form& f) {
  return approximate32(f, [](double a) { return std::cos(a); });
}
Handler make_tanh(Form& f) {
  return approximate(f, [](double a) { return std::tanh(a); });
}

}  // namespace kiln::rt::sim

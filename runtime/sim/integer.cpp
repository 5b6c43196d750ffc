// Integer arithmetic. Overflow wraps; division by zero gives all ones and remainder the dividend, as the hardware does.
#include <algorithm>
#include <limits>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

template <class T>
using U = std::make_unsigned_t<T>;

/// Wraps in 64 bits (128 for the upper half of a product), so that nothing is undefined.
template <class T>
T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T>
T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
template <class T>
T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

template <class T>
T mul_high(T a, T b) {
  if constexpr (sizeof(T) < 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>((Wide{a} * Wide{b}) >> (8 * sizeof(T)));
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, Int128, UInt128>;
    return static_cast<T>((Wide{a} * Wide{b}) >> 64);
  }
}

template <class T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return wrap_sub<T>(0, a);
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

std::int32_t saturated(std::int64_t v) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(v, INT32_MIN, INT32_MAX));
}

template <class T>
using Wider = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                                 std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
template <class T>
Wider<T> mul_wide(T a, T b) {
  if constexpr (std::is_signed_v<T>) return static_cast<Wider<T>>(std::int64_t{a} * std::int64_t{b});
  else return static_cast<Wider<T>>(std::uint64_t{a} * std::uint64_t{b});
}
Ty wider(Ty t) { return t == Ty::u16 ? Ty::u32 : t == Ty::s16 ? Ty::s32 : t == Ty::u32 ? Ty::u64 : Ty::s64; }

/// Binary operation on each half of a 16x2 register.
template <class T, class F>
Handler halves(F) {
  return map2<std::uint32_t, std::uint32_t, std::uint32_t>([](std::uint32_t a, std::uint32_t b) {
    const auto one = [](std::uint32_t x, std::uint32_t y) {
      return std::uint32_t{static_cast<std::uint16_t>(F{}(static_cast<T>(x), static_cast<T>(y)))};
    };
    return one(a & 0xFFFF, b & 0xFFFF) | one(a >> 16, b >> 16) << 16;
  });
}

// --- carry chains: a + b + carry-in, with flags kIn (uses the carry), kOut (sets it), kBorrow (subtracts) ---
enum : std::uint16_t { kIn = 1, kOut = 2, kBorrow = 4 };

/// The carry is a predicate of the warp, the last operand.
template <class T>
void carry_add(Warp& w, const Inst& in) {
  auto* d = w.out<Word<T>>(in.ops[0]);
  const auto* a = w.in<Word<T>>(in.ops[1]);
  const auto* b = w.in<Word<T>>(in.ops[2]);
  const std::uint32_t carry = in.flags & kIn ? w.pred(in.ops[3]) : 0;
  std::uint32_t out = 0;
  each_lane(w.mask, [&](int l) {
    const T x = static_cast<T>(a[l]), y = static_cast<T>(b[l]), c = carry >> l & 1;
    UInt128 sum;
    if (in.flags & kBorrow) sum = UInt128{x} - y - c;
    else sum = UInt128{x} + y + c;
    d[l] = static_cast<T>(sum);
    out |= static_cast<std::uint32_t>(sum >> (8 * sizeof(T)) & 1) << l;
  });
  if (in.flags & kOut) set_pred(w, in.ops[3], out);
}

Handler carry_form(Form& f, std::uint16_t flags) {
  f.add_reference_of_carry();
  f.inst.flags = flags;
  return bits(f.type()) == 64 ? carry_add<std::uint64_t> : bits(f.type()) == 32 ? carry_add<std::uint32_t> : nullptr;
}

/// mad.cc and madc: the product's low or high half, then as carry_add. ops: d a b c carry.
template <class T, bool kHigh>
void carry_mad(Warp& w, const Inst& in) {
  auto* d = w.out<Word<T>>(in.ops[0]);
  const std::uint32_t carry = in.flags & kIn ? w.pred(in.ops[4]) : 0;
  std::uint32_t out = 0;
  each_lane(w.mask, [&](int l) {
    const T a = static_cast<T>(w.in<Word<T>>(in.ops[1])[l]), b = static_cast<T>(w.in<Word<T>>(in.ops[2])[l]);
    const U<T> product = static_cast<U<T>>(kHigh ? mul_high(a, b) : wrap_mul(a, b));
    const UInt128 sum = UInt128{product} + static_cast<U<T>>(w.in<Word<T>>(in.ops[3])[l]) + (carry >> l & 1);
    d[l] = static_cast<U<T>>(sum);
    out |= static_cast<std::uint32_t>(sum >> (8 * sizeof(T)) & 1) << l;
  });
  if (in.flags & kOut) set_pred(w, in.ops[4], out);
}

Handler carry_mad_form(Form& f, std::uint16_t flags) {
  f.add_reference_of_carry();
  f.inst.flags = flags;
  if (f.has("lo") == f.has("hi")) return nullptr;
  return for_int(f.type(), [&](auto t) -> Handler {
    using T = decltype(t);
    if constexpr (sizeof(T) == 2) return nullptr;
    else return f.has("hi") ? carry_mad<T, true> : carry_mad<T, false>;
  });
}

constexpr std::uint32_t low24(std::uint32_t v) { return v & 0xFFFFFF; }
constexpr std::int32_t low24(std::int32_t v) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << 8) >> 8;
}
/// Bits 0–31, or 16–47, of the 48-bit product.
template <class T, bool kHigh>
T mul24(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const Wide p = Wide{low24(a)} * Wide{low24(b)};
  return static_cast<T>(kHigh ? p >> 16 : p);
}

}  // namespace

Handler int_add(Form& f) {
  if (f.has("cc")) return carry_form(f, kOut);
  if (f.type() == Ty::u16x2 || f.type() == Ty::s16x2)
    return halves<std::uint16_t>([](std::uint16_t a, std::uint16_t b) { return wrap_add(a, b); });
  if (f.has("sat")) {
    if (f.type() != Ty::s32) return nullptr;
    return map2<std::int32_t, std::int32_t, std::int32_t>(
        [](std::int32_t a, std::int32_t b) { return saturated(std::int64_t{a} + b); });
  }
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, T>([](T a, T b) { return wrap_add(a, b); });
  });
}
Handler int_sub(Form& f) {
  if (f.has("cc")) return carry_form(f, kOut | kBorrow);
  if (f.has("sat")) {
    if (f.type() != Ty::s32) return nullptr;
    return map2<std::int32_t, std::int32_t, std::int32_t>(
        [](std::int32_t a, std::int32_t b) { return saturated(std::int64_t{a} - b); });
  }
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, T>([](T a, T b) { return wrap_sub(a, b); });
  });
}

Handler int_mul(Form& f) {
  const bool wide = f.has("wide");
  if (wide && bits(f.type()) == 64) return nullptr;
  f.dst(0, wide ? wider(f.type()) : f.type());
  f.src(1, f.type());
  f.src(2, f.type());
  return for_int(f.type(), [&](auto t) -> Handler {
    using T = decltype(t);
    if (f.has("lo")) return map2<T, T, T>([](T a, T b) { return wrap_mul(a, b); });
    if (f.has("hi")) return map2<T, T, T>([](T a, T b) { return mul_high(a, b); });
    if constexpr (sizeof(T) < 8)
      if (wide) return map2<Wider<T>, T, T>([](T a, T b) { return mul_wide(a, b); });
    return nullptr;
  });
}

Handler int_mad(Form& f) {
  const bool wide = f.has("wide");
  if (wide && bits(f.type()) == 64) return nullptr;
  f.dst(0, wide ? wider(f.type()) : f.type());
  f.src(1, f.type());
  f.src(2, f.type());
  f.src(3, wide ? wider(f.type()) : f.type());
  if (f.has("cc")) return carry_mad_form(f, kOut);
  if (f.has("sat")) {
    if (f.type() != Ty::s32 || !f.has("hi")) return nullptr;
    using I = std::int32_t;
    return map3<I, I, I, I>([](I a, I b, I c) { return saturated(std::int64_t{mul_high(a, b)} + c); });
  }
  return for_int(f.type(), [&](auto t) -> Handler {
    using T = decltype(t);
    if (f.has("lo")) return map3<T, T, T, T>([](T a, T b, T c) { return wrap_add(wrap_mul(a, b), c); });
    if (f.has("hi")) return map3<T, T, T, T>([](T a, T b, T c) { return wrap_add(mul_high(a, b), c); });
    if constexpr (sizeof(T) < 8) {
      using W = Wider<T>;
      if (wide) return map3<W, T, T, W>([](T a, T b, W c) { return wrap_add(mul_wide(a, b), c); });
    }
    return nullptr;
  });
}

Handler int_div(Form& f) {
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, T>([](T a, T b) { return divide(a, b); });
  });
}
Handler make_rem(Form& f) {
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, T>([](T a, T b) { return remainder(a, b); });
  });
}
Handler int_abs(Form& f) {
  if (kind(f.type()) == TyKind::UInt) f.fail("is of signed types only");
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map1<T, T>([](T a) { return a < 0 ? wrap_sub<T>(0, a) : a; });
  });
}
Handler int_neg(Form& f) {
  if (kind(f.type()) == TyKind::UInt) f.fail("is of signed types only");
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map1<T, T>([](T a) { return wrap_sub<T>(0, a); });
  });
}
Handler int_min(Form& f) {
  if (f.has("relu")) {
    if (f.type() == Ty::s32)
      return map2<std::int32_t, std::int32_t, std::int32_t>(
          [](std::int32_t a, std::int32_t b) { return std::max(std::min(a, b), 0); });
    if (f.type() != Ty::s16x2) return nullptr;
    return halves<std::int16_t>(
        [](std::int16_t a, std::int16_t b) { return std::max<std::int16_t>(std::min(a, b), 0); });
  }
  if (f.type() == Ty::u16x2)
    return halves<std::uint16_t>([](std::uint16_t a, std::uint16_t b) { return std::min(a, b); });
  if (f.type() == Ty::s16x2) return halves<std::int16_t>([](std::int16_t a, std::int16_t b) { return std::min(a, b); });
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, T>([](T a, T b) { return std::min(a, b); });
  });
}
Handler int_max(Form& f) {
  if (f.has("relu")) {
    if (f.type() == Ty::s32)
      return map2<std::int32_t, std::int32_t, std::int32_t>(
          [](std::int32_t a, std::int32_t b) { return std::max(std::max(a, b), 0); });
    if (f.type() != Ty::s16x2) return nullptr;
    return halves<std::int16_t>(
        [](std::int16_t a, std::int16_t b) { return std::max<std::int16_t>(std::max(a, b), 0); });
  }
  if (f.type() == Ty::u16x2)
    return halves<std::uint16_t>([](std::uint16_t a, std::uint16_t b) { return std::max(a, b); });
  if (f.type() == Ty::s16x2) return halves<std::int16_t>([](std::int16_t a, std::int16_t b) { return std::max(a, b); });
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, T>([](T a, T b) { return std::max(a, b); });
  });
}

Handler make_addc(Form& f) { return carry_form(f, f.has("cc") ? kIn | kOut : kIn); }
Handler make_subc(Form& f) { return carry_form(f, f.has("cc") ? kIn | kOut | kBorrow : kIn | kBorrow); }
Handler make_madc(Form& f) { return carry_mad_form(f, f.has("cc") ? kIn | kOut : kIn); }

Handler make_mul24(Form& f) {
  if (f.has("lo") == f.has("hi")) return nullptr;
  const auto pick = [&](auto t) -> Handler {
    using T = decltype(t);
    return f.has("hi") ? map2<T, T, T>([](T a, T b) { return mul24<T, true>(a, b); })
                       : map2<T, T, T>([](T a, T b) { return mul24<T, false>(a, b); });
  };
  return f.type() == Ty::u32 ? pick(std::uint32_t{}) : f.type() == Ty::s32 ? pick(std::int32_t{}) : nullptr;
}
Handler make_mad24(Form& f) {
  if (f.has("sat")) {
    using I = std::int32_t;
    if (f.type() != Ty::s32 || !f.has("hi") || f.has("lo")) return nullptr;
    return map3<I, I, I, I>([](I a, I b, I c) { return saturated(std::int64_t{mul24<I, true>(a, b)} + c); });
  }
  if (f.has("lo") == f.has("hi")) return nullptr;
  const auto pick = [&](auto t) -> Handler {
    using T = decltype(t);
    return f.has("hi") ? map3<T, T, T, T>([](T a, T b, T c) { return wrap_add(mul24<T, true>(a, b), c); })
                       : map3<T, T, T, T>([](T a, T b, T c) { return wrap_add(mul24<T, false>(a, b), c); });
  };
  return f.type() == Ty::u32 ? pick(std::uint32_t{}) : f.type() == Ty::s32 ? pick(std::int32_t{}) : nullptr;
}
Handler make_sad(Form& f) {
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map3<T, T, T, T>([](T a, T b, T c) { return wrap_add(c, a < b ? wrap_sub(b, a) : wrap_sub(a, b)); });
  });
}

namespace {

/// Sum of products of the four bytes of a with the four bytes, or two 16-bit halves, of the other operand.
template <bool kSignedA, bool kSignedB, int kMode>
std::uint32_t dot(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const auto byte = [](std::uint32_t v, int i, bool sign) -> std::int64_t {
    const std::uint32_t x = v >> (8 * i) & 0xFF;
    return sign ? static_cast<std::int8_t>(x) : static_cast<std::int64_t>(x);
  };
  const auto half = [](std::uint32_t v, int i, bool sign) -> std::int64_t {
    const std::uint32_t x = v >> (16 * i) & 0xFFFF;
    return sign ? static_cast<std::int16_t>(x) : static_cast<std::int64_t>(x);
  };
  std::int64_t sum = c;
  if constexpr (kMode == 4) {
    for (int i = 0; i < 4; ++i) sum += byte(a, i, kSignedA) * byte(b, i, kSignedB);
  } else {  // dp2a: halves of a with the lower (kMode 0) or upper (kMode 1) bytes of b
    for (int i = 0; i < 2; ++i) sum += half(a, i, kSignedA) * byte(b, i + 2 * kMode, kSignedB);
  }
  return static_cast<std::uint32_t>(sum);
}

template <int kMode>
Handler dot_form(Form& f) {
  if (f.count() != 4 || f.types.size() != 2) f.fail("needs two types, a result and three operands");
  f.dst(0, Ty::b32);
  for (std::size_t i = 1; i < 4; ++i) f.src(i, Ty::b32);
  const auto ok = [](Ty t) { return t == Ty::u32 || t == Ty::s32; };
  if (!ok(f.type(0)) || !ok(f.type(1))) return nullptr;
  const auto pick = [](auto fn) { return map3<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>(fn); };
  using W = std::uint32_t;
  if (f.type(0) == Ty::s32)
    return f.type(1) == Ty::s32 ? pick([](W a, W b, W c) { return dot<true, true, kMode>(a, b, c); })
                                : pick([](W a, W b, W c) { return dot<true, false, kMode>(a, b, c); });
  return f.type(1) == Ty::s32 ? pick([](W a, W b, W c) { return dot<false, true, kMode>(a, b, c); })
                              : pick([](W a, W b, W c) { return dot<false, false, kMode>(a, b, c); });
}

}  // namespace

Handler make_dp4a(Form& f) { return dot_form<4>(f); }
Handler make_dp2a(Form& f) {
  return f.has("hi") == f.has("lo") ? nullptr : f.has("hi") ? dot_form<1>(f) : dot_form<0>(f);
}

}  // namespace kiln::rt::sim

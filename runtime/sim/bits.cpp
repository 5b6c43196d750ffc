// Logic, shifts, bit fields and byte permutation.
#include <algorithm>
#include <bit>

#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using I32 = std::int32_t;
using U64 = std::uint64_t;

// Logic on predicates works on the lane masks themselves.
template <class F>
Handler pred2(F) {
  return [](Warp& w, const Inst& in) { set_pred(w, in.ops[0], F{}(w.pred(in.ops[1]), w.pred(in.ops[2]))); };
}
template <class F>
Handler logic(Form& f, F) {
  if (f.type() == Ty::pred) return pred2(F{});
  if (kind(f.type()) != TyKind::Bits) return nullptr;
  return for_bits(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, T>([](T a, T b) { return static_cast<T>(F{}(a, b)); });
  });
}

template <class T>
T shift_left(T a, U32 n) {
  return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n);
}
template <class T>
T shift_right(T a, U32 n) {
  return static_cast<T>(a >> std::min<U32>(n, 8 * sizeof(T) - 1));
}
template <class T>
T logic_shift_right(T a, U32 n) {
  return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a >> n);
}

template <class T>
T reverse_bits(T v) {
  T r = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i) r = static_cast<T>(r | ((v >> i & 1) << (8 * sizeof(T) - 1 - i)));
  return r;
}

/// `n` bits of a from bit `at`, sign-extended for signed T with the last bit inside the value.
template <class T>
T extract(T a, U32 at, U32 n) {
  constexpr U32 kBits = 8 * sizeof(T);
  using U = std::make_unsigned_t<T>;
  at &= 0xFF;
  n &= 0xFF;
  if (n == 0) return 0;
  const U32 top = std::min(at + n - 1, kBits - 1);
  const bool sign = std::is_signed_v<T> && (static_cast<U>(a) >> top & 1);
  if (at >= kBits) return sign ? static_cast<T>(-1) : T{0};
  const U field = static_cast<U>(static_cast<U>(a) >> at);
  n = std::min(n, kBits - at);
  if (n == kBits) return static_cast<T>(field);
  const U keep = static_cast<U>((U{1} << n) - 1);
  return static_cast<T>(sign ? (field & keep) | static_cast<U>(~keep) : field & keep);
}
template <class T>
T insert(T a, T b, U32 at, U32 n) {
  constexpr U32 kBits = 8 * sizeof(T);
  at &= 0xFF;
  n &= 0xFF;
  if (at >= kBits || n == 0) return b;
  n = std::min(n, kBits - at);
  const T ones = n == kBits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << n) - 1);
  const T mask = static_cast<T>(ones << at);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << at) & mask));
}

/// Position of the most significant bit that differs from the sign; all ones if there is none.
template <class T, bool kShift>
U32 find_bit(T a) {
  using U = std::make_unsigned_t<T>;
  U v = static_cast<U>(a);
  if (std::is_signed_v<T> && a < 0) v = static_cast<U>(~v);
  if (v == 0) return 0xFFFFFFFF;
  const auto zeros = static_cast<U32>(std::countl_zero(v));
  return kShift ? zeros : static_cast<U32>(8 * sizeof(T)) - 1 - zeros;
}

/// One byte of b:a by a 4-bit selector; its top bit replicates the byte's sign.
U32 selected_byte(U64 ba, U32 selector) {
  const U32 byte = static_cast<U32>(ba >> (8 * (selector & 7)) & 0xFF);
  return selector & 8 ? (byte & 0x80 ? 0xFF : 0) : byte;
}
U32 permute(U32 a, U32 b, U32 c) {
  const U64 ba = U64{b} << 32 | a;
  U32 r = 0;
  for (U32 i = 0; i < 4; ++i) r |= selected_byte(ba, c >> (4 * i) & 15) << (8 * i);
  return r;
}
/// The special modes choose the four selectors from the low two bits of c.
template <int kMode>
U32 permute_mode(U32 a, U32 b, U32 c) {
  static constexpr U32 kTable[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
      {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
      {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
      {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
      {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
      {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
  };
  return permute(a, b, kTable[kMode][c & 3]);
}

U32 lop3(const Inst& in, U32 a, U32 b, U32 c) {
  U32 r = 0;
  for (int i = 0; i < 8; ++i)
    if (in.imm >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}

/// The n-th set bit of mask from `base` on (n > 0: upwards, n < 0: downwards, 0: base itself), or all ones.
U32 find_nth_set(U32 mask, U32 base, U32 offset) {
  auto n = static_cast<I32>(offset);
  if (base > 31) return 0xFFFFFFFF;
  if (n == 0) return mask >> base & 1 ? base : 0xFFFFFFFF;
  const int step = n > 0 ? 1 : -1;
  for (int i = static_cast<int>(base); i >= 0 && i < 32; i += step)
    if (mask >> i & 1 && (n -= step) == 0) return static_cast<U32>(i);
  return 0xFFFFFFFF;
}

}  // namespace

Handler make_and(Form& f) {
  return logic(f, [](auto a, auto b) { return a & b; });
}
Handler make_or(Form& f) {
  return logic(f, [](auto a, auto b) { return a | b; });
}
Handler make_xor(Form& f) {
  return logic(f, [](auto a, auto b) { return a ^ b; });
}
Handler make_not(Form& f) {
  if (f.type() == Ty::pred) return [](Warp& w, const Inst& in) { set_pred(w, in.ops[0], ~w.pred(in.ops[1])); };
  return for_bits(f.type(), [](auto t) {
    using T = decltype(t);
    return map1<T, T>([](T a) { return static_cast<T>(~a); });
  });
}
Handler make_cnot(Form& f) {
  return for_bits(f.type(), [](auto t) {
    using T = decltype(t);
    return map1<T, T>([](T a) { return static_cast<T>(a == 0); });
  });
}

Handler make_shl(Form& f) {
  return for_bits(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, U32>([](T a, U32 n) { return shift_left(a, n); });
  });
}
Handler make_shr(Form& f) {
  if (is_signed(f.type()))
    return for_int(f.type(), [](auto t) {
      using T = decltype(t);
      return map2<T, T, U32>([](T a, U32 n) { return shift_right(a, n); });
    });
  return for_bits(f.type(), [](auto t) {
    using T = decltype(t);
    return map2<T, T, U32>([](T a, U32 n) { return logic_shift_right(a, n); });
  });
}
Handler make_shf(Form& f) {
  if (f.type() != Ty::b32 || f.has("clamp") == f.has("wrap")) return nullptr;
  if (f.has("l") && f.has("wrap"))
    return map3<U32, U32, U32, U32>(
        [](U32 a, U32 b, U32 c) { return static_cast<U32>(((U64{b} << 32 | a) << (c & 31)) >> 32); });
  if (f.has("l"))
    return map3<U32, U32, U32, U32>(
        [](U32 a, U32 b, U32 c) { return static_cast<U32>(((U64{b} << 32 | a) << std::min(c, 32u)) >> 32); });
  if (f.has("r") && f.has("wrap"))
    return map3<U32, U32, U32, U32>(
        [](U32 a, U32 b, U32 c) { return static_cast<U32>((U64{b} << 32 | a) >> (c & 31)); });
  if (f.has("r"))
    return map3<U32, U32, U32, U32>(
        [](U32 a, U32 b, U32 c) { return static_cast<U32>((U64{b} << 32 | a) >> std::min(c, 32u)); });
  return nullptr;
}

Handler make_popc(Form& f) {
  if (f.type() == Ty::b32) return map1<U32, U32>([](U32 a) { return static_cast<U32>(std::popcount(a)); });
  if (f.type() == Ty::b64) return map1<U32, U64>([](U64 a) { return static_cast<U32>(std::popcount(a)); });
  return nullptr;
}
Handler make_clz(Form& f) {
  if (f.type() == Ty::b32) return map1<U32, U32>([](U32 a) { return static_cast<U32>(std::countl_zero(a)); });
  if (f.type() == Ty::b64) return map1<U32, U64>([](U64 a) { return static_cast<U32>(std::countl_zero(a)); });
  return nullptr;
}
Handler make_bfind(Form& f) {
  if (bits(f.type()) < 32) return nullptr;
  return for_int(f.type(), [&](auto t) -> Handler {
    using T = decltype(t);
    if (f.has("shiftamt")) return map1<U32, T>([](T a) { return find_bit<T, true>(a); });
    return map1<U32, T>([](T a) { return find_bit<T, false>(a); });
  });
}
Handler make_brev(Form& f) {
  return for_bits(f.type(), [](auto t) {
    using T = decltype(t);
    return map1<T, T>([](T a) { return reverse_bits(a); });
  });
}
Handler make_bfe(Form& f) {
  if (bits(f.type()) < 32) return nullptr;
  return for_int(f.type(), [](auto t) {
    using T = decltype(t);
    return map3<T, T, U32, U32>([](T a, U32 at, U32 n) { return extract(a, at, n); });
  });
}
Handler make_bfi(Form& f) {
  const auto pick = [](auto t) -> Handler {
    using T = decltype(t);
    return [](Warp& w, const Inst& in) {
      auto* d = w.out<T>(in.ops[0]);
      const auto *a = w.in<T>(in.ops[1]), *b = w.in<T>(in.ops[2]);
      const auto *at = w.in<U32>(in.ops[3]), *n = w.in<U32>(in.ops[4]);
      each_lane(w.mask, [=](int l) { d[l] = insert(a[l], b[l], at[l], n[l]); });
    };
  };
  return f.type() == Ty::b32 ? pick(U32{}) : f.type() == Ty::b64 ? pick(U64{}) : nullptr;
}
Handler make_bmsk(Form& f) {
  if (f.type() != Ty::b32 || f.has("clamp") == f.has("wrap")) return nullptr;
  if (f.has("wrap")) return map2<U32, U32, U32>([](U32 at, U32 n) { return insert(~0u, 0u, at & 31, n & 31); });
  return map2<U32, U32, U32>([](U32 at, U32 n) { return insert(~0u, 0u, std::min(at, 255u), std::min(n, 255u)); });
}
Handler make_szext(Form& f) {
  const bool wrap = f.has("wrap");
  if (wrap == f.has("clamp")) return nullptr;
  if (f.type() == Ty::u32) {
    if (wrap) return map2<U32, U32, U32>([](U32 a, U32 n) { return extract(a, 0u, n & 31); });
    return map2<U32, U32, U32>([](U32 a, U32 n) { return extract(a, 0u, std::min(n, 32u)); });
  }
  if (f.type() != Ty::s32) return nullptr;
  if (wrap) return map2<I32, I32, U32>([](I32 a, U32 n) { return extract(a, 0u, n & 31); });
  return map2<I32, I32, U32>([](I32 a, U32 n) { return extract(a, 0u, std::min(n, 32u)); });
}
Handler make_fns(Form& f) {
  return f.type() == Ty::b32 ? map3<U32, U32, U32, U32>([](U32 m, U32 base, U32 n) { return find_nth_set(m, base, n); })
                             : nullptr;
}

Handler make_prmt(Form& f) {
  if (f.type() != Ty::b32) return nullptr;
  using W = U32;
  if (f.has("f4e")) return map3<W, W, W, W>([](W a, W b, W c) { return permute_mode<0>(a, b, c); });
  if (f.has("b4e")) return map3<W, W, W, W>([](W a, W b, W c) { return permute_mode<1>(a, b, c); });
  if (f.has("rc8")) return map3<W, W, W, W>([](W a, W b, W c) { return permute_mode<2>(a, b, c); });
  if (f.has("ecl")) return map3<W, W, W, W>([](W a, W b, W c) { return permute_mode<3>(a, b, c); });
  if (f.has("ecr")) return map3<W, W, W, W>([](W a, W b, W c) { return permute_mode<4>(a, b, c); });
  if (f.has("rc16")) return map3<W, W, W, W>([](W a, W b, W c) { return permute_mode<5>(a, b, c); });
  return map3<W, W, W, W>([](W a, W b, W c) { return permute(a, b, c); });
}
namespace {

/// lop3 with a predicate: p = (d != 0) and/or q. ops: d, a, b, c, p, q. in.count: and.
void lop3_test(Warp& w, const Inst& in) {
  auto* d = w.out<U32>(in.ops[0]);
  const auto *a = w.in<U32>(in.ops[1]), *b = w.in<U32>(in.ops[2]), *c = w.in<U32>(in.ops[3]);
  U32 some = 0;
  each_lane(w.mask, [&](int l) {
    d[l] = lop3(in, a[l], b[l], c[l]);
    some |= static_cast<U32>(d[l] != 0) << l;
  });
  const U32 q = w.pred(in.ops[5]);
  set_pred(w, in.ops[4], in.count ? some & q : some | q);
}

}  // namespace

Handler make_lop3(Form& f) {
  const bool tests = f.has("and") != f.has("or");
  if (f.type() != Ty::b32 || f.types.size() != 1 || f.count() != (tests ? 6u : 5u)) return nullptr;
  if (f.operand(0).parts.empty() == tests) f.fail("needs a predicate result with .and or .or, and only then");
  f.inst.imm = f.immediate(4);
  if (f.inst.imm < 0 || f.inst.imm > 255) f.fail("the truth table has 8 bits");
  f.dst(0, Ty::b32);
  for (std::size_t i = 1; i < 4; ++i) f.src(i, Ty::b32);
  if (!tests) return imap3<U32, U32, U32, U32>([](const Inst& in, U32 a, U32 b, U32 c) { return lop3(in, a, b, c); });
  f.dst(f.operand(0).parts[0], Ty::pred);
  f.src(5, Ty::pred);
  f.inst.count = f.has("and");
  return lop3_test;
}

}  // namespace kiln::rt::sim

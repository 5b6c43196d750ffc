// mov in all its forms, and conversions between address spaces.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using Kind = ptx::Operand::Kind;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

void mov_pred(Warp& w, const Inst& in) { set_pred(w, in.ops[0], w.pred(in.ops[1])); }

/// Time as the block sees it: warp instructions executed so far.
template <class T>
void read_clock(Warp& w, const Inst& in) {
  auto* d = w.out<T>(in.ops[0]);
  const U64 now = w.block->instructions >> in.size;  // in.size: bits below those asked for
  each_lane(w.mask, [=](int l) { d[l] = static_cast<T>(now); });
}

// Packing: in.size is the bits of a part, in.wide whether the whole register has 64 bits, in.sign whether parts have.
void pack(Warp& w, const Inst& in) {
  each_lane(w.mask, [&](int l) {
    U64 v = 0;
    for (int i = 1; i < in.n_ops; ++i) {
      const U64 part = w.in<U32>(in.ops[i])[l];
      v |= (in.size == 32 ? part : part & ((1u << in.size) - 1)) << (in.size * (i - 1));
    }
    if (in.wide) w.out<U64>(in.ops[0])[l] = v;
    else w.out<U32>(in.ops[0])[l] = static_cast<U32>(v);
  });
}
/// ops: source, parts; a part nobody wants goes to the sink.
void unpack(Warp& w, const Inst& in) {
  each_lane(w.mask, [&](int l) {
    const U64 v = in.wide ? w.in<U64>(in.ops[0])[l] : w.in<U32>(in.ops[0])[l];
    for (int i = 1; i < in.n_ops; ++i) {
      const U64 part = v >> (in.size * (i - 1));
      w.out<U32>(in.ops[i])[l] = static_cast<U32>(in.size == 32 ? part : part & ((1u << in.size) - 1));
    }
  });
}

Ty part_type(Form& f, std::size_t parts) {
  const int n = bits(f.type()) / static_cast<int>(parts);
  f.inst.size = static_cast<std::uint8_t>(n);
  f.inst.wide = bits(f.type()) == 64;
  return n == 32 ? Ty::b32 : n == 16 ? Ty::b16 : n == 8 ? Ty::b8 : Ty::none;
}

/// ops: two results, two sources.
void mov_two(Warp& w, const Inst& in) {
  auto *lo = w.out<U64>(in.ops[0]), *hi = w.out<U64>(in.ops[1]);
  const auto *a = w.in<U64>(in.ops[2]), *b = w.in<U64>(in.ops[3]);
  each_lane(w.mask, [=](int l) {
    const U64 x = a[l], y = b[l];
    lo[l] = x;
    hi[l] = y;
  });
}
/// .b128: a register of that width is two of 64 bits.
Handler mov_128(Form& f) {
  for (std::size_t i = 0; i < 2; ++i) {
    const ptx::Operand& o = f.operand(i);
    if (o.kind != Kind::Vector) {
      if (i == 0) f.dst_128(o);
      else f.src_128(o);
      continue;
    }
    if (o.parts.size() != 2) f.fail("128 bits are two registers of 64");
    for (const ptx::Operand& p : o.parts) {
      if (i == 0) f.dst(p, Ty::b64);
      else f.src(p, Ty::b64);
    }
  }
  return mov_two;
}

Handler mov_vector(Form& f) {
  const bool packs = f.operand(1).kind == Kind::Vector;
  const auto& parts = f.operand(packs ? 1 : 0).parts;
  if (bits(f.type()) > 64 || (parts.size() != 2 && parts.size() != 4)) return nullptr;
  const Ty part = part_type(f, parts.size());
  if (part == Ty::none) return nullptr;
  if (packs) f.dst(0, f.type());
  else f.src(1, f.type());
  for (const ptx::Operand& p : parts) {
    if (packs) f.src(p, part);
    else f.dst(p, part);
  }
  return packs ? pack : unpack;
}

/// ops: results, then as many sources.
template <class T>
void mov_each(Warp& w, const Inst& in) {
  const std::size_t n = in.n_ops / 2u;
  T from[4][kLanes];  // a result may be a source
  for (std::size_t i = 0; i < n; ++i) std::copy_n(w.in<T>(in.ops[n + i]), kLanes, from[i]);
  for (std::size_t i = 0; i < n; ++i) {
    auto* to = w.out<T>(in.ops[i]);
    each_lane(w.mask, [&, to](int l) { to[l] = from[i][l]; });
  }
}

/// mov.v2 and mov.v4 of vector registers, lists of registers, and %tid and the like, whose fourth element is 0.
Handler mov_elements(Form& f, std::size_t n) {
  const Ty t = f.type();
  if (t == Ty::pred || bits(t) > 64 || bits(t) < 16 || f.operand(0).parts.size() != n) return nullptr;
  for (const ptx::Operand& p : f.operand(0).parts) f.dst(p, t);
  const ptx::Operand& from = f.operand(1);
  if (from.kind == Kind::Special && n == 4 && bits(t) == 32) {
    const auto elements = special_elements(from.name);
    if (!elements) f.fail(fmt::format("the special register {} is no vector", from.name));
    for (const SpecialName& element : *elements) f.special(element, t);
    f.zero();
  } else {
    if (from.kind != Kind::Vector || from.parts.size() != n) return nullptr;
    for (const ptx::Operand& p : from.parts) f.src(p, t);
  }
  return bits(t) == 64 ? mov_each<U64> : mov_each<U32>;
}

// --- address spaces: generic = window + address in the space ---

struct Window {
  U64 base = 0;  // 0: the space has the generic addresses themselves
  bool known = false;
};
Window window_of(const Form& f) {
  if (f.has("shared") || f.has("shared::cta") || f.has("shared::cluster")) return {kSharedWindow, true};
  if (f.has("local")) return {kLocalWindow, true};
  if (f.has("param") || f.has("param::entry")) return {kParamWindow, true};
  return {0, f.has("global") || f.has("const")};
}

template <class T>
void to_generic(Warp& w, const Inst& in) {
  auto* d = w.out<T>(in.ops[0]);
  const auto* a = w.in<T>(in.ops[1]);
  const U64 base = static_cast<U64>(in.imm);
  each_lane(w.mask, [=](int l) { d[l] = static_cast<T>(a[l] + base); });
}
template <class T>
void from_generic(Warp& w, const Inst& in) {
  auto* d = w.out<T>(in.ops[0]);
  const auto* a = w.in<T>(in.ops[1]);
  const U64 base = static_cast<U64>(in.imm);
  each_lane(w.mask, [=](int l) { d[l] = static_cast<T>(a[l] - base); });
}

/// Variables of .const lie among those of .global. in.flags: which of the two is asked for.
enum : std::uint16_t { kNeither, kGlobal, kConst };

/// in.count: shared memory of the block alone.
template <class T>
void isspacep(Warp& w, const Inst& in) {
  const auto* a = w.in<T>(in.ops[1]);
  const U64 base = static_cast<U64>(in.imm);
  const U64 own = in.count ? U64{w.block->rank + 1} << kRankShift : 0;
  const Program& p = w.block->launch->program;
  set_pred(w, in.ops[0], lanes_where<T>(a, a, [&](U64 v, U64) {
             if (in.flags != kNeither && p.is_const(v) != (in.flags == kConst)) return false;
             const U64 rank = v & (U64{0xFF} << kRankShift);
             return v >> 56 == base >> 56 && (own == 0 || rank == 0 || rank == own);
           }));
}

}  // namespace

Handler clock_reader(bool wide) { return wide ? read_clock<U64> : read_clock<U32>; }

Handler make_mov(Form& f) {
  if (f.count() != 2 || f.types.size() != 1) f.fail("needs one type, a result and an operand");
  const Ty t = f.type();
  if (f.has("v2") || f.has("v4")) return mov_elements(f, f.has("v2") ? 2 : 4);
  if (t == Ty::b128) return mov_128(f);
  if (f.operand(0).kind == Kind::Vector || f.operand(1).kind == Kind::Vector) return mov_vector(f);
  f.dst(0, t);
  if (f.operand(1).kind == Kind::Special)
    if (const auto s = find_special(f.operand(1).name); s && s->clock) {
      f.inst.size = s->bits_below;
      return clock_reader(bits(t) == 64);
    }
  f.src(1, t);
  if (t == Ty::pred) return mov_pred;
  if (bits(t) == 64) return map1<U64, U64>([](U64 v) { return v; });
  if (bits(t) > 64) return nullptr;
  if (bits(t) == 16) return map1<U32, U32>([](U32 v) { return v & 0xFFFF; });
  return map1<U32, U32>([](U32 v) { return v; });
}

Handler make_cvta(Form& f) {
  const Window window = window_of(f);
  if (!window.known || f.count() != 2 || f.type() != Ty::u64) return nullptr;
  f.dst(0, Ty::u64);
  f.src(1, Ty::u64);
  f.inst.imm = static_cast<std::int64_t>(window.base);
  return f.has("to") ? from_generic<U64> : to_generic<U64>;
}

Handler make_isspacep(Form& f) {
  const Window window = window_of(f);
  if (!window.known || f.count() != 2) return nullptr;
  f.dst(0, Ty::pred);
  const bool wide = f.register_bits(f.operand(1)) != 32;
  f.src(1, wide ? Ty::u64 : Ty::u32);
  f.inst.flags = f.has("const") ? kConst : f.has("global") ? kGlobal : kNeither;
  f.inst.imm = static_cast<std::int64_t>(window.base);
  f.inst.count = f.has("shared") || f.has("shared::cta");
  return wide ? isspacep<U64> : isspacep<U32>;
}

}  // namespace kiln::rt::sim

// Loads and stores in every state space.
#include "runtime/sim/memory.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
constexpr U32 kMaxAccess = 32;  // bytes of a lane

/// One element of every active lane, from memory type M into register words R.
template <class M, class R>
void load_element(const Warp& w, const LaneAddresses& a, Ref dst, U32 offset) {
  auto* d = w.out<R>(dst);
  each_lane(w.mask, [&, d](int l) {
    M v;
    std::memcpy(&v, a.at[static_cast<std::size_t>(l)] + offset, sizeof v);
    d[l] = static_cast<R>(v);
  });
}
template <class M, class R>
void store_element(const Warp& w, const LaneAddresses& a, Ref src, U32 offset) {
  const auto* s = w.in<R>(src);
  each_lane(w.mask, [&, s](int l) {
    const M v = static_cast<M>(s[l]);
    std::memcpy(a.at[static_cast<std::size_t>(l)] + offset, &v, sizeof v);
  });
}

template <class M, class R>
void load(Warp& w, const Inst& in) {
  const LaneAddresses a = access(w, in, in.space, address_lanes(w, in, in.ops[0]), in.size * in.count, Use::Load);
  for (U32 i = 0; i < in.count; ++i) load_element<M, R>(w, a, in.ops[i + 1], i * in.size);
}
/// Whether the lanes' data, `bytes` each, is other than what is there.
bool changes(const LaneAddresses& a, U32 lanes, const std::byte* data, U32 bytes) {
  bool changed = false;
  each_lane(lanes, [&](int l) {
    changed |= std::memcmp(a.at[static_cast<std::size_t>(l)], data + static_cast<U32>(l) * bytes, bytes) != 0;
  });
  return changed;
}

template <class M, class R>
void store(Warp& w, const Inst& in) {
  const U32 bytes = in.size * in.count;
  const Checks& checks = w.block->launch->checks;
  const bool polls = w.block->launch->program.polls;
  if (!checks.races && !checks.uninit && !polls) {
    const LaneAddresses a = access(w, in, in.space, address_lanes(w, in, in.ops[0]), bytes, Use::Store);
    for (U32 i = 0; i < in.count; ++i) store_element<M, R>(w, a, in.ops[i + 1], i * in.size);
    ++*w.block->changes;
    return;
  }
  // The data is compared with what is there.
  alignas(32) std::byte data[kLanes * kMaxAccess];
  for (U32 i = 0; i < in.count; ++i) {
    const auto* s = w.in<R>(in.ops[i + 1]);
    each_lane(w.mask, [&, s](int l) {
      const M v = static_cast<M>(s[l]);
      std::memcpy(data + static_cast<U32>(l) * bytes + i * in.size, &v, sizeof v);
    });
  }
  const LaneAddresses a = access(w, in, in.space, address_lanes(w, in, in.ops[0]), bytes, Use::Store, data);
  if (!polls || a.stored || changes(a, w.mask, data, bytes)) ++*w.block->changes;
  each_lane(w.mask & ~a.stored,
            [&](int l) { std::memcpy(a.at[static_cast<std::size_t>(l)], data + static_cast<U32>(l) * bytes, bytes); });
}

/// A load from one place of the kernel's parameters, known to be inside: once for all lanes.
template <class M, class R>
void load_parameter(Warp& w, const Inst& in) {
  const std::byte* at = w.block->launch->params.data() + in.imm;
  for (U32 i = 0; i < in.count; ++i) {
    M v;
    std::memcpy(&v, at + i * in.size, sizeof v);
    auto* d = w.out<R>(in.ops[i + 1]);
    const R r = static_cast<R>(v);
    each_lane(w.mask, [=](int l) { d[l] = r; });
  }
}

/// Element type and width of a data register → handler.
template <bool kLoad>
Handler data_handler(Ty t, bool wide, bool parameter) {
  // A signed element loaded into a wider register is extended by the conversion from M.
  const auto pick = [&](auto m) -> Handler {
    using M = decltype(m);
    if constexpr (kLoad) {
      if (parameter) return wide ? load_parameter<M, U64> : load_parameter<M, U32>;
      return wide ? load<M, U64> : load<M, U32>;
    } else return wide ? store<std::make_unsigned_t<M>, U64> : store<std::make_unsigned_t<M>, U32>;
  };
  const bool sign = is_signed(t);
  switch (bytes(t)) {
    case 1: return sign ? pick(std::int8_t{}) : pick(std::uint8_t{});
    case 2: return sign ? pick(std::int16_t{}) : pick(std::uint16_t{});
    case 4: return sign ? pick(std::int32_t{}) : pick(U32{});
    case 8: return wide ? pick(U64{}) : nullptr;
    default: return nullptr;
  }
}

/// The access is to a place of the kernel's parameters that is known, aligned and inside.
bool inside_parameters(const Form& f, const ptx::Operand& address) {
  const std::int64_t at = f.inst.imm, bytes = std::int64_t{f.inst.size} * f.inst.count;
  return f.inst.space == Space::Param && !address.has_base && at >= 0 && at % bytes == 0 &&
         at + bytes <= f.decoder.param_bytes();
}

/// A register of 128 bits is two of 64.
template <bool kLoad>
Handler data_128(Form& f, const ptx::Operand& o, const ptx::Operand& address) {
  if constexpr (kLoad) f.dst_128(o);
  else f.src_128(o);
  f.inst.size = 8;
  f.inst.count = 2;
  return data_handler<kLoad>(Ty::b64, true, inside_parameters(f, address));
}

/// Data operands of ld and st: one register or {…}; all of one width, at least the element's.
template <bool kLoad>
Handler data(Form& f, const ptx::Operand& o, const ptx::Operand& address) {
  const Ty t = f.type();
  if (f.types.size() != 1 || t == Ty::pred || kind(t) == TyKind::Packed) return nullptr;
  if (kind(t) == TyKind::Float && t != Ty::f32 && t != Ty::f64) return nullptr;
  const std::vector<ptx::Operand> one{o};
  const auto& parts = o.kind == ptx::Operand::Kind::Vector ? o.parts : one;
  const std::size_t n = f.has("v2") ? 2 : f.has("v4") ? 4 : f.has("v8") ? 8 : 1;
  if (t == Ty::b128) return n == 1 ? data_128<kLoad>(f, o, address) : nullptr;
  if (parts.size() != n) f.fail(fmt::format("has {} data operands, needs {}", parts.size(), n));
  f.inst.size = static_cast<std::uint8_t>(bytes(t));
  f.inst.count = static_cast<std::uint8_t>(n);
  if (bytes(t) * n > kMaxAccess) return nullptr;
  bool wide = bits(t) == 64;
  for (const ptx::Operand& p : parts) wide |= f.register_bits(p) == 64;
  const Ty reg = wide ? Ty::b64 : bits(t) < 32 && !kLoad ? t : Ty::b32;
  for (const ptx::Operand& p : parts) {
    const int width = f.register_bits(p);
    if (width != 0 && width < bits(t)) f.fail("a register is narrower than its data");
    f.require_kind(p, t);
    const Ty as = width == 0 ? (bits(t) == bits(reg) ? t : reg) : wide ? Ty::b64 : width < 32 ? Ty::b16 : Ty::b32;
    if constexpr (kLoad) f.dst(p, as);
    else f.src(p, as);
  }
  return data_handler<kLoad>(t, wide, inside_parameters(f, address));
}

}  // namespace

void memory_modifiers(Form& f) {
  if (f.has("global")) f.inst.space = Space::Global;
  if (f.has("const")) f.inst.space = Space::Const;
  if (f.has("shared") || f.has("shared::cta")) f.inst.space = Space::Shared;
  if (f.has("shared::cluster")) f.inst.space = Space::Cluster;
  if (f.has("local")) f.inst.space = Space::Local;
  if (f.has("param") || f.has("param::entry") || f.has("param::func")) f.inst.space = Space::Param;
  f.inst.acquires = f.has("acquire") || f.has("acq_rel");
  f.inst.releases = f.has("release") || f.has("acq_rel");
  if (f.has("volatile") || f.has("relaxed") || f.inst.acquires || f.inst.releases)
    f.inst.scope = f.has("cta") ? 1 : f.has("cluster") ? 2 : 3;
  if (f.inst.scope) f.decoder.polls();
  // Those of a smaller scope order nothing between clusters.
  const bool ordered = f.has("volatile") || f.has("gpu") || f.has("sys");
  if (ordered && (f.inst.space == Space::Global || f.inst.space == Space::Generic)) f.decoder.communicates();
}

void cache_hint(Form& f) {
  if (f.has("L2::cache_hint")) f.src(f.count() - 1, Ty::b64);
}

Handler make_ld(Form& f) {
  memory_modifiers(f);
  if (f.count() != 2u + f.has("L2::cache_hint")) f.fail("needs a result and an address");
  f.address(f.operand(1));
  const Handler handler = data<true>(f, f.operand(0), f.operand(1));
  cache_hint(f);
  return handler;
}

Handler make_st(Form& f) {
  memory_modifiers(f);
  if (f.count() != 2u + f.has("L2::cache_hint")) f.fail("needs an address and a value");
  f.address(f.operand(0));
  const Handler handler = data<false>(f, f.operand(1), f.operand(0));
  cache_hint(f);
  return handler;
}

}  // namespace kiln::rt::sim

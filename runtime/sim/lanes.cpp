// Operations between the lanes of a warp. They wait for all lanes the member mask names; a named lane that passes by
// the instruction, or waits at another one, is reported.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/sim/makers.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using I32 = std::int32_t;

/// Union of the member masks of the lanes that are here.
U32 named_by(const Warp& w, const U32* named) {
  U32 all = 0;
  for (U32 m = w.mask; m; m &= m - 1) all |= named[std::countr_zero(m)];
  return all;
}

/// Faults unless the lanes `group`, whose member mask is `named`, are exactly the live ones that it names.
void check_group(const Warp& w, const Inst& in, U32 here, U32 group, U32 named) {
  if (const U32 strangers = group & ~named)
    fault(FindingKind::Divergence, w, in, std::countr_zero(strangers),
          fmt::format("the lane is not in its own member mask 0x{:08x}", named));
  const U32 missing = named & w.live & ~group;
  if (missing & here)
    fault(FindingKind::Divergence, w, in, std::countr_zero(missing & here),
          fmt::format("member mask 0x{:08x} names the lane, whose own is another", named));
  if (missing)
    fault(FindingKind::Divergence, w, in, std::countr_zero(missing),
          fmt::format("member mask 0x{:08x} names lanes 0x{:08x} that have diverged", named, missing));
}

/// Runs body(lanes) for each set of lanes that name one another, with w.mask the set: all named ones that still live
/// must be here. If some are on their way, nothing: the instruction comes again.
template <class F>
void each_group(Warp& w, const Inst& in, Ref mask, F body) {
  const auto* named = w.in<U32>(mask);
  for (U32 needed = named_by(w, named);;) {
    if (!w.gather(in, needed)) return;
    const U32 now = named_by(w, named);
    if (now == needed) break;
    needed = now;
  }
  const U32 here = w.mask;
  for (U32 left = here; left;) {
    const U32 first = named[std::countr_zero(left)];
    U32 group = 0;
    for (U32 m = left; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (named[l] == first) group |= 1u << l;
    }
    check_group(w, in, here, group, first);
    w.mask = group;
    body(group);
    left &= ~group;
  }
  w.mask = here;
}

enum class Shuffle : std::uint8_t { Up, Down, Bfly, Idx };

/// ops: d, p or none, a, b, c, mask. c holds the clamp (bits 0–4) and the segment mask (bits 8–12).
template <Shuffle kMode>
void shfl(Warp& w, const Inst& in) {
  const auto *a = w.in<U32>(in.ops[2]), *b = w.in<U32>(in.ops[3]), *c = w.in<U32>(in.ops[4]);
  each_group(w, in, in.ops[5], [&](U32 group) {
    U32 result[kLanes] = {}, valid = 0;
    each_lane(group, [&](int l) {
      const I32 lane = l, value = static_cast<I32>(b[l] & 31), clamp = static_cast<I32>(c[l] & 31),
                segment = static_cast<I32>(c[l] >> 8 & 31);
      const I32 low = lane & segment, high = low | (clamp & ~segment);
      I32 source = 0;
      bool inside = false;
      switch (kMode) {
        case Shuffle::Up: source = lane - value, inside = source >= high; break;
        case Shuffle::Down: source = lane + value, inside = source <= high; break;
        case Shuffle::Bfly: source = lane ^ value, inside = source <= high; break;
        case Shuffle::Idx: source = low | (value & ~segment), inside = source <= high; break;
      }
      result[l] = a[inside ? source : lane];
      valid |= static_cast<U32>(inside) << l;
    });
    auto* d = w.out<U32>(in.ops[0]);
    each_lane(w.mask, [&](int l) { d[l] = result[l]; });
    if (in.ops[1] != kNoRef) set_pred(w, in.ops[1], valid);
  });
}

enum class Vote : std::uint8_t { All, Any, Uni, Ballot };

/// ops: d, p, mask
template <Vote kMode>
void vote(Warp& w, const Inst& in) {
  each_group(w, in, in.ops[2], [&](U32 m) {
    const U32 yes = w.pred(in.ops[1]) & m;
    if constexpr (kMode == Vote::Ballot) {
      auto* d = w.out<U32>(in.ops[0]);
      each_lane(w.mask, [=](int l) { d[l] = yes; });
    } else {
      const bool truth = kMode == Vote::All ? yes == m : kMode == Vote::Any ? yes != 0 : yes == m || yes == 0;
      set_pred(w, in.ops[0], truth ? kAllLanes : 0);
    }
  });
}

/// ops: d, p or none, a, mask
template <class T, bool kAll>
void match(Warp& w, const Inst& in) {
  each_group(w, in, in.ops[3], [&](U32 m) {
    const auto* a = w.in<T>(in.ops[2]);
    U32 result[kLanes] = {};
    bool all = true;
    each_lane(m, [&](int l) {
      each_lane(m, [&](int k) { result[l] |= static_cast<U32>(a[l] == a[k]) << k; });
      all &= result[l] == m;
    });
    auto* d = w.out<U32>(in.ops[0]);
    each_lane(w.mask, [&](int l) { d[l] = kAll ? (all ? m : 0) : result[l]; });
    if (in.ops[1] != kNoRef) set_pred(w, in.ops[1], all ? kAllLanes : 0);
  });
}

/// ops: d, a, mask
template <class T, class F>
Handler redux(F) {
  return [](Warp& w, const Inst& in) {
    each_group(w, in, in.ops[2], [&](U32 group) {
      const auto* a = w.in<U32>(in.ops[1]);
      T r = from_word<T>(a[std::countr_zero(group)]);
      for (U32 m = group & (group - 1); m; m &= m - 1) r = F{}(r, from_word<T>(a[std::countr_zero(m)]));
      auto* d = w.out<U32>(in.ops[0]);
      each_lane(group, [=](int l) { d[l] = to_word<T>(r); });
    });
  };
}

/// −0 is less than +0. NaNs do not take part, or with .NaN decide; .abs: of the magnitudes.
template <bool kMax>
void redux_float(Warp& w, const Inst& in) {
  each_group(w, in, in.ops[2], [&](U32 group) {
    const auto* a = w.in<float>(in.ops[1]);
    float r = std::bit_cast<float>(kNaN32);
    bool nan = false, any = false;
    for (U32 m = group; m; m &= m - 1) {
      float v = a[std::countr_zero(m)];
      if (in.flags & kAbs) v = std::fabs(v);
      if (v != v) {
        nan = true;
        continue;
      }
      const bool less = r < v || (r == v && std::signbit(r) && !std::signbit(v));
      if (!any || less == kMax) r = v;
      any = true;
    }
    if (nan && (in.flags & kNaN)) r = std::bit_cast<float>(kNaN32);
    auto* d = w.out<U32>(in.ops[0]);
    each_lane(group, [=](int l) { d[l] = std::bit_cast<U32>(r); });
  });
}

void warp_sync(Warp& w, const Inst& in) {
  each_group(w, in, in.ops[0], [](U32) {});
}

void activemask(Warp& w, const Inst& in) {
  auto* d = w.out<U32>(in.ops[0]);
  const U32 m = w.mask;
  each_lane(m, [=](int l) { d[l] = m; });
}

/// ops: d, p, mask. The lowest member is elected.
void elect(Warp& w, const Inst& in) {
  each_group(w, in, in.ops[2], [&](U32 m) {
    auto* d = w.out<U32>(in.ops[0]);
    const auto number = static_cast<U32>(std::countr_zero(m));
    each_lane(m, [=](int l) { d[l] = number; });
    set_pred(w, in.ops[1], m & (0 - m));
  });
}

void second_predicate(Form& f) {
  if (f.operand(0).parts.empty()) f.none();
  else f.dst(f.operand(0).parts[0], Ty::pred);
}

template <bool kAll>
Handler match_form(Form& f) {
  if (f.count() != 3 || f.types.size() != 1) return nullptr;
  f.dst(0, Ty::b32);
  second_predicate(f);
  f.src(1, f.type());
  f.src(2, Ty::b32);
  return f.type() == Ty::b32 ? match<U32, kAll> : f.type() == Ty::b64 ? match<U64, kAll> : nullptr;
}

}  // namespace

Handler make_shfl(Form& f) {
  if (f.count() != 5 || f.type() != Ty::b32) f.fail("needs .b32, a result and four operands");
  f.dst(0, Ty::b32);
  second_predicate(f);
  for (std::size_t i = 1; i < 5; ++i) f.src(i, Ty::b32);
  if (f.has("up")) return shfl<Shuffle::Up>;
  if (f.has("down")) return shfl<Shuffle::Down>;
  if (f.has("bfly")) return shfl<Shuffle::Bfly>;
  return f.has("idx") ? shfl<Shuffle::Idx> : nullptr;
}

Handler make_vote(Form& f) {
  if (f.count() != 3) f.fail("needs a result, a predicate and a member mask");
  f.dst(0, f.has("ballot") ? Ty::b32 : Ty::pred);
  f.src(1, Ty::pred);
  f.src(2, Ty::b32);
  if (f.has("ballot")) return vote<Vote::Ballot>;
  if (f.has("all")) return vote<Vote::All>;
  if (f.has("any")) return vote<Vote::Any>;
  return f.has("uni") ? vote<Vote::Uni> : nullptr;
}

Handler make_match_any(Form& f) { return match_form<false>(f); }
Handler make_match_all(Form& f) { return match_form<true>(f); }

Handler make_redux(Form& f) {
  if (f.count() != 3 || f.types.size() != 1 || bits(f.type()) != 32) return nullptr;
  if (f.type() != Ty::f32 && (f.has("abs") || f.has("NaN"))) return nullptr;
  f.dst(0, Ty::b32);
  f.src(1, Ty::b32);
  f.src(2, Ty::b32);
  if (f.type() == Ty::f32) {
    f.inst.flags = static_cast<std::uint16_t>((f.has("abs") ? kAbs : 0) | (f.has("NaN") ? kNaN : 0));
    return f.has("min") ? redux_float<false> : f.has("max") ? redux_float<true> : nullptr;
  }
  if (f.type() == Ty::tf32) return nullptr;
  if (f.has("add")) return redux<U32>([](U32 a, U32 b) { return a + b; });
  if (f.has("and")) return redux<U32>([](U32 a, U32 b) { return a & b; });
  if (f.has("or")) return redux<U32>([](U32 a, U32 b) { return a | b; });
  if (f.has("xor")) return redux<U32>([](U32 a, U32 b) { return a ^ b; });
  const bool sign = f.type() == Ty::s32;
  if (f.has("min"))
    return sign ? redux<I32>([](I32 a, I32 b) { return std::min(a, b); })
                : redux<U32>([](U32 a, U32 b) { return std::min(a, b); });
  if (f.has("max"))
    return sign ? redux<I32>([](I32 a, I32 b) { return std::max(a, b); })
                : redux<U32>([](U32 a, U32 b) { return std::max(a, b); });
  return nullptr;
}

Handler make_warp_sync(Form& f) {
  f.src(0, Ty::b32);
  return warp_sync;
}
Handler make_activemask(Form& f) {
  f.dst(0, Ty::b32);
  return activemask;
}
Handler make_elect(Form& f) {
  if (f.count() != 2) f.fail("needs a result and a member mask");
  f.dst(0, Ty::b32);
  if (f.operand(0).parts.empty()) f.fail("needs a predicate result");
  f.dst(f.operand(0).parts[0], Ty::pred);
  f.src(1, Ty::b32);
  return elect;
}

}  // namespace kiln::rt::sim

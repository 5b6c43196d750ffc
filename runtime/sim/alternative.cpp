#include "runtime/sim/alternative.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/sim/compare.h"
#include "runtime/sim/report.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
constexpr std::size_t kMostOrigins = 4096;  // of a warp; later loads share the last

bool reads(OperandUse u) { return u.role == OperandRole::Read || u.role == OperandRole::Both; }
bool writes(OperandUse u) { return u.role == OperandRole::Written || u.role == OperandRole::Both; }
U64 low_bits(U32 n) { return n >= 64 ? ~U64{0} : (U64{1} << n) - 1; }

OperandUse use(const Warp& w, const Inst& in, std::size_t i) { return w.block->launch->program.use(in, i); }

/// f(operand's slot, its bits) of the registers that the instruction writes.
template <class F>
void each_result(const Warp& w, const Inst& in, F f) {
  for (std::size_t i = 0; i < in.n_ops; ++i)
    if (const OperandUse u = use(w, in, i); writes(u)) f(in.ops[i], u.bits);
}

/// The value of a lane in a register file.
U64 value(const U32* regs, Ref r, U32 bits, int lane) {
  if (bits == 1) return regs[r] >> lane & 1;
  if (bits == 64) return reinterpret_cast<const U64*>(regs + r)[lane];
  return regs[r + lane] & low_bits(bits);
}
void set_value(U32* regs, Ref r, U32 bits, int lane, U64 v) {
  if (bits == 1) regs[r] = (regs[r] & ~(1u << lane)) | static_cast<U32>(v & 1) << lane;
  else if (bits == 64) reinterpret_cast<U64*>(regs + r)[lane] = v;
  else regs[r + lane] = static_cast<U32>(v);
}

/// Runs the instruction; false if its lanes were put aside until others come.
bool executed(Warp& w, const Inst& in) {
  const U32 before = w.active;
  in.run(w, in);
  return (w.active & before) == before;
}

/// The operand is the halves of a register, each a value of its own.
bool packed(const Warp& w, const Inst& in) { return w.block->launch->program.infos[in.info].packed; }

}  // namespace

Alternative::Alternative(const Warp& w) {
  const U32 words = w.block->launch->program.register_words;
  registers_.resize(kAlternatives * words / 2);
  for (std::size_t k = 0; k < kAlternatives; ++k) {
    regs_[k] = reinterpret_cast<U32*>(registers_.data()) + k * words;
    std::copy_n(w.regs, words, regs_[k]);
  }
  origin_.resize(words);
}

bool Alternative::same(const Warp& w) const {
  return std::all_of(regs_.begin(), regs_.end(),
                     [&](const U32* r) { return std::memcmp(w.regs, r, origin_.size() * sizeof(U32)) == 0; });
}

template <class F>
void Alternative::alternatively(Warp& w, F f) {
  w.replays = true;
  for (std::size_t k = 0; k < kAlternatives; ++k) {
    std::swap(w.regs, regs_[k]);
    f(k);
    std::swap(w.regs, regs_[k]);
  }
  w.replays = false;
}

U64 Alternative::difference(const Warp& w, Ref r, U32 bits, int lane) const {
  U64 out = 0;
  for (const U32* other : regs_) out |= value(w.regs, r, bits, lane) ^ value(other, r, bits, lane);
  return out;
}

U32 Alternative::differing(const Warp& w, const Inst& in, std::size_t i, U32 lanes) const {
  const OperandUse u = use(w, in, i);
  const Ref r = in.ops[i];
  if (r < 0 || u.role == OperandRole::None) return 0;
  if (u.bits == 1) return differing_predicate(w, r) & lanes;
  const std::size_t bytes = kLanes * (u.bits == 64 ? 8u : 4u);
  if (std::all_of(regs_.begin(), regs_.end(), [&](const U32* o) { return std::memcmp(w.regs + r, o + r, bytes) == 0; }))
    return 0;
  U32 out = 0;
  each_lane(lanes, [&](int l) { out |= static_cast<U32>(difference(w, r, u.bits, l) != 0) << l; });
  return out;
}

U32 Alternative::differing_predicate(const Warp& w, Ref r) const {
  U32 out = 0;
  for (const U32* other : regs_) out |= w.regs[r] ^ other[r];
  return out;
}
U32 Alternative::differing_guard(const Warp& w, const Inst& in) const {
  return in.guard < 0 ? 0 : differing_predicate(w, in.guard) & w.active;
}

void Alternative::settle_register(const Warp& w, Ref r, U32 bits, U32 lanes) {
  for (U32* other : regs_)
    each_lane(lanes,
              [&](int l) { set_value(other, r, bits, l, value(w.regs, r, bits == 1 || bits == 64 ? bits : 32, l)); });
}
void Alternative::settle(const Warp& w, const Inst& in, U32 lanes) {
  each_result(w, in, [&](Ref r, U32 bits) { settle_register(w, r, bits, lanes); });
}

// --- findings --------------------------------------------------------------------------------------------------------

U32 Alternative::add(const Origin& o) {
  if (origins_.size() < kMostOrigins) origins_.push_back(o);
  return static_cast<U32>(origins_.size());
}

void Alternative::report(Warp& w, const Inst& in, U32 from) const {
  const Origin& o = origins_[from - 1];
  Findings& findings = *w.block->cluster->findings;
  const Findings::Key key{FindingKind::Uninitialised, o.load->info, in.info};
  if (!findings.wants(key)) return;
  const Program& p = w.block->launch->program;
  findings.add(
      key, static_cast<U32>(w.block->cluster->number),
      finding(FindingKind::Uninitialised, *o.warp, *o.load, o.lane,
              fmt::format("uninitialised shared load of {} bytes at 0x{:x}: nobody wrote 0x{:x}, and what comes "
                          "of it is needed at {}",
                          o.bytes, o.at, o.missing, full_place(p, p.infos[in.info]))),
      {});
}

void Alternative::require(Warp& w, const Inst& in, std::size_t i, U32 lanes) {
  if (differing(w, in, i, lanes) == 0) return;
  report(w, in, origin(in.ops[i]));
  settle_register(w, in.ops[i], use(w, in, i).bits, kAllLanes);
}

void Alternative::require_guard(Warp& w, const Inst& in) {
  if (differing_guard(w, in) == 0) return;
  report(w, in, origin(in.guard));
  settle_register(w, in.guard, 1, kAllLanes);
}

U32 Alternative::origin(Ref r) const {
  const U32 known = origin_[static_cast<std::size_t>(r)];
  return known ? known : static_cast<U32>(origins_.size());
}

U32 Alternative::origin_of(const Warp& w, const Inst& in, U32 lanes) const {
  if (differing_guard(w, in)) return origin(in.guard);
  for (std::size_t i = 0; i < in.n_ops; ++i)
    if (reads(use(w, in, i)) && differing(w, in, i, lanes)) return origin(in.ops[i]);
  return 0;
}

void Alternative::mark(const Warp& w, const Inst& in, U32 from, U32 lanes) {
  for (std::size_t i = 0; i < in.n_ops; ++i)
    if (writes(use(w, in, i)) && differing(w, in, i, lanes)) origin_[static_cast<std::size_t>(in.ops[i])] = from;
}

// --- instructions ----------------------------------------------------------------------------------------------------

void Alternative::run(Warp& w, const Inst& in) {
  switch (in.unknowns) {
    case Unknowns::Ignored:
      if (w.mask != 0) in.run(w, in);
      return;
    case Unknowns::Needed: return needs(w, in);
    case Unknowns::Loads: return load(w, in);
    case Unknowns::Stores: return store(w, in);
    case Unknowns::Lanes:
    case Unknowns::Extreme:
      require_guard(w, in);
      require(w, in, in.n_ops - 1u, w.mask);
      return compute(w, in);
    case Unknowns::Warp: require_guard(w, in); return compute(w, in);
    case Unknowns::Computes:
    case Unknowns::Decides:
    case Unknowns::Mixes: return compute(w, in);
  }
}

void Alternative::needs(Warp& w, const Inst& in) {
  require_guard(w, in);
  for (std::size_t i = 0; i < in.n_ops; ++i)
    if (reads(use(w, in, i))) require(w, in, i, w.mask);
  const U32 lanes = w.mask;
  if (lanes != 0 || in.control) in.run(w, in);
  settle(w, in, lanes);
}

AlternativeBytes Alternative::unwritten(U64 address, std::byte now) {
  U64 z = address * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 31) * 0xBF58476D1CE4E5B9;
  return {~now, static_cast<std::byte>(z >> 56)};
}

void Alternative::loads(std::byte* at, const UnknownByte& b) {
  if (unwritten_.empty()) loaded_origin_ = add(b.origin);
  unwritten_.push_back({at, b.values});
}

void Alternative::load(Warp& w, const Inst& in) {
  require_guard(w, in);
  require(w, in, 0, w.mask);
  const U32 lanes = w.mask;
  if (lanes != 0 && executed(w, in)) finish_load(w, in, lanes);
}

void Alternative::finish_load(Warp& w, const Inst& in, U32 lanes) {
  if (unwritten_.empty()) return settle(w, in, w.mask | lanes);
  std::vector<std::byte> was;
  for (const Loaded& r : unwritten_) was.push_back(*r.at);
  alternatively(w, [&](std::size_t k) {
    for (const Loaded& r : unwritten_) *r.at = r.values[k];
    w.mask = lanes;
    in.run(w, in);
  });
  // A byte that several lanes load is there several times.
  for (std::size_t i = unwritten_.size(); i-- > 0;) *unwritten_[i].at = was[i];
  unwritten_.clear();
  mark(w, in, loaded_origin_, kAllLanes);
}

void Alternative::stores_global(Warp& w, const Inst& in, U32 lanes) {
  if (!(storing_ & lanes)) return;
  for (std::size_t i = 1; i < in.n_ops; ++i)
    if (reads(use(w, in, i)))
      if (differing(w, in, i, lanes)) report(w, in, origin(in.ops[i]));
}

void Alternative::store(Warp& w, const Inst& in) {
  require_guard(w, in);
  require(w, in, 0, w.mask);
  if (w.mask == 0) return;
  // The row of a matrix that a lane stores is held by several.
  const bool matrix = w.block->launch->program.infos[in.info].kind == InstClass::Matrix;
  U32 from = 0;
  for (std::size_t i = 1; i < in.n_ops; ++i) {
    if (!reads(use(w, in, i))) continue;
    const U32 found = differing(w, in, i, matrix ? kAllLanes : w.mask);
    if (found) from = origin(in.ops[i]);
    storing_ |= matrix && found ? kAllLanes : found;
  }
  executed(w, in);
  storing_ = 0;
  if (stored_.empty()) return;
  U32 lanes = 0;
  for (const Stored& x : stored_) lanes |= 1u << x.lane;
  // What each run leaves; that of the warp itself, which is kept, first.
  std::array<std::vector<std::byte>, 1 + kAlternatives> made;
  const auto take = [&](std::vector<std::byte>& into) {
    for (const Stored& x : stored_) into.insert(into.end(), x.at, x.at + x.bytes);
  };
  take(made[0]);
  alternatively(w, [&](std::size_t k) {
    w.mask = lanes;
    in.run(w, in);
    take(made[1 + k]);
  });
  std::size_t at = 0;
  for (const Stored& x : stored_) {
    std::copy_n(made[0].data() + at, x.bytes, x.at);
    keep_unknown(x, {made[1].data() + at, made[2].data() + at}, from);
    at += x.bytes;
  }
  stored_.clear();
}

void Alternative::keep_unknown(const Stored& s, const std::array<const std::byte*, kAlternatives>& made, U32 from) {
  Block& b = *s.block;
  for (U32 i = 0; i < s.bytes; ++i) {
    const AlternativeBytes values{made[0][i], made[1][i]};
    if (std::all_of(values.begin(), values.end(), [&](std::byte v) { return v == s.at[i]; })) continue;
    if (!b.unknown) b.unknown = std::make_unique<UnknownBytes>();
    (s.shared ? b.unknown->shared : b.unknown->local)[s.place + i] = {origins_[from - 1], values};
    if (s.shared) b.shadow->written.unset(s.place + i, 1);
  }
}

void Alternative::compute(Warp& w, const Inst& in) {
  const bool across =
      in.unknowns == Unknowns::Lanes || in.unknowns == Unknowns::Extreme || in.unknowns == Unknowns::Warp;
  std::array<U32, kAlternatives> masks;  // of each run
  for (std::size_t k = 0; k < kAlternatives; ++k)
    masks[k] = in.guard < 0 ? w.mask : w.active & (regs_[k][in.guard] ^ in.guard_flip);
  U32 either = w.mask;
  for (const U32 m : masks) either |= m;
  if (either == 0) return;
  const U32 from = origin_of(w, in, across ? kAllLanes : either);
  if (from == 0) {
    if (executed(w, in)) settle(w, in, w.mask);
    return;
  }
  std::array<U64, kLanes> differ{};
  for (std::size_t i = 0; i < in.n_ops; ++i)
    if (const OperandUse u = use(w, in, i); reads(u) && u.bits > 1 && in.ops[i] >= 0)
      each_lane(across ? kAllLanes : either,
                [&](int l) { differ[static_cast<std::size_t>(l)] |= difference(w, in.ops[i], u.bits, l); });
  const U32 mask = w.mask;
  // What the instruction reads is as it was for both runs: each writes its own registers.
  if (mask != 0 && !executed(w, in)) return;
  const U32 done = w.mask;
  alternatively(w, [&](std::size_t k) {
    w.mask = across ? done : masks[k];
    if (w.mask != 0) in.run(w, in);
  });
  w.mask = done;
  if (in.unknowns == Unknowns::Decides) decide(w, in, differ, done & masks[0]);
  if (in.unknowns == Unknowns::Mixes || in.unknowns == Unknowns::Extreme)
    mix(w, in, differ, done & (across ? done : masks[0]));
  mark(w, in, from, kAllLanes);
}

/// Of the unknown operands a comparison may be true or false, so it is what it was not.
void Alternative::decide(const Warp& w, const Inst& in, const std::array<U64, kLanes>& differ, U32 lanes) {
  U32 low = 0, high = 0;
  const bool halves = packed(w, in);
  each_lane(lanes, [&](int l) {
    const U64 d = differ[static_cast<std::size_t>(l)];
    low |= static_cast<U32>((halves ? d & 0xFFFF : d) != 0) << l;
    high |= static_cast<U32>((halves ? d >> 16 : d) != 0) << l;
  });
  const std::array<U32, 2> free = decided(w, in, low, high);
  std::size_t result = 0;
  each_result(w, in, [&](Ref r, U32) {
    const U32 flip = free[std::min<std::size_t>(result++, 1)];
    regs_[0][r] = (regs_[0][r] & ~flip) | (~w.regs[r] & flip);
  });
}

/// The results depend on each operand, whether these values show it or not.
void Alternative::mix(const Warp& w, const Inst& in, const std::array<U64, kLanes>& differ, U32 lanes) {
  U64 any = 0;
  for (const U64 d : differ) any |= d;
  const bool halves = packed(w, in), together = in.unknowns == Unknowns::Extreme;
  each_result(w, in, [&](Ref r, U32 bits) {
    each_lane(lanes, [&](int l) {
      const U64 d = together ? any : differ[static_cast<std::size_t>(l)], same = ~difference(w, r, bits, l);
      U64 flip = 0;
      if (!halves) flip = d != 0 && (same & low_bits(bits)) == low_bits(bits) ? low_bits(bits) : 0;
      else
        for (const U64 half : {U64{0xFFFF}, U64{0xFFFF0000}})
          if ((d & half) && (same & half) == half) flip |= half;
      if (flip) set_value(regs_[0], r, bits, l, value(regs_[0], r, bits, l) ^ flip);
    });
  });
}

}  // namespace kiln::rt::sim

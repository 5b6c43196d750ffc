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
  registers_.resize(words / 2);
  regs_ = reinterpret_cast<U32*>(registers_.data());
  std::copy_n(w.regs, words, regs_);
  origin_.resize(words);
}

bool Alternative::same(const Warp& w) const { return std::memcmp(w.regs, regs_, origin_.size() * sizeof(U32)) == 0; }

template <class F>
void Alternative::alternatively(Warp& w, F f) {
  std::swap(w.regs, regs_);
  w.replays = true;
  f();
  w.replays = false;
  std::swap(w.regs, regs_);
}

U64 Alternative::difference(const Warp& w, Ref r, U32 bits, int lane) const {
  return value(w.regs, r, bits, lane) ^ value(regs_, r, bits, lane);
}

U32 Alternative::differing(const Warp& w, const Inst& in, std::size_t i, U32 lanes) const {
  const OperandUse u = use(w, in, i);
  const Ref r = in.ops[i];
  if (r < 0 || u.role == OperandRole::None) return 0;
  if (u.bits == 1) return (w.regs[r] ^ regs_[r]) & lanes;
  if (std::memcmp(w.regs + r, regs_ + r, kLanes * (u.bits == 64 ? 8 : 4)) == 0) return 0;
  U32 out = 0;
  each_lane(lanes, [&](int l) { out |= static_cast<U32>(difference(w, r, u.bits, l) != 0) << l; });
  return out;
}

U32 Alternative::differing_guard(const Warp& w, const Inst& in) const {
  return in.guard < 0 ? 0 : (w.regs[in.guard] ^ regs_[in.guard]) & w.active;
}

void Alternative::settle_register(const Warp& w, Ref r, U32 bits, U32 lanes) {
  each_lane(lanes,
            [&](int l) { set_value(regs_, r, bits, l, value(w.regs, r, bits == 1 || bits == 64 ? bits : 32, l)); });
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

void Alternative::loads(std::byte* bytes, U32 n, const Origin& o) {
  if (unwritten_.empty()) loaded_origin_ = add(o);
  unwritten_.push_back({bytes, n});
}

void Alternative::load(Warp& w, const Inst& in) {
  require_guard(w, in);
  require(w, in, 0, w.mask);
  const U32 lanes = w.mask;
  if (lanes != 0 && executed(w, in)) finish_load(w, in, lanes);
}

void Alternative::finish_load(Warp& w, const Inst& in, U32 lanes) {
  if (unwritten_.empty()) return settle(w, in, w.mask | lanes);
  const auto flip = [&] {
    for (const Range& r : unwritten_)
      for (U32 i = 0; i < r.bytes; ++i) r.at[i] = ~r.at[i];
  };
  flip();
  alternatively(w, [&] {
    w.mask = lanes;
    in.run(w, in);
  });
  flip();
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
  std::vector<std::byte> was;
  U32 lanes = 0;
  for (const Stored& s : stored_) {
    was.insert(was.end(), s.at, s.at + s.bytes);
    lanes |= 1u << s.lane;
  }
  alternatively(w, [&] {
    w.mask = lanes;
    in.run(w, in);
  });
  const std::byte* before = was.data();
  for (const Stored& s : stored_) {
    keep_unknown(s, before, from);
    before += s.bytes;
  }
  stored_.clear();
}

void Alternative::keep_unknown(const Stored& s, const std::byte* was, U32 from) {
  Block& b = *s.block;
  for (U32 i = 0; i < s.bytes; ++i) {
    if (s.at[i] == was[i]) continue;
    if (!b.unknown) b.unknown = std::make_unique<UnknownBytes>();
    (s.shared ? b.unknown->shared : b.unknown->local)[s.place + i] = origins_[from - 1];
    if (s.shared) b.shadow->written.unset(s.place + i, 1);
    s.at[i] = was[i];
  }
}

void Alternative::compute(Warp& w, const Inst& in) {
  const bool across =
      in.unknowns == Unknowns::Lanes || in.unknowns == Unknowns::Extreme || in.unknowns == Unknowns::Warp;
  const U32 other_mask = w.mask ^ differing_guard(w, in), either = w.mask | other_mask;
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
  if (other_mask != 0)
    alternatively(w, [&] {
      w.mask = across ? done : other_mask;
      in.run(w, in);
    });
  w.mask = done;
  if (in.unknowns == Unknowns::Decides) decide(w, in, differ, done & other_mask);
  if (in.unknowns == Unknowns::Mixes || in.unknowns == Unknowns::Extreme)
    mix(w, in, differ, done & (across ? done : other_mask));
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
    regs_[r] = (regs_[r] & ~flip) | (~w.regs[r] & flip);
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
      if (flip) set_value(regs_, r, bits, l, value(regs_, r, bits, l) ^ flip);
    });
  });
}

}  // namespace kiln::rt::sim

// cp.async: copies of 4 to 16 bytes from global to shared memory, that the issuing thread or an mbarrier waits for.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/place.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using Addresses = std::array<U64, kLanes>;

Groups& groups(Warp& w) { return w.groups[static_cast<std::size_t>(GroupKind::CpAsync)]; }

/// Bytes that each lane reads; the rest of a copy is zeros. ops[3]: source size or none; ops[4]: predicate that ignores
/// the source, or none.
std::array<U32, kLanes> bytes_read(Warp& w, const Inst& in) {
  std::array<U32, kLanes> out;
  out.fill(in.size);
  if (in.ops[3] != kNoRef) std::copy_n(w.in<U32>(in.ops[3]), kLanes, out.begin());
  const U32 ignored = in.ops[4] != kNoRef ? w.pred(in.ops[4]) : 0;
  each_lane(w.mask, [&](int l) {
    U32& n = out[static_cast<std::size_t>(l)];
    if (ignored >> l & 1) n = 0;
    if (n > in.size) fault(w, in, l, fmt::format("a source of {} bytes for a copy of {}", n, in.size));
  });
  return out;
}

/// The copies of some lanes of one instruction.
class Copies final : public Operation {
 public:
  Copies(Agent a, U32 mask, const Addresses& to, const Addresses& from, const std::array<U32, kLanes>& read)
      : Operation(std::move(a)) {
    lanes = mask;
    each_lane(mask, [&](int l) {
      const auto i = static_cast<std::size_t>(l);
      to_[i] = static_cast<U32>(to[i]);
      from_[i] = from[i];
      read_[i] = static_cast<std::uint8_t>(read[i]);
    });
  }
  void run() override {
    const U32 bytes = agent.inst->size;
    for (U32 m = lanes; m; m &= m - 1) {
      const int l = std::countr_zero(m);
      const auto i = static_cast<std::size_t>(l);
      agent.lane = static_cast<std::uint8_t>(l);
      std::byte* to = shared_write(agent, *agent.issuer->block, to_[i], bytes);
      if (read_[i]) std::memcpy(to, global_read(agent, from_[i], read_[i]), read_[i]);
      std::memset(to + read_[i], 0, bytes - read_[i]);
    }
  }
  std::unique_ptr<Operation> split(U32 part) override {
    auto other = std::make_unique<Copies>(*this);
    other->lanes = part;
    lanes &= ~part;
    return other;
  }

 private:
  std::array<U64, kLanes> from_;
  std::array<U32, kLanes> to_;
  std::array<std::uint8_t, kLanes> read_;
};

/// The lanes of the first one that have `value(lane)` in common; they are taken out of `left`.
template <class F>
U32 take_equal(U32& left, F&& value) {
  const auto first = value(std::countr_zero(left));
  U32 same = 0;
  each_lane(left, [&](int l) { same |= static_cast<U32>(value(l) == first) << l; });
  left &= ~same;
  return same;
}

/// Bounds, alignment and traffic of what a copy reads: the alignment is that of the whole, the bounds those of the
/// bytes read.
void check_sources(Warp& w, const Inst& in, const Addresses& from, const std::array<U32, kLanes>& n) {
  const U32 all = w.mask;
  each_lane(all, [&](int l) {
    const U64 a = from[static_cast<std::size_t>(l)];
    if (a % in.size)
      fault(
          w, in, l,
          fmt::format("misaligned global load of {} bytes at 0x{:x}, which is no multiple of {}", in.size, a, in.size));
  });
  for (U32 left = all; left;) {
    const U32 size = n[static_cast<std::size_t>(std::countr_zero(left))];
    w.mask = take_equal(left, [&](int l) { return n[static_cast<std::size_t>(l)]; });
    if (size) access_later(w, in, Space::Global, from, size, Use::Load);
  }
  w.mask = all;
}

/// ops: destination base, its offset, source base, source size or none, predicate or none. in.imm: the source's offset;
/// in.wide: the destination's base has 64 bits.
void copy(Warp& w, const Inst& in) {
  const std::array<U32, kLanes> n = bytes_read(w, in);
  const Addresses to = address_lanes(w, in.ops[0], in.wide, w.in<U32>(in.ops[1])[0]);
  const Addresses from = address_lanes(w, in, in.ops[2]);
  access_later(w, in, Space::Shared, to, in.size, Use::Store);
  check_sources(w, in, from, n);
  for (U32 left = w.mask; left;) {
    const int first = std::countr_zero(left);
    const U32 same = take_equal(left, [&](int l) { return groups(w).committed(l); });
    groups(w).add(std::make_unique<Copies>(issue(w, in, first, Proxy::Generic), same, to, from, n));
  }
  const auto lanes = static_cast<U64>(std::popcount(w.mask));
  count_async(w, in, lanes, lanes * in.size);
}

void commit(Warp& w, const Inst&) { groups(w).commit(w.mask); }

/// in.imm: groups that may stay under way.
void wait_group(Warp& w, const Inst& in) { groups(w).wait(w, w.mask, static_cast<U32>(in.imm)); }
void wait_all(Warp& w, const Inst&) {
  groups(w).commit(w.mask);
  groups(w).wait(w, w.mask, 0);
}

/// Arrives at an mbarrier for each of its lanes once their earlier copies are done.
class ArriveAfterCopies final : public Signalling {
 public:
  ArriveAfterCopies(Agent a, SharedPlace p, U32 mask) : Signalling(std::move(a), *p.block, p.at) {
    lanes = mask;
    before_ = groups(*agent.issuer).issued();
  }
  bool writes() const override { return false; }
  void run() override {
    Warp& w = *agent.issuer;
    const SharedPlace p{block, barrier};
    Mbarrier& m = live_mbarrier(w, *agent.inst, agent.lane, p);
    release(agent, m.arriving);
    groups(w).finish(lanes, before_, m.arriving);
    count_arrivals(w, *agent.inst, agent.lane, p, m, static_cast<U32>(std::popcount(lanes)));
    settle(p, m);
  }

 private:
  U64 before_;
};

/// ops: address. in.flags: the phase already counts these arrivals.
void arrive_after_copies(Warp& w, const Inst& in) {
  const Addresses address = address_lanes(w, in, in.ops[0]);
  access(w, in, in.space, address, in.size, Use::Atomic);
  for (U32 left = w.mask; left;) {
    const int first = std::countr_zero(left);
    const SharedPlace p = shared_place(w, in, first, in.space, address[static_cast<std::size_t>(first)]);
    const U32 same = take_equal(left, [&](int l) { return address[static_cast<std::size_t>(l)]; });
    Mbarrier& m = used_mbarrier(w, in, first, p);
    if (!in.flags) m.pending += static_cast<U32>(std::popcount(same));
    if (m.pending > kMaxArrivals)
      fault(w, in, first, fmt::format("the mbarrier at 0x{:x} would miss {} arrivals", p.at, m.pending));
    settle(p, m);
    w.block->cluster->pending.add(std::make_unique<ArriveAfterCopies>(issue(w, in, first, Proxy::Generic), p, same));
  }
}

}  // namespace

Handler make_cp_async(Form& f) {
  const bool hint = f.has("L2::cache_hint");
  const std::size_t n = f.count() - hint;
  if (!f.types.empty() || !f.has("global") || (f.has("ca") == f.has("cg")) || n < 3 || n > 4) return nullptr;
  const std::int64_t size = f.immediate(2);
  if (size != 16 && (f.has("cg") || (size != 4 && size != 8)))
    f.fail(fmt::format("copies {} bytes; .cg takes 16, .ca 4, 8 or 16", size));
  f.inst.size = static_cast<std::uint8_t>(size);
  f.inst.space = Space::Shared;
  f.address(f.operand(0));
  f.inst.wide = f.inst.wide_address;
  f.decoder.add_reference(f.decoder.constant(static_cast<U64>(f.inst.imm), false));
  f.inst.space = Space::Global;
  f.address(f.operand(1));
  const bool sized = n == 4 && f.register_bits(f.operand(3)) != 1;
  if (sized) f.src(3, Ty::u32);
  else f.none();
  if (n == 4 && !sized) {
    f.requires_module("80@7.5");
    f.src(3, Ty::pred);
  } else {
    f.none();
  }
  if (hint) f.src(f.count() - 1, Ty::b64);
  return copy;
}

Handler make_cp_async_commit(Form& f) { return f.count() == 0 ? commit : nullptr; }
Handler make_cp_async_wait_group(Form& f) {
  if (f.count() != 1) return nullptr;
  f.inst.imm = f.immediate(0);
  return f.inst.imm < 0 ? nullptr : wait_group;
}
Handler make_cp_async_wait_all(Form& f) { return f.count() == 0 ? wait_all : nullptr; }

Handler make_cp_async_mbarrier_arrive(Form& f) {
  if (f.count() != 1 || f.types.size() != 1 || f.type() != Ty::b64) return nullptr;
  f.inst.space = f.has("shared") || f.has("shared::cta") ? Space::Shared : Space::Generic;
  f.inst.size = 8;
  f.inst.flags = f.has("noinc");
  f.address(f.operand(0));
  return arrive_after_copies;
}

}  // namespace kiln::rt::sim

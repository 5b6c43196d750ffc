// cp.async: copies from global to shared memory that the issuing lane waits for later.
//
// Data moves when the lane waits for its group, and not before: a program that reads too early sees what was there, so
// a missing wait shows. A copy that nobody waits for never happens.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

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

/// ops: destination base, its offset, source base, source size or none, predicate or none. in.imm: the source's offset;
/// in.wide: the destination's base has 64 bits.
void copy(Warp& w, const Inst& in) {
  const std::array<U32, kLanes> n = bytes_read(w, in);
  const auto to_address = address_lanes(w, in.ops[0], in.wide, w.in<U32>(in.ops[1])[0]);
  const auto from_address = address_lanes(w, in, in.ops[2]);
  const LaneAddresses to = access(w, in, Space::Shared, to_address, in.size, Use::Store);
  if (to.contested) {
    const int l = std::countr_zero(to.contested);
    report_race(w, in, l, to.rivals[static_cast<std::size_t>(l)]);
  }
  // The alignment is that of the whole copy, the bounds those of the bytes read.
  const U32 all = w.mask;
  LaneAddresses from{};
  for (U32 left = all; left;) {
    const U32 size = n[static_cast<std::size_t>(std::countr_zero(left))];
    U32 same = 0;
    each_lane(left, [&](int l) { same |= static_cast<U32>(n[static_cast<std::size_t>(l)] == size) << l; });
    left &= ~same;
    each_lane(same, [&](int l) {
      if (from_address[static_cast<std::size_t>(l)] % in.size)
        fault(w, in, l,
              fmt::format("misaligned global load of {} bytes at 0x{:x}, which is no multiple of {}", in.size,
                          from_address[static_cast<std::size_t>(l)], in.size));
    });
    if (size == 0) continue;
    w.mask = same;
    const LaneAddresses part = access(w, in, Space::Global, from_address, size, Use::Load);
    each_lane(same, [&](int l) { from.at[static_cast<std::size_t>(l)] = part.at[static_cast<std::size_t>(l)]; });
  }
  w.mask = all;
  count_async(w, in, static_cast<U64>(std::popcount(all)), static_cast<U64>(std::popcount(all)) * in.size);
  each_lane(all, [&](int l) {
    const auto i = static_cast<std::size_t>(l);
    w.copies.push_back({to.at[i], from.at[i], w.copy_groups[i], static_cast<std::uint8_t>(l), in.size,
                        static_cast<std::uint8_t>(n[i])});
  });
}

void commit(Warp& w, const Inst&) {
  each_lane(w.mask, [&](int l) { ++w.copy_groups[static_cast<std::size_t>(l)]; });
}

/// Carries out the copies of the active lanes for which `done(copy)`.
template <class Done>
void complete(Warp& w, const Inst& in, Done done) {
  Block& b = *w.block;
  std::erase_if(w.copies, [&](const AsyncCopy& c) {
    if (!(w.mask >> c.lane & 1) || !done(c)) return false;
    const auto at = static_cast<U64>(c.to - b.shared_bytes());
    if (const Races::Access* other = b.races.write(at, c.bytes, {0, in.info, warp_in_cluster(w), false}))
      report_race(w, in, c.lane, *other);
    if (c.read) std::memcpy(c.to, c.from, c.read);
    std::memset(c.to + c.read, 0, c.bytes - c.read);
    return true;
  });
}

/// in.imm: groups that may stay under way.
void wait_group(Warp& w, const Inst& in) {
  const auto pending = static_cast<U64>(in.imm);
  complete(w, in, [&](const AsyncCopy& c) { return c.group + pending < w.copy_groups[c.lane]; });
}
void wait_all(Warp& w, const Inst& in) {
  commit(w, in);
  complete(w, in, [](const AsyncCopy&) { return true; });
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
  if (n == 4 && !sized) f.src(3, Ty::pred);
  else f.none();
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

}  // namespace kiln::rt::sim

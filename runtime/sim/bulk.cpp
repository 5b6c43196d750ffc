// cp.async.bulk and cp.reduce.async.bulk: copies of whole ranges between global and shared memory.
#include "runtime/sim/bulk.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>

#include "runtime/sim/atomic.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"

namespace kiln::rt::sim {

void address_operand(Form& f, std::size_t i, unsigned which) {
  const std::int64_t flags = f.inst.imm;
  f.inst.space = Space::Global;
  f.address(f.operand(i));
  f.decoder.add_reference(f.decoder.constant(static_cast<std::uint64_t>(f.inst.imm), true));
  f.inst.imm = flags | static_cast<std::int64_t>(f.inst.wide_address) << which;
  f.inst.wide_address = false;
}

std::uint64_t address_value(const Warp& w, const Inst& in, std::size_t first, unsigned which, int lane) {
  const std::uint64_t offset = w.in<std::uint64_t>(in.ops[first + 1])[lane];
  const Ref base = in.ops[first];
  if (base == kNoRef) return offset;
  if (in.imm >> which & 1) return w.in<std::uint64_t>(base)[lane] + offset;
  return static_cast<std::uint32_t>(w.in<std::uint32_t>(base)[lane] + static_cast<std::uint32_t>(offset));
}

Destinations destinations(const Warp& w, const Inst& in, int lane, Space s, std::uint64_t to, std::uint64_t barrier) {
  const SharedPlace place = shared_place(w, in, lane, s, to), bar = shared_place(w, in, lane, s, barrier);
  if (place.block != bar.block)
    fault(FindingKind::AsyncMisuse, w, in, lane,
          fmt::format("the destination is in block {} of the cluster, but its mbarrier in block {}", place.block->rank,
                      bar.block->rank));
  check_multiple(w, in, lane, "mbarrier", bar.at, 8);
  return {{place.block}, place.at, bar.at};
}

Destinations multicast(const Warp& w, const Inst& in, int lane, Space s, std::uint64_t to, std::uint64_t barrier,
                       std::uint32_t mask) {
  Destinations d{{}, shared_place(w, in, lane, s, to).at, shared_place(w, in, lane, s, barrier).at};
  check_multiple(w, in, lane, "mbarrier", d.barrier, 8);
  if (mask == 0) fault(FindingKind::AsyncMisuse, w, in, lane, "a multicast to no block: the mask is 0");
  for (std::uint32_t m = mask; m; m &= m - 1)
    d.blocks.push_back(&reachable_block(w, in, lane, static_cast<std::uint64_t>(std::countr_zero(m))));
  return d;
}

std::byte* bulk_write(Agent& a, Block& b, std::uint32_t at, std::uint32_t bytes, bool update) {
  if (const std::uint32_t m = b.mbarriers.inside(at, bytes))
    fault(FindingKind::AsyncMisuse, *a.issuer, *a.inst, a.lane,
          fmt::format("the copy writes over the mbarrier at 0x{:x}", m));
  return update ? shared_update(a, b, at, bytes) : shared_write(a, b, at, bytes);
}

bool bulk_reduces(AtomicOp op, Ty t, bool global) {
  const bool narrow = t == Ty::f16 || t == Ty::bf16;
  switch (op) {
    case AtomicOp::Add:
      return t == Ty::u32 || t == Ty::s32 || t == Ty::u64 || (global && (narrow || t == Ty::f32 || t == Ty::f64));
    case AtomicOp::Min:
    case AtomicOp::Max: return t == Ty::u32 || t == Ty::s32 || (global && (narrow || t == Ty::u64 || t == Ty::s64));
    case AtomicOp::Inc:
    case AtomicOp::Dec: return t == Ty::u32;
    case AtomicOp::And:
    case AtomicOp::Or:
    case AtomicOp::Xor: return t == Ty::b32 || (global && t == Ty::b64);
    default: return false;
  }
}

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// What a reduction does with what is there.
struct Reduction {
  AtomicOp op;
  Ty type;
};
using Reduce = std::optional<Reduction>;

/// The instruction's: flags hold the operation and, eight bits up, the type + 1; 0: it copies.
Reduce reduction(const Inst& in) {
  if (in.flags == 0) return std::nullopt;
  return Reduction{static_cast<AtomicOp>(in.flags & 0xFF), static_cast<Ty>((in.flags >> 8) - 1)};
}

void put(const Reduce& r, std::byte* to, const std::byte* from, U32 size, bool global) {
  if (!r) {
    std::memcpy(to, from, size);
    return;
  }
  for (U32 i = 0; i < size; i += bytes(r->type)) combine(r->op, r->type, to + i, from + i, global);
}

/// Into shared memory, from global memory or the issuer's own shared memory; tells an mbarrier.
class BulkIn final : public Signalling {
 public:
  BulkIn(Agent a, Block& b, const Destinations& d, U64 from, bool from_shared, U32 size)
      : Signalling(std::move(a), b, d.barrier), from_(from), to_(d.at), size_(size), from_shared_(from_shared) {}
  bool reads_shared(const Block& b) const override { return from_shared_ && &b == agent.issuer->block; }
  void run() override {
    if (size_) {
      const Reduce r = reduction(*agent.inst);
      const std::byte* from =
          from_shared_ ? shared_read(agent, *agent.issuer->block, from_, size_) : global_read(agent, from_, size_);
      put(r, bulk_write(agent, *block, to_, size_, r.has_value()), from, size_, false);
    }
    complete_bytes(*this, size_);
  }

 private:
  U64 from_;
  U32 to_, size_;
  bool from_shared_;
};

/// From the issuer's shared memory to global memory; its thread waits for the group.
class BulkOut final : public Operation {
 public:
  BulkOut(Agent a, U64 to, U32 from, U32 size) : Operation(std::move(a)), to_(to), from_(from), size_(size) {}
  bool reads_shared(const Block& b) const override { return !read_ && size_ && &b == agent.issuer->block; }
  void read() override {
    if (std::exchange(read_, true) || size_ == 0) return;
    const std::byte* from = shared_read(agent, *agent.issuer->block, from_, size_);
    data_.assign(from, from + size_);
  }
  void run() override {
    read();
    if (size_ == 0) return;
    const Reduce r = reduction(*agent.inst);
    put(r, r ? global_update(agent, to_, size_) : global_write(agent, to_, size_), data_.data(), size_, true);
  }

 private:
  U64 to_;
  U32 from_, size_;
  bool read_ = false;
  std::vector<std::byte> data_;
};

/// Addresses and bytes of one lane's copy, checked.
struct Range {
  U64 to, from;
  U32 size;
};
constexpr std::size_t kTo = 0, kFrom = 2, kSize = 4, kBarrier = 5, kMask = 7;

Range range(const Warp& w, const Inst& in, int l) {
  const Range r{address_value(w, in, kTo, 0, l), address_value(w, in, kFrom, 1, l), w.in<U32>(in.ops[kSize])[l]};
  check_multiple(w, in, l, "destination of a bulk copy", r.to, 16);
  check_multiple(w, in, l, "source of a bulk copy", r.from, 16);
  if (r.size % 16)
    fault(FindingKind::AsyncMisuse, w, in, l,
          fmt::format("a bulk copy of {} bytes, which is no multiple of 16", r.size));
  return r;
}

/// ops: destination, source, bytes, mbarrier, mask or none. in.space: of the destination; in.sign: the source is
/// shared.
void copy_in(Warp& w, const Inst& in) {
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const Range r = range(w, in, l);
    const U64 barrier = address_value(w, in, kBarrier, 2, l);
    const Destinations d = in.ops[kMask] == kNoRef
                               ? destinations(w, in, l, in.space, r.to, barrier)
                               : multicast(w, in, l, in.space, r.to, barrier, w.in<U32>(in.ops[kMask])[l] & 0xFFFF);
    if (in.sign) count_bulk(w, in, Traffic::None, r.size, {});
    else count_bulk(w, in, Traffic::Read, r.size, {{r.from, r.size}});
    for (Block* b : d.blocks) {
      signalled_mbarrier(w, in, l, {b, d.barrier});
      w.block->cluster->pending.add(
          std::make_unique<BulkIn>(issue(w, in, l, Proxy::Async), *b, d, r.from, in.sign, r.size));
    }
  }
}

/// ops: destination, source, bytes.
void copy_out(Warp& w, const Inst& in) {
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const Range r = range(w, in, l);
    count_bulk(w, in, in.flags ? Traffic::Reduced : Traffic::Written, r.size, {{r.to, r.size}});
    bulk_groups(w).add(
        std::make_unique<BulkOut>(issue(w, in, l, Proxy::Async), r.to, static_cast<U32>(r.from), r.size));
  }
}

void commit(Warp& w, const Inst&) { bulk_groups(w).commit(w.mask); }
/// in.imm: groups that may stay under way; in.flags: only their sources must have been read.
void wait_group(Warp& w, const Inst& in) {
  const auto left = static_cast<U32>(in.imm);
  if (in.flags) bulk_groups(w).wait_read(w, w.mask, left);
  else bulk_groups(w).wait(w, w.mask, left);
}

/// The form behind destination, source and completion; `first`: operands before them.
Handler bulk_form(Form& f) {
  if (f.mods.size() < 3) return nullptr;
  const std::string_view to = f.mods[0], from = f.mods[1], completion = f.mods[2];
  const bool out = to == "global" && from == "shared::cta" && completion == "bulk_group";
  const bool shared = to == "shared::cluster" && from == "shared::cta";
  const bool in = (shared || ((to == "shared::cluster" || to == "shared::cta") && from == "global")) &&
                  completion == "mbarrier::complete_tx::bytes";
  const bool spread = f.has("multicast::cluster"), hint = f.has("L2::cache_hint");
  if (in == out || (spread && (from != "global" || to != "shared::cluster")) || (hint && shared)) return nullptr;
  if (f.count() != 3u + in + spread + hint) f.fail("has a wrong number of operands");
  address_operand(f, 0, 0);
  address_operand(f, 1, 1);
  f.src(2, Ty::u32);
  if (in) address_operand(f, 3, 2);
  if (spread) f.src(4, Ty::u16);
  else f.none();
  if (hint) f.src(f.count() - 1, Ty::b64);
  f.inst.space = to == "shared::cta" ? Space::Shared : Space::Cluster;
  f.inst.sign = shared;
  return in ? copy_in : copy_out;
}

}  // namespace

Handler make_bulk_copy(Form& f) { return f.types.empty() ? bulk_form(f) : nullptr; }

Handler make_bulk_reduce(Form& f) {
  const std::optional<AtomicOp> op = atomic_op(f);
  if (!op || f.types.size() != 1 || f.mods.empty()) return nullptr;
  const bool global = f.mods[0] == "global";
  const bool narrow = f.type() == Ty::f16 || f.type() == Ty::bf16;
  if (!bulk_reduces(*op, f.type(), global) || f.has("noftz") != (narrow && *op == AtomicOp::Add)) return nullptr;
  if (global) f.decoder.communicates();
  const Handler handler = bulk_form(f);
  if (f.mods[1] == "global") return nullptr;
  f.inst.flags = static_cast<std::uint16_t>(static_cast<unsigned>(*op) | (static_cast<unsigned>(f.type()) + 1) << 8);
  return handler;
}

Handler make_bulk_commit(Form& f) { return f.count() == 0 ? commit : nullptr; }
Handler make_bulk_wait(Form& f) {
  if (f.count() != 1) return nullptr;
  f.inst.imm = f.immediate(0);
  f.inst.flags = f.has("read");
  return f.inst.imm < 0 ? nullptr : wait_group;
}

}  // namespace kiln::rt::sim

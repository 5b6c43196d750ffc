// cp.async.bulk.tensor and its relatives: copies of boxes of tensors, described by maps, in tile mode.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>

#include "runtime/sim/atomic.h"
#include "runtime/sim/bulk.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/makers.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/tensor_box.h"
#include "runtime/sim/tensor_map.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr U32 kBoxAlign = 128, kMapAlign = 64;

/// The bytes of a map: at a generic address, or (as an address below the parameters' end) in the parameters.
const std::byte* map_bytes(Warp& w, const Inst& in, int lane, U64 address) {
  const Launch& launch = *w.block->launch;
  check_multiple(w, in, lane, "tensor map", address, kMapAlign);
  const U64 in_params = address >> 56 == kParamWindow >> 56 ? address - kParamWindow : address;
  if (in_params + TensorMap::kBytes <= launch.params.size()) return launch.params.data() + in_params;
  if (address >> 56 != 0)
    fault(FindingKind::TensorMap, w, in, lane,
          fmt::format("a tensor map at 0x{:x}, which is neither a parameter nor in global memory", address));
  Agent a = issue(w, in, lane, Proxy::Async);
  return global_read(a, address, TensorMap::kBytes);
}

TensorSpec map_of(Warp& w, const Inst& in, int lane, U64 address) {
  const std::optional<TensorSpec> spec = read_tensor_map(map_bytes(w, in, lane, address));
  if (!spec)
    fault(FindingKind::TensorMap, w, in, lane,
          fmt::format("the 128 bytes at 0x{:x} are no tensor map made for this device", address));
  return *spec;
}

/// From global memory to shared memory of one block; tells an mbarrier.
class TensorIn final : public Signalling {
 public:
  TensorIn(Agent a, Block& b, const Destinations& d, const TensorBox& box)
      : Signalling(std::move(a), b, d.barrier), box_(box), to_(d.at) {}
  void run() override {
    std::vector<std::byte> data;
    box_.load(agent, data);
    box_.to_shared(agent, *block, to_, data);
    complete_bytes(*this, static_cast<U32>(data.size()));
  }

 private:
  TensorBox box_;
  U32 to_;
};

/// What a reduction by a tensor map works on.
Ty reduction_type(DType d, AtomicOp op) {
  const bool bitwise = op == AtomicOp::And || op == AtomicOp::Or || op == AtomicOp::Xor;
  switch (d) {
    case DType::u32: return bitwise ? Ty::b32 : Ty::u32;
    case DType::i32: return bitwise ? Ty::b32 : Ty::s32;
    case DType::u64: return bitwise ? Ty::b64 : Ty::u64;
    case DType::i64:
    case DType::index: return bitwise ? Ty::b64 : op == AtomicOp::Add ? Ty::u64 : Ty::s64;  // one sum for both
    case DType::f16: return Ty::f16;
    case DType::bf16: return Ty::bf16;
    case DType::f32: return Ty::f32;
    case DType::f64: return Ty::f64;
    default: return Ty::none;
  }
}

/// From the issuer's shared memory to global memory, units outside left out; its thread waits for the group.
class TensorOut final : public Operation {
 public:
  TensorOut(Agent a, U32 from, const TensorBox& box, std::optional<AtomicOp> op)
      : Operation(std::move(a)), box_(box), op_(op), from_(from) {}
  bool reads_shared(const Block& b) const override { return !read_ && &b == agent.issuer->block; }
  void read() override {
    if (!std::exchange(read_, true)) box_.from_shared(agent, *agent.issuer->block, from_, data_);
  }
  void run() override {
    read();
    const U32 size = box_.element_bytes();
    for (const TensorBox::Row& r : box_.rows())
      if (r.count) write(r.address, data_.data() + r.offset + r.first * size, r.count * size);
  }

 private:
  void write(U64 to, const std::byte* from, U32 bytes) {
    if (!op_) {
      std::memcpy(global_write(agent, to, bytes), from, bytes);
      return;
    }
    const Ty type = reduction_type(box_.spec.dtype, *op_);
    std::byte* there = global_update(agent, to, bytes);
    for (U32 i = 0; i < bytes; i += box_.element_bytes()) combine(*op_, type, there + i, from + i, true);
  }

  TensorBox box_;
  std::optional<AtomicOp> op_;
  U32 from_;
  bool read_ = false;
  std::vector<std::byte> data_;
};

// References: of the map, of the shared memory, of the mbarrier (each two), the mask or none, the coordinates.
constexpr std::size_t kMap = 0, kShared = 2, kBarrier = 4, kMask = 6, kCoordinates = 7;

/// in.count: the instruction's dimensions.
TensorBox box_of(Warp& w, const Inst& in, int lane) {
  TensorBox box;
  box.spec = map_of(w, in, lane, address_value(w, in, kMap, 0, lane));
  if (box.spec.rank != in.count)
    fault(FindingKind::TensorMap, w, in, lane,
          fmt::format("a copy of {} dimensions by a tensor map of {}", in.count, box.spec.rank));
  for (std::size_t i = 0; i < in.count; ++i)
    box.at[i] = static_cast<std::int32_t>(w.in<U32>(in.ops[kCoordinates + i])[lane]);
  const std::int64_t first = std::int64_t{box.at[0]} * box.element_bytes();
  if (first % kTensorUnit != 0)
    fault(
        FindingKind::Misaligned, w, in, lane,
        fmt::format("misaligned tensor copy: its first coordinate is {}, byte {} of a row, which is no multiple of {}",
                    box.at[0], first, kTensorUnit));
  return box;
}

void copy_in(Warp& w, const Inst& in) {
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const TensorBox box = box_of(w, in, l);
    const U64 to = address_value(w, in, kShared, 1, l), barrier = address_value(w, in, kBarrier, 2, l);
    check_multiple(w, in, l, "destination of a tensor copy", to, kBoxAlign);
    const Destinations d = in.ops[kMask] == kNoRef
                               ? destinations(w, in, l, in.space, to, barrier)
                               : multicast(w, in, l, in.space, to, barrier, w.in<U32>(in.ops[kMask])[l] & 0xFFFF);
    count_bulk(w, in, Traffic::Read, box.spec.box_bytes(), box.runs());
    for (Block* b : d.blocks) {
      signalled_mbarrier(w, in, l, {b, d.barrier});
      w.block->cluster->pending.add(std::make_unique<TensorIn>(issue(w, in, l, Proxy::Async), *b, d, box));
    }
  }
}

/// in.flags: 0, or an operation + 1.
std::optional<AtomicOp> operation(const Inst& in) {
  if (in.flags == 0) return std::nullopt;
  return static_cast<AtomicOp>(in.flags - 1);
}

void copy_out(Warp& w, const Inst& in) {
  const std::optional<AtomicOp> op = operation(in);
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    TensorBox box = box_of(w, in, l);
    box.stored = true;
    for (std::size_t i = 0; i < in.count; ++i)
      if (box.at[i] < 0)
        fault(FindingKind::OutOfBounds, w, in, l,
              fmt::format("coordinate {} of a stored box is {}: only boxes that are loaded may begin below 0", i,
                          box.at[i]));
    const U64 from = address_value(w, in, kShared, 1, l);
    check_multiple(w, in, l, "source of a tensor copy", from, kBoxAlign);
    if (op) {
      const Ty t = reduction_type(box.spec.dtype, *op);
      if (!bulk_reduces(*op, t, true))
        fault(FindingKind::TensorMap, w, in, l,
              fmt::format("a reduction that elements of {} do not have", name(box.spec.dtype)));
    }
    count_bulk(w, in, op ? Traffic::Reduced : Traffic::Written, box.spec.box_bytes(), box.runs());
    bulk_groups(w).add(std::make_unique<TensorOut>(issue(w, in, l, Proxy::Async), static_cast<U32>(from), box, op));
  }
}

void prefetch(Warp& w, const Inst& in) {
  each_lane(w.mask, [&](int l) {
    const TensorBox box = box_of(w, in, l);
    count_bulk(w, in, Traffic::Prefetch, box.spec.box_bytes(), box.runs());
  });
}

void prefetch_map(Warp& w, const Inst& in) {
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    map_of(w, in, l, address_value(w, in, kMap, 0, l));
  }
}

/// The word behind the name, "1d" to "5d": how many coordinates there are.
void dimensions(Form& f) {
  const std::string_view word = f.mods.empty() ? std::string_view{} : f.mods[0];
  if (word.size() != 2 || word[1] != 'd') f.fail("names no dimensions");
  f.inst.count = static_cast<std::uint8_t>(word[0] - '0');
}

void coordinates(Form& f, std::size_t map) {
  const ptx::Operand& o = f.operand(map);
  if (o.parts.size() != 1 || o.parts[0].parts.size() != f.inst.count)
    f.fail(fmt::format("needs a tensor map and {} coordinates", f.inst.count));
  for (const ptx::Operand& c : o.parts[0].parts) f.src(c, Ty::s32);
}

bool words_are(const Form& f, std::initializer_list<std::string_view> words) {
  std::size_t i = 1;
  for (std::string_view w : words) {
    if (i >= f.mods.size() || f.mods[i] != w) return false;
    ++i;
  }
  return true;
}

Handler form_in(Form& f) {
  const bool spread = f.has("multicast::cluster"), hint = f.has("L2::cache_hint");
  if (!f.has("mbarrier::complete_tx::bytes") || f.has("bulk_group") || (spread && f.has("shared::cta"))) return nullptr;
  if (f.count() != 3u + spread + hint) f.fail("has a wrong number of operands");
  address_operand(f, 1, 0);
  address_operand(f, 0, 1);
  address_operand(f, 2, 2);
  if (spread) f.src(3, Ty::u16);
  else f.none();
  coordinates(f, 1);
  if (hint) f.src(f.count() - 1, Ty::b64);
  f.inst.space = f.has("shared::cta") ? Space::Shared : Space::Cluster;
  return copy_in;
}

Handler form_out(Form& f) {
  const bool hint = f.has("L2::cache_hint");
  if (!f.has("bulk_group") || f.has("mbarrier::complete_tx::bytes") || f.has("multicast::cluster")) return nullptr;
  if (f.count() != 2u + hint) f.fail("has a wrong number of operands");
  address_operand(f, 0, 0);
  address_operand(f, 1, 1);
  for (int i = 0; i < 3; ++i) f.none();
  coordinates(f, 0);
  if (hint) f.src(f.count() - 1, Ty::b64);
  return copy_out;
}

}  // namespace

Handler make_tensor_copy(Form& f) {
  if (!f.types.empty()) return nullptr;
  dimensions(f);
  if (words_are(f, {"shared::cluster", "global"}) || words_are(f, {"shared::cta", "global"})) return form_in(f);
  return words_are(f, {"global", "shared::cta"}) ? form_out(f) : nullptr;
}

Handler make_tensor_reduce(Form& f) {
  const std::optional<AtomicOp> op = atomic_op(f);
  if (!f.types.empty() || !op) return nullptr;
  dimensions(f);
  if (!words_are(f, {"global", "shared::cta"})) return nullptr;
  f.decoder.communicates();
  f.inst.flags = static_cast<std::uint16_t>(static_cast<unsigned>(*op) + 1);
  return form_out(f);
}

Handler make_tensor_prefetch(Form& f) {
  const bool hint = f.has("L2::cache_hint");
  dimensions(f);
  if (!f.types.empty() || !words_are(f, {"L2", "global"}) || f.count() != 1u + hint) return nullptr;
  address_operand(f, 0, 0);
  for (int i = 0; i < 5; ++i) f.none();
  coordinates(f, 0);
  if (hint) f.src(1, Ty::b64);
  return prefetch;
}

Handler make_prefetch_tensormap(Form& f) {
  if (f.count() != 1) return nullptr;
  address_operand(f, 0, 0);
  return prefetch_map;
}

}  // namespace kiln::rt::sim

// st.async and red.async: stores and reductions in the shared memory of a block of the cluster, that tell an mbarrier
// there when they are done.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>

#include "runtime/sim/atomic.h"
#include "runtime/sim/bulk.h"
#include "runtime/sim/makers.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;

constexpr U32 kMostBytes = 16;

class RemoteStore final : public Signalling {
 public:
  RemoteStore(Agent a, const Destinations& d) : Signalling(std::move(a), *d.blocks[0], d.barrier), to_(d.at) {}
  void run() override {
    const Inst& in = *agent.inst;
    const U32 size = U32{in.size} * in.count;
    std::byte* to = bulk_write(agent, *block, to_, size, in.flags != 0);
    if (in.flags == 0) std::memcpy(to, data, size);
    else combine(static_cast<AtomicOp>(in.flags & 0xFF), static_cast<Ty>(in.flags >> 8), to, data, false);
    complete_bytes(*this, size);
  }
  std::byte data[kMostBytes];

 private:
  U32 to_;
};

constexpr std::size_t kTo = 0, kBarrier = 2, kData = 4;

/// ops: destination, mbarrier, data. in.flags: 0, or the operation and, eight bits up, the type.
void store(Warp& w, const Inst& in) {
  for (U32 m = w.mask; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    const std::uint64_t to = address_value(w, in, kTo, 0, l);
    check_multiple(w, in, l, "destination", to, U32{in.size} * in.count);
    const Destinations d = destinations(w, in, l, Space::Cluster, to, address_value(w, in, kBarrier, 1, l));
    used_mbarrier(w, in, l, {d.blocks[0], d.barrier});
    auto o = std::make_unique<RemoteStore>(issue(w, in, l, Proxy::Generic), d);
    for (U32 i = 0; i < in.count; ++i) {
      const Ref r = in.ops[kData + i];
      if (in.size == 8) std::memcpy(o->data + i * 8, w.in<std::uint64_t>(r) + l, 8);
      else std::memcpy(o->data + i * 4, w.in<U32>(r) + l, 4);
    }
    w.block->cluster->pending.add(std::move(o));
  }
}

Handler remote_form(Form& f, std::size_t n) {
  if (f.count() != 3 || f.types.size() != 1 || !f.has("mbarrier::complete_tx::bytes")) return nullptr;
  const Ty t = f.type();
  if ((bits(t) != 32 && bits(t) != 64) || bytes(t) * n > kMostBytes || kind(t) == TyKind::Packed) return nullptr;
  address_operand(f, 0, 0);
  address_operand(f, 2, 1);
  const std::vector<ptx::Operand> one{f.operand(1)};
  const auto& parts = n == 1 ? one : f.operand(1).parts;
  if (parts.size() != n) f.fail(fmt::format("has {} data operands, needs {}", parts.size(), n));
  for (const ptx::Operand& p : parts) f.src(p, bits(t) == 64 ? Ty::b64 : Ty::b32);
  f.inst.size = static_cast<std::uint8_t>(bytes(t));
  f.inst.count = static_cast<std::uint8_t>(n);
  return store;
}

}  // namespace

Handler make_st_async(Form& f) { return remote_form(f, f.has("v2") ? 2 : f.has("v4") ? 4 : 1); }

Handler make_red_async(Form& f) {
  const std::optional<AtomicOp> op = atomic_op(f);
  if (!op || f.types.size() != 1) return nullptr;
  const Ty t = f.type();
  const bool bitwise = *op == AtomicOp::And || *op == AtomicOp::Or || *op == AtomicOp::Xor;
  const bool counting = *op == AtomicOp::Inc || *op == AtomicOp::Dec;
  const bool fits = bitwise    ? t == Ty::b32
                    : counting ? t == Ty::u32
                               : t == Ty::u32 || t == Ty::s32 || (*op == AtomicOp::Add && t == Ty::u64);
  if (!fits) return nullptr;
  f.inst.flags = static_cast<std::uint16_t>(static_cast<unsigned>(*op) | static_cast<unsigned>(t) << 8);
  return remote_form(f, 1);
}

}  // namespace kiln::rt::sim

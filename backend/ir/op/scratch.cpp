#include "backend/ir/op/scratch.h"

#include <algorithm>
#include <bit>

#include "backend/ir/exchange_plan.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/ring.h"

namespace kiln::ir {

std::int64_t scratch_bytes(const Function& f, const Inst& inst) {
  switch (inst.op) {
    case Op::Alloc: return scratch_alloc(f, inst);
    case Op::Convert: return scratch_convert(f, inst);
    case Op::Load: return scratch_load(f, inst);
    case Op::Reduce: return scratch_reduce(f, inst);
    case Op::Scan: return scratch_scan(f, inst);
    case Op::Reshape:
    case Op::Permute:
    case Op::Join:
    case Op::Split:
    case Op::Slice:
    case Op::Cat:
    case Op::Flip:
    case Op::Gather: return scratch_shape(f, inst);
    case Op::Dot:
    case Op::RingDot: return scratch_dot(f, inst);
    case Op::Fill: return inst.i64(AttrKey::stages) > 0 ? ring_bytes(f, inst, inst.i64(AttrKey::stages)) : 0;
    case Op::StoreBlock: return scratch_store_block(f, inst);
    case Op::Sort: return scratch_sort(f, inst);
    case Op::Histogram: return scratch_histogram(f, inst);
    case Op::AtomicRmw:
    case Op::AtomicCas: return scratch_atomic(f, inst);
    default: return 0;
  }
}

SharedRange scratch_range(const Function& f, const Inst& inst) {
  const std::int64_t at = inst.i64(AttrKey::scratch);
  return {at, at + scratch_bytes(f, inst)};
}

std::int64_t shared_bytes(const Function& f) {
  std::int64_t end = 0;
  walk(f, [&](InstId i) {
    const SharedRange range = scratch_range(f, f.inst(i));
    if (range.bytes() > 0) end = std::max(end, range.hi);
  });
  constexpr std::int64_t kRow = 128;  // of all banks: where the next program of a block starts
  return (end + kRow - 1) / kRow * kRow;
}

std::int64_t scratch_alloc(const Function& f, const Inst& inst) {
  return inst.i64(AttrKey::count) * bytes(f.type(inst.results[0]).dtype);
}

std::int64_t scratch_convert(const Function& f, const Inst& inst) {
  const Type &from = f.type(inst.operands[0]), &to = f.type(inst.results[0]);
  return exchange_bytes(f.layout(from.layout), f.layout(to.layout), int(element_bytes(from)));
}

namespace {

/// Whether a scalar may decide a branch, with a barrier behind it.
bool has_control_flow(const Function& f) {
  bool has = false;
  walk(f, [&](InstId i) {
    const Op op = f.inst(i).op;
    has = has || op == Op::For || op == Op::While || op == Op::If;
  });
  return has;
}

/// Whether `pointer` reaches only memory that nothing writes during the launch.
bool is_constant_memory(const Function& f, Value pointer) {
  InstId from = f.def(pointer);
  while (from != kNone && f.inst(from).op == Op::PtrAdd) from = f.def(f.inst(from).operands[0]);
  if (from == kNone || f.inst(from).op != Op::Param) return false;
  const Param& p = f.params[std::size_t(f.inst(from).i64(AttrKey::index))];
  return p.access == rt::Access::Read && p.disjoint;
}

}  // namespace

bool is_handed_round(const Function& f, const Inst& load) {
  const Value pointer = load.operands[0];
  return f.type(load.results[0]).is_scalar() && has_control_flow(f) && !f.type(pointer).shared &&
         !is_constant_memory(f, pointer);
}

std::int64_t scratch_load(const Function& f, const Inst& inst) { return is_handed_round(f, inst) ? 8 : 0; }

std::int64_t scratch_atomic(const Function& f, const Inst& inst) {
  return f.has_uses(inst.results[0]) ? replica_bytes(f, f.type(inst.results[0])) : 0;
}

std::int64_t replica_bytes(const Function& f, const Type& type) {
  const bool one_warp = f.exec->warps == 1 && f.exec->cluster == 1;
  if (one_warp) return 0;
  if (type.is_scalar()) return bytes(type.dtype);
  const LinearLayout& l = f.layout(type.layout);
  const auto repeats = [&](Hw h, int units) { return l.in_size(h) < units || l.free_bits(h) != 0; };
  if (!repeats(Hw::Warp, f.exec->warps) && !repeats(Hw::Block, f.exec->cluster)) return 0;
  std::int64_t n = bytes(type.dtype);
  for (const std::int64_t extent : type.shape) n *= std::int64_t(std::bit_ceil(std::uint64_t(extent)));
  return n;
}

}  // namespace kiln::ir

#include "backend/pass/access.h"

#include <algorithm>

namespace kiln::ir {

std::vector<Access> tile_accesses(const Function& f) {
  std::vector<Access> accesses;
  walk(f, [&](InstId i) {
    const Inst& inst = f.inst(i);
    if (inst.op != Op::Load && inst.op != Op::Store) return;
    const Type& ptr = f.type(inst.operands[0]);
    if (ptr.tile) accesses.push_back({i, inst.operands[0], inst.op == Op::Store, ptr.shape, bytes(ptr.dtype)});
  });
  return accesses;
}

std::int64_t vector_limit(const AxisAnalysis& facts, const Access& access, int axis) {
  const AxisInfo::Axis& along = facts[access.ptr].axes[std::size_t(axis)];
  const std::int64_t aligned = std::max(along.divisibility / access.element_bytes, std::int64_t(1));
  return std::min({along.contiguity, aligned, std::int64_t(16 / access.element_bytes)});
}

}  // namespace kiln::ir

#include "backend/ir/op/result_layout.h"

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/reshape_groups.h"

namespace kiln::ir {
namespace {

LinearLayout permuted(const LinearLayout& l, const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> shape;
  for (std::int64_t axis : order) shape.push_back(l.out_shape()[std::size_t(axis)]);
  LinearLayout r(shape);
  for (Dim d : l.in_dims())
    for (int bit = 0; bit < l.in_bits(d); ++bit) {
      LinearLayout::Coord c;
      for (std::int64_t axis : order) c.push_back(l.basis(d, bit)[std::size_t(axis)]);
      r.add_bit(d, c);
    }
  return r;
}

/// A new last axis of extent 2 in the lowest register bit.
LinearLayout joined(const LinearLayout& l) {
  LinearLayout r = LinearLayout::identity(Hw::Register, 2, l.rank(), l.rank() + 1);
  return r * l.expand(l.rank());
}

}  // namespace

std::optional<LinearLayout> result_layout(const Function& f, const Inst& inst, std::size_t, const LinearLayout& l) {
  if (info(inst.op).elementwise) return l;
  switch (inst.op) {
    case Op::Cast:
    case Op::Bitcast:
    case Op::Select:
    case Op::PtrAdd:
    case Op::Opaque:
    case Op::Settle:
    case Op::Flip:
    case Op::Scan:
    case Op::Sort: return l;
    case Op::Reshape: return reshaped(l, f.type(inst.operands[0]).shape, f.type(inst.results[0]).shape);
    case Op::Permute: return permuted(l, inst.ints(AttrKey::order));
    case Op::ExpandDims: return l.expand(int(inst.i64(AttrKey::axis)));
    case Op::Reduce: return l.slice(int(inst.i64(AttrKey::axis))).without_free_registers();
    case Op::Join: return joined(l);
    case Op::Split: return l.slice(l.rank() - 1).without_free_registers();
    default: return std::nullopt;
  }
}

}  // namespace kiln::ir

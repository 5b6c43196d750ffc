#include "backend/pass/shape_rules.h"

#include <algorithm>

#include "backend/ir/fold.h"

namespace kiln::ir {
namespace {

/// The instruction that defines v, if it is an `op`.
const Inst* defined_by(const Function& f, Value v, Op op) {
  const InstId def = f.def(v);
  return def != kNone && f.inst(def).op == op ? &f.inst(def) : nullptr;
}

Value reshape_identity(const Function& f, const Inst& inst, const InsertOp& insert) {
  Value source = inst.operands[0];
  const auto reshaped = [&](Value v) {
    const Inst* x = defined_by(f, v, Op::Reshape);
    return x ? x : defined_by(f, v, Op::ExpandDims);
  };
  while (const Inst* x = reshaped(source)) source = x->operands[0];
  if (source == inst.operands[0]) return {};
  const Type type = f.type(inst.results[0]);
  return f.type(source) == type ? source : insert(Op::Reshape, {source}, {}, {type});
}

Value permute_identity(const Function& f, const Inst& inst, const InsertOp& insert) {
  const Inst* x = defined_by(f, inst.operands[0], Op::Permute);
  if (!x) return {};
  const std::vector<std::int64_t>& inner = x->ints(AttrKey::order);
  const Value source = x->operands[0];
  std::vector<std::int64_t> order;
  for (std::int64_t axis : inst.ints(AttrKey::order)) order.push_back(inner[std::size_t(axis)]);
  if (std::is_sorted(order.begin(), order.end())) return source;
  return insert(Op::Permute, {source}, {{AttrKey::order, order}}, {});
}

Value slice_identity(const Function& f, const Inst& inst, const InsertOp& insert) {
  const std::int64_t axis = inst.i64(AttrKey::axis);
  const std::int64_t start = inst.i64(AttrKey::start), end = inst.i64(AttrKey::end);
  const auto slice_of = [&](Value x, std::int64_t shift) {
    if (f.type(x) == f.type(inst.results[0])) return x;
    return insert(Op::Slice, {x}, {{AttrKey::axis, axis}, {AttrKey::start, start + shift}, {AttrKey::end, end + shift}},
                  {});
  };
  if (const Inst* x = defined_by(f, inst.operands[0], Op::Slice))
    return x->i64(AttrKey::axis) == axis ? slice_of(x->operands[0], x->i64(AttrKey::start)) : Value{};
  const Inst* x = defined_by(f, inst.operands[0], Op::Cat);
  if (!x || x->i64(AttrKey::axis) != axis) return {};
  const std::int64_t middle = f.type(x->operands[0]).shape[std::size_t(axis)];
  if (end <= middle) return slice_of(x->operands[0], 0);
  return start >= middle ? slice_of(x->operands[1], -middle) : Value{};
}

Value flip_identity(const Function& f, const Inst& inst) {
  const Inst* x = defined_by(f, inst.operands[0], Op::Flip);
  return x && x->i64(AttrKey::axis) == inst.i64(AttrKey::axis) ? x->operands[0] : Value{};
}

Value join_identity(const Function& f, const Inst& inst) {
  const Inst *a = defined_by(f, inst.operands[0], Op::Split), *b = defined_by(f, inst.operands[1], Op::Split);
  const bool halves = a && a == b && inst.operands[0] == a->results[0] && inst.operands[1] == a->results[1];
  return halves ? a->operands[0] : Value{};
}

Value splat_identity(const Function& f, const Inst& inst, const InsertOp& insert) {
  Value scalar;
  for (Value v : inst.operands) {
    const Inst* splat = defined_by(f, v, Op::Splat);
    if (!splat || (scalar.valid() && splat->operands[0] != scalar)) return {};
    scalar = splat->operands[0];
  }
  return insert(Op::Splat, {scalar}, {}, {f.type(inst.results[0])});
}

}  // namespace

Value rearranged_identity(const Function& f, const Inst& original, const InsertOp& insert) {
  if (!rearranges(original.op)) return {};
  const Inst inst = original;
  if (const Value v = splat_identity(f, inst, insert); v.valid()) return v;
  switch (inst.op) {
    case Op::Reshape: return reshape_identity(f, inst, insert);
    case Op::Permute: return permute_identity(f, inst, insert);
    case Op::Slice: return slice_identity(f, inst, insert);
    case Op::Flip: return flip_identity(f, inst);
    case Op::Join: return join_identity(f, inst);
    default: return {};
  }
}

std::vector<Value> split_identity(const Function& f, const Inst& inst, const InsertOp& insert) {
  const Value x = inst.operands[0];
  if (const Inst* join = defined_by(f, x, Op::Join)) return join->operands;
  const Inst* splat = defined_by(f, x, Op::Splat);
  if (!splat) return {};
  const Value half = insert(Op::Splat, {splat->operands[0]}, {}, {f.type(inst.results[0])});
  return {half, half};
}

}  // namespace kiln::ir

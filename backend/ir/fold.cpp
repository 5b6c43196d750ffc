#include "backend/ir/fold.h"

#include <algorithm>

#include "backend/ir/eval.h"

namespace kiln::ir {
namespace {

std::int64_t attr_i64(std::span<const Attr> attrs, AttrKey key) {
  for (const Attr& a : attrs)
    if (a.key == key) return std::get<std::int64_t>(a.value);
  return 0;
}

/// Whether `op` with this literal as right operand gives the left one, bit for bit.
bool right_identity(Op op, const Literal& l) {
  if (op == Op::Add && is_float(l.dtype)) return l == Literal::of_float(l.dtype, -0.0);  // x + 0.0 turns -0 into +0
  if (op == Op::Mul || op == Op::Div) return l == Literal::of_int(l.dtype, 1);
  if (op == Op::And) return l == eval_elementwise(Op::Not, {Literal{l.dtype, 0}});
  const bool zero_is_identity =
      op == Op::Add || op == Op::Sub || op == Op::Or || op == Op::Xor || op == Op::Shl || op == Op::Shr;
  return zero_is_identity && l.bits == 0;
}

/// Whether a literal operand alone decides an integer op: x * 0, x & 0.
bool absorbs(Op op, const Literal& l) { return (op == Op::Mul || op == Op::And) && !is_float(l.dtype) && l.bits == 0; }

/// An approximation is left to the machine: a constant operand does not change what the op gives.
Folded fold_elementwise(const Function& f, Op op, std::span<const Value> operands, bool fast) {
  std::vector<Literal> known;
  for (Value v : operands)
    if (const auto l = literal_of(f, v)) known.push_back(*l);
  const bool exact = info(op).accuracy.bound == Bound::Exact && !fast;
  if (known.size() == operands.size() && exact) return eval_elementwise(op, known);
  if (operands.size() != 2) return {};
  const auto left = literal_of(f, operands[0]), right = literal_of(f, operands[1]);
  if (right && right_identity(op, *right)) return operands[0];
  if (left && commutes(op) && right_identity(op, *left)) return operands[1];
  if (right && absorbs(op, *right)) return *right;
  if (left && absorbs(op, *left)) return *left;
  return {};
}

const std::vector<std::int64_t>& attr_ints(std::span<const Attr> attrs, AttrKey key) {
  for (const Attr& a : attrs)
    if (a.key == key) return std::get<std::vector<std::int64_t>>(a.value);
  static const std::vector<std::int64_t> none;
  return none;
}

/// Whether a shape op leaves every element of its first operand in its place.
bool moves_nothing(Op op, std::span<const Attr> attrs, const Type& x, const Type& result) {
  if (x != result) return false;
  if (op == Op::Permute) {
    const auto& order = attr_ints(attrs, AttrKey::order);
    return std::is_sorted(order.begin(), order.end());
  }
  if (op == Op::Flip) return x.shape[std::size_t(attr_i64(attrs, AttrKey::axis))] == 1;
  return true;
}

Folded fold_shape(const Function& f, Op op, std::span<const Value> operands, std::span<const Attr> attrs,
                  const Type& result) {
  const bool one_tile = op != Op::Join && op != Op::Cat;
  if (one_tile && moves_nothing(op, attrs, f.type(operands[0]), result)) return operands[0];
  const auto l = literal_of(f, operands[0]);
  if (!l || result.ptr) return {};
  if (!one_tile && literal_of(f, operands[1]) != l) return {};
  return *l;
}

}  // namespace

std::optional<Literal> literal_of(const Function& f, Value v) {
  const InstId def = f.def(v);
  if (def == kNone) return {};
  const Inst& inst = f.inst(def);
  if (inst.op == Op::Constant) return inst.literal();
  if (inst.op == Op::Splat) return literal_of(f, inst.operands[0]);
  return {};
}

bool commutes(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::Min:
    case Op::Max:
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::Eq:
    case Op::Ne: return true;
    default: return false;
  }
}

bool rearranges(Op op) {
  switch (op) {
    case Op::ExpandDims:
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Permute:
    case Op::Join:
    case Op::Slice:
    case Op::Cat:
    case Op::Flip: return true;
    default: return false;
  }
}

Folded fold(const Function& f, Op op, std::span<const Value> operands, std::span<const Attr> attrs,
            const Type& result) {
  if (info(op).elementwise) return fold_elementwise(f, op, operands, attr_i64(attrs, AttrKey::fast) != 0);
  if (op == Op::Cast) {
    const bool saturate = attr_i64(attrs, AttrKey::saturate);
    if (f.type(operands[0]) == result && !saturate) return operands[0];
    if (const auto l = literal_of(f, operands[0])) return eval_cast(*l, result.dtype, saturate);
  }
  if (op == Op::Bitcast) {
    if (f.type(operands[0]) == result) return operands[0];
    if (const auto l = literal_of(f, operands[0])) return Literal{result.dtype, l->bits};
  }
  if (rearranges(op)) return fold_shape(f, op, operands, attrs, result);
  if (op == Op::Select) {
    if (operands[1] == operands[2]) return operands[1];
    if (const auto l = literal_of(f, operands[0])) return l->bits ? operands[1] : operands[2];
  }
  if (op == Op::PtrAdd) {
    if (const auto l = literal_of(f, operands[1]); l && l->bits == 0) return operands[0];
  }
  return {};
}

}  // namespace kiln::ir

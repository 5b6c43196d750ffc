#include "backend/pass/rewrite.h"

#include <algorithm>

#include "backend/ir/op/infer.h"

namespace kiln::ir {

InstId insert_op(Function& f, InstId position, Op op, std::vector<Value> operands, std::vector<Attr> attrs,
                 std::vector<Type> stated, SourceLoc loc) {
  Types types = infer({f, op, operands, attrs, stated, loc});
  const InstId i = f.create(op, std::move(operands), std::move(types), std::move(attrs), loc);
  f.insert_before(position, i);
  return i;
}

Value insert_constant(Function& f, InstId position, const Literal& l, const Type& type, SourceLoc loc) {
  const Value scalar = f.inst(insert_op(f, position, Op::Constant, {}, {{AttrKey::value, l}}, {}, loc)).results[0];
  return type.tile ? f.inst(insert_op(f, position, Op::Splat, {scalar}, {}, {type}, loc)).results[0] : scalar;
}

bool set_attr(Function& f, InstId i, AttrKey key, std::int64_t value) {
  Inst& inst = f.inst(i);
  const Attr given{key, value};
  std::vector<Attr> attrs;
  for (AttrKey k : info(inst.op).attrs)
    if (k == key && !(info(k).optional && value == 0)) attrs.push_back(given);
    else if (const Attr* a = inst.find(k); a && k != key) attrs.push_back(*a);
  if (attrs == inst.attrs) return false;
  inst.attrs = std::move(attrs);
  return true;
}

bool removable(Op op) {
  const OpInfo& o = info(op);
  if (o.pure) return true;
  return !o.effects.empty() &&
         std::all_of(o.effects.begin(), o.effects.end(), [](const Effect& e) { return e.kind == EffectKind::Read; });
}

bool reads_constant_memory(const Function& f, Value pointer) {
  for (InstId i = f.def(pointer); i != kNone && !f.inst(i).operands.empty(); i = f.def(f.inst(i).operands[0]))
    pointer = f.inst(i).operands[0];
  const InstId from = f.def(pointer);
  if (from == kNone || f.inst(from).op != Op::Param) return false;
  const Param& p = f.params[std::size_t(f.inst(from).i64(AttrKey::index))];
  return p.access == rt::Access::Read && p.disjoint;
}

}  // namespace kiln::ir

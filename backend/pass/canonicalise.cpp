// canonicalise: one form for equal computations, and nothing that is not needed.
//
// In one walk in program order, each instruction
//   1. folds to a constant or an operand where its result is known (backend/ir/fold.h) or an identity holds for every
//      bit pattern (NaN payloads aside): -(-x), relu(relu(x)), min(x, x), x - x for integers, f16 -> f32 -> f16, …
//      or it only rearranges what was rearranged before (backend/pass/shape_rules.h)
//   2. moves to scalars when all its operands are splats: splat(a) + splat(b) becomes splat(a + b), computed once
//   3. loses a mask that is true everywhere; a load or store whose mask is false everywhere goes
//   4. is replaced by an equal pure instruction before it
// Before it, loops are unrolled where a hint asks for it, and pure operations that depend on nothing a loop computes
// move in front of the loop; after it, results of
// loops and branches that nothing needs go, with what was carried for them (loop_rules.h), and a walk backwards removes
// what nothing uses. Nothing here changes a rounding: no reassociation, no fma formation.
//
//     %0 = param index=0 : ptr<f32>                      %0 = param index=0 : ptr<f32>
//     %1 = param index=1 : index                         %1 = param index=1 : index
//     %2 = splat %1 : tile<64xindex>                     %2 = constant value=index(64) : index
//     %3 = constant value=index(64) : index              %3 = mul %1, %2 : index
//     %4 = splat %3 : tile<64xindex>                     %4 = splat %3 : tile<64xindex>
//     %5 = mul %2, %4 : tile<64xindex>           ->      %5 = arange start=0 end=64 : tile<64xindex>
//     %6 = arange start=0 end=64 : tile<64xindex>        %6 = add %4, %5 : tile<64xindex>
//     %7 = add %5, %6 : tile<64xindex>                   …
//     %8 = add %6, %5 : tile<64xindex>
//     …
#include <algorithm>
#include <map>

#include "backend/ir/eval.h"
#include "backend/ir/fold.h"
#include "backend/pass/loop_rules.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"
#include "backend/pass/shape_rules.h"

namespace kiln::ir {
namespace {

/// Whether every value of `from` is a value of `to`, so that a cast there and back gives it again.
bool embeds(DType from, DType to) {
  if (from == to) return true;
  if (is_float(from) || is_float(to)) {
    if (!is_float(from) || !is_float(to)) return false;
    return bits(from) < bits(to) && (bits(from) > 8 || bits(to) >= 16);
  }
  if (to == DType::i1) return false;
  if (is_signed(from)) return is_signed(to) && bits(to) >= bits(from);
  return bits(to) > bits(from) || (!is_signed(to) && bits(to) == bits(from));
}

class Canonicaliser {
 public:
  explicit Canonicaliser(Function& f) : f_(f) {}

  bool run() {
    changed_ = unroll_loops(f_);
    changed_ |= hoist_invariants(f_);
    region(f_.body(), {});
    changed_ |= drop_unneeded_results(f_);
    sweep(f_.body());
    return changed_;
  }

 private:
  using Key = std::vector<std::uint64_t>;
  using Known = std::map<Key, Value>;

  void region(RegionId r, Known known) {
    const std::vector<InstId> order = f_.region(r).insts;
    for (InstId i : order) {
      instruction(i, known);
      if (f_.inst(i).parent == kNone) continue;
      for (RegionId inner : std::vector<RegionId>(f_.inst(i).regions)) region(inner, known);
    }
  }

  void instruction(InstId i, Known& known) {
    if (mask(i)) return;
    const Inst& inst = f_.inst(i);
    if (inst.op == Op::Split) return split(i, known);
    if (!info(inst.op).pure || inst.results.size() != 1 || !inst.regions.empty()) return;
    if (const Value same = simplified(i, known); same.valid()) replace(i, same);
    else merge(i, known);
  }

  /// Merges with an equal instruction already seen, or becomes the one that later ones merge with.
  Value merge(InstId i, Known& known) {
    const auto [at, is_new] = known.emplace(key(i), f_.inst(i).results[0]);
    if (!is_new) replace(i, at->second);
    return at->second;
  }

  void split(InstId i, Known& known) {
    const std::vector<Value> halves = split_identity(f_, f_.inst(i), inserter(i, known));
    if (halves.empty()) return;
    for (std::size_t k = 0; k < 2; ++k) f_.replace_all_uses(f_.inst(i).results[k], halves[k]);
    f_.remove(i);
    changed_ = true;
  }

  void replace(InstId i, Value by) {
    f_.replace_all_uses(f_.inst(i).results[0], by);
    f_.remove(i);
    changed_ = true;
  }

  Key key(InstId i) const {
    const Inst& inst = f_.inst(i);
    const Type& t = f_.type(inst.results[0]);
    Key k{std::uint64_t(inst.op), std::uint64_t(t.dtype), std::uint64_t(t.ptr) | std::uint64_t(t.tile) << 1,
          t.shape.size()};
    k.insert(k.end(), t.shape.begin(), t.shape.end());
    std::vector<std::uint64_t> operands;
    for (Value v : inst.operands) operands.push_back(v.id);
    if (commutes(inst.op)) std::sort(operands.begin(), operands.end());
    k.insert(k.end(), operands.begin(), operands.end());
    for (const Attr& a : inst.attrs) {
      k.push_back(std::uint64_t(a.key));
      if (const auto* l = std::get_if<Literal>(&a.value)) k.push_back(l->bits);
      else if (const auto* v = std::get_if<std::vector<std::int64_t>>(&a.value))
        k.insert(k.end(), v->begin(), v->end());
      else k.push_back(std::uint64_t(std::get<std::int64_t>(a.value)));
    }
    return k;
  }

  /// A value that instruction `i` equals, made before it where it does not exist yet; invalid if there is none.
  Value simplified(InstId i, Known& known) {
    const Inst& inst = f_.inst(i);
    if (inst.op == Op::Constant || literal_of(f_, inst.results[0])) return {};
    const Type type = f_.type(inst.results[0]);
    const Folded folded = fold(f_, inst.op, inst.operands, inst.attrs, type);
    if (const auto* v = std::get_if<Value>(&folded)) return *v;
    if (const auto* l = std::get_if<Literal>(&folded)) return constant(i, *l, type, known);
    if (const Value v = identity(i, known); v.valid()) return v;
    if (const Value v = rearranged_identity(f_, f_.inst(i), inserter(i, known)); v.valid()) return v;
    return on_scalars(i, known);
  }

  Value insert(InstId before, Op op, std::vector<Value> operands, std::vector<Attr> attrs, std::vector<Type> stated,
               Known& known) {
    return merge(
        insert_op(f_, before, op, std::move(operands), std::move(attrs), std::move(stated), f_.inst(before).loc),
        known);
  }

  InsertOp inserter(InstId before, Known& known) {
    return [=, this, &known](Op op, std::vector<Value> operands, std::vector<Attr> attrs, std::vector<Type> stated) {
      return insert(before, op, std::move(operands), std::move(attrs), std::move(stated), known);
    };
  }

  Value constant(InstId before, const Literal& l, const Type& type, Known& known) {
    const Value c = insert(before, Op::Constant, {}, {{AttrKey::value, l}}, {}, known);
    return type.tile ? insert(before, Op::Splat, {c}, {}, {type}, known) : c;
  }

  /// The instruction that defines operand k, if it is an `op`.
  const Inst* operand_def(const Inst& inst, std::size_t k, Op op) const {
    const InstId def = f_.def(inst.operands[k]);
    return def != kNone && f_.inst(def).op == op ? &f_.inst(def) : nullptr;
  }

  Value identity(InstId i, Known& known) {
    const Inst& inst = f_.inst(i);
    const Type type = f_.type(inst.results[0]);
    const auto inner = [&](Op op) { return operand_def(inst, 0, op); };
    const bool same = inst.operands.size() == 2 && inst.operands[0] == inst.operands[1];
    const bool integer = !inst.operands.empty() && !is_float(f_.type(inst.operands[0]).dtype);
    switch (inst.op) {
      case Op::Neg:
      case Op::Not:
        if (const Inst* x = inner(inst.op)) return x->operands[0];
        return {};
      case Op::Abs:
        if (const Inst* x = inner(Op::Neg)) return insert(i, Op::Abs, {x->operands[0]}, {}, {}, known);
        return inner(Op::Abs) ? inst.operands[0] : Value{};
      case Op::Relu:
      case Op::Floor:
      case Op::Ceil:
      case Op::Trunc:
      case Op::Round: return inner(inst.op) ? inst.operands[0] : Value{};
      case Op::Min:
      case Op::Max:
      case Op::And:
      case Op::Or: return same ? inst.operands[0] : Value{};
      case Op::Sub:
      case Op::Xor: return same && integer ? constant(i, Literal{type.dtype, 0}, type, known) : Value{};
      case Op::Eq:
      case Op::Le:
      case Op::Ge: return same && integer ? constant(i, Literal{DType::i1, 1}, type, known) : Value{};
      case Op::Ne:
      case Op::Lt:
      case Op::Gt: return same && integer ? constant(i, Literal{DType::i1, 0}, type, known) : Value{};
      case Op::Cast: {
        const Inst* x = inner(Op::Cast);
        if (!x || inst.flag(AttrKey::saturate)) return {};
        const Type& from = f_.type(x->operands[0]);
        return from == type && embeds(from.dtype, f_.type(inst.operands[0]).dtype) ? x->operands[0] : Value{};
      }
      case Op::Select:
        if (const Inst* c = inner(Op::Not))
          return insert(i, Op::Select, {c->operands[0], inst.operands[2], inst.operands[1]}, {}, {}, known);
        return {};
      default: return {};
    }
  }

  /// An op that treats elements alike, on splats only, is a splat of the scalar op.
  Value on_scalars(InstId i, Known& known) {
    const Inst& inst = f_.inst(i);
    const Type type = f_.type(inst.results[0]);
    const bool alike = info(inst.op).elementwise || inst.op == Op::Cast || inst.op == Op::Bitcast ||
                       inst.op == Op::Select || inst.op == Op::PtrAdd;
    if (!type.tile || !alike) return {};
    std::vector<Value> scalars;
    for (std::size_t k = 0; k < inst.operands.size(); ++k) {
      const Inst* splat = operand_def(inst, k, Op::Splat);
      if (!splat) return {};
      scalars.push_back(splat->operands[0]);
    }
    const std::vector<Attr> attrs = inst.attrs;
    const Op op = inst.op;
    std::vector<Type> stated;
    if (op == Op::Cast || op == Op::Bitcast) stated.push_back(Type::scalar(type.dtype));
    const Value scalar = insert(i, op, scalars, attrs, stated, known);
    return insert(i, Op::Splat, {scalar}, {}, {type}, known);
  }

  /// Decided masks of loads and stores. True if the instruction is gone.
  bool mask(InstId i) {
    const Op op = f_.inst(i).op;
    if (op != Op::Load && op != Op::Store) return false;
    const std::size_t at = op == Op::Load ? 1 : 2;
    std::vector<Value> operands = f_.inst(i).operands;
    if (operands.size() <= at) return false;
    const auto known = literal_of(f_, operands[at]);
    if (!known) return false;
    changed_ = true;
    if (known->bits) {
      operands.resize(at);
      f_.set_operands(i, std::move(operands));
      return false;
    }
    if (op == Op::Load) {
      const Value v = f_.inst(i).results[0];
      const Type type = f_.type(v);
      const Value other =
          operands.size() > 2 ? operands[2] : insert_constant(f_, i, Literal{type.dtype, 0}, type, f_.inst(i).loc);
      f_.replace_all_uses(v, other);
    }
    f_.remove(i);
    return true;
  }

  void sweep(RegionId r) {
    const std::vector<InstId> order = f_.region(r).insts;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const Inst& inst = f_.inst(*at);
      const bool used = std::any_of(inst.results.begin(), inst.results.end(), [&](Value v) { return f_.has_uses(v); });
      if (!used && removable(inst.op)) {
        f_.remove(*at);
        changed_ = true;
        continue;
      }
      for (RegionId inner : std::vector<RegionId>(inst.regions)) sweep(inner);
    }
  }

  Function& f_;
  bool changed_ = false;
};

}  // namespace

bool canonicalise(PassContext&, Function& f) { return Canonicaliser(f).run(); }

}  // namespace kiln::ir

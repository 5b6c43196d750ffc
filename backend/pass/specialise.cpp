// specialise: a program with a ring becomes two roles that run at the same time.
//
//     for %k … (%acc) { fill …; take; ring_dot; release; yield }    ->    partitions {
//     store                                                                 for %k … { fill …; yield }
//                                                                           yield
//                                                                         } {
//                                                                           for %k … (%acc) { take; ring_dot; release;
//                                                                           yield } store yield
//                                                                         }
//
// The role that fills is the part of the program that fills follow from: control flow around them, and the scalars that
// it and their coordinates need (stage-products has made sure that those can be computed twice). So both roles see the
// same trips, and the ring alone orders them.
#include <set>

#include "backend/ir/op/ring.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"

namespace kiln::ir {
namespace {

class Roles {
 public:
  explicit Roles(Function& f) : f_(f) {}

  void split() {
    const std::vector<InstId> whole = f_.region(f_.body()).insts;
    walk(f_, [&](InstId i) {
      if (f_.inst(i).op == Op::Fill) need_around(i);
    });
    const InstId roles = f_.create(Op::Partitions, {}, {}, {}, f_.loc);
    const RegionId fills = f_.add_region(roles), rest = f_.add_region(roles);
    ValueMap of_fills, of_rest;
    produce(f_.body(), fills, of_fills);
    f_.clone_into(rest, f_.body(), of_rest);
    for (RegionId r : {fills, rest}) f_.append(r, f_.create(Op::Yield, {}, {}, {}, f_.loc));
    for (auto i = whole.rbegin(); i != whole.rend(); ++i) f_.remove(*i);
    f_.append(f_.body(), roles);
    std::vector<InstId> taken_over;
    walk(f_, rest, [&](InstId i) {
      if (f_.inst(i).op == Op::Fill) taken_over.push_back(i);
    });
    for (InstId i : taken_over) f_.remove(i);
  }

 private:
  /// Operands that decide how often regions run.
  static std::size_t deciding(Op op) { return op == Op::For ? 3 : op == Op::If ? 1 : 0; }
  void need(Value v) {
    const InstId i = f_.def(v);
    if (i == kNone || !needed_.insert(i).second) return;
    for (Value operand : f_.inst(i).operands) need(operand);
  }
  void need_around(InstId fill) {
    for (Value v : f_.inst(fill).operands) need(v);
    needed_.insert(fill);
    for (InstId i = f_.region(f_.inst(fill).parent).owner; i != kNone; i = f_.region(f_.inst(i).parent).owner) {
      const Inst& around = f_.inst(i);
      needed_.insert(i);
      for (std::size_t k = 0; k < deciding(around.op); ++k) need(around.operands[k]);
    }
  }

  /// Copies what is needed of `from`, control flow without what it carries.
  void produce(RegionId from, RegionId to, ValueMap& map) {
    for (InstId i : std::vector<InstId>(f_.region(from).insts)) {
      if (!needed_.contains(i)) continue;
      const Inst inst = f_.inst(i);
      if (!inst.regions.empty()) control(inst, to, map);
      else f_.append(to, f_.clone(i, map));
    }
  }
  void control(const Inst& inst, RegionId to, ValueMap& map) {
    std::vector<Value> operands;
    for (std::size_t k = 0; k < deciding(inst.op); ++k) operands.push_back(map(inst.operands[k]));
    const InstId copy =
        f_.create(inst.op, operands, {}, inst.op == Op::Walk ? inst.attrs : std::vector<Attr>{}, inst.loc);
    for (RegionId r : inst.regions) {
      const RegionId inner = f_.add_region(copy);
      const std::vector<Value> params = f_.region(r).params;  // a loop's counter, or all numbers of a program
      for (std::size_t k = 0; k < (inst.op == Op::For ? 1 : params.size()); ++k)
        map.set(params[k], f_.add_region_param(inner, f_.type(params[k])));
      produce(r, inner, map);
      f_.append(inner, f_.create(Op::Yield, {}, {}, {}, inst.loc));
    }
    f_.append(to, copy);
  }

  Function& f_;
  std::set<InstId> needed_;
};

}  // namespace

bool specialise(PassContext&, Function& f) {
  if (fill_of(f) == kNone) return false;
  Roles(f).split();
  return true;
}

}  // namespace kiln::ir

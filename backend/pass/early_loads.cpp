// early-loads: what the end of a program with a ring reads besides its sums is asked for before the loop.
//
//     %s = for … { take …; ring_dot …; release }          %b = load %bias, %inside
//     %e = settle %s                                ->    %s = for … { take …; ring_dot …; release }
//     %b = load %bias, %inside                            %e = settle %s
//     … add %e, %b …                                      … add %e, %b …
//
// The loop hides the latency of memory, which otherwise stands between the last product and the results: 0.4 us of
// 26.5 at 2048^3 bf16 in a kernel written by hand. Early are loads of arrays that nothing writes, whose addresses do
// not follow from the loop, as long as a thread has registers for them beside its sums.
#include <algorithm>
#include <set>

#include "backend/ir/op/ring.h"
#include "backend/pass/pass.h"
#include "backend/pass/rewrite.h"

namespace kiln::ir {
namespace {

/// Registers a thread for sums and what is loaded early; beside them are addresses, and a role has 232.
constexpr std::int64_t kRegisters = 196;

class EarlyLoads {
 public:
  EarlyLoads(Function& f, InstId loop) : f_(f), loop_(loop), region_(f.inst(loop).parent) {}

  bool run() {
    std::int64_t left = kRegisters;
    for (Value v : f_.inst(loop_).results) left -= registers(v);
    walk(f_, [&](InstId i) {
      if (f_.inst(i).op == Op::RingDot && f_.inst(i).i64(AttrKey::promote) > 0)
        left -= part_registers(registers(f_.inst(i).results[0]));
    });
    const std::vector<InstId> order = f_.region(region_).insts;
    const auto at = std::find(order.begin(), order.end(), loop_);
    behind_.insert(at, order.end());
    std::vector<InstId> loads;
    for (auto i = at; i != order.end(); ++i) {
      if (f_.inst(*i).op != Op::Load || !reads_constant_memory(f_, f_.inst(*i).operands[0])) continue;
      const std::int64_t needs = registers(f_.inst(*i).results[0]);
      std::set<InstId> chain;
      if (needs > left || !can_stand_before(*i, chain)) continue;
      left -= needs;
      loads.push_back(*i);
    }
    for (InstId i : loads) move(i);
    return !loads.empty();
  }

 private:
  /// Registers of 32 bits a thread; narrower elements have one each.
  std::int64_t registers(Value v) const {
    const Type& t = f_.type(v);
    const std::int64_t each = std::max(bytes(t.dtype), 4) / 4;
    return t.tile ? each << f_.layout(t.layout).in_bits(Hw::Register) : each;
  }

  /// Whether `i` follows from nothing behind the loop but pure operations; `chain` collects it and those.
  bool can_stand_before(InstId i, std::set<InstId>& chain) const {
    if (i == loop_ || (f_.inst(i).op != Op::Load && !info(f_.inst(i).op).pure) || !f_.inst(i).regions.empty())
      return false;
    chain.insert(i);
    return std::all_of(f_.inst(i).operands.begin(), f_.inst(i).operands.end(), [&](Value v) {
      const InstId from = f_.def(v);
      return from == kNone || !behind_.contains(from) || chain.contains(from) || can_stand_before(from, chain);
    });
  }

  /// What a load follows from is computed again in front of the loop: kept alive it would take registers for longer.
  void move(InstId load) {
    std::set<InstId> chain;
    can_stand_before(load, chain);
    ValueMap early;
    for (InstId i : std::vector<InstId>(f_.region(region_).insts))
      if (chain.contains(i)) f_.insert_before(loop_, f_.clone(i, early));
    const Value result = f_.inst(load).results[0];
    f_.replace_all_uses(result, early(result));
    const std::vector<InstId> order = f_.region(region_).insts;
    for (auto i = order.rbegin(); i != order.rend(); ++i)
      if (chain.contains(*i) && !f_.has_uses(f_.inst(*i).results[0])) f_.remove(*i);
  }

  Function& f_;
  const InstId loop_;
  const RegionId region_;
  std::set<InstId> behind_;
};

}  // namespace

bool early_loads(PassContext&, Function& f) {
  InstId loop = fill_of(f);
  if (loop == kNone) return false;
  for (InstId around = loop; around != kNone; around = f.region(f.inst(around).parent).owner) loop = around;
  return EarlyLoads(f, loop).run();
}

}  // namespace kiln::ir

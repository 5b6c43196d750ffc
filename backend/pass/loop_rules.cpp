#include "backend/pass/loop_rules.h"

#include <algorithm>

#include "backend/pass/rewrite.h"

namespace kiln::ir {
namespace {

bool is_loop(const Function& f, InstId i) { return f.inst(i).op == Op::For || f.inst(i).op == Op::While; }
bool is_control(const Function& f, InstId i) { return is_loop(f, i) || f.inst(i).op == Op::If; }

// --- invariants ------------------------------------------------------------------------------------------------------

class Hoister {
 public:
  explicit Hoister(Function& f) : f_(f), inside_(f.value_count(), 0) {}

  bool run() {
    region(f_.body());
    return changed_;
  }

 private:
  /// Inner loops first: what leaves them may leave the next loop, too.
  void region(RegionId r) {
    const std::vector<InstId> order = f_.region(r).insts;
    for (InstId i : order) {
      const std::vector<RegionId> inner = f_.inst(i).regions;
      for (RegionId q : inner) region(q);
      if (!is_loop(f_, i)) continue;
      for (RegionId q : inner) mark(q, true);
      for (RegionId q : inner) move_from(q, i);
      for (RegionId q : inner) mark(q, false);
    }
  }

  /// Whether the values that `r` defines are inside the loop at hand.
  void mark(RegionId r, bool inside) {
    for (Value v : f_.region(r).params) set(v, inside);
    for (InstId i : f_.region(r).insts) {
      for (Value v : f_.inst(i).results) set(v, inside);
      for (RegionId q : f_.inst(i).regions) mark(q, inside);
    }
  }
  void set(Value v, bool inside) {
    if (v.id >= inside_.size()) inside_.resize(v.id + 1, 0);
    inside_[v.id] = inside;
  }
  bool inside(Value v) const { return v.id < inside_.size() && inside_[v.id]; }

  /// What the loop runs on every way: branches inside are searched as well, since a pure operation has no cost but
  /// time.
  void move_from(RegionId r, InstId loop) {
    const std::vector<InstId> order = f_.region(r).insts;
    for (InstId i : order) {
      const Inst& inst = f_.inst(i);
      if (is_control(f_, i)) {
        for (RegionId q : std::vector<RegionId>(inst.regions)) move_from(q, loop);
        continue;
      }
      if (!info(inst.op).pure || !inst.regions.empty()) continue;
      if (std::any_of(inst.operands.begin(), inst.operands.end(), [&](Value v) { return inside(v); })) continue;
      ValueMap none;
      const InstId copy = f_.clone(i, none);
      f_.insert_before(loop, copy);
      for (std::size_t k = 0; k < f_.inst(i).results.size(); ++k)
        f_.replace_all_uses(f_.inst(i).results[k], f_.inst(copy).results[k]);
      f_.remove(i);
      changed_ = true;
    }
  }

  Function& f_;
  std::vector<char> inside_;  // by value
  bool changed_ = false;
};

// --- results nobody needs --------------------------------------------------------------------------------------------

/// The lists of a control instruction that have one entry for each result.
struct Carried {
  std::size_t first_operand = 0, first_param = 0;
  explicit Carried(const Inst& inst) {
    if (inst.op == Op::For) first_operand = 3, first_param = 1;
  }
};

class Dropper {
 public:
  explicit Dropper(Function& f) : f_(f) {}

  bool run() {
    region(f_.body());
    return changed_;
  }

 private:
  void region(RegionId r) {
    const std::vector<InstId> order = f_.region(r).insts;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (is_control(f_, *at)) {
        forward(*at);
        drop(*at, needed(*at));
      }
      if (does_nothing(*at)) {
        f_.remove(*at);
        changed_ = true;
        continue;
      }
      for (RegionId q : std::vector<RegionId>(f_.inst(*at).regions)) region(q);
    }
  }

  /// A branch or counted loop without results whose regions are empty.
  bool does_nothing(InstId i) const {
    const Inst& inst = f_.inst(i);
    if (inst.op != Op::If && inst.op != Op::For) return false;
    return inst.results.empty() && std::all_of(inst.regions.begin(), inst.regions.end(),
                                               [&](RegionId r) { return f_.region(r).insts.size() == 1; });
  }

  InstId yield_of(RegionId r) const { return f_.region(r).insts.back(); }
  const std::vector<Value>& yields(RegionId r) const { return f_.inst(yield_of(r)).operands; }

  /// A value that no trip changes, or that both branches give, needs no result.
  void forward(InstId i) {
    const Inst inst = f_.inst(i);
    const Carried at(inst);
    for (std::size_t k = 0; k < inst.results.size(); ++k) {
      const Value next = yields(inst.regions.back())[k];
      Value same;
      if (inst.op == Op::If) {
        if (next == yields(inst.regions[0])[k]) same = next;
      } else if (next == f_.region(inst.regions.back()).params[k + at.first_param] ||
                 next == inst.operands[k + at.first_operand]) {
        same = inst.operands[k + at.first_operand];
        for (RegionId r : inst.regions) replace(f_.region(r).params[k + at.first_param], same);
      }
      if (same.valid()) replace(inst.results[k], same);
    }
  }
  void replace(Value v, Value by) {
    changed_ |= f_.has_uses(v);
    f_.replace_all_uses(v, by);
  }

  /// Results of `i` that have uses, and those that the trips need to compute them.
  std::vector<bool> needed(InstId i) const {
    const Inst& inst = f_.inst(i);
    const Carried at(inst);
    std::vector<bool> need(inst.results.size());
    for (std::size_t k = 0; k < need.size(); ++k) need[k] = f_.has_uses(inst.results[k]);
    if (const std::int64_t stop = inst.op == Op::For ? inst.i64(AttrKey::stop) : 0) need[std::size_t(stop - 1)] = true;
    if (inst.op == Op::If) return need;
    for (bool again = true; again;) {
      again = false;
      std::vector<char> used(f_.value_count(), 0);
      for (auto r = inst.regions.rbegin(); r != inst.regions.rend(); ++r) {
        const bool carries = r == inst.regions.rbegin();
        for (std::size_t k = 0; k < yields(*r).size(); ++k)
          if (!carries || need[k]) used[yields(*r)[k].id] = 1;
        mark_used(*r, used);
        for (std::size_t k = 0; k < need.size(); ++k)
          if (used[f_.region(*r).params[k + at.first_param].id] && !need[k]) need[k] = again = true;
      }
    }
    return need;
  }
  /// Operands of what has effects or gives a used value; the yield is the caller's.
  void mark_used(RegionId r, std::vector<char>& used) const {
    const std::vector<InstId>& insts = f_.region(r).insts;
    for (auto at = insts.rbegin() + 1; at < insts.rend(); ++at) {
      const Inst& inst = f_.inst(*at);
      const bool wanted = std::any_of(inst.results.begin(), inst.results.end(), [&](Value v) { return used[v.id]; });
      if (wanted || !removable(inst.op)) mark_all(inst, used);
    }
  }
  void mark_all(const Inst& inst, std::vector<char>& used) const {
    for (Value v : inst.operands) used[v.id] = 1;
    for (RegionId r : inst.regions)
      for (InstId i : f_.region(r).insts) mark_all(f_.inst(i), used);
  }

  void drop(InstId i, const std::vector<bool>& need) {
    if (std::find(need.begin(), need.end(), false) == need.end()) return;
    changed_ = true;
    const Inst& inst = f_.inst(i);
    const Carried at(inst);
    const auto kept = [&](const std::vector<Value>& list, std::size_t first) {
      std::vector<Value> out(list.begin(), list.begin() + std::ptrdiff_t(first));
      for (std::size_t k = 0; k < need.size(); ++k)
        if (need[k]) out.push_back(list[first + k]);
      return out;
    };
    for (std::size_t r = 0; r < inst.regions.size(); ++r)
      if (inst.op != Op::While || r == 1) f_.set_operands(yield_of(inst.regions[r]), kept(yields(inst.regions[r]), 0));
    if (inst.op != Op::If) f_.set_operands(i, kept(inst.operands, at.first_operand));
    for (RegionId r : inst.regions) remove_users(r);
    if (inst.op != Op::If) {
      for (RegionId r : inst.regions) f_.region(r).params = kept(f_.region(r).params, at.first_param);
      renumber_stop(i, need);
    }
    f_.inst(i).results = kept(f_.inst(i).results, 0);
  }

  /// What computed only the dropped values.
  void remove_users(RegionId r) {
    const std::vector<InstId> order = f_.region(r).insts;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const Inst& inst = f_.inst(*at);
      const bool used = std::any_of(inst.results.begin(), inst.results.end(), [&](Value v) { return f_.has_uses(v); });
      if (!used && removable(inst.op)) f_.remove(*at);
    }
  }
  void renumber_stop(InstId i, const std::vector<bool>& need) {
    if (f_.inst(i).op != Op::For) return;
    const std::int64_t stop = f_.inst(i).i64(AttrKey::stop);
    if (stop > 0) set_attr(f_, i, AttrKey::stop, std::count(need.begin(), need.begin() + stop, true));
  }

  Function& f_;
  bool changed_ = false;
};

}  // namespace

bool hoist_invariants(Function& f) { return Hoister(f).run(); }

// What an inner loop no longer needs, the one around it may not need either.
bool drop_unneeded_results(Function& f) {
  bool any = false;
  while (Dropper(f).run()) any = true;
  return any;
}

}  // namespace kiln::ir

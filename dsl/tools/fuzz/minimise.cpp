// Making a failing program small. Each step tries something smaller and keeps it if a difference of the same kind is
// left.
#include <algorithm>
#include <cctype>
#include <set>

#include "backend/pass/rewrite.h"
#include "dsl/tools/fuzz/compare.h"

namespace kiln::fuzz {
namespace {

using ir::Function;
using ir::InstId;
using ir::Op;
using ir::Value;

/// Differing bytes are one kind; of errors, those that begin alike are, numbers and the place aside.
std::string kind(const std::string& difference) {
  if (!difference.starts_with("threw: ")) return difference.empty() ? "" : "differs";
  std::string s;
  for (char c : difference.substr(0, 80))
    if (!std::isdigit(static_cast<unsigned char>(c))) s += c;
  return s.substr(0, 40);
}

std::vector<InstId> instructions(const Function& f) {
  std::vector<InstId> all;
  walk(f, [&](InstId i) { all.push_back(i); });
  return all;
}

/// What ends the while loops: their conditions, and the steps of their counters (the last carried values). Without them
/// a program would run for ever.
std::set<InstId> ends_of_loops(const Function& f) {
  std::set<InstId> out;
  walk(f, [&](InstId i) {
    if (f.inst(i).op != Op::While) return;
    walk(f, f.inst(i).regions[0], [&](InstId k) { out.insert(k); });
    const InstId step = f.def(f.inst(f.region(f.inst(i).regions[1]).insts.back()).operands.back());
    if (step == ir::kNone) return;
    out.insert(step);
    for (Value v : f.inst(step).operands)
      if (f.def(v) != ir::kNone) out.insert(f.def(v));
  });
  return out;
}

/// What makes the addresses of stores and atomics. With others two elements could be written to one place, and which of
/// them stays is not stated.
void addresses(const Function& f, Value v, std::set<InstId>& out) {
  const InstId i = f.def(v);
  if (i == ir::kNone || !out.insert(i).second) return;
  for (Value o : f.inst(i).operands) addresses(f, o, out);
}

/// What must stay as it is.
std::set<InstId> kept(const Function& f) {
  std::set<InstId> out = ends_of_loops(f);
  walk(f, [&](InstId i) {
    const Op op = f.inst(i).op;
    if (op == Op::Store || op == Op::AtomicRmw || op == Op::AtomicCas) addresses(f, f.inst(i).operands[0], out);
  });
  return out;
}

/// Replaces every result of a loop or another op by an operand of its type, if there is one for each.
bool use_operands(Function& f, InstId i, std::size_t skip) {
  const ir::Inst inst = f.inst(i);
  std::vector<Value> by;
  for (Value r : inst.results) {
    std::vector<Value> fitting;
    for (Value o : inst.operands)
      if (f.type(o) == f.type(r)) fitting.push_back(o);
    if (fitting.size() <= skip) return false;
    by.push_back(fitting[skip]);
  }
  for (std::size_t k = 0; k < by.size(); ++k) f.replace_all_uses(inst.results[k], by[k]);
  return !by.empty();
}

bool use_zeros(Function& f, InstId i) {
  const ir::Inst inst = f.inst(i);
  if (inst.op == Op::Constant || inst.op == Op::Splat || inst.op == Op::Param || inst.results.empty()) return false;
  for (Value r : inst.results) {
    const ir::Type t = f.type(r);
    if (t.ptr) return false;
    f.replace_all_uses(r, ir::insert_constant(f, i, ir::Literal::of_int(t.dtype, 0), t, inst.loc));
  }
  return true;
}

/// A branch by one of its sides.
bool use_region(Function& f, InstId i, std::size_t which) {
  const ir::Inst inst = f.inst(i);
  if (inst.op != Op::If || inst.regions.size() <= which) return false;
  ir::ValueMap map;
  const std::vector<InstId> body = f.region(inst.regions[which]).insts;
  for (InstId k : body) {
    if (f.inst(k).op != Op::Yield) {
      f.insert_before(i, f.clone(k, map));
      continue;
    }
    const std::vector<Value> yields = f.inst(k).operands;
    for (std::size_t r = 0; r < inst.results.size(); ++r) f.replace_all_uses(inst.results[r], map(yields[r]));
  }
  f.remove(i);
  return true;
}

/// The parameters that no instruction reads, with their arguments.
void drop_parameters(Program& p) {
  std::vector<std::int64_t> number(p.args.size(), -1);
  const Program old = p;
  p.args.clear();
  p.function.params.clear();
  walk(p.function, [&](InstId i) {
    ir::Inst& inst = p.function.inst(i);
    if (inst.op != Op::Param) return;
    const auto from = std::size_t(inst.i64(ir::AttrKey::index));
    if (number[from] < 0) {
      number[from] = std::int64_t(p.args.size());
      p.args.push_back(old.args[from]);
      p.function.params.push_back(old.function.params[from]);
    }
    inst.attrs[0].value = number[from];
  });
}

class Minimiser {
 public:
  Minimiser(const Device& device, Program p, std::optional<Op> planted)
      : device_(device),
        planted_(planted),
        p_(std::move(p)),
        kind_(kind(difference(device, p_, planted).value_or(""))) {}

  Program run() {
    while (remove_unused() | simplify()) {
    }
    Program less = p_;
    drop_parameters(less);
    take(less);
    return p_;
  }

 private:
  bool late() const { return attempts_ > kMostAttempts; }
  /// Takes `less` if it fails in the same way.
  bool take(const Program& less) {
    if (late()) return false;
    ++attempts_;
    if (kind(difference(device_, less, planted_).value_or("")) != kind_) return false;
    p_ = less;
    return true;
  }

  /// What only removed instructions used goes with them, unasked.
  void clean(Program& p) const {
    const std::vector<InstId> all = instructions(p.function);
    for (std::size_t k = all.size(); k-- > 0;)
      if (ir::removable(p.function.inst(all[k]).op) && unused(p.function, all[k])) p.function.remove(all[k]);
  }
  static bool unused(const Function& f, InstId i) {
    const ir::Inst& inst = f.inst(i);
    return std::none_of(inst.results.begin(), inst.results.end(), [&](Value v) { return f.has_uses(v); });
  }

  bool remove_unused() {
    bool any = false;
    const std::vector<InstId> all = instructions(p_.function);
    for (std::size_t k = all.size(); k-- > 0;) {
      const std::vector<InstId> now = instructions(p_.function);
      if (std::find(now.begin(), now.end(), all[k]) == now.end()) continue;
      if (p_.function.inst(all[k]).op == Op::Yield || !unused(p_.function, all[k])) continue;
      Program less = p_;
      less.function.remove(all[k]);
      clean(less);
      any |= take(less);
    }
    return any;
  }

  bool simplify() {
    bool any = false;
    const std::vector<InstId> all = instructions(p_.function);
    for (std::size_t k = all.size(); k-- > 0 && !late();) {
      if (kept(p_.function).contains(all[k])) continue;
      for (int how = 0; how < 5; ++how) {
        const std::vector<InstId> now = instructions(p_.function);
        if (std::find(now.begin(), now.end(), all[k]) == now.end()) break;
        if (how >= 2 && unused(p_.function, all[k]) && p_.function.inst(all[k]).op != Op::If) break;
        Program less = p_;
        const bool changed = how < 2   ? use_region(less.function, all[k], std::size_t(how))
                             : how < 4 ? use_operands(less.function, all[k], std::size_t(how - 2))
                                       : use_zeros(less.function, all[k]);
        if (!changed) continue;
        clean(less);
        if (take(less)) any = true;
      }
    }
    return any;
  }

  const Device& device_;
  const std::optional<Op> planted_;
  Program p_;
  const std::string kind_;
  static constexpr int kMostAttempts = 1500;  ///< about ten seconds
  int attempts_ = 0;
};

}  // namespace

Program minimised(const Device& device, Program p, std::optional<Op> planted) {
  return Minimiser(device, std::move(p), planted).run();
}

}  // namespace kiln::fuzz

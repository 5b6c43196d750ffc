// Branches and other bodies that run at most once: if_, the rests that return_if, continue_if and break_if open, and
// the combine lambdas of reductions and scans.
#include <fmt/format.h>

#include <algorithm>

#include "dsl/lang/tracer.h"

namespace kiln::detail {

void Tracer::check_condition(ir::Value condition, SourceLoc at) {
  const ir::Type& t = type(condition);
  if (t == ir::Type::scalar(DType::i1)) return;
  fail(at, fmt::format("the condition must be a scalar i1, not {}; {}", t.str(),
                       t.tile ? "use select(cond, a, b) on tiles" : "compare it with something"));
}

// --- if_ -------------------------------------------------------------------------------------------------------------

/// An if_ while its lambdas are traced.
struct Tracer::Branches {
  struct Ends {
    Handle* variable;
    ValueId entry;
    ValueId end[2];
  };
  SourceLoc at;
  ir::InstId inst;
  std::uint64_t path;
  std::vector<Ends> ends = {};
  std::vector<ValueId> given[2] = {};
};

std::vector<ValueId> Tracer::branch(const Handle& condition, SourceLoc at, Giving then, const Giving* otherwise) {
  const ir::Value holds = read(condition, at);
  check_condition(holds, at);
  check_nesting(at);
  Branches b{at, create(ir::Op::If, {holds}, {}, at), next_path()};
  if (skips_bodies()) {
    std::vector<ValueId> given;
    stand_in(summary_of(b.path, at), b.inst, given, false);
    return given;
  }
  const bool else_first = replay_.mode == Replay::Twice;
  if (otherwise && else_first) run_branch(b, 1, *otherwise);
  run_branch(b, 0, then);
  if (otherwise && !else_first) run_branch(b, 1, *otherwise);
  return merge_branches(b);
}

void Tracer::run_branch(Branches& b, int which, const Giving& body) {
  push(ScopeKind::Branch, b.at, b.inst, fn_.inst(b.inst).regions[std::size_t(which)],
       path_step(b.path, 2 + std::uint64_t(which)));
  struct Guard {
    Tracer& t;
    SourceLoc at;
    bool done = false;
    ~Guard() {
      if (!done) t.fail_later(at, "an exception left this traced branch");
    }
  } guard{*this, b.at};
  body(b.given[which]);  // the handles it returns die in there; only their values come out
  guard.done = true;
  throw_pending();
  check_none_survives(top());
  bool changed = !fn_.region(top().region).insts.empty() || !b.given[which].empty();
  for (const Touched& t : top().touched) {
    if (!t.variable) continue;
    auto at = std::find_if(b.ends.begin(), b.ends.end(), [&](const auto& e) { return e.variable == t.variable; });
    if (at == b.ends.end()) at = b.ends.insert(at, {t.variable, t.entry, {t.entry, t.entry}});
    at->end[which] = t.variable->value_;
    changed |= current_value(t.variable->value_) != current_value(t.entry);
    t.variable->value_ = t.entry;
  }
  leave_variables();
  pop();
  if (!changed)
    fail(b.at, fmt::format("the {} branch of this if_ does nothing; `return` inside it leaves only the lambda (use "
                           "return_if or continue_if), and a C++ `if` that empties it belongs around the if_",
                           which ? "else" : "then"));
}

std::vector<ValueId> Tracer::merge_branches(Branches& b) {
  std::vector<ir::Value> yields[2];
  Summary summary;
  const auto merge = [&](ir::Value x, ir::Value y, const char* what) {
    if (type(x) != type(y))
      fail(b.at, fmt::format("the branches of this if_ give {} different types: {} ({}) and {} ({})", what,
                             type(x).str(), fn_.loc_of(x).str(), type(y).str(), fn_.loc_of(y).str()));
    yields[0].push_back(x);
    yields[1].push_back(y);
    return add_result(b.inst, type(x)).id;
  };
  std::vector<ValueId> given;
  for (std::size_t i = 0; i < b.given[0].size(); ++i) {
    given.push_back(merge(current_value(b.given[0][i]), current_value(b.given[1][i]), "its results"));
    summary.yielded.push_back(type(ir::Value{given.back()}));
  }
  std::sort(b.ends.begin(), b.ends.end(),
            [](const auto& x, const auto& y) { return x.variable->serial_ < y.variable->serial_; });
  for (const Branches::Ends& e : b.ends) {
    const ir::Value x = current_value(e.end[0]), y = current_value(e.end[1]);
    if (x == y && x == current_value(e.entry)) {
      continue;
    } else if (!x.valid() || !y.valid()) {
      lose(*e.variable, b.at);
    } else {
      e.variable->value_ = merge(x, y, "a variable");
      summary.merged.push_back({e.variable->name_, type(x)});
    }
  }
  for (std::size_t k : {0u, 1u}) add_yield(fn_.inst(b.inst).regions[k], yields[k], b.at);
  fn_.append(top().region, b.inst);
  notes_.summaries[b.path] = std::move(summary);
  return given;
}

// --- return_if, continue_if, break_if: the rest of the body becomes the else region of an if --------------------------

void Tracer::return_if(const Handle& condition, SourceLoc at) {
  if (body_scope().kind != ScopeKind::Kernel)
    fail(at, "return_if must stand at the top level of the kernel, not inside a traced loop or branch");
  skip_rest(read(condition, at), at, true);
}

void Tracer::continue_if(const Handle& condition, SourceLoc at) {
  if (!body_scope().is_loop())
    fail(at, "continue_if and break_if must stand directly in the body of a traced loop, not inside if_");
  skip_rest(read(condition, at), at, false);
}

void Tracer::break_if(const Handle& condition, SourceLoc at) {
  Scope& loop = body_scope();
  if (loop.kind == ScopeKind::While) fail(at, "break_if in while_ is not supported; put the condition into while_");
  if (loop.kind == ScopeKind::Loop && fn_.inst(loop.inst).find(ir::AttrKey::unroll))
    fail(at, "break_if in a loop with unroll: its number of trips is not known; leave one of them out");
  const ir::Value holds = read(condition, at);
  check_condition(holds, at);
  if (loop.kind == ScopeKind::Loop) {
    if (!loop.stop) declare_stop(loop, at);
    enter(*loop.stop);
    loop.stop->value_ = holds.id;
  }
  continue_if(condition, at);
}

/// The hidden variable of break_if: false, as if declared just before the loop. It is in no list of living handles.
void Tracer::declare_stop(Scope& loop, SourceLoc at) {
  std::size_t i = scopes_.size() - 1;
  while (&scopes_[i] != &loop) --i;
  const Scope& outer = scopes_[i - 1];
  builder_.set_region(outer.region);
  const ir::Value no = builder_.constant({DType::i1, 0}, at);
  builder_.set_region(top().region);
  loop.stop = std::make_unique<Handle>();
  detach(*loop.stop);
  --top().next_local;
  loop.stop->trace_ = 0;
  loop.stop->home_ = loop.stop->scope_ = outer.id;
  loop.stop->value_ = no.id;
}

void Tracer::skip_rest(ir::Value condition, SourceLoc at, bool returns) {
  check_condition(condition, at);
  check_nesting(at);
  const ir::InstId inst = create(ir::Op::If, {condition}, {}, at);
  fn_.append(top().region, inst);
  notes_.rests.insert(inst);
  push(ScopeKind::Rest, at, inst, fn_.inst(inst).regions[1], next_path());
  top().returns = returns;
}

void Tracer::close_rests() {
  while (top().kind == ScopeKind::Rest) close_rest();
}

void Tracer::close_rest() {
  Scope& s = top();
  std::sort(s.touched.begin(), s.touched.end(), older);
  std::vector<ir::Value> skipped, run;
  for (const Touched& t : s.touched) {
    if (!t.variable || s.returns) continue;
    const ir::Value before = current_value(t.entry), after = current_value(t.variable->value_);
    if (before == after) continue;
    if (!before.valid()) {
      lose(*t.variable, s.at);
      continue;
    }
    if (type(before) != type(after))
      fail(fn_.loc_of(after), fmt::format("a variable changes its type after the continue_if or break_if at {}: {} ({}) "
                                          "to {} ({}); {}",
                                          s.at.str(), type(before).str(), fn_.loc_of(before).str(), type(after).str(),
                                          fn_.loc_of(after).str(), same_type_hint(before, after)));
    skipped.push_back(before);
    run.push_back(after);
    t.variable->value_ = add_result(s.inst, type(after)).id;
  }
  add_yield(fn_.inst(s.inst).regions[0], skipped, s.at);
  add_yield(fn_.inst(s.inst).regions[1], run, s.at);
  leave_variables();
  pop();
}

// --- combine lambdas -------------------------------------------------------------------------------------------------

struct Tracer::Combining {
  const char* who;
  const std::vector<ir::Type>& params;
  const std::vector<ir::Type>& yields;
  FunctionRef<void(const std::vector<ValueId>&, std::vector<ValueId>&)> body;
  SourceLoc at;
};

void Tracer::combine(ir::InstId inst, const char* who, const std::vector<ir::Type>& params,
                     const std::vector<ir::Type>& yields,
                     FunctionRef<void(const std::vector<ValueId>&, std::vector<ValueId>&)> body, SourceLoc at) {
  check_nesting(at);
  const std::uint64_t path = next_path();
  const Combining c{who, params, yields, body, at};
  const ir::RegionId region = fn_.add_region(inst);
  notes_.repeated |= std::uint64_t(1) << top().depth;
  if (skips_bodies()) return;
  const bool twice = replay_.mode == Replay::Twice && top().depth == replay_.depth;
  if (twice) run_combine(c, fn_.add_region(fn_.create(fn_.inst(inst).op, {}, {}, {}, at)), path);
  run_combine(c, region, path);
}

namespace {

bool combines(const ir::Function& f, const ir::Inst& inst) {
  const bool value = ir::info(inst.op).elementwise || inst.op == ir::Op::Constant || inst.op == ir::Op::Cast ||
                     inst.op == ir::Op::Bitcast || inst.op == ir::Op::Select;
  return value && !f.type(inst.results[0]).tile && !f.type(inst.results[0]).ptr;
}

}  // namespace

void Tracer::run_combine(const Combining& c, ir::RegionId region, std::uint64_t path) {
  std::vector<ValueId> params, given;
  for (const ir::Type& t : c.params) params.push_back(fn_.add_region_param(region, ir::Type(t)).id);
  push(ScopeKind::Combine, c.at, fn_.region(region).owner, region, path);
  struct Guard {
    Tracer& t;
    SourceLoc at;
    bool done = false;
    ~Guard() {
      if (!done) t.fail_later(at, "an exception left this combine lambda");
    }
  } guard{*this, c.at};
  c.body(params, given);
  guard.done = true;
  throw_pending();
  check_none_survives(top());
  for (ir::InstId i : fn_.region(region).insts)
    if (!combines(fn_, fn_.inst(i)))
      fail(fn_.inst(i).loc, fmt::format("{}: a combine lambda computes with scalars only: no {} in it", c.who,
                                        ir::mnemonic(fn_.inst(i).op)));
  std::vector<ir::Value> yields;
  for (ValueId v : given) yields.push_back(current_value(v));
  if (yields.size() != c.yields.size())
    fail(c.at, fmt::format("{}: the combine lambda gives {} values, {} are needed", c.who, yields.size(),
                           c.yields.size()));
  for (std::size_t i = 0; i < yields.size(); ++i)
    if (type(yields[i]) != c.yields[i])
      fail(fn_.loc_of(yields[i]), fmt::format("{}: the combine lambda gives {} where {} is needed; cast it", c.who,
                                              type(yields[i]).str(), c.yields[i].str()));
  add_yield(region, yields, c.at);
  leave_variables();
  pop();
}

}  // namespace kiln::detail

// Loops: opening, running the body once (in a replay twice, or not at all), and closing with the carried values.
#include <fmt/format.h>

#include <algorithm>

#include "dsl/lang/tracer.h"

namespace kiln::detail {

bool Tracer::older(const Touched& a, const Touched& b) {
  const auto serial = [](const Touched& t) { return t.variable ? t.variable->serial_ : 0; };
  return serial(a) < serial(b);
}

// --- control instructions --------------------------------------------------------------------------------------------

ir::InstId Tracer::create(ir::Op op, std::vector<ir::Value> operands, std::vector<ir::Attr> attrs, SourceLoc at) {
  const ir::InstId i = fn_.create(op, std::move(operands), {}, std::move(attrs), at);
  for (int k = 0; k < ir::info(op).regions; ++k) fn_.add_region(i);
  return i;
}

ir::Value Tracer::add_result(ir::InstId i, const ir::Type& type) {
  const ir::Value v = fn_.add_value(ir::Type(type), i);
  fn_.inst(i).results.push_back(v);
  return v;
}

void Tracer::add_yield(ir::RegionId region, const std::vector<ir::Value>& values, SourceLoc at) {
  fn_.append(region, fn_.create(ir::Op::Yield, values, {}, {}, at));
}

const Summary& Tracer::summary_of(std::uint64_t path, SourceLoc at) {
  const auto found = known_->summaries.find(path);
  if (found == known_->summaries.end())
    fail(at,
         fmt::format("kernel '{}' takes another path through its traced loops and branches on each call", fn_.name));
  return found->second;
}

void Tracer::add_stop(const Summary& summary, ir::InstId loop) {
  if (summary.stop < 0) return;
  const ir::Attr stop{ir::AttrKey::stop, std::int64_t(summary.stop + 1)};
  fn_.inst(loop).attrs.push_back(stop);
}

/// Replay without the body: each variable that the body changed gets a result of the recorded type.
void Tracer::stand_in(const Summary& summary, ir::InstId inst, std::vector<ValueId>& given, bool is_loop) {
  std::vector<ir::Value> operands = fn_.inst(inst).operands;
  for (const ir::Type& t : summary.yielded) given.push_back(add_result(inst, t).id);
  for (std::size_t i = 0; i < summary.merged.size(); ++i) {
    const SourceLoc at = fn_.inst(inst).loc;
    Handle* h = variable_named(summary.merged[i].variable);
    if (is_loop && int(i) == summary.stop) operands.push_back(builder_.constant({DType::i1, 0}, at));
    else if (is_loop && h) operands.push_back(read(*h, at));
    const ir::Value result = add_result(inst, summary.merged[i].type);
    if (h) write(*h, result);
  }
  add_stop(summary, inst);
  fn_.set_operands(inst, std::move(operands));
  fn_.append(top().region, inst);
}

// --- opening and running ---------------------------------------------------------------------------------------------

bool Tracer::open_for(const std::vector<ir::Value>& bounds, std::vector<ir::Attr> hints, SourceLoc at) {
  return open_loop(ir::Op::For, bounds, std::move(hints), at);
}

bool Tracer::open_loop(ir::Op op, std::vector<ir::Value> operands, std::vector<ir::Attr> attrs, SourceLoc at) {
  check_nesting(at);
  const std::uint64_t path = next_path();
  const ir::InstId inst = create(op, std::move(operands), std::move(attrs), at);
  if (skips_bodies()) {
    std::vector<ValueId> none;
    stand_in(summary_of(path, at), inst, none, true);
    return false;
  }
  const ir::RegionId header = fn_.inst(inst).regions[0];
  if (op == ir::Op::For) fn_.add_region_param(header, ir::Type(fn_.type(fn_.inst(inst).operands[0])));
  notes_.repeated |= std::uint64_t(1) << top().depth;
  push(op == ir::Op::For ? ScopeKind::Loop : ScopeKind::While, at, inst, header, path);
  ++loop_level_;
  return true;
}

void Tracer::while_loop(FunctionRef<ir::Value()> condition, FunctionRef<void()> body, SourceLoc at) {
  if (!open_loop(ir::Op::While, {}, {}, at)) return;
  struct Guard {
    Tracer& t;
    SourceLoc at;
    bool done = false;
    ~Guard() {
      if (!done) t.abandon_loop(true, at);
    }
  } guard{*this, at};
  const int level = loop_level_;
  do {
    trace_condition(condition, at);
    body();
  } while (end_body(level, at));
  guard.done = true;
}

void Tracer::trace_condition(FunctionRef<ir::Value()> condition, SourceLoc at) {
  const Scope& loop = top();
  const ir::InstId inst = loop.inst;
  push(ScopeKind::Condition, at, inst, fn_.inst(inst).regions[0], path_step(loop.path, 7));
  const ir::Value holds = condition();
  check_condition(holds, at);
  check_none_survives(top());
  leave_variables();
  add_yield(top().region, {holds}, at);
  pop();
  top().region = fn_.inst(inst).regions[1];  // the body follows the condition
  builder_.set_region(top().region);
}

bool Tracer::end_body(int level, SourceLoc at) {
  throw_pending();
  close_rests();
  if (level != loop_level_ || !top().is_loop())
    fail(at, "this traced range is advanced while another traced loop or branch is open inside it");
  check_none_survives(top());
  if (runs_twice() && ++top().runs == 1) {
    start_over();
    return true;
  }
  close_loop();
  return false;
}

/// Forgets this run of the body: the next one builds a new instruction, and the old one is in no region.
void Tracer::start_over() {
  Scope& s = top();
  for (const Touched& t : s.touched)
    if (t.variable) {
      t.variable->value_ = t.entry;
      t.variable->scope_ = below_top().id;
    }
  s.touched.clear();
  s.next_child = s.next_local = 0;
  const ir::Inst& old = fn_.inst(s.inst);
  const ir::Op op = old.op;
  s.inst = create(op, std::vector<ir::Value>(old.operands), std::vector<ir::Attr>(old.attrs), s.at);
  s.region = fn_.inst(s.inst).regions[0];
  if (op == ir::Op::For) fn_.add_region_param(s.region, ir::Type(fn_.type(fn_.inst(s.inst).operands[0])));
  builder_.set_region(s.region);
}

void Tracer::abandon_loop(bool by_exception, SourceLoc at) noexcept {
  fail_later(at, by_exception ? "an exception left this traced loop"
                              : "break, return or goto left this traced loop; its body is traced once and stands for "
                                "every iteration (use break_if(cond), or return_if before the loop)");
}

// --- closing ---------------------------------------------------------------------------------------------------------

/// Replaces header values that are always the value before the loop. One replacement can expose the next.
void Tracer::drop_trivial_headers() {
  for (bool again = true; again;) {
    again = false;
    for (const Touched& t : top().touched) {
      if (!t.variable || t.header == kNoValue || replaced_.contains(t.header)) continue;
      const ir::Value entry = current_value(t.entry), end = current_value(t.variable->value_);
      if (end.id != t.header && end != entry) continue;
      fn_.replace_all_uses(ir::Value{t.header}, entry);
      replaced_[t.header] = entry.id;
      again = true;
    }
  }
}

std::string Tracer::same_type_hint(ir::Value before, ir::Value after) const {
  const ir::Type &p = type(before), &q = type(after);
  if (p.tile && q.tile && p.shape != q.shape)
    return "a loop keeps the shapes of its tiles: give it the latter shape before, if every iteration keeps that one";
  if (p.ptr || q.ptr || p.tile != q.tile) return "give it the latter type before the loop";
  const std::string latter = std::string("cast(DType::") + name(q.dtype) + ")";
  const ir::InstId def = fn_.def(before);
  if (def == ir::kNone || fn_.inst(def).op != ir::Op::Constant || p.tile)
    return fmt::format("give it the latter type before the loop with .{}, or cast what the body gives it", latter);
  const ir::Literal& start = fn_.inst(def).literal();
  const std::string number =
      is_float(p.dtype) ? fmt::format("{}", start.as_double()) : fmt::format("{}", start.as_int());
  return fmt::format("start it as Scalar({}).{}", number, latter);
}

ir::Value Tracer::carried_end(const Touched& t) {
  Handle& h = *t.variable;
  if (t.header == kNoValue) {  // no value before the loop: zero trips would leave it undefined
    if (h.value_ != kNoValue) lose(h, top().at);
    return {};
  }
  const ir::Value entry = current_value(t.entry), end = current_value(h.value_);
  if (replaced_.contains(t.header)) {
    h.value_ = entry.id;
    return {};
  }
  if (type(end) != type(entry))
    fail(fn_.loc_of(end),
         fmt::format("the loop at {} changes the type of a variable: {} before it ({}), {} after one iteration ({}); "
                     "{}",
                     top().at.str(), type(entry).str(), fn_.loc_of(entry).str(), type(end).str(), fn_.loc_of(end).str(),
                     same_type_hint(entry, end)));
  return end;
}

void Tracer::close_loop() {
  drop_trivial_headers();
  Scope& s = top();
  std::sort(s.touched.begin(), s.touched.end(), older);
  std::vector<ir::Value> operands = fn_.inst(s.inst).operands, params, yields;
  if (s.kind == ScopeKind::Loop) params.push_back(induction_variable());
  Summary summary;
  for (const Touched& t : s.touched) {
    if (!t.variable) continue;
    const ir::Value end = carried_end(t);
    if (!end.valid()) continue;
    if (t.variable == s.stop.get()) summary.stop = int(yields.size());
    operands.push_back(current_value(t.entry));
    params.push_back(ir::Value{t.header});
    yields.push_back(end);
    summary.merged.push_back({t.variable->name_, type(end)});
    t.variable->value_ = add_result(s.inst, type(end)).id;
  }
  add_stop(summary, s.inst);
  fn_.region(fn_.inst(s.inst).regions[0]).params = std::move(params);
  fn_.set_operands(s.inst, std::move(operands));
  add_yield(fn_.inst(s.inst).regions.back(), yields, s.at);
  if (s.kind == ScopeKind::While) give_body_parameters(s);
  notes_.summaries[s.path] = std::move(summary);
  leave_variables();
  const ir::InstId done = s.inst;
  pop();
  fn_.append(top().region, done);
  --loop_level_;
}

/// The two regions of a while have their own parameters; so far the body names those of the condition.
void Tracer::give_body_parameters(const Scope& s) {
  const ir::RegionId test = fn_.inst(s.inst).regions[0], body = fn_.inst(s.inst).regions[1];
  ir::ValueMap of_body;
  for (ir::Value v : std::vector<ir::Value>(fn_.region(test).params))
    of_body.set(v, fn_.add_region_param(body, ir::Type(type(v))));
  ir::walk(fn_, body, [&](ir::InstId i) {
    for (std::size_t k = 0; k < fn_.inst(i).operands.size(); ++k)
      if (const ir::Value v = of_body(fn_.inst(i).operands[k]); v != fn_.inst(i).operands[k]) fn_.set_operand(i, k, v);
  });
}

}  // namespace kiln::detail

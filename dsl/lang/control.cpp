#include "dsl/lang/control.h"

#include <fmt/format.h>

#include "dsl/lang/promote.h"
#include "dsl/lang/shaping.h"
#include "dsl/lang/tracer.h"

namespace kiln {

using detail::Operand;
using detail::Tracer;
using detail::ValueId;

// --- range -----------------------------------------------------------------------------------------------------------

namespace {

/// The three bounds in one integer dtype; C++ numbers alone are index.
std::vector<ir::Value> meet_bounds(Tracer& t, const std::vector<const Operand*>& bounds, SourceLoc at) {
  bool any_variable = false;
  for (const Operand* o : bounds) {
    any_variable |= o->handle != nullptr;
    if (!o->handle && o->number.own == DType::f32)
      t.fail(at, fmt::format("range: bounds must be integers, not {}", detail::text_of(o->number)));
    if (!o->handle) continue;
    const ir::Type& type = t.type(t.read(*o->handle, at));
    if (type.tile || type.ptr || !is_int(type.dtype))
      t.fail(at, fmt::format("range: bounds must be integer scalars, not {}", type.str()));
  }
  if (any_variable) return detail::meet(t, bounds, "range", at);
  std::vector<ir::Value> values;
  for (const Operand* o : bounds) values.push_back(detail::value_as(t, *o, DType::index, "range", at));
  return values;
}

}  // namespace

Range::Range(const Operand& lo, const Operand& hi, const Operand& step, SourceLoc at) : at_(at) {
  Tracer& t = Tracer::current(at);
  if (!step.handle && step.number.bits == 0 && step.number.own != DType::f32) t.fail(at, "range: step is 0");
  const std::vector<ir::Value> bounds = meet_bounds(t, {&lo, &hi, &step}, at);
  bounds_.reserve(bounds.size());
  for (ir::Value v : bounds) bounds_.emplace_back(detail::Made{v.id});
}

Range Range::unroll(int n) && {
  if (n < 1) Tracer::current(at_).fail(at_, fmt::format("range: unroll({}): at least 1 is needed", n));
  unroll_ = n;
  return std::move(*this);
}

Range Range::unroll() && {
  unroll_ = -1;
  return std::move(*this);
}

Range Range::stages(int n) && {
  constexpr int kMost = 64;
  if (n < 1 || n > kMost)
    Tracer::current(at_).fail(at_, fmt::format("range: stages({}): 1 to {} are possible", n, kMost));
  stages_ = n;
  return std::move(*this);
}

Range Range::warp_specialize() && {
  roles_ = true;
  return std::move(*this);
}

void Range::start() {
  Tracer& t = Tracer::current(at_);
  if (state_ == State::Body || state_ == State::Fresh) t.fail(at_, "this range is already being iterated");
  std::vector<ir::Value> bounds;
  for (const Scalar& b : bounds_) bounds.push_back(t.read(b, at_));
  std::vector<ir::Attr> hints;
  if (unroll_ != 0) {
    for (ir::Value b : bounds)
      if (!ir::Builder(t.function()).literal(b))
        t.fail(at_, "range: unroll: the number of trips must be known when the kernel is compiled: bounds of C++ numbers "
                    "or Const");
    const ir::Attr unroll{ir::AttrKey::unroll, std::int64_t(unroll_)};
    hints.push_back(unroll);
  }
  if (unroll_ != 0 && (stages_ > 1 || roles_))
    t.fail(at_, "range: unroll leaves no loop whose operands could be copied ahead; leave out unroll, or stages and "
                "warp_specialize");
  if (stages_ != 0) hints.push_back({ir::AttrKey::stages, std::int64_t(stages_)});
  if (roles_) hints.push_back({ir::AttrKey::roles, std::int64_t(1)});
  unwinding_ = std::uncaught_exceptions();
  state_ = t.open_for(bounds, std::move(hints), at_) ? State::Fresh : State::Done;
  level_ = t.loop_level();
}

detail::Made Range::induction_variable() {
  Tracer& t = Tracer::current(at_);
  if (state_ != State::Fresh) t.fail(at_, "the iterator of a traced range may be dereferenced once per step");
  if (level_ != t.loop_level()) t.fail(at_, "this traced range is used while another traced loop is open inside it");
  state_ = State::Body;
  return {t.induction_variable().id};
}

void Range::next() {
  state_ = Tracer::current(at_).end_body(level_, at_) ? State::Fresh : State::Done;
}

void Range::abandon() noexcept {
  if (Tracer* t = Tracer::active()) t->abandon_loop(std::uncaught_exceptions() > unwinding_, at_);
}

// --- branches and while_ ---------------------------------------------------------------------------------------------

Cond::Cond(const Tile& t, RawLoc l) : value(t), at(l) {}

namespace detail {

void give_value(const Handle& h, std::vector<ValueId>& out) { out.push_back(value_number(h, {})); }

ValueId value_number(const Handle& h, SourceLoc at) { return Tracer::current(at).read(h, at).id; }

void do_if(const Cond& c, FunctionRef<void()> then) {
  Tracer::current(c.at).branch(c.value, c.at, [&](std::vector<ValueId>&) { then(); }, nullptr);
}

void do_if(const Cond& c, FunctionRef<void()> then, FunctionRef<void()> otherwise) {
  const auto run_else = [&](std::vector<ValueId>&) { otherwise(); };
  const Giving or_else(run_else);
  Tracer::current(c.at).branch(c.value, c.at, [&](std::vector<ValueId>&) { then(); }, &or_else);
}

std::vector<ValueId> do_if_values(const Cond& c, Giving then, Giving otherwise) {
  return Tracer::current(c.at).branch(c.value, c.at, then, &otherwise);
}

void do_while(FunctionRef<ValueId()> condition, FunctionRef<void()> body, SourceLoc at) {
  Tracer::current(at).while_loop([&] { return ir::Value{condition()}; }, body, at);
}

}  // namespace detail

void return_if(const Scalar& c, RawLoc l) { Tracer::current(l).return_if(c, l); }
void continue_if(const Scalar& c, RawLoc l) { Tracer::current(l).continue_if(c, l); }
void break_if(const Scalar& c, RawLoc l) { Tracer::current(l).break_if(c, l); }

}  // namespace kiln

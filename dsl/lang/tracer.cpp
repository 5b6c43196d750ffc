#include "dsl/lang/tracer.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

namespace kiln {
namespace detail {
namespace {

thread_local Tracer* t_current = nullptr;
std::atomic<std::uint64_t> g_next_trace{1};

// Far above any kernel that a back end could compile; a C++ loop that never ends reaches it in well under a second.
constexpr std::size_t kMaxInstructions = std::size_t(1) << 18;
// Bodies inside bodies, including the rests that return_if, continue_if and break_if open.
constexpr std::size_t kMaxNesting = 64;

}  // namespace

Tracer::Tracer(const std::string& name, SourceLoc definition, Replay replay, const TraceNotes* known)
    : fn_(name, definition),
      builder_(fn_),
      id_(g_next_trace.fetch_add(1, std::memory_order_relaxed)),
      outer_(t_current),
      replay_(replay),
      known_(known) {
  push(ScopeKind::Kernel, definition, ir::kNone, fn_.body(), 1);
  t_current = this;
}

Tracer::~Tracer() { t_current = outer_; }

Tracer* Tracer::active() { return t_current; }

Tracer& Tracer::current(SourceLoc at) {
  if (!t_current)
    throw UserError(at, "no kernel is being traced on this thread: Tile and Scalar values exist only inside a kernel");
  return *t_current;
}

ir::Function Tracer::finish() {
  throw_pending();
  close_rests();
  if (newest_) {
    const SourceLoc at = place_of(*newest_);
    fail(at.known() ? at : fn_.loc,
         fmt::format(
             "a Tile or Scalar outlives the kernel '{}' that made it; a static or a captured container cannot keep it",
             fn_.name));
  }
  return std::move(fn_);
}

// --- errors ----------------------------------------------------------------------------------------------------------

void Tracer::fail(SourceLoc at, const std::string& message) {
  if (!pending_) pending_ = UserError(at.known() ? at : fn_.loc, message);
  throw *pending_;
}

void Tracer::fail_later(SourceLoc at, const std::string& message) noexcept {
  if (!pending_) pending_ = UserError(at.known() ? at : fn_.loc, message);
}

// The body that the replay runs twice may double the trace.
void Tracer::begin_instruction(SourceLoc at) {
  throw_pending();
  if (++emitted_ > (replay_.mode == Replay::Once ? kMaxInstructions : 2 * kMaxInstructions))
    fail(at, fmt::format("the trace has more values than {}; is a C++ loop unrolling without end?", kMaxInstructions));
}

void Tracer::check_nesting(SourceLoc at) {
  throw_pending();
  if (scopes_.size() > kMaxNesting)
    fail(at,
         fmt::format("traced control flow is nested more than {} deep; is a C++ function recursing on a traced condition?",
                     kMaxNesting));
}

// --- scopes ----------------------------------------------------------------------------------------------------------

Scope& Tracer::body_scope() {
  std::size_t i = scopes_.size() - 1;
  while (scopes_[i].kind == ScopeKind::Rest) --i;
  return scopes_[i];
}

void Tracer::push(ScopeKind kind, SourceLoc at, ir::InstId inst, ir::RegionId region, std::uint64_t path) {
  const bool deeper = kind != ScopeKind::Rest && kind != ScopeKind::Condition;
  const int depth = scopes_.empty() ? 0 : top().depth + deeper;
  scopes_.push_back({kind, next_scope_++, at, inst, region, path, next_serial_, depth});
  notes_.depth = std::max(notes_.depth, depth);
  builder_.set_region(region);
}

void Tracer::pop() {
  scopes_.pop_back();
  builder_.set_region(top().region);
}

void Tracer::leave_variables() {
  for (const Touched& t : top().touched)
    if (t.variable) t.variable->scope_ = below_top().id;
}

void Tracer::check_none_survives(const Scope& s) {
  if (!newest_ || newest_->serial_ < s.first_serial) return;
  const SourceLoc value = place_of(*newest_);
  fail(s.at, fmt::format("a Tile or Scalar made inside this traced body outlives it (value from {}); the body is traced "
                         "once, so it cannot add handles to a container, static or optional outside",
                         value.str()));
}

std::uint64_t Tracer::next_path() { return path_step(top().path, 0x1000 + ++top().next_child); }

// --- variables -------------------------------------------------------------------------------------------------------

void Tracer::attach(Handle& h) {
  h.trace_ = id_;
  h.serial_ = next_serial_++;
  h.home_ = h.scope_ = top().id;
  h.birth_ = body_scope().id;
  h.name_ = path_step(top().path, ++top().next_local);
  h.older_ = newest_;
  h.newer_ = nullptr;
  if (newest_) newest_->newer_ = &h;
  newest_ = &h;
}

void Tracer::detach(Handle& h) noexcept {
  Tracer* owner = t_current;
  while (owner && owner->id_ != h.trace_) owner = owner->outer_;
  if (!owner) return;  // made outside any kernel, or its trace is over
  (h.newer_ ? h.newer_->older_ : owner->newest_) = h.older_;
  if (h.older_) h.older_->newer_ = h.newer_;
  if (owner->pending_) return;
  if (const Scope& body = owner->body_scope(); h.birth_ != body.id) {
    owner->fail_later(body.at, "a Tile or Scalar made outside this traced loop or branch is destroyed inside it; a body "
                               "is traced once, so containers of handles cannot grow, shrink or be cleared in it");
  } else if (h.scope_ != h.home_) {
    for (Scope& s : owner->scopes_)
      for (Touched& t : s.touched)
        if (t.variable == &h) t.variable = nullptr;
  }
}

void Tracer::check_owner(const Handle& h, SourceLoc at) {
  throw_pending();
  if (h.trace_ == id_) return;
  fail(at, h.trace_ == 0 ? "a Tile or Scalar made outside any kernel is used here"
                         : "a Tile or Scalar of another kernel's trace is used here; handles cannot outlive the kernel "
                           "that made them");
}

ir::Value Tracer::current_value(ValueId v) const {
  for (auto at = replaced_.find(v); at != replaced_.end(); at = replaced_.find(v)) v = at->second;
  return ir::Value{v};
}

/// Makes `h` current in the top scope.
void Tracer::enter(const Handle& h) {
  if (h.scope_ == top().id) return;
  std::size_t i = scopes_.size();
  while (i > 0 && scopes_[i - 1].id != h.scope_) --i;
  KILN_CHECK(i > 0, "a variable is current in a scope that is closed");
  for (; i < scopes_.size(); ++i) {
    Scope& s = scopes_[i];
    Touched t{const_cast<Handle*>(&h), h.value_};
    if (s.is_loop() && h.value_ != kNoValue) {
      const ir::Value entry = current_value(h.value_);
      t.header = fn_.add_region_param(fn_.inst(s.inst).regions[0], ir::Type(fn_.type(entry))).id;
      h.value_ = t.header;
    }
    s.touched.push_back(t);
    h.scope_ = s.id;
  }
}

ir::Value Tracer::read_if_set(const Handle& h, SourceLoc at) {
  check_owner(h, at);
  enter(h);
  return current_value(h.value_);
}

ir::Value Tracer::read(const Handle& h, SourceLoc at) {
  const ir::Value v = read_if_set(h, at);
  if (v.valid()) return v;
  if (!h.unset_.known()) fail(at, "this variable is used before it is assigned");
  fail(at.known() ? at : h.unset_,
       fmt::format("this variable is assigned only inside the loop or branch at {}, which may not run; give it a value "
                   "before",
                   h.unset_.str()));
}

void Tracer::write(Handle& h, ir::Value v) {
  check_owner(h, fn_.loc_of(v));
  for (std::size_t i = scopes_.size(); i-- > 0 && scopes_[i].id != h.home_;) {
    if (scopes_[i].kind == ScopeKind::Condition)
      fail(fn_.loc_of(v), "the condition of while_ assigns a variable of the outside; assign it in the body");
    if (scopes_[i].kind == ScopeKind::Combine)
      fail(fn_.loc_of(v), "a combine lambda assigns a variable of the outside; it runs for pairs of elements in no fixed "
                          "order and may only return values");
  }
  enter(h);
  h.value_ = v.id;
}

/// The loop or branch at `because_of` may not have assigned `h`.
void Tracer::lose(Handle& h, SourceLoc because_of) {
  h.value_ = kNoValue;
  h.unset_ = because_of;
}

Handle* Tracer::variable_named(std::uint64_t name) {
  Handle* h = newest_;
  while (h && h->name_ != name) h = h->older_;
  return h;
}

SourceLoc Tracer::place_of(const Handle& h) const {
  return h.trace_ == id_ && h.value_ != kNoValue ? fn_.loc_of(current_value(h.value_)) : SourceLoc{};
}

}  // namespace detail

using detail::Tracer;

Handle::Handle() {
  if (Tracer* t = Tracer::active()) t->attach(*this);
}

Handle::Handle(const Handle& other) : Handle() {
  if (other.trace_ == 0) return;  // a variable made outside any kernel has no value to copy
  Tracer& t = Tracer::current({});
  value_ = t.read_if_set(other, t.place_of(other)).id;
  unset_ = other.unset_;
}

Handle::Handle(detail::Made made) : Handle() { value_ = made.id; }

Handle::~Handle() { Tracer::detach(*this); }

void Handle::assign(const Handle& other) {
  Tracer& t = Tracer::current({});
  t.write(*this, t.read(other, t.place_of(*this)));
}

DType Handle::dtype(RawLoc at) const {
  Tracer& t = Tracer::current(at);
  return t.type(t.read(*this, at)).dtype;
}

}  // namespace kiln

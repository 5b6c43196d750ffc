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

}  // namespace

Tracer::Tracer(const std::string& name, SourceLoc definition)
    : fn_(name, definition),
      builder_(fn_),
      id_(g_next_trace.fetch_add(1, std::memory_order_relaxed)),
      outer_(t_current) {
  t_current = this;
}

Tracer::~Tracer() { t_current = outer_; }

Tracer& Tracer::current(SourceLoc at) {
  if (!t_current)
    throw UserError(at, "no kernel is being traced on this thread: Tile and Scalar values exist only inside a kernel");
  return *t_current;
}

ir::Function Tracer::finish() {
  if (pending_) throw *pending_;
  if (newest_) {
    const SourceLoc at = place_of(*newest_);
    fail(at.known() ? at : fn_.loc,
         fmt::format(
             "a Tile or Scalar outlives the kernel '{}' that made it; a static or a captured container cannot keep it",
             fn_.name));
  }
  return std::move(fn_);
}

void Tracer::fail(SourceLoc at, const std::string& message) {
  if (!pending_) pending_ = UserError(at.known() ? at : fn_.loc, message);
  throw *pending_;
}

void Tracer::begin_instruction(SourceLoc at) {
  if (pending_) throw *pending_;
  if (++emitted_ > kMaxInstructions)
    fail(at, fmt::format("the trace has more values than {}; is a C++ loop unrolling without end?", kMaxInstructions));
}

void Tracer::attach(Handle& h) {
  h.trace_ = id_;
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
}

void Tracer::check_owner(const Handle& h, SourceLoc at) {
  if (pending_) throw *pending_;
  if (h.trace_ == id_) return;
  fail(at, h.trace_ == 0 ? "a Tile or Scalar made outside any kernel is used here"
                         : "a Tile or Scalar of another kernel's trace is used here; handles cannot outlive the kernel "
                           "that made them");
}

ir::Value Tracer::read_if_set(const Handle& h, SourceLoc at) {
  check_owner(h, at);
  return ir::Value{h.value_};
}

ir::Value Tracer::read(const Handle& h, SourceLoc at) {
  const ir::Value v = read_if_set(h, at);
  if (!v.valid()) fail(at, "this variable is used before it is assigned");
  return v;
}

void Tracer::write(Handle& h, ir::Value v) {
  check_owner(h, fn_.loc_of(v));
  h.value_ = v.id;
}

SourceLoc Tracer::place_of(const Handle& h) const {
  return h.trace_ == id_ && h.value_ != kNoValue ? fn_.loc_of(ir::Value{h.value_}) : SourceLoc{};
}

}  // namespace detail

using detail::Tracer;

Handle::Handle() {
  if (detail::t_current) detail::t_current->attach(*this);
}

Handle::Handle(const Handle& other) : Handle() {
  if (other.trace_ == 0) return;  // a variable made outside any kernel has no value to copy
  Tracer& t = Tracer::current({});
  value_ = t.read_if_set(other, t.place_of(other)).id;
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

// Tracer: builds the function of the kernel that this thread is tracing, and knows which value each handle holds.
//
// One trace is one run of the user's lambda: its operators call emit(), which appends to the function, and handles read
// and write their value here. The tracer keeps a list of every living handle and numbers each trace, so that
//   - a handle that outlives its kernel is found when the trace ends,
//   - a handle of another trace, or made outside any kernel, is refused at its use (by trace number, never by address).
// The first error sticks: a kernel that swallows the exception fails at the next operation, or at its end.
//
// State: the number of the next trace, and one thread-local pointer to the innermost trace of the thread. Traces nest
// (a kernel launched while another is traced gets its own), hence the chain through outer_.
#pragma once
#include <optional>
#include <string>

#include "backend/ir/builder.h"
#include "dsl/lang/handle.h"
#include "runtime/base/error.h"

namespace kiln::detail {

class Tracer {
 public:
  Tracer(const std::string& name, SourceLoc definition);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// The trace of this thread; UserError at `at` when there is none.
  static Tracer& current(SourceLoc at);
  /// Ends the trace: errors that were swallowed and handles that are still alive are reported here.
  ir::Function finish();

  // --- values
  ir::Function& function() { return fn_; }
  const ir::Type& type(ir::Value v) const { return fn_.type(v); }
  /// Runs `make` on the builder. Every instruction of a trace is made through here.
  template <class F>
  ir::Value emit(SourceLoc at, F&& make) {
    begin_instruction(at);
    try {
      return make(builder_);
    } catch (const UserError& e) {
      pending_ = e;
      throw;
    }
  }
  template <class F>
  void emit_effect(SourceLoc at, F&& make) {
    emit(at, [&](ir::Builder& b) { return make(b), ir::Value{}; });
  }
  ir::Value constant(ir::Literal l, SourceLoc at) {
    return emit(at, [&](ir::Builder& b) { return b.constant(l, at); });
  }

  // --- variables
  void attach(Handle&);
  static void detach(Handle&) noexcept;
  ir::Value read(const Handle&, SourceLoc at);
  /// An invalid value for a variable that was not assigned yet.
  ir::Value read_if_set(const Handle&, SourceLoc at);
  void write(Handle&, ir::Value);
  /// Plain `=` carries no line: the assigned value's, or this handle's current one.
  SourceLoc place_of(const Handle&) const;

  [[noreturn]] void fail(SourceLoc at, const std::string& message);

 private:
  void begin_instruction(SourceLoc at);
  void check_owner(const Handle&, SourceLoc at);

  ir::Function fn_;
  ir::Builder builder_;
  std::uint64_t id_;
  std::size_t emitted_ = 0;
  Handle* newest_ = nullptr;          // living handles of this trace
  std::optional<UserError> pending_;  // the first error
  Tracer* outer_;
};

}  // namespace kiln::detail

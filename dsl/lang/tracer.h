// Tracer: builds the function of the kernel that this thread is tracing, and knows which value each handle holds in
// which traced body.
//
// One trace is one run of the user's lambda: its operators call emit(), which appends to the function, and handles read
// and write their value here. The tracer keeps a list of every living handle and numbers each trace, so that
//   - a handle that outlives its kernel is found when the trace ends,
//   - a handle of another trace, or made outside any kernel, is refused at its use (by trace number, never by address).
// The first error sticks: a kernel that swallows the exception fails at the next operation, or at its end. Destructors
// never throw: they record the error, and the next operation throws it.
//
// Variables and bodies (scope.h). A variable is current in one scope. Touching one that is current in an outer scope
// enters it into each scope on the way in:
//   loop         a region parameter (header value) is made; the variable holds it, its value before is recorded
//   other body   the value at entry is recorded
// Closing a scope looks at what was touched. A header value whose final value is itself or its initial value is replaced
// by the initial value, repeated until nothing changes; the others become carried values, in the order in which the
// variables were declared. A branch merges each variable that changed. (Braun et al., "Simple and Efficient
// Construction of SSA Form", 2013, on structured control flow: a loop's header is the only unsealed block, and it is
// sealed when its scope closes.)
//
// Three checks make this sound, beside the replays (replay.h): a handle made outside a body may not die in it, none
// made inside may survive it, and none survives the kernel.
//
// State: the number of the next trace, and one thread-local pointer to the innermost trace of the thread. Traces nest
// (a kernel launched while another is traced gets its own), hence the chain through outer_.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "backend/ir/builder.h"
#include "dsl/lang/function_ref.h"
#include "dsl/lang/handle.h"
#include "dsl/lang/scope.h"
#include "runtime/base/error.h"

namespace kiln::detail {

/// Code that appends the values it gives to the list.
using Giving = FunctionRef<void(std::vector<ValueId>&)>;

/// What the replays need to know of a trace beside its function.
struct TraceNotes {
  Summaries summaries;
  std::unordered_set<ir::InstId> rests;  ///< the ifs of return_if, continue_if and break_if: no C++ bodies
  int depth = 0;                         ///< of the deepest body
  std::uint64_t repeated = 0;            ///< bit d: a loop or combine lambda stands at depth d
};

class Tracer {
 public:
  /// `known`: the notes of the first trace, for Replay::Skip.
  Tracer(const std::string& name, SourceLoc definition, Replay replay = {}, const TraceNotes* known = nullptr);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// The trace of this thread; UserError at `at` when there is none.
  static Tracer& current(SourceLoc at);
  /// The trace of this thread, or null.
  static Tracer* active();
  /// Ends the trace: errors that were swallowed and handles that are still alive are reported here.
  ir::Function finish();
  const TraceNotes& notes() const { return notes_; }

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
      if (!pending_) pending_ = e;
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

  // --- loops (tracer_loops.cpp)
  /// Opens a range loop over `bounds` (lo, hi, step: scalars of one integer dtype); false: this replay does not run its
  /// body.
  bool open_for(const std::vector<ir::Value>& bounds, std::vector<ir::Attr> hints, SourceLoc at);
  /// Number of loops that are open, and the induction variable of the innermost.
  int loop_level() const { return loop_level_; }
  ir::Value induction_variable() { return fn_.region(fn_.inst(top().inst).regions[0]).params[0]; }
  /// The body of the innermost loop, number `level`, has ended; true if it has to run once more (a replay).
  bool end_body(int level, SourceLoc at);
  /// The loop at `at` was left other than by its end.
  void abandon_loop(bool by_exception, SourceLoc at) noexcept;
  void while_loop(FunctionRef<ir::Value()> condition, FunctionRef<void()> body, SourceLoc at);

  // --- branches (tracer_branches.cpp)
  /// A whole if: runs the lambdas, merges the variables they change, and gives one value for each that they give.
  std::vector<ValueId> branch(const Handle& condition, SourceLoc at, Giving then, const Giving* otherwise);
  void return_if(const Handle& condition, SourceLoc at);
  void continue_if(const Handle& condition, SourceLoc at);
  void break_if(const Handle& condition, SourceLoc at);

  /// Traces `body` into a new region of `inst` (a reduction or scan, called `who` in messages): the region's parameters
  /// have the types `params`, and `body` gets them and gives values of the types `yields`. In the region only scalar
  /// elementwise operations, casts and selects are allowed, and scalars of the outside may be read.
  /// UserError at the user's line: any other operation, a variable of the outside assigned, values of another number or
  /// type given.
  void combine(ir::InstId inst, const char* who, const std::vector<ir::Type>& params,
               const std::vector<ir::Type>& yields,
               FunctionRef<void(const std::vector<ValueId>&, std::vector<ValueId>&)> body, SourceLoc at);

  [[noreturn]] void fail(SourceLoc at, const std::string& message);

 private:
  void begin_instruction(SourceLoc at);
  void throw_pending() const {
    if (pending_) throw *pending_;
  }
  void fail_later(SourceLoc at, const std::string& message) noexcept;
  void check_owner(const Handle&, SourceLoc at);

  // --- scopes
  Scope& top() { return scopes_.back(); }
  Scope& below_top() { return scopes_[scopes_.size() - 2]; }
  /// The innermost C++ body.
  Scope& body_scope();
  void push(ScopeKind, SourceLoc, ir::InstId, ir::RegionId, std::uint64_t path);
  void pop();
  static bool older(const Touched&, const Touched&);
  /// The variables touched in the top scope are current in the one below again.
  void leave_variables();
  void close_rests();
  void close_rest();
  void check_none_survives(const Scope&);
  void check_nesting(SourceLoc at);
  std::uint64_t next_path();
  bool skips_bodies() { return replay_.mode == Replay::Skip && top().depth >= replay_.depth; }
  /// The loop whose body is on top.
  bool runs_twice() { return replay_.mode == Replay::Twice && top().depth - 1 == replay_.depth; }

  // --- variables in scopes
  void enter(const Handle&);
  ir::Value current_value(ValueId) const;
  Handle* variable_named(std::uint64_t name);
  void lose(Handle&, SourceLoc because_of);

  // --- control instructions, made operand by operand
  ir::InstId create(ir::Op, std::vector<ir::Value> operands, std::vector<ir::Attr>, SourceLoc);
  ir::Value add_result(ir::InstId, const ir::Type&);
  void add_yield(ir::RegionId, const std::vector<ir::Value>&, SourceLoc);
  void add_stop(const Summary&, ir::InstId loop);
  void check_condition(ir::Value, SourceLoc at);
  void stand_in(const Summary&, ir::InstId, std::vector<ValueId>& given, bool is_loop);
  const Summary& summary_of(std::uint64_t path, SourceLoc at);

  /// Opens a loop of `op`; false: this replay does not run its body.
  bool open_loop(ir::Op op, std::vector<ir::Value> operands, std::vector<ir::Attr>, SourceLoc at);
  void trace_condition(FunctionRef<ir::Value()> condition, SourceLoc at);
  void start_over();
  void close_loop();
  void drop_trivial_headers();
  /// What to write, so that `before` has the type of `after`.
  std::string same_type_hint(ir::Value before, ir::Value after) const;
  /// Carries a variable: its value at the end of the body, or invalid if it is none of the loop's results.
  ir::Value carried_end(const Touched&);
  void give_body_parameters(const Scope&);
  struct Branches;
  void run_branch(Branches&, int which, const Giving&);
  std::vector<ValueId> merge_branches(Branches&);
  struct Combining;
  void run_combine(const Combining&, ir::RegionId, std::uint64_t path);
  void declare_stop(Scope& loop, SourceLoc at);
  void skip_rest(ir::Value condition, SourceLoc, bool returns);

  ir::Function fn_;
  ir::Builder builder_;
  std::uint64_t id_;
  std::size_t emitted_ = 0;
  Handle* newest_ = nullptr;          // living handles of this trace
  std::optional<UserError> pending_;  // the first error
  Tracer* outer_;

  const Replay replay_;
  const TraceNotes* known_;
  TraceNotes notes_;
  std::deque<Scope> scopes_;
  std::uint32_t next_scope_ = 1;
  std::uint64_t next_serial_ = 1;
  int loop_level_ = 0;
  std::unordered_map<ValueId, ValueId> replaced_;  // header values that were none
};

}  // namespace kiln::detail

// Control flow of kernels: range loops, if_, while_, return_if, continue_if, break_if.
//
//   for (auto i : range(0, n, BLOCK)) acc += load(x + i + arange(BLOCK));
//   if_(i % 2 == 0, [&] { even += i; }, [&] { odd += i; });
//   Scalar y = if_(c, [&] { return a + 1; }, [&] { return b; });
//   while_([&] { return x < n; }, [&] { x *= 2; });
//   return_if(program_id(0) >= n);
//
// A body is C++ that runs once while the kernel is traced and stands for every iteration, or for its way through the
// branch. Tiles and Scalars of the outside may be assigned in it: loops and branches find such variables by themselves.
// C++ variables must not change in it; replays of the trace find where they do (replay.h). Conditions and bounds are
// scalars, hence equal in all threads of a program.
#pragma once
#include <exception>

#include "dsl/lang/bundle.h"
#include "dsl/lang/function_ref.h"

namespace kiln {

/// The induction variable of a range loop: a Scalar that cannot be assigned (C++ would change the copy, not the loop).
/// Its dtype is index, unless the bounds have another integer dtype.
class Index : public Scalar {
 public:
  explicit Index(detail::Made m) : Scalar(m) {}
  Index(const Index&) = default;
  Index& operator=(const Index&) & = delete;
  template <class T>
  Index& operator=(T&&) & = delete;
};
#define KILN_BINARY(sym, op)
#define KILN_COMPOUND(sym, op) \
  template <class T>           \
  void operator sym##=(Index&, T&&) = delete;
#include "dsl/lang/operators.def"

/// What range() gives: to be iterated by a range-based for. Options return by value, so that
/// `for (auto i : range(n).unroll(4))` refers to no temporary.
class [[nodiscard]] Range {
 public:
  Range(const detail::Operand& lo, const detail::Operand& hi, const detail::Operand& step, SourceLoc at);
  Range(const Range&) = delete;
  Range(Range&&) noexcept = default;
  ~Range() {
    if (state_ == State::Body) abandon();
  }

  /// The body stands n times in each trip of the compiled loop; trips that do not fill n follow it. The number of trips
  /// must be known when the kernel is compiled: C++ numbers or Const bounds. n = 1 keeps the loop as it is.
  Range unroll(int n) &&;
  /// The loop disappears: its body stands once for each trip.
  Range unroll() &&;
  /// Operands of the loop's products are copied ahead through a ring of exactly n slots in shared memory, so that n - 1
  /// trips are on their way; 1 is no ring. Without this hint the compiler chooses. n is 1 to 64.
  /// UserError when the kernel is compiled: the loop has no product whose operands can be copied ahead, and why; n slots
  /// do not fit shared memory. Not together with unroll.
  ///     for (auto k : range(0, a.size(1), 64).stages(3)) acc = dot(a.load({m, k}, {128, 64}), b.load({k, n}, {64, 128}), acc);
  Range stages(int n) &&;
  /// The ring of the loop's products must be filled by warps of its own while the others multiply, as it is wherever a
  /// target and a loop allow it; this hint makes it an error, with the reason, where they do not.
  Range warp_specialize() &&;

  struct End {};
  class Iterator {
   public:
    explicit Iterator(Range& r) : range_(&r) {}
    Index operator*() const { return Index(range_->induction_variable()); }
    Iterator& operator++() { return range_->next(), *this; }
    bool operator==(End) const { return range_->state_ == State::Done; }

   private:
    Range* range_;
  };
  Iterator begin() { return start(), Iterator(*this); }
  End end() const { return {}; }

 private:
  enum class State : std::uint8_t { Idle, Fresh, Body, Done };
  void start();
  detail::Made induction_variable();
  void next();
  void abandon() noexcept;

  State state_ = State::Idle;
  SourceLoc at_;
  std::vector<Scalar> bounds_;  // lo, hi, step: handles, so that a Range that leaves its scope is caught like any other
  int unroll_ = 0;              // -1: fully
  int stages_ = 0;              // 0: chosen
  bool roles_ = false;
  int level_ = 0;               // of the loop it drives
  int unwinding_ = 0;           // exceptions in flight where the loop began
};

/// `for (auto i : range(hi))`, `range(lo, hi)`, `range(lo, hi, step)`: i = lo, lo + step, … while i < hi, or while
/// i > hi for a negative step. Zero trips leave every variable as it was; a step that passes the last number of its
/// dtype ends the loop.
/// Bounds are integers of any dtype, met like the operands of `+`; C++ numbers alone give index. A step that is a C++
/// number must not be 0; a run-time step of 0 runs no trip.
/// UserError: bounds that are no integer scalars, step 0; a variable whose dtype or shape at the end of the body is not
/// that before it.
inline Range range(SArg hi, RawLoc l = RawLoc::current()) { return {detail::Operand(detail::Number::of(0), l), hi, detail::Operand(detail::Number::of(1), l), l}; }
inline Range range(SArg lo, SArg hi, RawLoc l = RawLoc::current()) { return {lo, hi, detail::Operand(detail::Number::of(1), l), l}; }
inline Range range(SArg lo, SArg hi, SArg step, RawLoc l = RawLoc::current()) { return {lo, hi, step, l}; }

/// A condition: a Scalar of dtype i1. A C++ bool is refused: that is a plain `if`.
struct Cond {
  const Handle& value;
  SourceLoc at;
  Cond(const Scalar& s, RawLoc l = RawLoc::current()) : value(s), at(l) {}
  Cond(const Tile& t, RawLoc l = RawLoc::current());  ///< always an error, with the hint what to use instead
  template <std::same_as<bool> B>
  Cond(B) = delete;
};

namespace detail {

void do_if(const Cond&, FunctionRef<void()> then);
void do_if(const Cond&, FunctionRef<void()> then, FunctionRef<void()> otherwise);
std::vector<ValueId> do_if_values(const Cond&, FunctionRef<void(std::vector<ValueId>&)> then,
                                  FunctionRef<void(std::vector<ValueId>&)> otherwise);
void do_while(FunctionRef<ValueId()> condition, FunctionRef<void()> body, SourceLoc at);
ValueId value_number(const Handle&, SourceLoc at);

template <class F>
concept BodyLambda = std::invocable<F&>;

template <class A, class B>
constexpr bool same_bundle() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) return false;
  else return std::same_as<typename Bundle<A>::type, typename Bundle<B>::type>;
}

}  // namespace detail

/// Runs `then` where `c` holds. Variables of the outside that it assigns keep their value otherwise.
/// UserError: a branch that does nothing (a `return` in a lambda leaves only the lambda); a variable of another type
/// afterwards.
template <detail::BodyLambda Then>
void if_(Cond c, Then&& then) {
  static_assert(std::is_void_v<std::invoke_result_t<Then&>>,
                "kiln: if_ without an else branch cannot return a value");
  detail::do_if(c, [&] { then(); });
}
/// Runs one of two branches. They return nothing, or the same C++ type: a Scalar, a Tile, or a pair, tuple or array of
/// them, which is the result; dtypes and shapes must agree.
template <detail::BodyLambda Then, detail::BodyLambda Else>
auto if_(Cond c, Then&& then, Else&& otherwise) {
  using A = std::decay_t<std::invoke_result_t<Then&>>;
  using B = std::decay_t<std::invoke_result_t<Else&>>;
  if constexpr (std::is_void_v<A> && std::is_void_v<B>) {
    detail::do_if(c, [&] { then(); }, [&] { otherwise(); });
  } else {
    static_assert(detail::same_bundle<A, B>(), "kiln: the two branches of if_ return different C++ types");
    if constexpr (detail::same_bundle<A, B>()) {
      const std::vector<detail::ValueId> values =
          detail::do_if_values(c, [&](std::vector<detail::ValueId>& out) { detail::Bundle<A>::give(then(), out); },
                               [&](std::vector<detail::ValueId>& out) { detail::Bundle<B>::give(otherwise(), out); });
      const detail::ValueId* v = values.data();
      return detail::Bundle<A>::take(v);
    }
  }
}

/// Runs `body` as long as `condition`, evaluated before every trip, holds: `while_([&] { return i < n; }, [&] { … })`.
/// The condition is a lambda that returns a Scalar of dtype i1 and assigns nothing of the outside.
template <detail::BodyLambda C, detail::BodyLambda B>
void while_(C&& condition, B&& body, RawLoc l = RawLoc::current()) {
  static_assert(std::derived_from<std::decay_t<std::invoke_result_t<C&>>, Scalar>,
                "kiln: the condition lambda of while_ must return a Scalar");
  detail::do_while([&] { return detail::value_number(condition(), l); }, [&] { body(); }, l);
}
template <class C, detail::BodyLambda B>
requires(!detail::BodyLambda<C>) void while_(C&&, B&&) {
  static_assert(detail::always_false<C>,
                "kiln: while_ takes its condition as a lambda, while_([&] { return i < n; }, body): a value would be "
                "tested once and never change");
}

/// The program ends here where `c` holds. At the top level of the kernel (helper functions included), not in a body.
void return_if(const Scalar& c, RawLoc l = RawLoc::current());
/// The rest of this iteration is skipped where `c` holds. Directly in the body of a range loop or while_.
void continue_if(const Scalar& c, RawLoc l = RawLoc::current());
/// The loop ends here where `c` holds; variables keep what they were assigned before it in this iteration. Directly in
/// the body of a range loop.
void break_if(const Scalar& c, RawLoc l = RawLoc::current());

}  // namespace kiln

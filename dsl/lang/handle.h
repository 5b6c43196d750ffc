// Handle: the variable behind every Tile and Scalar.
//
// A handle is a *variable* of the traced program: it has an identity (the C++ object), and a current value, which
// assignment replaces. Copying a handle declares a new variable that starts with the same value; moving is copying, so
// that std::swap works. All reads and writes go through the tracer of this thread, which knows every living handle and
// the traced body in which its value is current: that is how loops find the variables they carry, and how a handle
// that outlives its kernel or its body, or meets another kernel's trace, is an error and never a wrong program.
#pragma once
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/base/source_loc.h"

namespace kiln {

namespace detail {
class Tracer;
template <class...>
inline constexpr bool always_false = false;

/// Number of a value in the function being traced.
using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = ~0u;
/// A value on its way into a new handle.
struct Made {
  ValueId id;
};
}  // namespace detail

class Handle {
 public:
  Handle();
  Handle(const Handle&);
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  /// Element type of the current value; of a pointer, the type it points at.
  DType dtype(RawLoc at = RawLoc::current()) const;

  /// Contextual conversion to bool finds this, so the mistake is reported in words.
  template <class T = void>
  explicit operator bool() const {
    static_assert(
        detail::always_false<T>,
        "kiln: a traced value has no C++ truth value: use if_(cond, then, else) or select(cond, a, b), "
        "for (auto i : range(n)) and while_ for loops, minimum and maximum instead of std::min and std::max; a C++ "
        "`if` needs a Const or another C++ value");
    return false;
  }

 protected:
  explicit Handle(detail::Made);
  void assign(const Handle&);

 private:
  // Reading a variable may enter it into the open scopes, which is why these may change in a const handle.
  friend class detail::Tracer;
  mutable detail::ValueId value_ = detail::kNoValue;  // kNoValue: declared, not assigned yet
  mutable std::uint32_t scope_ = 0;                   // scope in which value_ is current
  std::uint32_t home_ = 0, birth_ = 0;                // scope, and innermost C++ body, in which it was made
  std::uint64_t trace_ = 0;                           // 0: made outside any kernel
  std::uint64_t serial_ = 0;                          // order of creation in the trace
  std::uint64_t name_ = 0;                            // the same in every replay of the trace (replay.h)
  mutable SourceLoc unset_;                           // the loop or branch that may not have assigned it
  Handle *newer_ = nullptr, *older_ = nullptr;        // the tracer's list of living handles
};

}  // namespace kiln

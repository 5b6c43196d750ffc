// Handle: the variable behind every Tile and Scalar.
//
// A handle is a *variable* of the traced program: it has an identity (the C++ object), and a current value, which
// assignment replaces. Copying a handle declares a new variable that starts with the same value; moving is copying, so
// that std::swap works. All reads and writes go through the tracer of this thread, which knows every living handle: one
// that outlives its kernel, or meets another kernel's trace, is an error and never a wrong program.
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
        "kiln: a traced value has no C++ truth value: use select(cond, a, b), or masks of load and store; a C++ "
        "`if` needs a Const or another C++ value; minimum and maximum instead of std::min and std::max");
    return false;
  }

 protected:
  explicit Handle(detail::Made);
  void assign(const Handle&);

 private:
  friend class detail::Tracer;
  detail::ValueId value_ = detail::kNoValue;    // kNoValue: declared, not assigned yet
  std::uint64_t trace_ = 0;                     // 0: made outside any kernel
  Handle *newer_ = nullptr, *older_ = nullptr;  // the tracer's list of living handles
};

}  // namespace kiln

// The three kinds of error, named by who is to blame.
//
// Messages are lower-case, have no final period, and give both values: "store: value is f64[128], pointer is ptr<f32>".
#pragma once
#include <stdexcept>
#include <string>

#include "runtime/base/source_loc.h"

namespace kiln {

/// Base of every exception Kiln throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user's kernel or call is wrong. what() is "file:line: error: message" when the place is known.
class UserError : public Error {
 public:
  UserError(SourceLoc at, const std::string& message);
  explicit UserError(const std::string& message) : UserError(SourceLoc{}, message) {}
  SourceLoc loc() const { return loc_; }

 private:
  SourceLoc loc_;
};

/// A device or its driver refused or failed: names the call, its code, and the object (kernel, argument, device).
/// what() is "file:line: error: message" when the place is known: the user's call that met the error. A kernel's fault
/// is met by the first call that waits for it.
class DeviceError : public Error {
 public:
  DeviceError(SourceLoc at, const std::string& message, int code = 0);
  explicit DeviceError(const std::string& message, int code = 0) : DeviceError(SourceLoc{}, message, code) {}
  SourceLoc loc() const { return loc_; }
  /// The driver's numeric code; 0 when the simulator or Kiln itself reports.
  int code() const { return code_; }

 private:
  SourceLoc loc_;
  int code_;
};

/// A fault of Kiln itself: names the pass or component, and where the state before it was dumped.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);
}

/// An invariant of Kiln's own: throws InternalError; the message expression is evaluated only on failure.
#define KILN_CHECK(condition, message)                                                              \
  do {                                                                                              \
    if (!(condition)) ::kiln::detail::check_failed(#condition, __FILE__, __LINE__, (message));      \
  } while (false)

}  // namespace kiln

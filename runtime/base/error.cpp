#include "runtime/base/error.h"

namespace kiln {

UserError::UserError(SourceLoc at, const std::string& message)
    : Error(at.known() ? at.str() + ": error: " + message : message), loc_(at) {}

namespace detail {
void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError("internal error: " + message + " (" + file + ":" + std::to_string(line) + ": " + condition +
                      " does not hold)");
}
}  // namespace detail

}  // namespace kiln

#include "runtime/base/error.h"

namespace kiln {
namespace {

std::string placed(SourceLoc at, const std::string& message) {
  return at.known() ? at.str() + ": error: " + message : message;
}

}  // namespace

UserError::UserError(SourceLoc at, const std::string& message) : Error(placed(at, message)), loc_(at) {}
DeviceError::DeviceError(SourceLoc at, const std::string& message, int code)
    : Error(placed(at, message)), loc_(at), code_(code) {}

namespace detail {
void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError("internal error: " + message + " (" + file + ":" + std::to_string(line) + ": " + condition +
                      " does not hold)");
}
}  // namespace detail

}  // namespace kiln

// The table of interned names is one of the process's few mutable globals: locked, append-only, never destroyed.
#include "runtime/base/source_loc.h"

#include <mutex>
#include <unordered_set>

namespace kiln {

std::string SourceLoc::str() const {
  return known() ? std::string(file) + ":" + std::to_string(line) : std::string("unknown location");
}

const char* intern_file(const std::string& file) {
  static std::mutex mutex;
  static auto& names = *new std::unordered_set<std::string>;  // elements do not move when the set grows
  const std::lock_guard lock(mutex);
  return names.insert(file).first->c_str();
}

}  // namespace kiln

#include "dsl/lang/once_per_key.h"

#include <map>

namespace kiln::detail::waits {
namespace {

std::mutex mutex;
std::map<std::thread::id, std::thread::id>& waiting() {  // never destroyed: threads may outlive main()
  static auto& map = *new std::map<std::thread::id, std::thread::id>;
  return map;
}

}  // namespace

bool begin(std::thread::id other) {
  const std::lock_guard lock(mutex);
  const std::thread::id self = std::this_thread::get_id();
  auto& map = waiting();
  for (auto at = map.find(other); at != map.end(); at = map.find(at->second))
    if (at->second == self) return false;
  map[self] = other;
  return true;
}

void end() {
  const std::lock_guard lock(mutex);
  waiting().erase(std::this_thread::get_id());
}

}  // namespace kiln::detail::waits

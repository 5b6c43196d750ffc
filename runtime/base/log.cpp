// The set of topics already told is one of the process's few mutable globals: locked, never destroyed.
#include "runtime/base/log.h"

#include <cstdio>
#include <mutex>
#include <unordered_set>

#include "runtime/base/env.h"

namespace kiln::rt {

bool log_enabled(LogLevel level) { return env::KILN_LOG() >= static_cast<std::int64_t>(level); }

void say(LogLevel level, const std::string& message) {
  if (!log_enabled(level)) return;
  const std::string line = "kiln: " + message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void say_once(LogLevel level, const std::string& topic, const std::string& message) {
  static std::mutex mutex;
  static auto& told = *new std::unordered_set<std::string>;
  if (!log_enabled(level)) return;
  {
    const std::lock_guard lock(mutex);
    if (!told.insert(topic).second) return;
  }
  say(level, message);
}

}  // namespace kiln::rt

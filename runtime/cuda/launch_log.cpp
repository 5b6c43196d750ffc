#include "runtime/cuda/launch_log.h"

#include <fmt/format.h>

namespace kiln::rt {

std::string LaunchLog::recent(const void* stream, bool all) const {
  std::string text;
  const std::uint64_t total = total_.load(std::memory_order_relaxed);
  for (std::uint64_t i = 1; i <= entries_.size() && i <= total; ++i) {
    const Entry& e = entries_[(total - i) % entries_.size()];
    const char* what = e.what.load(std::memory_order_relaxed);
    if (!what || (!all && e.stream.load(std::memory_order_relaxed) != stream)) continue;
    text += fmt::format("{} {}", text.empty() ? "; launched last:" : ";", what);
    const std::uint64_t x = e.x.load(std::memory_order_relaxed), yz = e.yz.load(std::memory_order_relaxed);
    if (x > 0) text += fmt::format(", grid [{}, {}, {}]", x, yz & 0xffffffff, yz >> 32);
  }
  return text;
}

}  // namespace kiln::rt

// The last launches of a device, kept so that an error which surfaces later can say what was running. Recording is two
// dozen nanoseconds of plain stores: an entry is claimed by the same atomic addition that counts the launch.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/device_impl.h"

namespace kiln::rt {

class LaunchLog {
 public:
  /// `what` lives as long as the process. A graph launches several `kernels` at once and has no grid: zeros.
  void record(const char* what, const LaunchDims& dims, const void* stream, std::uint64_t kernels = 1) {
    const std::uint64_t end = total_.fetch_add(kernels, std::memory_order_relaxed) + kernels;
    for (std::uint64_t k = kernels < entries_.size() ? kernels : entries_.size(); k > 1; --k)
      entries_[(end - k) % entries_.size()].what.store(nullptr, std::memory_order_relaxed);  // one entry tells of all
    Entry& e = entries_[(end - 1) % entries_.size()];
    e.stream.store(stream, std::memory_order_relaxed);
    e.x.store(dims.grid[0], std::memory_order_relaxed);
    e.yz.store(dims.grid[1] | static_cast<std::uint64_t>(dims.grid[2]) << 32, std::memory_order_relaxed);
    e.what.store(what, std::memory_order_relaxed);
  }
  /// "; launched last: relu, grid [1024, 1, 1]; add, …", newest first; only those on `stream` unless `all`. Empty if
  /// there were none.
  std::string recent(const void* stream, bool all) const;

  std::uint64_t total() const { return total_.load(std::memory_order_relaxed) - base_.load(std::memory_order_relaxed); }
  void reset() { base_.store(total_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<const char*> what{nullptr};
    std::atomic<const void*> stream{nullptr};
    std::atomic<std::uint64_t> x{0}, yz{0};
  };
  std::atomic<std::uint64_t> total_{0}, base_{0};
  std::array<Entry, 8> entries_;
};

}  // namespace kiln::rt

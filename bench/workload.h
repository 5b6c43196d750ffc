// Workload: a case made ready on a device, as launches over buffers that take turns. It runs on every device; only its
// timing (prepared.h) needs a GPU.
#pragma once
#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "runtime/device.h"

namespace kiln::bench {

using Shape = std::vector<std::int64_t>;

struct Workload {
  double bytes = 0;  ///< that one launch must move
  int launches = 1;  ///< that one graph holds
  /// Launch i of a graph. Keeps its buffers.
  std::function<void(const Stream&, int)> launch;
};

/// Buffers of one size that launches use in turn: launch i has `buffers[i]`.
template <class T>
class InTurn {
 public:
  InTurn(const Device& device, int count, std::size_t n) {
    for (int i = 0; i < count; ++i) buffers_.emplace_back(device, n);
  }
  Buffer<T>& operator[](int launch) { return buffers_[static_cast<std::size_t>(launch) % buffers_.size()]; }
  std::vector<Buffer<T>>& all() { return buffers_; }

 private:
  std::vector<Buffer<T>> buffers_;
};

/// Makes buffers with values in [-1, 1) of random bits: data with structure draws less power, which makes a kernel look
/// faster.
class Random {
 public:
  template <class T>
  InTurn<T> buffers(const Device& device, int count, std::size_t n) {
    InTurn<T> out(device, count, n);
    const std::vector<T> pool = values<T>(std::min(kPool, n * static_cast<std::size_t>(count)));
    std::size_t next = 0;
    for (Buffer<T>& b : out.all())
      for (std::size_t at = 0; at < n;) {
        const std::size_t part = std::min(n - at, pool.size() - next);
        b.upload(std::span<const T>(pool).subspan(next, part), at);
        at += part;
        next = (next + part) % pool.size();
      }
    return out;
  }

 private:
  static constexpr std::size_t kPool = std::size_t{1} << 22;  // elements after which the values repeat

  template <class T>
  std::vector<T> values(std::size_t n) {
    std::vector<T> out(n);
    for (T& v : out) {
      state_ = state_ * 1664525u + 1013904223u;
      v = static_cast<T>(static_cast<float>(static_cast<std::int32_t>(state_)) * 0x1p-31f);
    }
    return out;
  }

  std::uint32_t state_ = 0x9e3779b9u;
};

}  // namespace kiln::bench

// Workload: a case made ready on a device, as launches over buffers that take turns. It runs on every device; only its
// timing (prepared.h) needs a GPU.
#pragma once
#include <algorithm>
#include <array>
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
  double flops = 0;  ///< that one launch does, of products alone; 0 where bytes decide
};

/// A shape [rows, cols] as the library's functions take it, of bf16.
struct MatrixExtents {
  std::array<std::int64_t, 2> matrix, transposed;
  std::array<std::int64_t, 1> row, column;  ///< sizes of one
  std::size_t rows, cols, elements;

  explicit MatrixExtents(const Shape& s)
      : matrix{s[0], s[1]},
        transposed{s[1], s[0]},
        row{s[1]},
        column{s[0]},
        rows(static_cast<std::size_t>(s[0])),
        cols(static_cast<std::size_t>(s[1])),
        elements(rows * cols) {}
  std::size_t bytes() const { return elements * sizeof(bf16); }
  /// The bytes of so many of them, for Workload::bytes.
  double traffic(int matrices) const { return matrices * static_cast<double>(bytes()); }
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
    return filled(device, count, n,
                  values<T>(count, n, [this] { return static_cast<T>(static_cast<float>(next()) * 0x1p-31f); }));
  }
  /// Whole numbers in [0, limit).
  InTurn<std::int64_t> numbers(const Device& device, int count, std::size_t n, std::int64_t limit) {
    const auto draw = [this, limit] { return static_cast<std::int64_t>(static_cast<std::uint32_t>(next())) % limit; };
    return filled(device, count, n, values<std::int64_t>(count, n, draw));
  }

 private:
  static constexpr std::size_t kPool = std::size_t{1} << 22;  // elements after which the values repeat

  std::int32_t next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<std::int32_t>(state_);
  }

  template <class T, class Draw>
  static std::vector<T> values(int count, std::size_t n, const Draw& draw) {
    std::vector<T> out(std::min(kPool, n * static_cast<std::size_t>(count)));
    std::generate(out.begin(), out.end(), draw);
    return out;
  }

  template <class T>
  static InTurn<T> filled(const Device& device, int count, std::size_t n, const std::vector<T>& pool) {
    InTurn<T> out(device, count, n);
    std::size_t from = 0;
    for (Buffer<T>& b : out.all())
      for (std::size_t at = 0; at < n;) {
        const std::size_t part = std::min(n - at, pool.size() - from);
        b.upload(std::span<const T>(pool).subspan(from, part), at);
        at += part;
        from = (from + part) % pool.size();
      }
    return out;
  }

  std::uint32_t state_ = 0x9e3779b9u;
};

}  // namespace kiln::bench

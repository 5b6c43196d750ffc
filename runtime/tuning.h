// Tuning: which of several ways to do one piece of work is the fastest on a device, measured there and remembered.
//
//   Tuning t = rt::tune(stream, "gemm bf16 4096 4096 4096", candidates);
//   candidates[t.chosen].launch(stream);
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace kiln {

/// What a tuning found.
struct Tuning {
  struct Row {
    std::string name;
    double us = -1;       ///< median of the rounds; -1: not measured
    std::string refused;  ///< why it does not run on this device; empty: it does
  };
  std::vector<Row> rows;   ///< in the order of the candidates
  std::size_t chosen = 0;  ///< the row to use
  bool measured = false;   ///< by clock, now or in an earlier process; false: the first row that the device takes

  /// One line a candidate, the fastest marked.
  std::string table() const;
};

namespace rt {

/// One way to do the work. `launch` enqueues it on the stream, as often as it is called, each time with the same
/// effect.
struct Candidate {
  std::string name;  ///< no line breaks; by it a result that was kept finds its candidate
  std::function<void(const Stream&)> launch;
};

/// Microseconds that one of `launches` launches in a row takes on a device.
using Stopwatch = std::function<double(const Stream&, const Candidate&, int launches)>;

/// Measures every candidate on `stream` and keeps the result under the device's name and `subject`, in memory and in
/// the cache folder (docs/env.md).
///
/// Each candidate is launched once, which compiles it; one that throws UserError or DeviceError by that (more shared
/// memory or registers than there are, a hint that can't be met) is refused and says why. The others run in turns, so
/// that a clock that drifts is the same for all; those 1.5 times slower than the best leave after the first round. The
/// earlier of two within 1 % is chosen. Caches are as the launch before left them.
///
/// A simulator has no clock: there, and where one candidate is left, the first that the device takes is chosen, nothing
/// is measured and nothing kept.
///
/// Errors: UserError at `at` while the stream is captured, or with the first reason where all are refused; DeviceError
/// of a candidate that fails while it runs.
Tuning tune(const Stream& stream, const std::string& subject, std::span<const Candidate> candidates,
            SourceLoc at = RawLoc::current());
/// The same by another clock, also on devices that have none.
Tuning tune(const Stream& stream, const std::string& subject, std::span<const Candidate> candidates,
            const Stopwatch& stopwatch, SourceLoc at = RawLoc::current());

/// What tune() kept for a device: the number of that candidate among `names`; nothing if there was no tuning, or its
/// choice is not among them. Reads the cache folder once for each device and subject.
std::optional<std::size_t> tuned(const Device& device, const std::string& subject, std::span<const std::string> names);

}  // namespace rt
}  // namespace kiln

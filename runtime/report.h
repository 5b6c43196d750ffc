// Reports: what print and assert in kernels said, from a kernel's report buffer to the user.
//
// Each loaded kernel that has any owns one buffer, made when it is loaded (never during a capture); a launch passes its
// address and the launch's number. When the program waits for a stream or a device, every buffer that may hold
// something is read and emptied, and all records are given out in the order of (launch, program, site, element),
// however the threads ran.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/image/kernel_image.h"

namespace kiln::rt {

class DeviceImpl;

/// The report buffer of one loaded kernel.
struct ReportBuffer {
  static constexpr std::uint64_t kWords = std::uint64_t(1) << 17;  ///< 1 MiB: over 20000 records of one value
  std::string kernel;
  std::vector<ReportSite> sites;
  std::uint64_t address = 0;
  bool filled = false;    ///< launched since it was read
  bool captured = false;  ///< a graph may fill it at any time
};

/// All report buffers of one device.
class Reports {
 public:
  /// Makes the buffer of a kernel, in `device`'s memory.
  std::shared_ptr<ReportBuffer> open(DeviceImpl& device, const KernelImage& image);
  /// Runs `launch(number)` for a kernel that reports to `buffer`; nobody reads the buffer meanwhile.
  template <class Launch>
  void launch(ReportBuffer& buffer, bool capturing, Launch&& launch) {
    const std::lock_guard lock(mutex_);
    launch(++launches_);
    (capturing ? buffer.captured : buffer.filled) = true;
    waiting_ = true;
  }
  /// Runs `replay()` of a graph, whose kernels may report; nobody reads a buffer meanwhile.
  template <class Replay>
  void replay(Replay&& replay) {
    if (!waiting_) return replay();
    const std::lock_guard lock(mutex_);
    replay();
  }
  /// Prints what was printed, then throws DeviceError for the first assert that failed. To be called when the caller
  /// has waited for the device's work or part of it; waits for all of it if anything may have been reported. Does
  /// nothing while a stream of the device is captured.
  void deliver(DeviceImpl& device);
  /// Takes text that a kernel printed by printf, to be given out by the next deliver(), before the reports.
  void add_text(const std::string& text);
  /// Where prints go; an empty function: standard output.
  void on_print(std::function<void(const std::string&)> sink);

 private:
  struct Batch;
  Batch collect(DeviceImpl& device);

  std::mutex mutex_;  ///< of everything below, and of the buffers
  std::vector<std::shared_ptr<ReportBuffer>> buffers_;
  std::function<void(const std::string&)> sink_;
  std::string text_;  ///< of printf, since it was last given out
  std::uint64_t launches_ = 0;
  std::atomic<bool> waiting_{false};  ///< some buffer may hold something
};

}  // namespace kiln::rt

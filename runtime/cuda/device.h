// A CUDA GPU: its primary context (shared with the CUDA runtime), what it can do, and what was launched on it.
#pragma once
#include <atomic>
#include <memory>
#include <new>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/launch_log.h"
#include "runtime/device_impl.h"

namespace kiln::rt {

class CudaMemory;

/// What compiled code must be made for on compute capability major.minor: the architecture-specific target where Kiln
/// knows it, else the newest target whose PTX runs on any later GPU; `wish` (KILN_TARGET) names an older one. Throws
/// DeviceError below 8.0, UserError for a wish that such a GPU does not run.
std::string cuda_target(int major, int minor, const std::string& wish = {});
/// Newest PTX ISA (10·major + minor) of a driver that runs CUDA `version` (1000·major + 10·minor).
int cuda_ptx_version(int version);

class CudaDevice final : public DeviceImpl {
 public:
  CudaDevice(std::shared_ptr<const cu::Driver> driver, int ordinal);
  ~CudaDevice() override;

  DeviceKind kind() const override { return DeviceKind::Cuda; }
  int ordinal() const override { return ordinal_; }
  std::string name() const override { return name_; }
  std::string target() const override { return target_; }
  int ptx_version() const override { return cuda_ptx_version(driver_->version()); }
  int sm_count() const override { return sm_count_; }
  std::size_t max_shared_bytes() const override { return max_shared_bytes_; }
  std::size_t total_memory() const override { return total_memory_; }
  /// Bytes that the resident blocks of a multiprocessor share, and those that each of them loses to the driver.
  struct SharedMemory {
    std::uint64_t bytes = 0, reserved_of_block = 0;
  };
  SharedMemory shared_memory() const { return shared_memory_; }
  Counters counters() const override;
  void reset_counters() override { log_.reset(); }
  void synchronize() override;
  bool any_capture() const override { return capturing(); }

  std::shared_ptr<LoadedKernel> load(const KernelImage&) override;
  std::shared_ptr<StreamImpl> create_stream() override;
  std::shared_ptr<StreamImpl> foreign_stream(void* native) override;
  std::shared_ptr<EventImpl> create_event() override;

  DevicePtr allocate(std::size_t bytes, StreamImpl* ordered) override;
  void free(DevicePtr, StreamImpl* ordered) noexcept override;
  void upload(DevicePtr dst, const void* src, std::size_t bytes) override;
  void download(void* dst, DevicePtr src, std::size_t bytes) override;
  void fill(DevicePtr dst, std::uint8_t value, std::size_t bytes) override;
  std::optional<PointerInfo> pointer_info(DevicePtr) const override;
  void encode_tensor_map(const TensorSpec&, std::byte* map) const override;

  const cu::Driver& driver() const { return *driver_; }
  cu::Context context() const { return context_; }
  cu::DeviceId id() const { return id_; }
  LaunchLog& log() { return log_; }
  /// "NVIDIA H200 (cuda:0)".
  std::string identify() const;
  int attribute(int which) const;

  // Streams of this device that Kiln is capturing: while there are any, the driver forbids waiting for the device.
  void capture_began() { captures_.fetch_add(1); }
  void capture_ended() { captures_.fetch_sub(1); }
  bool capturing() const { return captures_.load() > 0; }
  /// Throws UserError if a stream is being captured, before the driver would spoil the capture.
  void refuse_while_capturing(const char* what) const;

 private:
  std::shared_ptr<const cu::Driver> driver_;
  int ordinal_;
  cu::DeviceId id_ = 0;
  cu::Context context_ = nullptr;
  std::string name_, target_;
  int sm_count_ = 0;
  std::size_t max_shared_bytes_ = 0, total_memory_ = 0;
  SharedMemory shared_memory_;
  std::atomic<int> captures_{0};
  LaunchLog log_;
  std::unique_ptr<CudaMemory> memory_;
};

/// Makes the device's context current for a scope. The driver is asked, not a thread-local copy: other code in the
/// process (the CUDA runtime, libtorch) changes it too, and gets its own back at the end of the scope. A thread that
/// had none keeps this one, so that its next call finds it.
class Current {
 public:
  explicit Current(const CudaDevice& device) : driver_(device.driver()) {
    const cu::Result r = enter(device.context());
    if (r != cu::kSuccess) [[unlikely]]
      driver_.fail(driver_.context_set_current.symbol, r, device.identify());
  }
  /// For destructors, which may run after the driver has shut down: their calls fail then, and nothing is left to free.
  Current(const CudaDevice& device, std::nothrow_t) noexcept : driver_(device.driver()) {
    (void)enter(device.context());
  }
  ~Current() {
    if (previous_) driver_.context_set_current(previous_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  cu::Result enter(cu::Context wanted) {
    cu::Context now = nullptr;
    driver_.context_get_current(&now);
    if (now == wanted) [[likely]]
      return cu::kSuccess;
    const cu::Result r = driver_.context_set_current(wanted);
    if (r == cu::kSuccess) previous_ = now;
    return r;
  }

  const cu::Driver& driver_;
  cu::Context previous_ = nullptr;
};

}  // namespace kiln::rt

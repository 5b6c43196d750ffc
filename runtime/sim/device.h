// The simulator as a device: launches run when they are issued, on the calling thread and helpers; a fault of a kernel
// is kept and thrown by the next synchronisation, download or launch, after which the device is usable again.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/debugger.h"
#include "runtime/device_impl.h"
#include "runtime/sim/arch.h"
#include "runtime/sim/heap.h"
#include "runtime/sim/profile_store.h"
#include "runtime/sim/program.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {

class SimDevice final : public DeviceImpl {
 public:
  SimDevice(Arch arch, int sms);
  ~SimDevice() override;

  DeviceKind kind() const override { return DeviceKind::Simulator; }
  int ordinal() const override { return -1; }
  std::string name() const override;
  std::string target() const override { return arch_.name(); }
  int ptx_version() const override { return kPtxVersion; }
  int sm_count() const override { return sms_; }
  std::size_t max_shared_bytes() const override { return arch_.max_shared_bytes(); }
  std::size_t total_memory() const override { return heap_.capacity(); }
  Counters counters() const override { return store_.counters(); }
  void reset_counters() override { store_.reset(); }
  std::vector<KernelCounters> kernel_counters() const override { return store_.kernel_counters(); }
  void record_profile(bool on) override { store_.keep_details(on); }
  Profile profile() const override { return store_.profile(name()); }
  /// For KILN_SIM_PROFILE.
  Profile profile_for_file() const { return store_.profile_for_file(name()); }
  std::vector<Finding> findings() const override;
  void clear_findings() override;
  void synchronize() override { throw_fault(); }
  bool any_capture() const override { return capturing_ != 0; }

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

  const Arch& arch() const { return arch_; }
  Heap& heap() { return heap_; }
  /// Runs a launch to its end; a fault is kept.
  void run(const Program&, const KernelImage&, const LaunchDims&, std::vector<std::byte> params);
  /// Throws the kept fault, if any, and forgets it.
  void throw_fault();
  /// Attaches what looks into launches; null detaches it. Throws UserError if there is one already.
  void debug_with(DebugHook*);
  /// Keeps count of the streams that capture.
  void captures(int change) { capturing_ += change; }

  static constexpr int kPtxVersion = 90;

 private:
  void open_terminal();
  void refuse_while_capturing(const char* what) const;

  const Arch arch_;
  const int sms_;
  const int number_;  ///< among the simulators that there are
  const Checks checks_;
  Heap heap_;
  std::uint32_t launches_ = 0;
  std::atomic<int> capturing_{0};
  ProfileStore store_;
  std::mutex running_;        ///< held while a kernel runs; freeing memory waits for it
  mutable std::mutex mutex_;  ///< guards the members below
  std::vector<Finding> findings_;
  std::optional<std::string> fault_;
  DebugHook* debug_ = nullptr;
  std::unique_ptr<Debugger> terminal_;  ///< of KILN_SIM_DEBUG
};

}  // namespace kiln::rt::sim

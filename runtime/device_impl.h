// What a device must implement. Two implementations: runtime/cuda and runtime/sim.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/device.h"
#include "runtime/image/kernel_image.h"
#include "runtime/profile.h"
#include "runtime/report.h"
#include "runtime/tensor_map.h"
#include "runtime/tensor_map_cache.h"

namespace kiln::rt {

/// `f()` on behalf of the user's call at `at`: errors that know no place get this one.
template <class F>
auto located(SourceLoc at, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const UserError& e) {
    if (e.loc().known()) throw;
    throw UserError(at, e.what());
  } catch (const DeviceError& e) {
    if (e.loc().known()) throw;
    throw DeviceError(at, e.what(), e.code());
  }
}

/// Block grid of one launch, after GridRule was applied.
struct LaunchDims {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
};

/// A kernel ready on one device. launch() allocates nothing and takes no lock.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  /// `params`: the parameter buffer laid out by image().signature, hidden parameters appended.
  virtual void launch(StreamImpl& stream, const LaunchDims& dims, const void* params, std::size_t bytes) = 0;
  const KernelImage& image() const { return image_; }
  /// Machine code to keep in a cache; empty where the device has none (simulator).
  virtual std::string cubin() const { return {}; }
  /// Clusters (blocks, where the cluster is one block) that are resident at the same time: the grid of GridRule::Persistent.
  virtual std::uint32_t resident_clusters() const { return 1; }
  /// Makes what the image's hidden parameters need, in `device`'s memory. Once, before the first launch.
  void provide_hidden(DeviceImpl& device);
  /// Where its prints and asserts go; null: it has none.
  ReportBuffer* report() const { return report_.get(); }
  /// What makes its tensor maps; null: it has none.
  TensorMapCache* tensor_maps() const { return tensor_maps_.get(); }

 protected:
  explicit LoadedKernel(KernelImage image) : image_(std::move(image)) {}
  KernelImage image_;

 private:
  std::shared_ptr<ReportBuffer> report_;
  std::unique_ptr<TensorMapCache> tensor_maps_;
};

class StreamImpl : public std::enable_shared_from_this<StreamImpl> {
 public:
  virtual ~StreamImpl() = default;
  virtual DeviceImpl& device() const = 0;
  virtual std::shared_ptr<DeviceImpl> device_ptr() const = 0;
  virtual void synchronize() = 0;
  virtual void* native() const { return nullptr; }
  virtual bool capturing() const = 0;
  virtual void begin_capture() = 0;
  virtual std::shared_ptr<GraphImpl> end_capture() = 0;
  virtual void abandon_capture() noexcept = 0;
};

class EventImpl {
 public:
  virtual ~EventImpl() = default;
  virtual void record(StreamImpl&) = 0;
  virtual void synchronize() = 0;
  virtual double us_since(const EventImpl& begin) const = 0;
};

class GraphImpl {
 public:
  virtual ~GraphImpl() = default;
  virtual void replay(StreamImpl&) = 0;
  virtual std::size_t kernels() const = 0;
};

/// What the device knows of an address.
struct PointerInfo {
  int ordinal = -1;                    ///< device the memory belongs to
  DevicePtr base = 0;                  ///< 0 where the implementation cannot tell (foreign memory)
  std::size_t bytes = 0;
  std::string owner;                   ///< name of that device, when it is another than the one asked
};

class DeviceImpl : public std::enable_shared_from_this<DeviceImpl> {
 public:
  virtual ~DeviceImpl() = default;
  virtual DeviceKind kind() const = 0;
  virtual int ordinal() const = 0;
  virtual std::string name() const = 0;
  virtual std::string target() const = 0;
  virtual int ptx_version() const = 0;
  virtual int sm_count() const = 0;
  virtual std::size_t max_shared_bytes() const = 0;
  virtual std::size_t total_memory() const = 0;
  virtual Counters counters() const = 0;
  virtual void reset_counters() = 0;
  virtual std::vector<KernelCounters> kernel_counters() const { return {}; }
  virtual std::vector<Finding> findings() const { return {}; }
  virtual void clear_findings() {}
  /// Only the simulator has one.
  virtual void record_profile(bool) { throw DeviceError(name() + " has no profile: only the simulator counts instructions"); }
  virtual Profile profile() const { return {}; }
  virtual void synchronize() = 0;
  /// Whether a stream of this device is being captured; transfers are refused then.
  virtual bool any_capture() const { return false; }
  Reports& reports() { return reports_; }

  virtual std::shared_ptr<LoadedKernel> load(const KernelImage&) = 0;
  virtual std::shared_ptr<StreamImpl> create_stream() = 0;
  virtual std::shared_ptr<StreamImpl> foreign_stream(void* native) = 0;
  virtual std::shared_ptr<EventImpl> create_event() = 0;

  virtual DevicePtr allocate(std::size_t bytes, StreamImpl* ordered) = 0;   ///< 0 bytes: a valid non-null address
  virtual void free(DevicePtr, StreamImpl* ordered) noexcept = 0;
  virtual void upload(DevicePtr dst, const void* src, std::size_t bytes) = 0;
  virtual void download(void* dst, DevicePtr src, std::size_t bytes) = 0;
  virtual void fill(DevicePtr dst, std::uint8_t value, std::size_t bytes) = 0;
  /// Facts about an address, or nothing if this device cannot access it (null, host memory, freed memory).
  virtual std::optional<PointerInfo> pointer_info(DevicePtr) const = 0;
  /// Writes the TensorMap::kBytes bytes of a map whose spec was checked. Throws DeviceError where there are none.
  virtual void encode_tensor_map(const TensorSpec&, std::byte* map) const;

 private:
  Reports reports_;
};

/// Makers used by Device's static functions.
std::shared_ptr<DeviceImpl> make_cuda_device(int ordinal);
int cuda_device_count();
std::shared_ptr<DeviceImpl> make_simulator(const std::string& target, int sms);

}  // namespace kiln::rt

// Device, Stream, Event, Buffer, Graph: one interface over a CUDA GPU and the PTX simulator.
//
// All are cheap handles (a shared pointer); copying one copies the handle. A Device's implementation lives as long as
// anything that was made from it. Errors name the caller's line: the parameter `at`, which is never given.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/finding.h"

namespace kiln {

class Stream;
struct Profile;
namespace rt {
class DeviceImpl;
class StreamImpl;
class EventImpl;
class GraphImpl;
class LoadedKernel;
struct KernelImage;
struct Allocation;
}  // namespace rt

/// Address in a device's memory. On the simulator it is a host address of the simulator's own heap.
using DevicePtr = std::uint64_t;

enum class DeviceKind : std::uint8_t { Cuda, Simulator, Interpreter };

/// Totals since the device was opened or reset_counters() was called; also sums of parts of a profile (runtime/profile.h). A GPU
/// counts launches only. Each row of the table is a member, `std::uint64_t name = 0`, with what it means.
struct Counters {
#define KILN_COUNTER(name, doc) std::uint64_t name = 0;
#include "runtime/counters.def"
};

/// What the launches of one kernel did.
struct KernelCounters {
  std::string kernel;
  Counters total;
  struct Conflict {
    std::string where;                 ///< user's file:line, the PTX line and its text
    std::uint64_t wavefronts = 0;      ///< avoidable ones there
  };
  std::vector<Conflict> conflicts;     ///< most first; empty when total.bank_conflicts is 0
};

class Device {
 public:
  /// The GPU with this ordinal, opened once per process. Throws DeviceError that says what is missing (driver library, device, its number).
  static Device cuda(int ordinal = 0, SourceLoc at = RawLoc::current());
  /// A new simulator of `target` ("sm_80" … "sm_120a"); `sms` multiprocessors are modelled.
  static Device simulator(const std::string& target = "sm_90a", int sms = 132, SourceLoc at = RawLoc::current());
  /// The device KILN_DEVICE names, else the first GPU, else the simulator; says once in the log which and why. The same
  /// device for every caller. Throws UserError when KILN_DEVICE cannot be read, DeviceError when it names no device.
  static Device best(SourceLoc at = RawLoc::current());
  /// Number of GPUs the driver offers; 0 without driver or device.
  static int cuda_count();
  /// Every device tests should cover: the simulator, and each GPU kind found.
  static std::vector<Device> all(SourceLoc at = RawLoc::current());

  DeviceKind kind() const;
  bool is_simulator() const { return kind() == DeviceKind::Simulator; }
  int ordinal() const;               ///< CUDA ordinal; -1 for the simulator
  std::string name() const;          ///< "NVIDIA H200", "simulator (sm_90a, 132 SMs)"
  std::string target() const;        ///< what code is compiled for: "sm_90a"
  int ptx_version() const;           ///< newest PTX ISA this device's driver takes, as 10·major + minor (e.g. 87)
  int sm_count() const;
  std::size_t max_shared_bytes() const;  ///< dynamic shared memory a block may ask for
  std::size_t total_memory() const;
  Counters counters() const;
  void reset_counters() const;
  /// The same for each kernel name launched since, in order of first launch. Counted by the simulator; empty elsewhere.
  std::vector<KernelCounters> kernel_counters() const;
  /// What the simulator found wrong with the kernels launched since the device was opened or clear_findings() was called:
  /// launch after launch, inside a launch by block. The error of a launch names one of its findings, and how many more
  /// there are. The same for any number of host threads. Empty on other devices.
  std::vector<Finding> findings() const;
  void clear_findings() const;
  /// Keeps from now on what every instruction does, for profile(); off: forgets it. The simulator only; elsewhere
  /// DeviceError. KILN_SIM_PROFILE writes the profile of a whole process without it.
  void record_profile(bool on = true, SourceLoc at = RawLoc::current()) const;
  /// What kernels did since record_profile() or reset_counters(), by line and instruction (runtime/profile.h).
  Profile profile() const;
  /// Waits for all work; throws the DeviceError of a failed launch or assert.
  void synchronize(SourceLoc at = RawLoc::current()) const;
  /// Where `print` in kernels goes, and on the simulator printf of foreign ones (block after block): `sink(line)` is called when the program waits for the device, once a line, without its
  /// line break. An empty function: standard output, as at first. Example:
  /// `device.on_print([&](const std::string& line) { lines.push_back(line); })`.
  void on_print(std::function<void(const std::string&)> sink) const;

  /// Loads `image`; throws DeviceError with the assembler's log when the driver refuses it.
  std::shared_ptr<rt::LoadedKernel> load(const rt::KernelImage& image, SourceLoc at = RawLoc::current()) const;

  rt::DeviceImpl& impl() const { return *impl_; }
  bool operator==(const Device&) const = default;
  explicit Device(std::shared_ptr<rt::DeviceImpl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<rt::DeviceImpl> impl_;
};

/// Work in order. Errors of asynchronous work surface at synchronize(), with the kernel's name and grid.
class Stream {
 public:
  explicit Stream(const Device& device, SourceLoc at = RawLoc::current());
  /// Borrows a CUstream (nullptr: the default stream) of `device`; it is never destroyed here.
  static Stream foreign(const Device& device, void* cu_stream, SourceLoc at = RawLoc::current());
  Device device() const;
  void synchronize(SourceLoc at = RawLoc::current()) const;
  void* native() const;              ///< CUstream; nullptr on the simulator
  bool capturing() const;
  rt::StreamImpl& impl() const { return *impl_; }
  explicit Stream(std::shared_ptr<rt::StreamImpl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<rt::StreamImpl> impl_;
};

/// A point in a stream.
class Event {
 public:
  explicit Event(const Device& device, SourceLoc at = RawLoc::current());
  void record(const Stream& stream, SourceLoc at = RawLoc::current());
  void synchronize(SourceLoc at = RawLoc::current()) const;
  /// Microseconds between two recorded events. Throws DeviceError on the simulator, which has no clock.
  static double elapsed_us(const Event& begin, const Event& end, SourceLoc at = RawLoc::current());
  rt::EventImpl& impl() const { return *impl_; }

 private:
  std::shared_ptr<rt::EventImpl> impl_;
};

/// Kernels captured from a stream, replayed with one call. It keeps the kernels; the buffers that they use must stay.
class Graph {
 public:
  /// Runs `work`, which launches on `stream`, and records instead of executing.
  template <class F>
  static Graph capture(const Stream& stream, F&& work, SourceLoc at = RawLoc::current()) {
    begin(stream, at);
    try {
      std::forward<F>(work)();
    } catch (...) {
      abandon(stream);
      throw;
    }
    return end(stream, at);
  }
  /// Launches every kernel inside on `stream`, which may differ from the captured one but not in device.
  void replay(const Stream& stream, SourceLoc at = RawLoc::current()) const;
  std::size_t kernels() const;       ///< kernel nodes inside

 private:
  static void begin(const Stream&, SourceLoc at);
  static Graph end(const Stream&, SourceLoc at);
  static void abandon(const Stream&) noexcept;
  explicit Graph(std::shared_ptr<rt::GraphImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<rt::GraphImpl> impl_;
};

namespace detail {
/// Untyped storage of Buffer<T>; all logic is out of line.
class RawBuffer {
 public:
  RawBuffer() = default;
  // `n` elements of `element_bytes`; a product beyond 64 bits is an error, not a small buffer.
  RawBuffer(const Device&, std::size_t n, std::size_t element_bytes, SourceLoc at);  // from the device, at once
  RawBuffer(const Stream&, std::size_t n, std::size_t element_bytes, SourceLoc at);  // stream-ordered, from the pool
  RawBuffer(const Device&, DevicePtr, std::size_t n, std::size_t element_bytes, SourceLoc at);  // borrowed
  DevicePtr ptr() const;
  std::size_t bytes() const;
  bool valid() const { return alloc_ != nullptr; }
  Device device(SourceLoc at) const;
  /// The device without a new handle, for launches: lives as long as the buffer; null for a default-constructed one.
  const Device* owner() const;
  // `bytes` at element `first` of `element_bytes`.
  void upload(const void* src, std::size_t bytes, std::size_t first, std::size_t element_bytes, SourceLoc at);
  void download(void* dst, std::size_t bytes, std::size_t first, std::size_t element_bytes, SourceLoc at) const;
  void fill_bytes(std::uint8_t value, SourceLoc at);

 private:
  std::shared_ptr<rt::Allocation> alloc_;
};
}  // namespace detail

/// `n` elements of device memory, freed with the last handle.
template <Element T>
class Buffer {
 public:
  Buffer() = default;
  /// Throws DeviceError with the size asked for and the memory left when the device has too little.
  Buffer(const Device& device, std::size_t n, SourceLoc at = RawLoc::current())
      : raw_(device, n, sizeof(T), at), n_(n) {}
  /// Stream-ordered: usable on `stream` at once, elsewhere after synchronisation.
  Buffer(const Stream& stream, std::size_t n, SourceLoc at = RawLoc::current())
      : raw_(stream, n, sizeof(T), at), n_(n) {}
  /// Memory of somebody else, `n` elements at `ptr` on `device`; not freed here. A launch trusts it: the
  /// address is not looked up.
  static Buffer foreign(const Device& device, DevicePtr ptr, std::size_t n, SourceLoc at = RawLoc::current()) {
    Buffer b;
    b.raw_ = detail::RawBuffer(device, ptr, n, sizeof(T), at);
    b.n_ = n;
    return b;
  }

  std::size_t size() const { return n_; }
  std::size_t bytes() const { return n_ * sizeof(T); }
  DevicePtr ptr() const { return raw_.ptr(); }
  Device device(SourceLoc at = RawLoc::current()) const { return raw_.device(at); }

  /// Copies host elements to the front of the buffer (or to element `first`); waits for the device's earlier work and
  /// until they are there. As download() and fill_bytes(), it is refused while a stream of the device is being
  /// captured.
  void upload(std::span<const std::remove_const_t<T>> src, std::size_t first = 0, SourceLoc at = RawLoc::current()) {
    raw_.upload(src.data(), src.size_bytes(), first, sizeof(T), at);
  }
  /// Copies elements from `first` on to the host; waits for the device's earlier work.
  void download(std::span<T> dst, std::size_t first = 0, SourceLoc at = RawLoc::current()) const {
    raw_.download(dst.data(), dst.size_bytes(), first, sizeof(T), at);
  }
  std::vector<T> to_vector(SourceLoc at = RawLoc::current()) const {
    std::vector<T> v(n_);
    raw_.download(v.data(), bytes(), 0, sizeof(T), at);
    return v;
  }
  /// Sets every byte, after the device's earlier work; waits until it is done.
  void fill_bytes(std::uint8_t value, SourceLoc at = RawLoc::current()) { raw_.fill_bytes(value, at); }
  const detail::RawBuffer& raw() const { return raw_; }

 private:
  detail::RawBuffer raw_;
  std::size_t n_ = 0;
};

}  // namespace kiln

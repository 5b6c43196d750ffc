// The public handles, over DeviceImpl. Two tables outlive every handle and are never destroyed, so that no device
// closes after the driver at the end of the process: the GPUs that were opened, and the answers of Device::best().
#include "runtime/device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/device_impl.h"

namespace kiln {

namespace rt {
/// Memory of one buffer; freed with the last handle, in the order of `stream` where there is one.
struct Allocation {
  Allocation(Device device_, std::shared_ptr<StreamImpl> stream_, std::size_t bytes_)
      : device(std::move(device_)), stream(std::move(stream_)), bytes(bytes_) {
    ptr = device.impl().allocate(bytes, stream.get());
    owned = true;
  }
  Allocation(Device device_, DevicePtr ptr_, std::size_t bytes_)
      : device(std::move(device_)), ptr(ptr_), bytes(bytes_) {}
  ~Allocation() {
    if (owned) device.impl().free(ptr, stream.get());
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  Device device;
  std::shared_ptr<StreamImpl> stream;
  DevicePtr ptr = 0;
  std::size_t bytes = 0;
  bool owned = false;
};
}  // namespace rt

namespace {

void print_help_once() {
  static const bool printed = [] {
    if (env::KILN_HELP()) std::fputs(env::help().c_str(), stderr);
    return true;
  }();
  (void)printed;
}

std::string device_text(const Device& d) {
  return d.ordinal() < 0 ? d.name() : fmt::format("{} (cuda:{})", d.name(), d.ordinal());
}

/// The device that `text` (the value of KILN_DEVICE) asks for.
Device named_device(const std::string& text, SourceLoc at) {
  if (text == "sim") return Device::simulator();
  if (text.starts_with("sim:")) return Device::simulator(text.substr(4), 132, at);
  if (text == "cuda") return Device::cuda(0, at);
  if (text.starts_with("cuda:")) {
    const std::string number = text.substr(5);
    if (!number.empty() && number.size() < 5 && number.find_first_not_of("0123456789") == std::string::npos)
      return Device::cuda(std::atoi(number.c_str()), at);
  }
  throw UserError(at, fmt::format("KILN_DEVICE: expected cuda:N, sim or sim:sm_80, got '{}'", text));
}

Device first_gpu_or_simulator() {
  try {
    const Device d = Device::cuda(0, {});
    rt::say_once(rt::LogLevel::Info, "best device", fmt::format("running on {}", device_text(d)));
    return d;
  } catch (const DeviceError& e) {
    const Device d = Device::simulator();
    rt::say_once(rt::LogLevel::Info, "best device", fmt::format("running on the {}: no GPU: {}", d.name(), e.what()));
    return d;
  }
}

std::size_t checked_bytes(std::size_t n, std::size_t element_bytes) {
  if (n > std::numeric_limits<std::size_t>::max() / element_bytes)
    throw UserError(
        fmt::format("buffer: {} elements of {} bytes are more than a 64-bit size can hold", n, element_bytes));
  return n * element_bytes;
}

/// Waits by `wait()`, then gives out what kernels printed and asserted: also when a kernel failed, as far as the device
/// can still be read, because prints are what finds the fault.
template <class Wait>
void wait_and_report(rt::DeviceImpl& device, SourceLoc at, Wait&& wait) {
  rt::located(at, [&] {
    try {
      wait();
    } catch (const DeviceError&) {
      try {
        device.reports().deliver(device);
      } catch (const Error&) {
        // The kernel's own failure is thrown; one that follows from it would hide it.
      }
      throw;
    }
    device.reports().deliver(device);
  });
}

/// The byte where element `first` begins, if `bytes` from there on lie in a buffer of `size`.
std::size_t offset_of(const char* what, std::size_t bytes, std::size_t first, std::size_t element_bytes,
                      std::size_t size) {
  const std::size_t offset = first * element_bytes;
  if (first > size / element_bytes || bytes > size - offset)
    throw UserError(fmt::format("{}: {} bytes at element {} of a buffer of {} bytes", what, bytes, first, size));
  return offset;
}

}  // namespace

Device Device::cuda(int ordinal, SourceLoc at) {
  static std::mutex mutex;
  static auto& opened = *new std::map<int, Device>;
  print_help_once();
  const std::lock_guard lock(mutex);
  const auto it = opened.find(ordinal);
  if (it != opened.end()) return it->second;
  return opened.emplace(ordinal, Device(rt::located(at, [&] { return rt::make_cuda_device(ordinal); }))).first->second;
}

Device Device::simulator(const std::string& target, int sms, SourceLoc at) {
  print_help_once();
  return Device(rt::located(at, [&] { return rt::make_simulator(target, sms); }));
}

Device Device::best(SourceLoc at) {
  static std::mutex mutex;
  static auto& answers = *new std::map<std::string, Device>;
  const std::string& asked = env::KILN_DEVICE();
  const std::lock_guard lock(mutex);
  const auto it = answers.find(asked);
  if (it != answers.end()) return it->second;
  const Device d = asked.empty() ? first_gpu_or_simulator() : named_device(asked, at);
  if (!asked.empty())
    rt::say_once(rt::LogLevel::Info, "best device " + asked,
                 fmt::format("running on {} (KILN_DEVICE={})", device_text(d), asked));
  return answers.emplace(asked, d).first->second;
}

int Device::cuda_count() { return rt::cuda_device_count(); }

std::vector<Device> Device::all(SourceLoc at) {
  std::vector<Device> found{simulator()};
  std::set<std::string> names;
  for (int i = 0; i < cuda_count(); ++i)
    if (const Device d = cuda(i, at); names.insert(d.name()).second) found.push_back(d);
  return found;
}

DeviceKind Device::kind() const { return impl_->kind(); }
int Device::ordinal() const { return impl_->ordinal(); }
std::string Device::name() const { return impl_->name(); }
std::string Device::target() const { return impl_->target(); }
int Device::ptx_version() const { return impl_->ptx_version(); }
int Device::sm_count() const { return impl_->sm_count(); }
std::size_t Device::max_shared_bytes() const { return impl_->max_shared_bytes(); }
std::size_t Device::total_memory() const { return impl_->total_memory(); }
Counters Device::counters() const { return impl_->counters(); }
std::vector<KernelCounters> Device::kernel_counters() const { return impl_->kernel_counters(); }
std::vector<Finding> Device::findings() const { return impl_->findings(); }
void Device::clear_findings() const { impl_->clear_findings(); }
void Device::reset_counters() const { impl_->reset_counters(); }
void Device::record_profile(bool on, SourceLoc at) const {
  rt::located(at, [&] { impl_->record_profile(on); });
}
Profile Device::profile() const { return impl_->profile(); }
void Device::synchronize(SourceLoc at) const {
  wait_and_report(*impl_, at, [&] { impl_->synchronize(); });
}
void Device::on_print(std::function<void(const std::string&)> sink) const { impl_->reports().on_print(std::move(sink)); }

std::shared_ptr<rt::LoadedKernel> Device::load(const rt::KernelImage& image, SourceLoc at) const {
  for (const rt::HiddenParam h : image.recipe().hidden)
    if (h == rt::HiddenParam::TileCounter || h == rt::HiddenParam::Workspace)
      throw DeviceError(at, fmt::format("kernel {}: it needs hidden parameter kind {}, which {} does not provide",
                                        image.name, static_cast<int>(h), device_text(*this)));
  if (const std::string why = rt::tensor_map_fault(image, image.recipe()); !why.empty())
    throw DeviceError(at, fmt::format("kernel {}: {}", image.name, why));
  return rt::located(at, [&] {
    std::shared_ptr<rt::LoadedKernel> kernel = impl_->load(image);
    kernel->provide_hidden(*impl_);
    return kernel;
  });
}

Stream::Stream(const Device& device, SourceLoc at)
    : impl_(rt::located(at, [&] { return device.impl().create_stream(); })) {}
Stream Stream::foreign(const Device& device, void* cu_stream, SourceLoc at) {
  return Stream(rt::located(at, [&] { return device.impl().foreign_stream(cu_stream); }));
}
Device Stream::device() const { return Device(impl_->device_ptr()); }
void Stream::synchronize(SourceLoc at) const {
  wait_and_report(impl_->device(), at, [&] { impl_->synchronize(); });
}
void* Stream::native() const { return impl_->native(); }
bool Stream::capturing() const { return impl_->capturing(); }

Event::Event(const Device& device, SourceLoc at)
    : impl_(rt::located(at, [&] { return device.impl().create_event(); })) {}
void Event::record(const Stream& stream, SourceLoc at) {
  rt::located(at, [&] { impl_->record(stream.impl()); });
}
void Event::synchronize(SourceLoc at) const {
  rt::located(at, [&] { impl_->synchronize(); });
}
double Event::elapsed_us(const Event& begin, const Event& end, SourceLoc at) {
  return rt::located(at, [&] { return end.impl().us_since(begin.impl()); });
}

void Graph::begin(const Stream& stream, SourceLoc at) {
  rt::located(at, [&] { stream.impl().begin_capture(); });
}
Graph Graph::end(const Stream& stream, SourceLoc at) {
  return Graph(rt::located(at, [&] { return stream.impl().end_capture(); }));
}
void Graph::abandon(const Stream& stream) noexcept { stream.impl().abandon_capture(); }
void Graph::replay(const Stream& stream, SourceLoc at) const {
  rt::located(at, [&] {
    stream.impl().device().reports().replay([&] { impl_->replay(stream.impl()); });
  });
}
std::size_t Graph::kernels() const { return impl_->kernels(); }

namespace detail {

RawBuffer::RawBuffer(const Device& device, std::size_t n, std::size_t element_bytes, SourceLoc at)
    : alloc_(rt::located(
          at, [&] { return std::make_shared<rt::Allocation>(device, nullptr, checked_bytes(n, element_bytes)); })) {}

RawBuffer::RawBuffer(const Stream& stream, std::size_t n, std::size_t element_bytes, SourceLoc at)
    : alloc_(rt::located(at, [&] {
        return std::make_shared<rt::Allocation>(stream.device(), stream.impl().shared_from_this(),
                                                checked_bytes(n, element_bytes));
      })) {}

RawBuffer::RawBuffer(const Device& device, DevicePtr ptr, std::size_t n, std::size_t element_bytes, SourceLoc at)
    : alloc_(rt::located(
          at, [&] { return std::make_shared<rt::Allocation>(device, ptr, checked_bytes(n, element_bytes)); })) {}

DevicePtr RawBuffer::ptr() const { return alloc_ ? alloc_->ptr : 0; }
const Device* RawBuffer::owner() const { return alloc_ ? &alloc_->device : nullptr; }
std::size_t RawBuffer::bytes() const { return alloc_ ? alloc_->bytes : 0; }

Device RawBuffer::device(SourceLoc at) const {
  if (!alloc_) throw UserError(at, "a default-constructed buffer has no device");
  return alloc_->device;
}

void RawBuffer::upload(const void* src, std::size_t bytes, std::size_t first, std::size_t element_bytes, SourceLoc at) {
  rt::located(at, [&] {
    const std::size_t offset = offset_of("upload", bytes, first, element_bytes, this->bytes());
    if (bytes > 0) alloc_->device.impl().upload(alloc_->ptr + offset, src, bytes);
  });
}

void RawBuffer::download(void* dst, std::size_t bytes, std::size_t first, std::size_t element_bytes,
                         SourceLoc at) const {
  rt::located(at, [&] {
    const std::size_t offset = offset_of("download", bytes, first, element_bytes, this->bytes());
    if (bytes == 0) return;
    rt::DeviceImpl& device = alloc_->device.impl();
    wait_and_report(device, at, [&] { device.download(dst, alloc_->ptr + offset, bytes); });
  });
}

void RawBuffer::fill_bytes(std::uint8_t value, SourceLoc at) {
  rt::located(at, [&] {
    if (bytes() > 0) alloc_->device.impl().fill(alloc_->ptr, value, bytes());
  });
}

}  // namespace detail
}  // namespace kiln

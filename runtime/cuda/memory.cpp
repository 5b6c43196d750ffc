#include "runtime/cuda/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kiln::rt {
namespace {

/// Lets this thread make calls that a capture on another thread or library would forbid, such as cuMemAlloc; they are
/// safe because they do not touch the captured stream.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const cu::Driver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  ~RelaxedCapture() { driver_.exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const cu::Driver& driver_;
  int mode_ = cu::kCaptureRelaxed;  // the driver swaps it with the thread's
};

cu::Stream handle(StreamImpl* stream) { return static_cast<cu::Stream>(stream->native()); }

}  // namespace

CudaMemory::CudaMemory(CudaDevice& device) : device_(device) {
  const Current current(device);
  const cu::Driver& driver = device.driver();
  const auto what = [&] { return device.identify(); };
  driver.call(driver.stream_create, what, &transfers_, cu::kStreamNonBlocking);
  if (device.attribute(cu::kMemoryPoolsSupported) == 0) return;
  cu::MemPoolProps props{};
  props.allocation_type = cu::kAllocationPinned;
  props.location = {cu::kLocationDevice, device.ordinal()};
  driver.call(driver.pool_create, what, &pool_, &props);
  std::uint64_t keep = ~0ull;
  driver.call(driver.pool_set_attribute, what, pool_, cu::kPoolReleaseThreshold, static_cast<void*>(&keep));
}

CudaMemory::~CudaMemory() {
  const Current current(device_, std::nothrow);
  free_deferred();
  if (pool_) device_.driver().pool_destroy(pool_);
  device_.driver().stream_destroy(transfers_);
}

cu::Result CudaMemory::try_allocate(DevicePtr& ptr, std::size_t bytes, StreamImpl* ordered) const {
  cu::DevicePtr p = 0;
  const cu::Driver& driver = device_.driver();
  const cu::Result r =
      ordered && pool_ ? driver.pool_alloc(&p, bytes, pool_, handle(ordered)) : driver.mem_alloc(&p, bytes);
  ptr = p;
  return r;
}

DevicePtr CudaMemory::allocate(std::size_t bytes, StreamImpl* ordered) {
  if (ordered && ordered->capturing())
    throw UserError(fmt::format("buffer of {} bytes on a stream of {} that is being captured; allocate it before",
                                bytes, device_.identify()));
  const Current current(device_);
  const RelaxedCapture relaxed(device_.driver());
  free_deferred();
  const std::size_t asked = std::max<std::size_t>(bytes, 1);  // an empty buffer has an address too
  DevicePtr ptr = 0;
  const cu::Driver& driver = device_.driver();
  cu::Result r = try_allocate(ptr, asked, ordered);
  if (r == cu::kOutOfMemory && pool_ && !device_.capturing()) {
    device_.synchronize();
    driver.pool_trim(pool_, 0);
    r = try_allocate(ptr, asked, ordered);
  }
  if (r == cu::kSuccess) return ptr;
  std::size_t free = 0, total = 0;
  driver.mem_info(&free, &total);
  driver.fail(ordered && pool_ ? driver.pool_alloc.symbol : driver.mem_alloc.symbol, r,
              fmt::format("buffer of {} bytes, {} of {} are free on {}", bytes, free, total, device_.identify()));
}

void CudaMemory::free_now(DevicePtr ptr, StreamImpl* ordered) const noexcept {
  const cu::Driver& driver = device_.driver();
  const RelaxedCapture relaxed(driver);
  if (ordered && pool_) driver.mem_free_async(ptr, handle(ordered));
  else driver.mem_free(ptr);
}

bool CudaMemory::must_wait(StreamImpl* ordered) const noexcept {
  if (device_.capturing()) return true;
  int status = cu::kCaptureNone;  // of another library's capture; a driver that has shut down leaves it
  if (ordered) device_.driver().stream_is_capturing(handle(ordered), &status);
  return status != cu::kCaptureNone;
}

void CudaMemory::free(DevicePtr ptr, StreamImpl* ordered) noexcept {
  const Current current(device_, std::nothrow);
  if (!must_wait(ordered)) return free_now(ptr, ordered);
  const std::lock_guard lock(mutex_);
  deferred_.push_back({ptr, ordered ? ordered->shared_from_this() : nullptr});
}

void CudaMemory::free_deferred() noexcept {
  std::vector<Deferred> now;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting = std::partition(deferred_.begin(), deferred_.end(),
                                        [&](const Deferred& d) { return must_wait(d.ordered.get()); });
    now.assign(std::make_move_iterator(waiting), std::make_move_iterator(deferred_.end()));
    deferred_.erase(waiting, deferred_.end());
  }
  for (const Deferred& d : now) free_now(d.ptr, d.ordered.get());
}

template <class Copy>
void CudaMemory::blocking(const char* what, std::size_t bytes, Copy&& copy) {
  device_.refuse_while_capturing(what);
  const Current current(device_);
  device_.synchronize();
  const auto object = [&] { return fmt::format("{} of {} bytes, {}", what, bytes, device_.identify()); };
  copy(object);
  const cu::Driver& driver = device_.driver();
  driver.call(driver.stream_synchronize, object, transfers_);
}

void CudaMemory::upload(DevicePtr dst, const void* src, std::size_t bytes) {
  const cu::Driver& driver = device_.driver();
  blocking("upload", bytes,
           [&](auto& object) { driver.call(driver.copy_to_device, object, dst, src, bytes, transfers_); });
}

void CudaMemory::download(void* dst, DevicePtr src, std::size_t bytes) {
  const cu::Driver& driver = device_.driver();
  blocking("download", bytes,
           [&](auto& object) { driver.call(driver.copy_to_host, object, dst, src, bytes, transfers_); });
}

void CudaMemory::fill(DevicePtr dst, std::uint8_t value, std::size_t bytes) {
  const cu::Driver& driver = device_.driver();
  blocking("fill", bytes, [&](auto& object) { driver.call(driver.fill_bytes, object, dst, value, bytes, transfers_); });
}

std::optional<PointerInfo> CudaMemory::pointer_info(DevicePtr ptr) const {
  const Current current(device_);
  const cu::Driver& driver = device_.driver();
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  cu::DevicePtr base = 0;
  std::size_t bytes = 0;
  int which[] = {cu::kPointerMemoryType, cu::kPointerIsManaged, cu::kPointerOrdinal, cu::kPointerRangeStart,
                 cu::kPointerRangeBytes};
  void* where[] = {&type, &managed, &ordinal, &base, &bytes};
  driver.call(
      driver.pointer_attributes, [&] { return fmt::format("address {:#x} on {}", ptr, device_.identify()); }, 5u, which,
      where, ptr);
  if (type == 0) return std::nullopt;  // not the driver's: the answers are zero
  // Pinned host memory and managed memory are reachable from every device.
  if (type == cu::kMemoryHost || managed) ordinal = device_.ordinal();
  PointerInfo info{ordinal, base, bytes, {}};
  if (ordinal != device_.ordinal()) {
    char name[256] = "another device";
    cu::DeviceId other = 0;
    if (driver.device_get(&other, ordinal) == cu::kSuccess) driver.device_name(name, sizeof name, other);
    info.owner = name;
  }
  return info;
}

}  // namespace kiln::rt

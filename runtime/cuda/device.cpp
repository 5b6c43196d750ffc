#include "runtime/cuda/device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/stream.h"

namespace kiln::rt {

namespace {

/// The targets that a GPU runs, the newest last.
std::vector<std::string> targets_of(int major, int minor) {
  struct Row {
    int compute;
    const char* target;
    bool portable;  // PTX for it runs on every later GPU; not so for the "a" targets
  };
  static constexpr std::array kRows = {Row{80, "sm_80", true},     Row{86, "sm_86", true},
                                       Row{89, "sm_89", true},     Row{90, "sm_90a", false},
                                       Row{100, "sm_100a", false}, Row{120, "sm_120a", false}};
  const int compute = 10 * major + minor;
  std::vector<std::string> all;
  for (const Row& r : kRows)
    if (r.compute == compute || (r.portable && r.compute < compute)) all.emplace_back(r.target);
  if (all.empty())
    throw DeviceError(fmt::format("compute capability {}.{} is too old, Kiln needs 8.0 or newer", major, minor));
  return all;
}

}  // namespace

std::string cuda_target(int major, int minor, const std::string& wish) {
  const std::vector<std::string> all = targets_of(major, minor);
  if (wish.empty()) return all.back();
  if (std::find(all.begin(), all.end(), wish) == all.end())
    throw UserError(fmt::format("KILN_TARGET is '{}', a GPU of compute capability {}.{} runs {}", wish, major, minor,
                                fmt::join(all, ", ")));
  return wish;
}

int cuda_ptx_version(int version) {
  // First CUDA version with each ISA. CUDA 12.6 added none.
  static constexpr std::array<std::pair<int, int>, 11> kRows = {{{12000, 80},
                                                                 {12010, 81},
                                                                 {12020, 82},
                                                                 {12030, 83},
                                                                 {12040, 84},
                                                                 {12050, 85},
                                                                 {12070, 86},
                                                                 {12080, 87},
                                                                 {12090, 88},
                                                                 {13000, 90},
                                                                 {13010, 91}}};
  int ptx = kRows.front().second;
  for (const auto& [from, isa] : kRows)
    if (version >= from) ptx = isa;
  return ptx;
}

CudaDevice::CudaDevice(std::shared_ptr<const cu::Driver> driver, int ordinal)
    : driver_(std::move(driver)), ordinal_(ordinal) {
  int count = 0;
  driver_->call(
      driver_->device_count, [] { return "counting devices"; }, &count);
  if (ordinal < 0 || ordinal >= count)
    throw DeviceError(fmt::format("no device cuda:{}: the driver offers {}", ordinal, count));
  const auto self = [&] { return identify(); };
  driver_->call(driver_->device_get, self, &id_, ordinal);
  char name[256] = {};
  driver_->call(driver_->device_name, self, name, static_cast<int>(sizeof name), id_);
  name_ = name;
  target_ = cuda_target(attribute(cu::kComputeMajor), attribute(cu::kComputeMinor), env::KILN_TARGET());
  sm_count_ = attribute(cu::kMultiprocessorCount);
  max_shared_bytes_ = static_cast<std::size_t>(attribute(cu::kMaxSharedBytesOptin));
  shared_memory_ = {static_cast<std::uint64_t>(attribute(cu::kSharedBytesPerSm)),
                    static_cast<std::uint64_t>(attribute(cu::kReservedSharedBytes))};
  driver_->call(driver_->device_total_memory, self, &total_memory_, id_);
  driver_->call(driver_->primary_context_retain, self, &context_, id_);
  memory_ = std::make_unique<CudaMemory>(*this);
}

CudaDevice::~CudaDevice() {
  memory_.reset();
  if (context_) driver_->primary_context_release(id_);
}

std::string CudaDevice::identify() const { return fmt::format("{} (cuda:{})", name_, ordinal_); }

int CudaDevice::attribute(int which) const {
  int value = 0;
  driver_->call(
      driver_->device_attribute, [&] { return fmt::format("attribute {} of {}", which, identify()); }, &value, which,
      id_);
  return value;
}

Counters CudaDevice::counters() const {
  Counters c;
  c.launches = log_.total();
  return c;
}

void CudaDevice::refuse_while_capturing(const char* what) const {
  if (capturing())
    throw UserError(
        fmt::format("{} on {}: one of its streams is being captured; do it before or after", what, identify()));
}

void CudaDevice::synchronize() {
  refuse_while_capturing("synchronize");
  const Current current(*this);
  driver_->call(driver_->context_synchronize, [&] { return identify() + log_.recent(nullptr, true); });
  memory_->free_deferred();
}

std::shared_ptr<LoadedKernel> CudaDevice::load(const KernelImage& image) {
  return std::make_shared<CudaKernel>(std::static_pointer_cast<CudaDevice>(shared_from_this()), image);
}

std::shared_ptr<StreamImpl> CudaDevice::create_stream() {
  return CudaStream::create(std::static_pointer_cast<CudaDevice>(shared_from_this()));
}

std::shared_ptr<StreamImpl> CudaDevice::foreign_stream(void* native) {
  return CudaStream::borrow(std::static_pointer_cast<CudaDevice>(shared_from_this()), static_cast<cu::Stream>(native));
}

std::shared_ptr<EventImpl> CudaDevice::create_event() {
  return std::make_shared<CudaEvent>(std::static_pointer_cast<CudaDevice>(shared_from_this()));
}

DevicePtr CudaDevice::allocate(std::size_t bytes, StreamImpl* ordered) { return memory_->allocate(bytes, ordered); }
void CudaDevice::free(DevicePtr ptr, StreamImpl* ordered) noexcept { memory_->free(ptr, ordered); }
void CudaDevice::upload(DevicePtr dst, const void* src, std::size_t bytes) { memory_->upload(dst, src, bytes); }
void CudaDevice::download(void* dst, DevicePtr src, std::size_t bytes) { memory_->download(dst, src, bytes); }
void CudaDevice::fill(DevicePtr dst, std::uint8_t value, std::size_t bytes) { memory_->fill(dst, value, bytes); }
std::optional<PointerInfo> CudaDevice::pointer_info(DevicePtr ptr) const { return memory_->pointer_info(ptr); }

namespace {

/// CUtensorMapDataType.
int tensor_map_type(DType d, TensorFloat floats) {
  switch (floats) {
    case TensorFloat::AsIs: break;
    case TensorFloat::FlushSubnormals: return 10;
    case TensorFloat::Tf32: return 11;
    case TensorFloat::Tf32FlushSubnormals: return 12;
  }
  switch (d) {
    case DType::i1:
    case DType::i8:
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2: return 0;
    case DType::i16:
    case DType::u16: return 1;
    case DType::u32: return 2;
    case DType::i32: return 3;
    case DType::u64: return 4;
    case DType::i64:
    case DType::index: return 5;
    case DType::f16: return 6;
    case DType::f32: return 7;
    case DType::f64: return 8;
    case DType::bf16: return 9;
  }
  return 0;
}

}  // namespace

void CudaDevice::encode_tensor_map(const TensorSpec& s, std::byte* map) const {
  const Current current(*this);
  driver_->call(
      driver_->tensor_map_encode, [&] { return "encoding a tensor map for " + identify(); }, map,
      tensor_map_type(s.dtype, s.floats), s.rank, reinterpret_cast<void*>(s.base), s.sizes.data(), s.strides.data(),
      s.box.data(), s.steps.data(), 0, static_cast<int>(s.swizzle), static_cast<int>(s.promotion),
      static_cast<int>(s.fill));
}

std::shared_ptr<DeviceImpl> make_cuda_device(int ordinal) {
  return std::make_shared<CudaDevice>(cu::Driver::process(), ordinal);
}

int cuda_device_count() {
  try {
    const auto driver = cu::Driver::process();
    int count = 0;
    return driver->device_count(&count) == cu::kSuccess ? count : 0;
  } catch (const DeviceError&) {
    return 0;  // no driver: no devices; Device::cuda() says why
  }
}

}  // namespace kiln::rt

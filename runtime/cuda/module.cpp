#include "runtime/cuda/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/base/log.h"
#include "runtime/cuda/stream.h"
#include "runtime/image/ptx_line.h"

namespace kiln::rt {
namespace {

constexpr std::uint32_t kSharedBytesWithoutOptIn = 48 * 1024;

/// Bytes a thread may spill: two vectors of 16 bytes cost less than the threads that another cap would cost (layernorm
/// of 32768 bf16 on one H200: 3891 GB/s at 64 registers, 3165 with more), 50 bytes and more always cost more.
constexpr int kFewSpills = 32;

/// Blocks that together use next to no shared memory do better with the least carve-out, though fewer of them fit it
/// with the kilobyte that the driver takes for each. GB/s on one H200 with up to 8 % carved out, and with 11 % and
/// more: softmax of 1536 bf16 4090, 3896; of 4096 4036, 3895; add + rmsnorm of 1024 4106, 3930.
constexpr std::uint64_t kHardlyShared = 8 * 1024, kCarveoutOfHardlyShared = 16 * 1024;

/// Log buffers of the driver's assembler, and the options that hand them over. Must outlive the linker that got them.
class AssemblerLog {
 public:
  static constexpr unsigned kCount = 4;
  std::array<int, kCount> options = {cu::kJitInfoLog, cu::kJitInfoLogBytes, cu::kJitErrorLog, cu::kJitErrorLogBytes};
  std::array<void*, kCount> values = {info_, size(), error_, size()};

  AssemblerLog() = default;
  AssemblerLog(const AssemblerLog&) = delete;
  AssemblerLog& operator=(const AssemblerLog&) = delete;

  /// What it said, one log after the other, each on lines of its own.
  std::string text() const {
    std::string s;
    for (const char* log : {error_, info_})
      if (*log) s += std::string("\n") + log;
    return s;
  }

 private:
  static constexpr std::size_t kBytes = 16384;
  static void* size() { return reinterpret_cast<void*>(kBytes - 1); }  // the last byte stays 0
  char info_[kBytes] = {}, error_[kBytes] = {};
};

/// Assembles PTX to machine code; nothing if the driver's linker refuses (`log` says why).
std::optional<std::string> assemble(const cu::Driver& driver, const std::string& name, const std::string& ptx,
                                    AssemblerLog& log) {
  cu::LinkState link = nullptr;
  if (driver.link_create(AssemblerLog::kCount, log.options.data(), log.values.data(), &link) != cu::kSuccess)
    return std::nullopt;
  void* data = nullptr;
  std::size_t bytes = 0;
  // The terminating zero is part of the input.
  cu::Result r = driver.link_add_data(link, cu::kJitInputPtx, const_cast<char*>(ptx.c_str()), ptx.size() + 1,
                                      name.c_str(), 0u, nullptr, nullptr);
  if (r == cu::kSuccess) r = driver.link_complete(link, &data, &bytes);
  std::optional<std::string> cubin;
  if (r == cu::kSuccess) cubin.emplace(static_cast<const char*>(data), bytes);  // the link owns `data`
  driver.link_destroy(link);
  return cubin;
}

/// Whether roles pass registers to each other. The driver's linker, which alone hands out machine code, assembles for
/// other compilation units to join, and then leaves setmaxnreg out: fp8 with sums of parts spilled, 2245 us at 8192^3
/// on one H200. Such PTX is loaded as it is; the driver keeps what it makes of it in its own cache.
bool moves_registers(const std::string& ptx) { return ptx.find("setmaxnreg") != std::string::npos; }

}  // namespace

CudaKernel::CudaKernel(std::shared_ptr<CudaDevice> device, KernelImage image)
    : LoadedKernel(std::move(image)), device_(std::move(device)), name_(intern_file(image_.name)) {
  const Current current(*device_);
  if (image_.recipe().smem_bytes > device_->max_shared_bytes())
    throw DeviceError(fmt::format("{}: {} bytes of shared memory, at most {} are possible", identify(),
                                  image_.recipe().smem_bytes, device_->max_shared_bytes()));
  try {
    load_module();
    configure();
  } catch (...) {
    unload();
    throw;
  }
}

CudaKernel::~CudaKernel() {
  const Current current(*device_, std::nothrow);
  unload();
}

void CudaKernel::unload() {
  if (module_ != nullptr) device_->driver().module_unload(module_);
  module_ = nullptr;
  cubin_.clear();
}

std::string CudaKernel::identify() const {
  return fmt::format("kernel {} for {} on {}", image_.name, image_.target, device_->identify());
}

void CudaKernel::load_module() {
  const bool exact = !image_.cubin.empty() && image_.target == device_->target();
  if (exact && load_machine_code(image_.cubin)) return;
  if (!image_.ptx.empty()) return load_ptx();
  throw DeviceError(fmt::format("{}: the image has machine code for {} only, no PTX; the device is {}{}", identify(),
                                image_.target, device_->target(), exact ? ", whose driver refused it" : ""));
}

bool CudaKernel::load_machine_code(const std::string& cubin) {
  const cu::Driver& driver = device_->driver();
  const cu::Result r = driver.module_load(&module_, cubin.data(), 0u, nullptr, nullptr);
  if (r == cu::kSuccess) {
    cubin_ = cubin;
    return true;
  }
  say(LogLevel::Info, fmt::format("{}: machine code refused, using its PTX: {}: {}", identify(),
                                  driver.module_load.symbol, driver.describe(r)));
  return false;
}

void CudaKernel::load_ptx() {
  for (image_.accepted = 0;; ++image_.accepted) {
    assemble_accepted();
    if (image_.accepted + 1 == image_.candidates.size() || attribute(cu::kLocalBytes) <= kFewSpills) return;
    unload();
  }
}

void CudaKernel::assemble_accepted() {
  const cu::Driver& driver = device_->driver();
  const std::string ptx = capped_ptx(image_);
  const bool whole = moves_registers(ptx);
  AssemblerLog log;
  const auto cubin = whole ? std::nullopt : assemble(driver, image_.name, ptx, log);
  if (cubin && load_machine_code(*cubin)) return;
  AssemblerLog direct_log;
  const cu::Result r = driver.module_load(&module_, ptx.c_str(), AssemblerLog::kCount, direct_log.options.data(),
                                          direct_log.values.data());
  if (r != cu::kSuccess)
    driver.fail(driver.module_load.symbol, r, blamed_place(direct_log.text(), ptx) + identify() + direct_log.text());
  if (whole) return;
  say_once(LogLevel::Info, "no machine code on " + device_->identify(),
           fmt::format("{}: the driver's linker refused PTX that the loader takes; machine code is not cached{}",
                       identify(), log.text()));
}

int CudaKernel::attribute(int which) const {
  const cu::Driver& driver = device_->driver();
  const auto what = [&] { return identify(); };
  cu::Function function = nullptr;
  driver.call(driver.module_function, what, &function, module_, image_.name.c_str());
  int value = 0;
  // Asking also makes a lazily loading driver load the function now, not inside a capture.
  driver.call(driver.function_attribute, what, &value, which, function);
  return value;
}

void CudaKernel::configure() {
  const cu::Driver& driver = device_->driver();
  const LaunchRecipe& recipe = image_.recipe();
  const auto what = [&] { return identify(); };
  driver.call(driver.module_function, what, &function_, module_, image_.name.c_str());
  // As many as the kernel's registers leave room for.
  const std::uint32_t threads = recipe.block[0] * recipe.block[1] * recipe.block[2];
  if (const int most = attribute(cu::kMaxThreads); threads > std::uint32_t(most))
    throw DeviceError(fmt::format("{}: a block of {} threads, at most {} are possible", identify(), threads, most));
  image_.report.registers = attribute(cu::kRegisters);
  image_.report.spill_bytes = attribute(cu::kLocalBytes);  // Kiln's kernels have no local arrays: all of it is spills
  image_.report.static_smem_bytes = attribute(cu::kStaticSharedBytes);
  if (recipe.smem_bytes > kSharedBytesWithoutOptIn)
    driver.call(driver.function_set_attribute, what, function_, cu::kMaxDynamicSharedBytes,
                static_cast<int>(recipe.smem_bytes));
  prefer_shared_carveout();
  place_params();
  if (recipe.nonportable_cluster)
    driver.call(driver.function_set_attribute, what, function_, cu::kNonPortableCluster, 1);
  if (recipe.cluster != std::array<std::uint32_t, 3>{1, 1, 1}) {
    cu::LaunchAttribute& a = attributes_[attribute_count_++];
    a.id = cu::kAttributeCluster;
    a.value.cluster = {recipe.cluster[0], recipe.cluster[1], recipe.cluster[2]};
  }
  if (recipe.pdl) {
    cu::LaunchAttribute& a = attributes_[attribute_count_++];
    a.id = cu::kAttributeProgrammaticSerialization;
    a.value.programmatic_serialization = 1;
  }
  if (recipe.grid == GridRule::Persistent) ask_residency();
}

void CudaKernel::place_params() {
  std::vector<ParamSlot> slots = image_.params;
  try {
    if (slots.empty()) slots = wide_entry_params(image_.ptx, image_.name);
  } catch (const Error& e) {
    throw DeviceError(fmt::format("{}: {}", identify(), e.what()));
  }
  if (slots.size() > kMostPlaced)
    throw DeviceError(
        fmt::format("{}: {} parameters, one of them aligned to more than {} bytes; at most {} are possible", identify(),
                    slots.size(), kPackedAlignment, kMostPlaced));
  for (const ParamSlot& s : slots) placed_.push_back(s.offset);
  if (!slots.empty()) placed_bytes_ = slots.back().offset + slots.back().bytes;
}

int CudaKernel::blocks_per_sm() const {
  const LaunchRecipe& recipe = image_.recipe();
  const auto threads = static_cast<int>(recipe.block[0] * recipe.block[1] * recipe.block[2]);
  int n = 0;
  device_->driver().call(
      device_->driver().max_blocks_per_sm, [&] { return identify(); }, &n, function_, threads, recipe.smem_bytes);
  return n;
}

void CudaKernel::prefer_shared_carveout() {
  const CudaDevice::SharedMemory per_sm = device_->shared_memory();
  if (per_sm.bytes == 0) return;
  const auto blocks = static_cast<std::uint64_t>(std::max(blocks_per_sm(), 1));
  const std::uint64_t own = blocks * (image_.recipe().smem_bytes + std::uint64_t(image_.report.static_smem_bytes));
  std::uint64_t wanted = own + blocks * per_sm.reserved_of_block;
  if (own <= kHardlyShared) wanted = std::min(wanted, kCarveoutOfHardlyShared);
  const std::uint64_t percent = std::min<std::uint64_t>(100, (wanted * 100 + per_sm.bytes - 1) / per_sm.bytes);
  device_->driver().call(
      device_->driver().function_set_attribute, [&] { return identify(); }, function_, cu::kSharedCarveout,
      static_cast<int>(percent));
}

void CudaKernel::ask_residency() {
  const cu::Driver& driver = device_->driver();
  const LaunchRecipe& recipe = image_.recipe();
  const auto what = [&] { return identify(); };
  int n = 0;
  if (recipe.cluster != std::array<std::uint32_t, 3>{1, 1, 1}) {
    const cu::LaunchConfig c = config({recipe.cluster}, nullptr);
    driver.call(driver.max_clusters, what, &n, function_, &c);
  } else {
    n = blocks_per_sm() * device_->sm_count();
  }
  if (n < 1) throw DeviceError(fmt::format("{}: not one block fits a multiprocessor", identify()));
  resident_clusters_ = static_cast<std::uint32_t>(n);
}

cu::LaunchConfig CudaKernel::config(const LaunchDims& dims, cu::Stream stream) const {
  const LaunchRecipe& r = image_.recipe();
  // The driver only reads the attributes.
  return {dims.grid[0],    dims.grid[1], dims.grid[2],
          r.block[0],      r.block[1],   r.block[2],
          r.smem_bytes,    stream,       const_cast<cu::LaunchAttribute*>(attributes_.data()),
          attribute_count_};
}

void CudaKernel::launch(StreamImpl& stream, const LaunchDims& dims, const void* params, std::size_t bytes) {
  CudaStream& s = stream_of(*device_, stream, image_.name.c_str());
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  void* packed[] = {reinterpret_cast<void*>(cu::kParamBuffer), const_cast<void*>(params),
                    reinterpret_cast<void*>(cu::kParamBytes), &bytes, reinterpret_cast<void*>(cu::kParamEnd)};
  void** extra = bytes > 0 && placed_.empty() ? packed : nullptr;
  std::array<void*, kMostPlaced> pointers;
  void** each = nullptr;
  if (!placed_.empty()) {
    if (bytes != placed_bytes_) fail_params(bytes);
    auto* const buffer = static_cast<std::byte*>(const_cast<void*>(params));
    for (std::size_t i = 0; i < placed_.size(); ++i) pointers[i] = buffer + placed_[i];
    each = pointers.data();
  }
  cu::LaunchConfig c = config(dims, s.handle());
  const bool plain = attribute_count_ == 0;
  const cu::Result r = plain ? driver.launch(function_, c.grid_x, c.grid_y, c.grid_z, c.block_x, c.block_y, c.block_z,
                                             c.shared_bytes, c.stream, each, extra)
                             : driver.launch_ex(&c, function_, each, extra);
  if (r != cu::kSuccess) [[unlikely]]
    fail_launch(r, plain ? driver.launch.symbol : driver.launch_ex.symbol, dims, s.handle());
  if (s.recording()) [[unlikely]]
    s.keep(shared_from_this());
  else device_->log().record(name_, dims, s.handle());
}

void CudaKernel::fail_params(std::size_t bytes) const {
  throw DeviceError(
      fmt::format("{} takes {} bytes of parameters, the launch gives {}", identify(), placed_bytes_, bytes));
}

void CudaKernel::fail_launch(cu::Result r, const char* symbol, const LaunchDims& dims, cu::Stream stream) const {
  const LaunchRecipe& c = image_.recipe();
  device_->driver().fail(symbol, r,
                         fmt::format("{}, grid [{}, {}, {}], block [{}, {}, {}], {} bytes of shared memory{}",
                                     identify(), dims.grid[0], dims.grid[1], dims.grid[2], c.block[0], c.block[1],
                                     c.block[2], c.smem_bytes, device_->log().recent(stream, false)));
}

}  // namespace kiln::rt

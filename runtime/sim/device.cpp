#include "runtime/sim/device.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <set>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/sim/debug_hook.h"
#include "runtime/sim/interrupt.h"
#include "runtime/sim/load.h"
#include "runtime/sim/profile_file.h"
#include "runtime/sim/report.h"
#include "runtime/sim/tensor_map.h"
#include "runtime/sim/warp.h"

namespace kiln::rt::sim {
namespace {

/// Tells the debugger of a launch, if there is one, that it begins and ends.
class Debugged {
 public:
  /// `terminal`: of the debugger, if it has one.
  Debugged(const Launch& launch, const KernelImage& image, Debugger* terminal) : hook_(launch.debug) {
    if (hook_) hook_->begin(launch, image);
    if (terminal) interrupts_.emplace(*terminal);
  }
  ~Debugged() {
    if (hook_) hook_->end();
  }
  Debugged(const Debugged&) = delete;
  Debugged& operator=(const Debugged&) = delete;

 private:
  DebugHook* hook_;
  std::optional<Interrupts> interrupts_;
};

/// Numbers of the simulators that there are, so that messages tell them apart: one of the process's few globals.
class Numbers {
 public:
  int take() {
    const std::scoped_lock lock(mutex_);
    int n = 1;
    while (!taken_.insert(n).second) ++n;
    return n;
  }
  void give_back(int n) {
    const std::scoped_lock lock(mutex_);
    taken_.erase(n);
  }
  static Numbers& all() {
    static Numbers& numbers = *new Numbers;  // never destroyed: a device may live in a static object
    return numbers;
  }

 private:
  std::mutex mutex_;
  std::set<int> taken_;
};

constexpr std::size_t kTotalMemory = std::size_t{139} << 30;

struct Recorded {
  std::shared_ptr<SimKernel> kernel;
  LaunchDims dims;
  std::vector<std::byte> params;
};

class SimGraph final : public GraphImpl {
 public:
  explicit SimGraph(std::vector<Recorded> nodes) : nodes_(std::move(nodes)) {}
  void replay(StreamImpl& stream) override {
    for (const Recorded& n : nodes_) n.kernel->launch(stream, n.dims, n.params.data(), n.params.size());
  }
  std::size_t kernels() const override { return nodes_.size(); }

 private:
  std::vector<Recorded> nodes_;
};

class SimStream final : public StreamImpl {
 public:
  explicit SimStream(std::shared_ptr<SimDevice> device) : device_(std::move(device)) {}
  DeviceImpl& device() const override { return *device_; }
  std::shared_ptr<DeviceImpl> device_ptr() const override { return device_; }
  void synchronize() override {
    if (capturing_) throw DeviceError("cannot synchronize a stream that is capturing");
    device_->throw_fault();
  }
  bool capturing() const override { return capturing_; }
  ~SimStream() override { abandon_capture(); }
  void begin_capture() override {
    if (capturing_) throw DeviceError("the stream is already capturing");
    capturing_ = true;
    device_->captures(+1);
  }
  std::shared_ptr<GraphImpl> end_capture() override {
    if (!capturing_) throw DeviceError("the stream is not capturing");
    capturing_ = false;
    device_->captures(-1);
    return std::make_shared<SimGraph>(std::exchange(nodes_, {}));
  }
  void abandon_capture() noexcept override {
    if (std::exchange(capturing_, false)) device_->captures(-1);
    nodes_.clear();
  }
  void record(Recorded r) { nodes_.push_back(std::move(r)); }

 private:
  std::shared_ptr<SimDevice> device_;
  bool capturing_ = false;
  std::vector<Recorded> nodes_;
};

/// Work is done when it is issued, so an event has nothing to wait for.
class SimEvent final : public EventImpl {
 public:
  explicit SimEvent(std::shared_ptr<SimDevice> device) : device_(std::move(device)) {}
  void record(StreamImpl&) override {}
  void synchronize() override { device_->throw_fault(); }
  double us_since(const EventImpl&) const override {
    throw DeviceError("the simulator has no clock: it counts work (Device::counters)");
  }

 private:
  std::shared_ptr<SimDevice> device_;
};

}  // namespace

// --- kernels
// -----------------------------------------------------------------------------------------------------------

SimKernel::~SimKernel() {
  for (std::uint64_t at : owned_) device_->free(at, nullptr);
}

std::uint32_t SimKernel::resident_clusters() const {
  const LaunchRecipe& r = image_.recipe();
  const std::uint32_t per_sm = resident_per_sm(*program_, r.block[0] * r.block[1] * r.block[2], r.smem_bytes);
  const std::uint32_t blocks = per_sm * static_cast<std::uint32_t>(device_->sm_count());
  return std::max(1u, blocks / (r.cluster[0] * r.cluster[1] * r.cluster[2]));
}

void SimKernel::launch(StreamImpl& stream, const LaunchDims& dims, const void* params, std::size_t bytes) {
  if (&stream.device() != device_.get())
    throw DeviceError(fmt::format("kernel {} is loaded on another device than the stream's: {}, the stream is of {}",
                                  image_.name, device_->name(), stream.device().name()));
  if (bytes != program_->param_bytes)
    throw DeviceError(fmt::format("kernel {} takes {} bytes of parameters, the launch gives {}", image_.name,
                                  program_->param_bytes, bytes));
  const auto* p = static_cast<const std::byte*>(params);
  std::vector<std::byte> copy(p, p + bytes);
  auto& own = static_cast<SimStream&>(stream);
  if (own.capturing()) return own.record({shared_from_this(), dims, std::move(copy)});
  device_->throw_fault();
  device_->run(*program_, image_, dims, std::move(copy));
}

// --- device
// ------------------------------------------------------------------------------------------------------------

SimDevice::SimDevice(Arch arch, int sms)
    : arch_(arch),
      sms_(sms),
      number_(Numbers::all().take()),
      checks_(Checks::parse(env::KILN_SIM_CHECK())),
      heap_(kTotalMemory, checks_.races || checks_.uninit) {
  open_profile(*this);
}
SimDevice::~SimDevice() {
  close_profile(*this);
  Numbers::all().give_back(number_);
}

std::string SimDevice::name() const {
  return fmt::format("simulator {}({}, {} SMs)", number_ == 1 ? "" : fmt::format("{} ", number_), target(), sms_);
}

std::vector<Finding> SimDevice::findings() const {
  const std::scoped_lock lock(mutex_);
  return findings_;
}
void SimDevice::clear_findings() {
  const std::scoped_lock lock(mutex_);
  findings_.clear();
}
std::shared_ptr<LoadedKernel> SimDevice::load(const KernelImage& image) {
  return load_kernel(std::static_pointer_cast<SimDevice>(shared_from_this()), image);
}
std::shared_ptr<StreamImpl> SimDevice::create_stream() {
  return std::make_shared<SimStream>(std::static_pointer_cast<SimDevice>(shared_from_this()));
}
std::shared_ptr<StreamImpl> SimDevice::foreign_stream(void* native) {
  if (native) throw DeviceError("a CUDA stream cannot be used on the simulator");
  return create_stream();
}
std::shared_ptr<EventImpl> SimDevice::create_event() {
  return std::make_shared<SimEvent>(std::static_pointer_cast<SimDevice>(shared_from_this()));
}

DevicePtr SimDevice::allocate(std::size_t bytes, StreamImpl*) { return heap_.allocate(bytes); }
void SimDevice::free(DevicePtr at, StreamImpl*) noexcept {
  const std::scoped_lock lock(running_);
  heap_.free(at);
}
void SimDevice::upload(DevicePtr dst, const void* src, std::size_t bytes) {
  refuse_while_capturing("upload");
  heap_.check(dst, bytes, "upload");
  if (bytes) std::memcpy(reinterpret_cast<void*>(dst), src, bytes);
  heap_.written(dst, bytes);
}
void SimDevice::download(void* dst, DevicePtr src, std::size_t bytes) {
  refuse_while_capturing("download");
  throw_fault();
  heap_.check(src, bytes, "download");
  if (bytes) std::memcpy(dst, reinterpret_cast<const void*>(src), bytes);
}
void SimDevice::fill(DevicePtr dst, std::uint8_t value, std::size_t bytes) {
  refuse_while_capturing("fill");
  heap_.check(dst, bytes, "fill");
  if (bytes) std::memset(reinterpret_cast<void*>(dst), value, bytes);
  heap_.written(dst, bytes);
}
std::optional<PointerInfo> SimDevice::pointer_info(DevicePtr at) const {
  const auto range = heap_.find(at);
  if (!range) return std::nullopt;
  PointerInfo info;
  info.ordinal = ordinal();
  info.base = range->base;
  info.bytes = range->bytes;
  return info;
}

void SimDevice::debug_with(DebugHook* hook) {
  const std::scoped_lock lock(mutex_);
  if (hook && debug_) throw UserError(fmt::format("{} has a debugger already", name()));
  debug_ = hook;
}

/// The terminal is a debugger like others; the device owns it, so it holds the device by a pointer that owns nothing.
void SimDevice::open_terminal() {
  const std::string& kernel = env::KILN_SIM_DEBUG();
  if (!debug::asked_for() || debug_) return;
  terminal_ = std::make_unique<Debugger>(Device(std::shared_ptr<DeviceImpl>(std::shared_ptr<void>(), this)));
  terminal_->break_kernel(kernel == "1" ? "" : kernel);
  terminal_->on_stop(debug::console(*terminal_, std::cin, std::cout, isatty(STDIN_FILENO) != 0));
}

void SimDevice::encode_tensor_map(const TensorSpec& spec, std::byte* map) const {
  if (arch_.number < 90) return DeviceImpl::encode_tensor_map(spec, map);
  write_tensor_map(spec, map);
}

void SimDevice::run(const Program& program, const KernelImage& image, const LaunchDims& dims,
                    std::vector<std::byte> params) {
  const LaunchRecipe& recipe = image.recipe();
  const std::size_t shared = program.shared_bytes + std::size_t{recipe.smem_bytes};
  if (shared > max_shared_bytes())
    throw DeviceError(fmt::format("kernel {} needs {} bytes of shared memory, {} has {}", program.kernel, shared,
                                  target(), max_shared_bytes()));
  constexpr std::array<std::uint32_t, 3> kMostBlocks{0x7FFFFFFF, 65535, 65535};
  for (std::size_t i = 0; i < 3; ++i)
    if (dims.grid[i] == 0 || dims.grid[i] > kMostBlocks[i])
      throw DeviceError(fmt::format("kernel {}: {} blocks along {}; must be 1 to {}", program.kernel, dims.grid[i],
                                    "xyz"[i], kMostBlocks[i]));
  for (std::size_t i = 0; i < 3; ++i)
    if (dims.grid[i] % recipe.cluster[i])
      throw DeviceError(fmt::format("kernel {}: {} blocks along {}, which is no multiple of the cluster's {}",
                                    program.kernel, dims.grid[i], "xyz"[i], recipe.cluster[i]));
  open_terminal();
  Tally tally;
  std::vector<Finding> found;
  {
    const std::scoped_lock lock(running_);
    const auto view = heap_.view();
    const Launch launch{program,           *view,
                        dims.grid,         recipe.block,
                        recipe.cluster,    std::move(params),
                        recipe.smem_bytes, static_cast<std::uint32_t>(sms_),
                        checks_,           static_cast<std::uint64_t>(env::KILN_SIM_STEPS()),
                        ++launches_,       debug_};
    const Debugged debugged(launch, image, terminal_.get());
    found = execute(launch, tally);
    store_.add(launch, tally);
  }
  std::string printed;
  for (const auto& [block, text] : tally.printed) printed += text;
  reports().add_text(printed);
  const std::scoped_lock lock(mutex_);
  if (!found.empty() && !fault_) fault_ = launch_error(found);
  findings_.insert(findings_.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

void SimDevice::refuse_while_capturing(const char* what) const {
  if (capturing_ != 0)
    throw DeviceError(
        fmt::format("{}: a stream of {} is being captured, and a capture holds kernels only", what, name()));
}

void SimDevice::throw_fault() {
  std::optional<std::string> fault;
  {
    const std::scoped_lock lock(mutex_);
    fault.swap(fault_);
  }
  if (fault) throw DeviceError(*fault);
}

}  // namespace kiln::rt::sim

namespace kiln::rt {

std::shared_ptr<DeviceImpl> make_simulator(const std::string& target, int sms) {
  if (sms < 1) throw DeviceError(fmt::format("a simulator with {} multiprocessors; must be at least 1", sms));
  return std::make_shared<sim::SimDevice>(sim::Arch::parse(target), sms);
}

}  // namespace kiln::rt

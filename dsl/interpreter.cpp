// The interpreter device: launches evaluate tile IR at once, in the order they are made, over the simulator's heap.
#include "dsl/interpreter.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <utility>

#include "backend/ir/eval.h"
#include "backend/ir/op/report.h"
#include "backend/ir/signature.h"
#include "dsl/jit.h"
#include "runtime/sim/heap.h"

namespace kiln {
namespace detail {
namespace {

using rt::DeviceImpl;
using rt::LaunchDims;

constexpr std::size_t kCapacity = std::size_t(64) << 30;  // address space; pages are committed when touched

/// The signature of a launch, read off the function's parameters.
rt::KernelImage image_of(const ir::Function& f) {
  rt::KernelImage image;
  image.name = f.name;
  image.target = "interpreter";
  image.definition = f.loc;
  image.candidates.emplace_back();
  image.signature = ir::signature(f);
  image.sites = ir::report_sites(f);
  if (!image.sites.empty()) image.candidates[0].hidden.push_back(rt::HiddenParam::ReportBuffer);
  return image;
}

class InterpretedKernel final : public rt::LoadedKernel {
 public:
  explicit InterpretedKernel(std::shared_ptr<const ir::Function> f)
      : LoadedKernel(image_of(*f)), function_(std::move(f)) {}
  void launch(rt::StreamImpl&, const LaunchDims&, const void* params, std::size_t bytes) override;

 private:
  std::vector<ir::EvalArg> decode(const void* params) const {
    std::vector<ir::EvalArg> args;
    for (const rt::Arg& a : image_.signature.args) {
      ir::Literal l{a.kind == rt::ArgKind::Pointer ? DType::u64 : a.dtype, 0};
      std::memcpy(&l.bits, static_cast<const std::byte*>(params) + a.offset, a.size);
      args.push_back(l);
    }
    return args;
  }

  /// The hidden parameter behind the arguments.
  ir::EvalReport report(const void* params) const {
    if (image_.sites.empty()) return {};
    std::uint64_t hidden[2];
    std::memcpy(hidden, static_cast<const std::byte*>(params) + (image_.signature.bytes + 7) / 8 * 8, sizeof hidden);
    return {reinterpret_cast<std::uint64_t*>(hidden[0]), hidden[1]};
  }

  std::shared_ptr<const ir::Function> function_;
};

/// One launch, ready to run.
struct Node {
  std::shared_ptr<const ir::Function> function;
  LaunchDims dims;
  std::vector<ir::EvalArg> args;
  ir::EvalReport report;
};

class InterpreterDevice final : public DeviceImpl {
 public:
  InterpreterDevice() : heap_(kCapacity) {}
  DeviceKind kind() const override { return DeviceKind::Interpreter; }
  int ordinal() const override { return -1; }
  std::string name() const override { return "interpreter"; }
  std::string target() const override { return "interpreter"; }
  int ptx_version() const override { return 0; }
  int sm_count() const override { return 1; }
  std::size_t max_shared_bytes() const override { return 0; }
  std::size_t total_memory() const override { return heap_.capacity(); }

  Counters counters() const override {
    const std::lock_guard lock(mutex_);
    return counters_;
  }
  void reset_counters() override {
    const std::lock_guard lock(mutex_);
    counters_ = {};
  }
  /// Throws the error of the first faulting launch since the last call, once.
  void synchronize() override {
    const std::lock_guard lock(mutex_);
    if (const auto e = std::exchange(error_, std::nullopt)) throw *e;
  }

  std::shared_ptr<rt::LoadedKernel> load(const rt::KernelImage& image) override {
    throw UserError(fmt::format("{}: the interpreter runs tile IR and cannot load a compiled image", image.name));
  }
  std::shared_ptr<rt::StreamImpl> create_stream() override;
  std::shared_ptr<rt::StreamImpl> foreign_stream(void*) override {
    throw UserError("the interpreter has no foreign streams");
  }
  std::shared_ptr<rt::EventImpl> create_event() override;

  DevicePtr allocate(std::size_t bytes, rt::StreamImpl*) override { return heap_.allocate(bytes); }
  void free(DevicePtr p, rt::StreamImpl*) noexcept override { heap_.free(p); }
  void upload(DevicePtr dst, const void* src, std::size_t bytes) override {
    heap_.check(dst, bytes, "upload");
    std::memcpy(reinterpret_cast<void*>(dst), src, bytes);
  }
  void download(void* dst, DevicePtr src, std::size_t bytes) override {
    synchronize();
    heap_.check(src, bytes, "download");
    std::memcpy(dst, reinterpret_cast<const void*>(src), bytes);
  }
  void fill(DevicePtr dst, std::uint8_t value, std::size_t bytes) override {
    heap_.check(dst, bytes, "fill");
    std::memset(reinterpret_cast<void*>(dst), value, bytes);
  }
  std::optional<rt::PointerInfo> pointer_info(DevicePtr p) const override {
    const auto range = heap_.find(p);
    if (!range) return std::nullopt;
    return rt::PointerInfo{-1, range->base, range->bytes, {}};
  }

  void run(const Node& node) {
    synchronize();
    {
      const std::lock_guard lock(mutex_);
      ++counters_.launches;
    }
    std::vector<ir::EvalBlock> blocks;
    const auto view = heap_.view();
    for (const auto& r : view->live) blocks.push_back({reinterpret_cast<std::byte*>(r.base), r.bytes, r.base});
    const auto& grid = node.dims.grid;
    try {
      ir::eval(*node.function, {{grid[0], grid[1], grid[2]}}, node.args, blocks, node.report);
    } catch (const UserError& e) {
      const std::lock_guard lock(mutex_);
      if (!error_)
        error_ = DeviceError(fmt::format("{}: kernel '{}', grid [{}, {}, {}]", e.what(), node.function->name, grid[0],
                                         grid[1], grid[2]));
    }
  }

 private:
  rt::sim::Heap heap_;
  mutable std::mutex mutex_;
  Counters counters_;
  std::optional<DeviceError> error_;
};

class InterpreterGraph final : public rt::GraphImpl {
 public:
  explicit InterpreterGraph(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}
  void replay(rt::StreamImpl& stream) override {
    auto& device = static_cast<InterpreterDevice&>(stream.device());
    for (const Node& n : nodes_) device.run(n);
  }
  std::size_t kernels() const override { return nodes_.size(); }

 private:
  std::vector<Node> nodes_;
};

/// Work is done when it is launched; a stream only remembers whether it is being captured.
class InterpreterStream final : public rt::StreamImpl {
 public:
  explicit InterpreterStream(std::shared_ptr<InterpreterDevice> d) : device_(std::move(d)) {}
  DeviceImpl& device() const override { return *device_; }
  std::shared_ptr<DeviceImpl> device_ptr() const override { return device_; }
  void synchronize() override { device_->synchronize(); }
  bool capturing() const override { return captured_.has_value(); }
  void begin_capture() override { captured_.emplace(); }
  std::shared_ptr<rt::GraphImpl> end_capture() override {
    return std::make_shared<InterpreterGraph>(*std::exchange(captured_, std::nullopt));
  }
  void abandon_capture() noexcept override { captured_.reset(); }

  void launch(Node node) {
    if (captured_) captured_->push_back(std::move(node));
    else device_->run(node);
  }

 private:
  std::shared_ptr<InterpreterDevice> device_;
  std::optional<std::vector<Node>> captured_;
};

class InterpreterEvent final : public rt::EventImpl {
 public:
  void record(rt::StreamImpl&) override {}
  void synchronize() override {}
  double us_since(const rt::EventImpl&) const override {
    throw DeviceError("the interpreter has no clock: it measures no time");
  }
};

void InterpretedKernel::launch(rt::StreamImpl& stream, const LaunchDims& dims, const void* params, std::size_t) {
  static_cast<InterpreterStream&>(stream).launch({function_, dims, decode(params), report(params)});
}

std::shared_ptr<rt::StreamImpl> InterpreterDevice::create_stream() {
  return std::make_shared<InterpreterStream>(std::static_pointer_cast<InterpreterDevice>(shared_from_this()));
}
std::shared_ptr<rt::EventImpl> InterpreterDevice::create_event() { return std::make_shared<InterpreterEvent>(); }

}  // namespace

std::shared_ptr<rt::LoadedKernel> interpreted_kernel(std::shared_ptr<const ir::Function> function,
                                                     const Device& device) {
  auto kernel = std::make_shared<InterpretedKernel>(std::move(function));
  kernel->provide_hidden(device.impl());
  return kernel;
}

}  // namespace detail

Device interpreter() { return Device(std::make_shared<detail::InterpreterDevice>()); }

}  // namespace kiln

#include "runtime/cuda/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kiln::rt {

CudaStream& stream_of(const CudaDevice& device, StreamImpl& stream, const char* what) {
  if (&stream.device() != &device) [[unlikely]]
    throw UserError(fmt::format("{} belongs to {}, the stream to {}", what, device.identify(), stream.device().name()));
  return static_cast<CudaStream&>(stream);
}

std::shared_ptr<CudaStream> CudaStream::create(std::shared_ptr<CudaDevice> device) {
  const Current current(*device);
  const cu::Driver& driver = device->driver();
  cu::Stream stream = nullptr;
  driver.call(
      driver.stream_create, [&] { return device->identify(); }, &stream, cu::kStreamNonBlocking);
  return std::make_shared<CudaStream>(std::move(device), stream, true);
}

std::shared_ptr<CudaStream> CudaStream::borrow(std::shared_ptr<CudaDevice> device, cu::Stream stream) {
  if (stream) {  // the default stream belongs to whichever context is current
    const Current current(*device);
    const cu::Driver& driver = device->driver();
    cu::Context owner = nullptr;
    driver.call(
        driver.stream_context, [&] { return "a foreign stream on " + device->identify(); }, stream, &owner);
    if (owner != device->context())
      throw UserError(fmt::format("the stream does not belong to the primary context of {}", device->identify()));
  }
  return std::make_shared<CudaStream>(std::move(device), stream, false);
}

CudaStream::CudaStream(std::shared_ptr<CudaDevice> device, cu::Stream stream, bool owned)
    : device_(std::move(device)), handle_(stream), owned_(owned) {}

CudaStream::~CudaStream() {
  if (recording()) abandon_capture();
  if (!owned_) return;
  const Current current(*device_, std::nothrow);
  device_->driver().stream_destroy(handle_);
}

std::string CudaStream::identify() const { return fmt::format("stream of {}", device_->identify()); }

void CudaStream::synchronize() {
  if (recording()) throw UserError(fmt::format("synchronize: the {} is being captured", identify()));
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  driver.call(
      driver.stream_synchronize, [&] { return identify() + device_->log().recent(handle_, false); }, handle_);
}

bool CudaStream::capturing() const {
  if (recording()) return true;
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  int status = cu::kCaptureNone;
  const cu::Result r = driver.stream_is_capturing(handle_, &status);
  if (r == cu::kCaptureImplicit) return true;  // the default stream, while a stream that orders with it is captured
  if (r != cu::kSuccess) driver.fail(driver.stream_is_capturing.symbol, r, identify());
  return status != cu::kCaptureNone;
}

void CudaStream::begin_capture() {
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  driver.call(
      driver.stream_begin_capture, [&] { return identify(); }, handle_, cu::kCaptureThreadLocal);
  recorded_.clear();
  recording_ = true;
  device_->capture_began();
}

/// Ends the driver's capture whatever it answers; null if it was invalidated.
cu::Graph CudaStream::stop_recording() {
  if (!recording_.exchange(false))
    throw UserError(fmt::format("end of capture: the {} is not being captured", identify()));
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  cu::Graph graph = nullptr;
  const cu::Result r = driver.stream_end_capture(handle_, &graph);
  device_->capture_ended();
  if (r != cu::kSuccess) driver.fail(driver.stream_end_capture.symbol, r, "capture of a " + identify());
  return graph;
}

std::shared_ptr<GraphImpl> CudaStream::end_capture() {
  const cu::Graph graph = stop_recording();
  return std::make_shared<CudaGraph>(device_, graph, std::exchange(recorded_, {}));
}

void CudaStream::abandon_capture() noexcept {
  try {
    if (cu::Graph graph = stop_recording()) device_->driver().graph_destroy(graph);
  } catch (const Error&) {
    // An invalidated capture is exactly what is being thrown away; the error that led here is already on its way.
  }
  recorded_.clear();
}

CudaEvent::CudaEvent(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  driver.call(
      driver.event_create, [&] { return device_->identify(); }, &handle_, 0u);
}

CudaEvent::~CudaEvent() {
  const Current current(*device_, std::nothrow);
  device_->driver().event_destroy(handle_);
}

void CudaEvent::record(StreamImpl& stream) {
  const cu::Driver& driver = device_->driver();
  CudaStream& s = stream_of(*device_, stream, "the event");
  const Current current(*device_);
  driver.call(
      driver.event_record, [&] { return device_->identify(); }, handle_, s.handle());
}

void CudaEvent::synchronize() {
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  driver.call(
      driver.event_synchronize, [&] { return device_->identify() + device_->log().recent(nullptr, true); }, handle_);
}

double CudaEvent::us_since(const EventImpl& begin) const {
  const auto* from = dynamic_cast<const CudaEvent*>(&begin);
  if (!from || from->device_ != device_) throw UserError("elapsed time between events of different devices");
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  float ms = 0;
  driver.call(
      driver.event_elapsed, [&] { return "two events of " + device_->identify(); }, &ms, from->handle_, handle_);
  return 1000.0 * static_cast<double>(ms);
}

CudaGraph::CudaGraph(std::shared_ptr<CudaDevice> device, cu::Graph graph,
                     std::vector<std::shared_ptr<LoadedKernel>> kernels)
    : device_(std::move(device)), held_(std::move(kernels)), graph_(graph) {
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  try {
    kernels_ = count_kernels();
    driver.call(
        driver.graph_instantiate, [&] { return fmt::format("graph of {} kernels, {}", kernels_, device_->identify()); },
        &exec_, graph_, 0ull);
  } catch (...) {
    driver.graph_destroy(graph_);
    throw;
  }
  name_ = intern_file(fmt::format("a graph of {} kernels", kernels_));
}

CudaGraph::~CudaGraph() {
  const Current current(*device_, std::nothrow);
  device_->driver().graph_exec_destroy(exec_);
  device_->driver().graph_destroy(graph_);
}

std::size_t CudaGraph::count_kernels() const {
  const cu::Driver& driver = device_->driver();
  const auto what = [&] { return "a captured graph of " + device_->identify(); };
  std::size_t n = 0;
  driver.call(driver.graph_nodes, what, graph_, nullptr, &n);
  std::vector<cu::GraphNode> nodes(n);
  if (n > 0) driver.call(driver.graph_nodes, what, graph_, nodes.data(), &n);
  return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [&](cu::GraphNode node) {
    int type = -1;
    driver.call(driver.graph_node_type, what, node, &type);
    return type == cu::kGraphNodeKernel;
  }));
}

void CudaGraph::replay(StreamImpl& stream) {
  CudaStream& s = stream_of(*device_, stream, "the graph");
  const Current current(*device_);
  const cu::Driver& driver = device_->driver();
  driver.call(
      driver.graph_launch,
      [&] { return fmt::format("{}, {}{}", name_, device_->identify(), device_->log().recent(s.handle(), false)); },
      exec_, s.handle());
  if (!s.recording() && kernels_ > 0) device_->log().record(name_, {{0, 0, 0}}, s.handle(), kernels_);
}

}  // namespace kiln::rt

// Streams, events and graphs of a GPU.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/device.h"

namespace kiln::rt {

class CudaStream final : public StreamImpl {
 public:
  static std::shared_ptr<CudaStream> create(std::shared_ptr<CudaDevice> device);
  /// Throws UserError when `stream` belongs to another context.
  static std::shared_ptr<CudaStream> borrow(std::shared_ptr<CudaDevice> device, cu::Stream stream);
  CudaStream(std::shared_ptr<CudaDevice> device, cu::Stream stream, bool owned);
  ~CudaStream() override;

  DeviceImpl& device() const override { return *device_; }
  std::shared_ptr<DeviceImpl> device_ptr() const override { return device_; }
  void synchronize() override;
  void* native() const override { return handle_; }
  /// Asks the driver, so that captures of other libraries are seen too.
  bool capturing() const override;
  void begin_capture() override;
  std::shared_ptr<GraphImpl> end_capture() override;
  void abandon_capture() noexcept override;

  cu::Stream handle() const { return handle_; }
  /// True while Kiln captures this stream: launches are recorded in the graph, not run.
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  /// The graph being recorded will need `kernel`.
  void keep(std::shared_ptr<LoadedKernel> kernel) { recorded_.push_back(std::move(kernel)); }

 private:
  cu::Graph stop_recording();
  std::string identify() const;

  std::shared_ptr<CudaDevice> device_;
  cu::Stream handle_;
  bool owned_;
  std::atomic<bool> recording_{false};
  std::vector<std::shared_ptr<LoadedKernel>> recorded_;  // a capture belongs to one thread
};

class CudaEvent final : public EventImpl {
 public:
  explicit CudaEvent(std::shared_ptr<CudaDevice> device);
  ~CudaEvent() override;
  void record(StreamImpl&) override;
  void synchronize() override;
  double us_since(const EventImpl& begin) const override;

 private:
  std::shared_ptr<CudaDevice> device_;
  cu::Event handle_ = nullptr;
};

class CudaGraph final : public GraphImpl {
 public:
  /// Takes `graph`, also when it throws; `kernels` are those it launches.
  CudaGraph(std::shared_ptr<CudaDevice> device, cu::Graph graph, std::vector<std::shared_ptr<LoadedKernel>> kernels);
  ~CudaGraph() override;
  void replay(StreamImpl&) override;
  std::size_t kernels() const override { return kernels_; }

 private:
  std::size_t count_kernels() const;

  std::shared_ptr<CudaDevice> device_;
  std::vector<std::shared_ptr<LoadedKernel>> held_;  // their modules must stay loaded
  cu::Graph graph_;
  cu::GraphExec exec_ = nullptr;
  std::size_t kernels_ = 0;
  const char* name_ = nullptr;
};

/// The stream as a CUDA one; throws UserError naming both devices when it is not of `device`.
CudaStream& stream_of(const CudaDevice& device, StreamImpl& stream, const char* what);

}  // namespace kiln::rt

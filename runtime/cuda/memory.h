// Memory of one GPU: immediate and stream-ordered allocation, blocking copies, facts about addresses.
#pragma once
#include <mutex>
#include <vector>

#include "runtime/cuda/device.h"

namespace kiln::rt {

/// Stream-ordered memory comes from a pool of Kiln's own, which keeps what is freed until an allocation fails. Nothing
/// is freed during a capture (the driver would make it part of the graph, or spoil the capture): such memory waits for
/// the next allocation or synchronisation after it.
class CudaMemory {
 public:
  explicit CudaMemory(CudaDevice& device);
  ~CudaMemory();

  DevicePtr allocate(std::size_t bytes, StreamImpl* ordered);
  void free(DevicePtr ptr, StreamImpl* ordered) noexcept;
  void free_deferred() noexcept;

  // Each waits for the device's earlier work, whatever stream it is on, and for its own copy.
  void upload(DevicePtr dst, const void* src, std::size_t bytes);
  void download(void* dst, DevicePtr src, std::size_t bytes);
  void fill(DevicePtr dst, std::uint8_t value, std::size_t bytes);

  std::optional<PointerInfo> pointer_info(DevicePtr ptr) const;

 private:
  struct Deferred {
    DevicePtr ptr;
    std::shared_ptr<StreamImpl> ordered;
  };
  cu::Result try_allocate(DevicePtr& ptr, std::size_t bytes, StreamImpl* ordered) const;
  bool must_wait(StreamImpl* ordered) const noexcept;
  void free_now(DevicePtr ptr, StreamImpl* ordered) const noexcept;
  template <class Copy>
  void blocking(const char* what, std::size_t bytes, Copy&& copy);

  CudaDevice& device_;
  cu::MemPool pool_ = nullptr;      // null where the device has no pools: ordered memory is immediate then
  cu::Stream transfers_ = nullptr;  // of copies; non-blocking, so that the legacy stream is never touched
  std::mutex mutex_;
  std::vector<Deferred> deferred_;  // under mutex_
};

}  // namespace kiln::rt

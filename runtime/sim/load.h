// Loading: PTX text → checked, placed and decoded kernel.
#pragma once
#include <memory>
#include <vector>

#include "runtime/device_impl.h"
#include "runtime/sim/device.h"
#include "runtime/sim/program.h"

namespace kiln::rt::sim {

class SimKernel final : public LoadedKernel, public std::enable_shared_from_this<SimKernel> {
 public:
  SimKernel(std::shared_ptr<SimDevice> device, KernelImage image, std::shared_ptr<const Program> program,
            std::vector<std::uint64_t> owned)
      : LoadedKernel(std::move(image)),
        device_(std::move(device)),
        program_(std::move(program)),
        owned_(std::move(owned)) {}
  ~SimKernel() override;
  void launch(StreamImpl&, const LaunchDims&, const void* params, std::size_t bytes) override;
  std::uint32_t resident_clusters() const override;

 private:
  std::shared_ptr<SimDevice> device_;
  std::shared_ptr<const Program> program_;
  std::vector<std::uint64_t> owned_;  ///< memory of the module's variables
};

/// Throws DeviceError if the image does not fit the device, or its PTX is wrong or has an unsupported instruction.
std::shared_ptr<SimKernel> load_kernel(std::shared_ptr<SimDevice>, const KernelImage&);

}  // namespace kiln::rt::sim

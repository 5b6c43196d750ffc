// A kernel on a GPU: its module, and its launch.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/device.h"

namespace kiln::rt {

class CudaKernel final : public LoadedKernel, public std::enable_shared_from_this<CudaKernel> {
 public:
  /// Machine code first, if the image has some for exactly this device; else the PTX, through the driver's linker so
  /// that the machine code can be kept. Throws DeviceError with the assembler's log.
  CudaKernel(std::shared_ptr<CudaDevice> device, KernelImage image);
  ~CudaKernel() override;

  void launch(StreamImpl& stream, const LaunchDims& dims, const void* params, std::size_t bytes) override;
  std::string cubin() const override { return cubin_; }
  std::uint32_t resident_clusters() const override { return resident_clusters_; }

 private:
  void load_module();
  bool load_machine_code(const std::string& cubin);
  void load_ptx();
  void assemble_accepted();
  int attribute(int which) const;
  void unload();
  void configure();
  void ask_residency();
  int blocks_per_sm() const;
  /// Asks for as much shared memory as the resident blocks need and leaves the rest to the L1 cache. Left to itself,
  /// the driver may keep what an earlier kernel asked for, and a row kernel, all of whose loads pass through the L1
  /// cache, is 5 to 11 % slower with a small one (rows of 1024 to 32768 bf16 on one H200).
  void prefer_shared_carveout();
  /// Where the parameters lie in the buffer of a launch, for a kernel that must be given them one by one.
  void place_params();
  cu::LaunchConfig config(const LaunchDims& dims, cu::Stream stream) const;
  [[noreturn]] void fail_launch(cu::Result, const char* symbol, const LaunchDims& dims, cu::Stream stream) const;
  [[noreturn]] void fail_params(std::size_t bytes) const;
  std::string identify() const;

  std::shared_ptr<CudaDevice> device_;
  cu::Module module_ = nullptr;
  cu::Function function_ = nullptr;
  std::string cubin_;
  const char* name_;  // of the image, for the launch log: lives as long as the process
  std::uint32_t resident_clusters_ = 1;
  std::array<cu::LaunchAttribute, 2> attributes_{};
  unsigned attribute_count_ = 0;                   // 0: the plain launch call does
  static constexpr std::size_t kMostPlaced = 160;  // ArgPack::kMaxArgs, and hidden ones
  std::vector<std::uint32_t> placed_;  // offset of each parameter if one is aligned to more than 16; else empty: packed
  std::size_t placed_bytes_ = 0;
};

}  // namespace kiln::rt

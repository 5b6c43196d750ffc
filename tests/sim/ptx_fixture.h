// Runs PTX text on a simulator: parameters are packed in order, as a launch does.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/device_impl.h"
#include "runtime/image/kernel_image.h"

namespace kiln::test {

/// Parameter buffer with natural alignment.
class Params {
 public:
  template <class T>
  Params& add(T value) {
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
    return *this;
  }
  template <class T>
  Params& add(const Buffer<T>& b) {
    return add(b.ptr());
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct Shape {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1};
  std::uint32_t smem = 0;
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
};

inline std::shared_ptr<rt::LoadedKernel> load(const Device& device, const std::string& ptx, const std::string& entry,
                                              const Shape& shape = {}) {
  rt::KernelImage image;
  image.name = entry;
  image.ptx = ptx;
  rt::LaunchRecipe recipe;
  recipe.block = shape.block;
  recipe.smem_bytes = shape.smem;
  recipe.cluster = shape.cluster;
  image.candidates.push_back(recipe);
  return device.load(image);
}

inline void launch(const Stream& stream, rt::LoadedKernel& kernel, const Shape& shape, const Params& params) {
  kernel.launch(stream.impl(), rt::LaunchDims{shape.grid}, params.bytes().data(), params.bytes().size());
}

/// Loads, runs and waits.
inline void run(const Device& device, const std::string& ptx, const std::string& entry, const Shape& shape,
                const Params& params) {
  const auto kernel = load(device, ptx, entry, shape);
  const Stream stream(device);
  launch(stream, *kernel, shape, params);
  stream.synchronize();
}

}  // namespace kiln::test

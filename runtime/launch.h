// Launch: arguments packed once, checked against the signature, sent to a stream.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/device.h"
#include "runtime/image/kernel_image.h"

namespace kiln {

/// Number of programs along each axis. Any axis of 0 means: nothing to do, and nothing is launched.
struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
  constexpr Grid(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1) : x(x), y(y), z(z) {}
  constexpr bool empty() const { return x == 0 || y == 0 || z == 0; }
};

namespace rt {

/// The arguments of one launch, without allocation: a parameter buffer and the specialisation key.
class ArgPack {
 public:
  static constexpr std::size_t kMaxBytes = 4096, kMaxKeyWords = 256;  ///< CUDA's parameter limit; key of ≤ 64 arguments
  /// `name`: literal used in messages, may be null.
  void pointer(DType dtype, Access access, DevicePtr address, std::size_t bytes, const Device* owner);
  void scalar(DType dtype, const void* value);   ///< `bytes(dtype)` bytes; i1 as one byte
  void index(std::int64_t value);                ///< key: =1, ÷16
  void key(std::uint64_t word);                  ///< a Const or Tune value: key only, not passed

  const void* params() const { return params_.data(); }
  std::size_t param_bytes() const { return used_; }
  const std::uint64_t* key_words() const { return key_.data(); }
  std::size_t key_size() const { return key_used_; }

 private:
  friend class ArgCheck;
  alignas(16) std::array<std::byte, kMaxBytes> params_;
  std::array<std::uint64_t, kMaxKeyWords> key_;
  std::size_t used_ = 0, key_used_ = 0;
};

/// Checks grid limits and pointers (null, foreign device, freed) with messages that name kernel and argument, applies the
/// grid rule, launches. An empty grid returns at once.
void launch(LoadedKernel& kernel, const Stream& stream, Grid grid, const ArgPack& args);

}  // namespace rt
}  // namespace kiln

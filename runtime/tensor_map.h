// Tensor maps: descriptions of tensors in a device's memory by which kernels copy boxes of them (cp.async.bulk.tensor).
//
// A map is made for one device and passed to a kernel by value, as a parameter of 128 bytes with an alignment of 64
// (`.param .align 64 .b8 map[128]`, `const __grid_constant__ CUtensorMap`), or lies in global memory.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/device.h"
#include "runtime/image/tensor_map_recipe.h"

namespace kiln {

/// What a map describes. Dimension 0 is the one whose elements lie beside each other.
struct TensorSpec {
  static constexpr std::size_t kMaxRank = 5;

  DType dtype = DType::f32;
  DevicePtr base = 0;                           ///< of the first element; a multiple of 16
  std::uint32_t rank = 1;                       ///< 1 to 5
  std::array<std::uint64_t, kMaxRank> sizes{};  ///< elements along each dimension, 1 to 2^32
  std::array<std::uint64_t, kMaxRank - 1>
      strides{};  ///< bytes between elements along dimensions 1, 2, …: multiples of 16 below 2^40
  std::array<std::uint32_t, kMaxRank> box{};  ///< extent of what one copy takes, 1 to 256 along each dimension
  std::array<std::uint32_t, kMaxRank> steps{
      1, 1, 1, 1, 1};  ///< takes each so-many-th element of the box, 1 to 8; that of dimension 0 is 1
  TensorSwizzle swizzle = TensorSwizzle::None;
  TensorFill fill = TensorFill::Zero;
  TensorPromotion promotion = TensorPromotion::None;
  TensorFloat floats = TensorFloat::AsIs;

  /// Elements that a copy takes along a dimension, and bytes of all of them in shared memory.
  std::uint32_t taken(std::size_t dimension) const {
    return (box[dimension] + steps[dimension] - 1) / steps[dimension];
  }
  std::uint32_t box_bytes() const;
};

/// The opaque value. Example:
/// ```
/// TensorSpec spec{.dtype = DType::bf16, .base = matrix.ptr(), .rank = 2, .sizes = {columns, rows},
///                 .strides = {2 * columns}, .box = {64, 128}, .swizzle = TensorSwizzle::Bytes128};
/// const TensorMap map = TensorMap::encode(device, spec);
/// ```
class alignas(64) TensorMap {
 public:
  static constexpr std::size_t kBytes = 128;

  /// Throws UserError at `at`, naming the field and both values, for a spec that the hardware does not take, on every
  /// device alike; DeviceError for a device without tensor maps.
  static TensorMap encode(const Device& device, const TensorSpec& spec, SourceLoc at = RawLoc::current());

  const std::byte* bytes() const { return bytes_.data(); }

 private:
  std::array<std::byte, kBytes> bytes_{};
};

namespace rt {
/// TensorMap::encode without the question whose memory the base is. `map`: TensorMap::kBytes bytes, aligned to 64.
void encode_tensor_map(const DeviceImpl&, const TensorSpec&, std::byte* map);
}  // namespace rt

}  // namespace kiln

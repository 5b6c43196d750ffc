// Recipes of tensor maps: which arguments of a launch become a map, and what a kernel finds where.
//
// A kernel that asks for maps has HiddenParam::TensorMaps as the last entry of LaunchRecipe::hidden, and one recipe a
// map in LaunchRecipe::tensor_maps. Behind all its other parameters it takes one array of them, 128 bytes each, in the
// order of the recipes:
//
//     .visible .entry gemm(.param .u64 x, .param .u64 m, …, .param .align 64 .b8 maps[384])
//
// A launch fills the array: it reads base, sizes and strides of each map from the arguments, and encodes what it has
// not encoded for this kernel before (runtime/tensor_map_cache.h). For example the map by which blocks of 128 x 64 of a
// row-major `View<const bf16, 2> x`, the first argument, are copied into shared memory with a swizzle of 128 bytes:
//
//     TensorMapRecipe map = view_map(0, DType::bf16, {1, 0});  // dimension 1 is the contiguous one
//     map.box = {64, 128};
//     map.swizzle = TensorSwizzle::Bytes128;
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/image/arg_sig.h"

namespace kiln {

/// How the 16-byte chunks of a box lie in shared memory: chunk number XOR bits of the address above 128 bytes, so that
/// columns of a box are in different banks. A row of the box must not be longer than the name says.
enum class TensorSwizzle : std::uint8_t { None, Bytes32, Bytes64, Bytes128 };
/// What elements outside of the tensor are read as. NaN is for float types only.
enum class TensorFill : std::uint8_t { Zero, NaN };
/// How much the L2 cache fetches at least; a hint.
enum class TensorPromotion : std::uint8_t { None, Bytes64, Bytes128, Bytes256 };
/// What happens to f32 elements on their way.
enum class TensorFloat : std::uint8_t { AsIs, FlushSubnormals, Tf32, Tf32FlushSubnormals };

namespace rt {

/// Size or stride of a mapped tensor, in elements: an argument of dtype index, or a number that the code knows.
struct TensorExtent {
  static constexpr std::uint32_t kNumber = ~std::uint32_t{0};
  std::uint32_t arg = kNumber;  ///< which argument of the signature, from 0; kNumber: `number`
  std::int64_t number = 1;
  bool is_arg() const { return arg != kNumber; }
  bool operator==(const TensorExtent&) const = default;
};

/// One tensor map of a kernel. Dimension 0 is the one whose elements lie beside each other; what lies beyond `rank` is
/// unused.
struct TensorMapRecipe {
  static constexpr std::uint32_t kMaxRank = 5;
  /// What sizes, and strides but that of dimension 0, must be at a launch: coordinates of copies have 32 bits with a sign.
  static constexpr std::int64_t kMinExtent = 1, kMaxExtent = (std::int64_t{1} << 31) - 1;
  static constexpr bool takes(std::int64_t extent) { return extent >= kMinExtent && extent <= kMaxExtent; }

  std::uint32_t base = 0;  ///< which argument of the signature is the pointer to the first element
  DType dtype = DType::f32;
  std::uint32_t rank = 1;  ///< 1 to 5
  std::array<TensorExtent, kMaxRank> sizes{};
  std::array<TensorExtent, kMaxRank> strides{};  ///< that of dimension 0 is 1: as a number, or a fact of its argument
  std::array<std::uint32_t, kMaxRank> box{1, 1, 1, 1, 1};  ///< as in TensorSpec, as are the following
  TensorSwizzle swizzle = TensorSwizzle::None;
  TensorFill fill = TensorFill::Zero;
  TensorPromotion promotion = TensorPromotion::None;
  TensorFloat floats = TensorFloat::AsIs;

  bool operator==(const TensorMapRecipe&) const = default;
};

/// The map of all of a View argument; box, swizzle and the rest are to be set. `pointer`: the argument that is the
/// view's pointer; its sizes and then its strides follow it. `order[i]`: the dimension of the view that becomes
/// dimension i of the map, innermost first: {1, 0} for a row-major matrix, {0, 1} for a column-major one. More than
/// kMaxRank dimensions are an obstacle. @pre `order` holds each of 0 to rank − 1 once.
TensorMapRecipe view_map(std::uint32_t pointer, DType dtype, std::span<const int> order);
inline TensorMapRecipe view_map(std::uint32_t pointer, DType dtype, std::initializer_list<int> order) {
  return view_map(pointer, dtype, std::span(order.begin(), order.size()));
}

/// Why arguments of which no more is known than `sig` says cannot go through `map`, in words: "argument 1 (x): not
/// known to be a multiple of 16 bytes". Empty if they can, once their sizes and strides are within kMinExtent to
/// kMaxExtent: those are no facts of a signature, but of a launch's key (ArgPack::is_extent), and a launch refuses
/// others.
std::string tensor_map_obstacle(const ArgSig& sig, const TensorMapRecipe& map);

}  // namespace rt
}  // namespace kiln

// Types of IR values: scalar, pointer, tile of either. A tile's register layout is an index into its function's table.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"

namespace kiln::ir {

using Shape = std::vector<std::int64_t>;

/// Index into Function::layouts(); kNoLayout before stage laid.
using LayoutId = std::uint32_t;
inline constexpr LayoutId kNoLayout = ~0u;

struct Type {
  DType dtype = DType::i32;
  bool ptr = false;        ///< pointer(s) to elements `dtype` in global memory, or where `shared` says so
  bool shared = false;     ///< of a pointer: into the program's shared memory
  bool read_only = false;  ///< pointer through which stores are refused (In)
  bool tile = false;       ///< a tile, also of rank 0; otherwise a scalar
  Shape shape;             ///< extents of a tile
  LayoutId layout = kNoLayout;

  static Type scalar(DType d) { return {d, false, false, false, false, {}, kNoLayout}; }
  static Type pointer(DType d, bool read_only = false) { return {d, true, false, read_only, false, {}, kNoLayout}; }
  static Type shared_pointer(DType d) { return {d, true, true, false, false, {}, kNoLayout}; }
  static Type tile_of(DType d, Shape s) { return {d, false, false, false, true, std::move(s), kNoLayout}; }

  bool is_scalar() const { return !tile; }
  std::int64_t elements() const;
  /// This type with another element type (no longer a pointer), same shape and layout.
  Type with(DType d) const;
  Type with_shape(Shape s) const;
  bool operator==(const Type&) const = default;
  /// "f32", "ptr<const f32>", "ptr<shared f32>", "tile<128x64xf32>", "tile<8xptr<f32>, #1>".
  std::string str() const;
};

}  // namespace kiln::ir

// The tensor maps of one loaded kernel: encoded when a launch first asks for them, found by value afterwards.
//
// What a map depends on besides its recipe are the base, sizes and strides of one launch: at most ten words, by which
// it is kept. Each map has a table of 512 in sets of eight, made at load and never larger; a full set loses the one that
// was added first. A GEMM that all layers of a model share finds hundreds of weights this way. Equal values mean equal
// maps, whoever owns the memory meanwhile, so nothing ever has to be forgotten.
//
// Reading takes no lock: an entry has a version, odd while it is written, and a reader whose version changed encodes
// for itself. So does a writer that finds another one in its place.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/image/kernel_image.h"
#include "runtime/tensor_map.h"

namespace kiln::rt {

class ArgPack;

class TensorMapCache {
 public:
  /// For a kernel on `device`, whose image has no tensor_map_fault(). Both outlive the cache.
  TensorMapCache(const DeviceImpl& device, const KernelImage& image);
  ~TensorMapCache();

  /// Bytes of all maps.
  std::size_t bytes() const { return recipes().size() * TensorMap::kBytes; }
  /// Writes the maps for the arguments of one launch, which fit the image's signature. Allocates nothing. Throws
  /// UserError that names kernel and argument for a size or stride outside of 1 to 2^31 - 1, and what TensorMap::encode
  /// throws.
  void write(const ArgPack& args, std::byte* maps);
  /// Maps encoded so far: those that were not found.
  std::uint64_t encoded() const { return encoded_.load(std::memory_order_relaxed); }

 private:
  struct Key;
  struct Entry;
  void write_one(std::size_t map, const ArgPack& args, std::byte* to);
  const std::vector<TensorMapRecipe>& recipes() const { return image_.recipe().tensor_maps; }
  TensorSpec spec(const TensorMapRecipe& recipe, const ArgPack& args) const;
  std::uint64_t value(const TensorExtent& extent, const ArgPack& args) const;

  const DeviceImpl& device_;
  const KernelImage& image_;
  std::unique_ptr<Entry[]> entries_;  ///< a table for each map
  std::atomic<std::uint64_t> encoded_{0};
};

}  // namespace kiln::rt

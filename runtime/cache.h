// Disk cache of KernelImages: key text → .kimg (runtime/entry_store.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/entry_store.h"
#include "runtime/image/kernel_image.h"

namespace kiln::rt {

class DiskCache {
 public:
  /// `dir` empty: the cache is off. The folder is made on the first store.
  DiskCache(std::string dir, std::uint64_t max_bytes);
  /// The cache that KILN_CACHE_DIR and KILN_CACHE_BYTES describe.
  static DiskCache from_env();

  /// The image stored under `key`. A corrupt or foreign entry is a miss and is removed.
  std::optional<KernelImage> find(const std::string& key) const;
  /// Failure is logged once and is no error.
  void store(const std::string& key, const KernelImage& image) const;
  /// All images, the one used longest ago first. Corrupt and foreign entries are left out.
  std::vector<KernelImage> images() const;
  const std::string& dir() const { return entries_.dir(); }

 private:
  explicit DiskCache(EntryStore entries) : entries_(std::move(entries)) {}
  EntryStore entries_;
};

}  // namespace kiln::rt

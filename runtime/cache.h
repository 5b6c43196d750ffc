// Disk cache of KernelImages: key text → .kimg. Safe with many processes, a full or read-only disk, corrupt entries.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/image/kernel_image.h"

namespace kiln::rt {

/// 128-bit hash of `text` in 32 hexadecimal digits; stable over versions and machines.
std::string stable_hash(const std::string& text);

class DiskCache {
 public:
  /// `dir` empty: the cache is off. The folder is made on the first store.
  DiskCache(std::string dir, std::uint64_t max_bytes);
  /// The cache that KILN_CACHE_DIR and KILN_CACHE_BYTES describe.
  static DiskCache from_env();

  /// The image stored under `key` (any text; it is hashed, and compared in full with the stored one). A corrupt or
  /// foreign entry is a miss and is removed.
  std::optional<KernelImage> find(const std::string& key) const;
  /// Publishes atomically (temporary file in the same folder, then rename). Failure is logged once and is no error.
  void store(const std::string& key, const KernelImage& image) const;
  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
  std::uint64_t max_bytes_;
};

}  // namespace kiln::rt

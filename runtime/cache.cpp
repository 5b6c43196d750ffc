#include "runtime/cache.h"

#include "runtime/base/error.h"

namespace kiln::rt {
namespace {

constexpr const char* kSuffix = ".kimg";

}  // namespace

DiskCache::DiskCache(std::string dir, std::uint64_t max_bytes) : entries_(std::move(dir), kSuffix, max_bytes) {}

DiskCache DiskCache::from_env() { return DiskCache(EntryStore::from_env(kSuffix)); }

std::optional<KernelImage> DiskCache::find(const std::string& key) const {
  const auto bytes = entries_.find(key);
  if (!bytes) return std::nullopt;
  try {
    return deserialise(*bytes, entries_.path_of(key));
  } catch (const Error& e) {
    entries_.remove(key, e.what());
    return std::nullopt;
  }
}

std::vector<KernelImage> DiskCache::images() const {
  std::vector<KernelImage> out;
  for (const std::string& bytes : entries_.values()) try {
      out.push_back(deserialise(bytes, dir()));
    } catch (const Error&) {  // as in find(), which removes it
    }
  return out;
}

void DiskCache::store(const std::string& key, const KernelImage& image) const { entries_.store(key, serialise(image)); }

}  // namespace kiln::rt

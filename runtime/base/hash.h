// MurmurHash3 (x64, 128 bit; Austin Appleby, public domain): stable names of cache entries and checksums of files. Not
// for adversaries: whoever uses it as a key compares the full text too.
#pragma once
#include <cstdint>
#include <string_view>

namespace kiln::rt {

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const = default;
};

Hash128 hash128(std::string_view bytes);

}  // namespace kiln::rt

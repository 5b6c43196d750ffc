#include "runtime/base/hash.h"

#include <bit>
#include <cstring>

namespace kiln::rt {
namespace {

constexpr std::uint64_t kC1 = 0x87c37b91114253d5, kC2 = 0x4cf5ad432745937f;

std::uint64_t mix_low(std::uint64_t k) { return std::rotl(k * kC1, 31) * kC2; }
std::uint64_t mix_high(std::uint64_t k) { return std::rotl(k * kC2, 33) * kC1; }

std::uint64_t avalanche(std::uint64_t k) {
  k = (k ^ k >> 33) * 0xff51afd7ed558ccd;
  k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53;
  return k ^ k >> 33;
}

}  // namespace

Hash128 hash128(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");
  std::uint64_t low = 0, high = 0;
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 16; left -= 16, p += 16) {
    std::uint64_t k[2];
    std::memcpy(k, p, 16);
    low = (std::rotl(low ^ mix_low(k[0]), 27) + high) * 5 + 0x52dce729;
    high = (std::rotl(high ^ mix_high(k[1]), 31) + low) * 5 + 0x38495ab5;
  }
  std::uint64_t tail[2] = {0, 0};
  if (left > 0) std::memcpy(tail, p, left);
  low ^= mix_low(tail[0]);
  high ^= mix_high(tail[1]);

  low ^= bytes.size();
  high ^= bytes.size();
  low += high;
  high += low;
  low = avalanche(low);
  high = avalanche(high);
  low += high;
  high += low;
  return {low, high};
}

}  // namespace kiln::rt

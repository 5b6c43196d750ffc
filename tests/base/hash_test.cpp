#include "runtime/base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kiln::rt {
namespace {

// Published values of MurmurHash3_x64_128, seed 0. Entries on disk are found by them, so they must never change.
TEST(Hash128, AgreesWithThePublishedFunction) {
  EXPECT_EQ(hash128(""), (Hash128{0, 0}));
  EXPECT_EQ(hash128("The quick brown fox jumps over the lazy dog"), (Hash128{0xe34bbc7bbc071b6c, 0x7a433ca9c49a9347}));
}

TEST(Hash128, EveryLengthAndEveryBitCounts) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::string text(40, 'a');
  std::size_t cases = 0;
  for (std::size_t n = 0; n <= text.size(); ++n, ++cases) {
    const Hash128 h = hash128(std::string_view(text).substr(0, n));
    seen.insert({h.low, h.high});
  }
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit, ++cases) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
    const Hash128 h = hash128(other);
    seen.insert({h.low, h.high});
  }
  EXPECT_EQ(seen.size(), cases);
}

}  // namespace
}  // namespace kiln::rt

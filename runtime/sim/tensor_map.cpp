#include "runtime/sim/tensor_map.h"

#include <cstring>

namespace kiln::rt::sim {
namespace {

constexpr std::uint64_t kMark = 0x3150414D4E4C494B;  // "KILNMAP1"

struct Encoded {
  std::uint64_t mark, base;
  std::array<std::uint64_t, 4> strides;
  std::array<std::uint32_t, 5> last;  ///< of each dimension: size − 1
  std::array<std::uint16_t, 5> box;
  std::array<std::uint8_t, 5> steps;
  std::uint8_t rank, dtype, swizzle, fill, promotion, floats;
  std::uint32_t unused;
  std::uint64_t sum;  ///< of all before
};
static_assert(sizeof(Encoded) <= TensorMap::kBytes && offsetof(Encoded, sum) % 8 == 0);

/// FNV-1a.
std::uint64_t checksum(const Encoded& e) {
  const auto* p = reinterpret_cast<const unsigned char*>(&e);
  std::uint64_t h = 0xCBF29CE484222325;
  for (std::size_t i = 0; i < offsetof(Encoded, sum); ++i) h = (h ^ p[i]) * 0x100000001B3;
  return h;
}

}  // namespace

void write_tensor_map(const TensorSpec& s, std::byte* map) {
  Encoded e;
  std::memset(&e, 0, sizeof e);
  e.mark = kMark;
  e.base = s.base;
  e.strides = s.strides;
  e.rank = static_cast<std::uint8_t>(s.rank);
  for (std::size_t i = 0; i < s.rank; ++i) {
    e.last[i] = static_cast<std::uint32_t>(s.sizes[i] - 1);
    e.box[i] = static_cast<std::uint16_t>(s.box[i]);
    e.steps[i] = static_cast<std::uint8_t>(s.steps[i]);
  }
  e.dtype = static_cast<std::uint8_t>(s.dtype);
  e.swizzle = static_cast<std::uint8_t>(s.swizzle);
  e.fill = static_cast<std::uint8_t>(s.fill);
  e.promotion = static_cast<std::uint8_t>(s.promotion);
  e.floats = static_cast<std::uint8_t>(s.floats);
  e.sum = checksum(e);
  std::memset(map, 0, TensorMap::kBytes);
  std::memcpy(map, &e, sizeof e);
}

std::optional<TensorSpec> read_tensor_map(const std::byte* map) {
  Encoded e;
  std::memcpy(&e, map, sizeof e);
  if (e.mark != kMark || e.sum != checksum(e)) return std::nullopt;
  TensorSpec s;
  s.base = e.base;
  s.strides = e.strides;
  s.rank = e.rank;
  for (std::size_t i = 0; i < s.rank; ++i) {
    s.sizes[i] = std::uint64_t{e.last[i]} + 1;
    s.box[i] = e.box[i];
    s.steps[i] = e.steps[i];
  }
  s.dtype = static_cast<DType>(e.dtype);
  s.swizzle = static_cast<TensorSwizzle>(e.swizzle);
  s.fill = static_cast<TensorFill>(e.fill);
  s.promotion = static_cast<TensorPromotion>(e.promotion);
  s.floats = static_cast<TensorFloat>(e.floats);
  return s;
}

}  // namespace kiln::rt::sim

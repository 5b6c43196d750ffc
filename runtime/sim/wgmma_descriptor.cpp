#include "runtime/sim/wgmma_descriptor.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr U32 kKRows = 16;  // of k in an MN-major operand, whose elements have 16 bits
constexpr U32 kChunk = 16, kKBytes = 32;

U32 field(U64 bits, int low, int n) { return static_cast<U32>(bits >> low & ((1ull << n) - 1)); }

struct Unused {
  int low, n;
};
constexpr Unused kUnused[] = {{14, 2}, {30, 2}, {46, 3}, {52, 10}};

U32 width_of(U64 bits) {
  static constexpr U32 kWidths[] = {16, 128, 64, 32};
  return kWidths[field(bits, 62, 2)];
}

}  // namespace

Descriptor::Descriptor(U64 bits)
    : start(field(bits, 0, 14) * kChunk),
      leading(field(bits, 16, 14) * kChunk),
      stride(field(bits, 32, 14) * kChunk),
      base_offset(field(bits, 49, 3)),
      width(width_of(bits)) {}

U32 Descriptor::swizzled(U32 address) const {
  const U32 row = ((address >> 7) - base_offset) & (width / kChunk - 1);
  return address ^ row * kChunk;
}

U32 Descriptor::k_major(U32 row, U32 chunk) const {
  const U32 along_k = width == kChunk ? leading : kChunk;
  return swizzled(start + row % 8 * width + row / 8 * stride + chunk * along_k);
}

U32 Descriptor::mn_major(U32 block, U32 k) const {
  if (width == kChunk) return start + block * stride + k % 8 * kChunk + k / 8 * leading;
  const U32 blocks = width / kChunk;
  return swizzled(start + block % blocks * kChunk + block / blocks * leading + k % 8 * width + k / 8 * stride);
}

std::string misuse(U64 bits, bool mn_major, U32 rows, U32 shared_begin, U32 shared_end) {
  for (const auto& [low, n] : kUnused)
    if (const U32 value = field(bits, low, n))
      return fmt::format("bits {} to {} are 0x{:x}; they must be zero", low, low + n - 1, value);
  const Descriptor d(bits);
  if (d.width == kChunk && d.base_offset)
    return fmt::format("the base offset is {}; without swizzle it must be 0", d.base_offset);
  const U32 into = d.start % d.width, extent = mn_major ? std::min(rows * 2, d.width) : std::min(kKBytes, d.width);
  if (into + extent > d.width)
    return fmt::format("the start address 0x{:x} lies {} bytes into a row of {} bytes, in which {} must fit", d.start,
                       into, d.width, extent);
  U32 lowest = UINT32_MAX, highest = 0;
  const auto see = [&](U32 address) { lowest = std::min(lowest, address), highest = std::max(highest, address); };
  for (U32 row = 0; row < (mn_major ? rows / 8 : rows); ++row)
    for (U32 i = 0; i < (mn_major ? kKRows : kKBytes / kChunk); ++i)
      see(mn_major ? d.mn_major(row, i) : d.k_major(row, i));
  if (lowest < shared_begin || highest + kChunk > shared_end)
    return fmt::format(
        "start address 0x{:x}, leading byte offset {} and stride byte offset {} reach from 0x{:x} to 0x{:x}; the "
        "block's "
        "shared memory has {} bytes from 0x{:x}",
        d.start, d.leading, d.stride, lowest, highest + kChunk, shared_end - shared_begin, shared_begin);
  return {};
}

}  // namespace kiln::rt::sim

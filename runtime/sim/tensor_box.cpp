#include "runtime/sim/tensor_box.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>

#include "runtime/sim/bulk.h"
#include "runtime/sim/numbers.h"

namespace kiln::rt::sim {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr U32 kLine = 128;

/// Elements outside of the tensor.
void fill(const TensorSpec& s, std::byte* to, std::size_t bytes) {
  std::memset(to, 0, bytes);
  if (s.fill == TensorFill::Zero) return;
  const std::size_t size = static_cast<std::size_t>(kiln::bytes(s.dtype));
  // All ones but for the sign: a NaN in every format.
  for (std::size_t i = 0; i < bytes; i += size) {
    std::memset(to + i, 0xFF, size);
    to[i + size - 1] = std::byte{0x7F};
  }
}

/// f32 elements as the map wants them.
void convert(TensorFloat how, std::byte* at, std::size_t bytes) {
  const bool flush = how == TensorFloat::FlushSubnormals || how == TensorFloat::Tf32FlushSubnormals;
  const bool tf32 = how == TensorFloat::Tf32 || how == TensorFloat::Tf32FlushSubnormals;
  for (std::size_t i = 0; i < bytes; i += sizeof(U32)) {
    U32 v;
    std::memcpy(&v, at + i, sizeof v);
    const U32 magnitude = v & 0x7FFFFFFF;
    if (flush && magnitude < 0x00800000) v &= 0x80000000;
    // To the nearest with 10 bits, ties to even; infinities and NaN stay.
    if (tf32 && magnitude < 0x7F800000) v = (v + 0xFFF + (v >> 13 & 1)) & 0xFFFFE000;
    std::memcpy(at + i, &v, sizeof v);
  }
}

}  // namespace

U32 TensorBox::element_bytes() const { return static_cast<U32>(kiln::bytes(spec.dtype)); }

std::vector<TensorBox::Row> TensorBox::rows() const {
  std::vector<Row> out;
  std::array<U32, TensorSpec::kMaxRank> i{};
  const std::int64_t x = at[0], width = spec.box[0], unit = kTensorUnit / element_bytes();
  std::int64_t size = static_cast<std::int64_t>(spec.sizes[0]);
  if (stored) size = (size + unit - 1) / unit * unit;
  const std::int64_t first = std::clamp<std::int64_t>(-x, 0, width),
                     end = std::clamp<std::int64_t>(size - x, first, width);
  U32 n = 1;
  for (std::size_t d = 1; d < spec.rank; ++d) n *= spec.taken(d);
  out.reserve(n);
  for (U32 r = 0; r < n; ++r) {
    Row row;
    row.offset = r * row_bytes();
    bool inside = end > first;
    U64 address = spec.base + static_cast<U64>((x + first) * element_bytes());
    for (std::size_t d = 1; d < spec.rank; ++d) {
      const std::int64_t c = at[d] + std::int64_t{i[d]} * spec.steps[d];
      inside = inside && c >= 0 && c < static_cast<std::int64_t>(spec.sizes[d]);
      address += static_cast<U64>(c) * spec.strides[d - 1];
    }
    row.first = static_cast<U32>(first);
    if (inside) row.count = static_cast<U32>(end - first), row.address = address;
    out.push_back(row);
    for (std::size_t d = 1; d < spec.rank && ++i[d] == spec.taken(d); ++d) i[d] = 0;
  }
  return out;
}

std::vector<GlobalRun> TensorBox::runs() const {
  std::vector<GlobalRun> out;
  for (const Row& r : rows())
    if (r.count) out.push_back({r.address, U64{r.count} * element_bytes()});
  return out;
}

U32 TensorBox::pitch() const {
  const U32 span = spec.swizzle == TensorSwizzle::None ? 0 : kTensorUnit << static_cast<U32>(spec.swizzle);
  return std::max(row_bytes(), span);
}

U32 TensorBox::place(U32 base, U32 offset) const {
  const U32 a = base + offset / row_bytes() * pitch() + offset % row_bytes();
  switch (spec.swizzle) {
    case TensorSwizzle::None: break;
    case TensorSwizzle::Bytes32: return a ^ (a >> 3 & 0x10);
    case TensorSwizzle::Bytes64: return a ^ (a >> 3 & 0x30);
    case TensorSwizzle::Bytes128: return a ^ (a >> 3 & 0x70);
  }
  return a;
}

void TensorBox::load(Agent& a, std::vector<std::byte>& data) const {
  data.resize(spec.box_bytes());
  const U32 size = element_bytes();
  for (const Row& r : rows()) {
    std::byte* to = data.data() + r.offset;
    const U32 before = r.count ? r.first * size : row_bytes(), bytes = r.count * size;
    fill(spec, to, before);
    if (r.count == 0) continue;
    std::memcpy(to + before, global_read(a, r.address, bytes), bytes);
    if (spec.floats != TensorFloat::AsIs) convert(spec.floats, to + before, bytes);
    fill(spec, to + before + bytes, row_bytes() - before - bytes);
  }
}

void TensorBox::to_shared(Agent& a, Block& b, U32 base, const std::vector<std::byte>& data) const {
  const U32 bytes = static_cast<U32>(data.size());
  const bool whole = spec.swizzle == TensorSwizzle::None || (bytes % kLine == 0 && pitch() == row_bytes());
  if (whole) std::ignore = bulk_write(a, b, base, bytes);
  if (spec.swizzle == TensorSwizzle::None) {
    std::memcpy(b.shared_bytes() + base, data.data(), bytes);
    return;
  }
  for (U32 o = 0; o < bytes; o += kTensorUnit) {
    const U32 to = place(base, o);
    if (!whole) std::ignore = bulk_write(a, b, to, kTensorUnit);
    std::memcpy(b.shared_bytes() + to, data.data() + o, kTensorUnit);
  }
}

void TensorBox::from_shared(Agent& a, Block& b, U32 base, std::vector<std::byte>& data) const {
  const U32 bytes = spec.box_bytes();
  data.resize(bytes);
  const bool whole = spec.swizzle == TensorSwizzle::None || (bytes % kLine == 0 && pitch() == row_bytes());
  if (whole) std::ignore = shared_read(a, b, base, bytes);
  if (spec.swizzle == TensorSwizzle::None) {
    std::memcpy(data.data(), b.shared_bytes() + base, bytes);
    return;
  }
  for (U32 o = 0; o < bytes; o += kTensorUnit) {
    const U32 from = place(base, o);
    if (!whole) std::ignore = shared_read(a, b, from, kTensorUnit);
    std::memcpy(data.data() + o, b.shared_bytes() + from, kTensorUnit);
  }
}

}  // namespace kiln::rt::sim

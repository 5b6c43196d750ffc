#include "runtime/tensor_map.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/device_impl.h"

namespace kiln {
namespace {

constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 32, kMaxStride = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256, kMaxStep = 8, kChunk = 16;

std::uint32_t element_bytes(DType d) { return static_cast<std::uint32_t>(bytes(d)); }

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw UserError("tensor map: " + fmt::format(text, std::forward<Args>(args)...));
}

void check_dimension(const TensorSpec& s, std::size_t i) {
  if (s.sizes[i] == 0 || s.sizes[i] > kMaxSize) refuse("sizes[{}] is {}; must be 1 to 2^32", i, s.sizes[i]);
  if (s.box[i] == 0 || s.box[i] > kMaxBox) refuse("box[{}] is {}; must be 1 to {}", i, s.box[i], kMaxBox);
  if (s.steps[i] == 0 || s.steps[i] > kMaxStep) refuse("steps[{}] is {}; must be 1 to {}", i, s.steps[i], kMaxStep);
  if (i == 0) return;
  const std::uint64_t stride = s.strides[i - 1];
  if (stride % kChunk || stride >= kMaxStride)
    refuse("strides[{}] is {} bytes; must be a multiple of {} below 2^40", i - 1, stride, kChunk);
}

void check_swizzle(const TensorSpec& s) {
  if (s.swizzle == TensorSwizzle::None) return;
  const std::uint32_t row = s.box[0] * element_bytes(s.dtype);
  const std::uint32_t span = 16u << static_cast<unsigned>(s.swizzle);
  if (row > span) refuse("box[0] is {} bytes; a swizzle of {} bytes takes no more than that", row, span);
}

void check(const TensorSpec& s) {
  if (s.rank < 1 || s.rank > TensorSpec::kMaxRank) refuse("rank is {}; must be 1 to {}", s.rank, TensorSpec::kMaxRank);
  if (s.dtype == DType::i1) refuse("dtype is i1; its elements are no bytes");
  if (s.base % kChunk) refuse("base is 0x{:x}; must be a multiple of {}", s.base, kChunk);
  for (std::size_t i = 0; i < s.rank; ++i) check_dimension(s, i);
  if (s.steps[0] != 1) refuse("steps[0] is {}; must be 1", s.steps[0]);
  const std::uint32_t row = s.box[0] * element_bytes(s.dtype);
  if (row % kChunk)
    refuse("box[0] is {} elements of {}, {} bytes; must be a multiple of {}", s.box[0], name(s.dtype), row, kChunk);
  check_swizzle(s);
  if (s.fill == TensorFill::NaN && (!is_float(s.dtype) || element_bytes(s.dtype) == 1))
    refuse("fill is NaN, but dtype is {}", name(s.dtype));
  if (s.floats != TensorFloat::AsIs && s.dtype != DType::f32)
    refuse("floats changes elements of f32, but dtype is {}", name(s.dtype));
}

}  // namespace

std::uint32_t TensorSpec::box_bytes() const {
  std::uint32_t n = element_bytes(dtype);
  for (std::size_t i = 0; i < rank; ++i) n *= taken(i);
  return n;
}

TensorMap TensorMap::encode(const Device& device, const TensorSpec& spec, SourceLoc at) {
  return rt::located(at, [&] {
    check(spec);
    if (!device.impl().pointer_info(spec.base))
      refuse("base is 0x{:x}, which is no memory of {}", spec.base, device.name());
    TensorMap map;
    device.impl().encode_tensor_map(spec, map.bytes_.data());
    return map;
  });
}

void rt::encode_tensor_map(const DeviceImpl& device, const TensorSpec& spec, std::byte* map) {
  check(spec);
  device.encode_tensor_map(spec, map);
}

void rt::DeviceImpl::encode_tensor_map(const TensorSpec&, std::byte*) const {
  throw DeviceError(fmt::format("{} has no tensor maps", name()));
}

}  // namespace kiln

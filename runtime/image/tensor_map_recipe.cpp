#include "runtime/image/tensor_map_recipe.h"

#include <fmt/format.h>

namespace kiln::rt {
namespace {

constexpr std::int64_t kChunk = 16;  // bytes that bases and strides are multiples of

std::string name_of(const ArgSig& sig, std::uint32_t arg) {
  const std::string& name = sig.args[arg].name;
  return name.empty() ? fmt::format("argument {}", arg + 1) : name;
}

/// Empty if `e` is a number within the range, or an index argument.
std::string extent_obstacle(const ArgSig& sig, const TensorExtent& e, const std::string& what) {
  if (!e.is_arg()) {
    if (TensorMapRecipe::takes(e.number)) return {};
    return fmt::format("{} is {}, must be 1 to 2^31 - 1", what, e.number);
  }
  if (e.arg >= sig.args.size()) return fmt::format("{} is argument {} of {}", what, e.arg + 1, sig.args.size());
  const Arg& a = sig.args[e.arg];
  if (a.kind == ArgKind::Scalar && a.dtype == DType::index) return {};
  return fmt::format("{}: is {}, but no index", name_of(sig, e.arg), what);
}

std::string stride_obstacle(const ArgSig& sig, const TensorExtent& e, std::size_t dimension, std::int64_t element) {
  const std::int64_t divisor = e.is_arg() ? std::int64_t{sig.args[e.arg].align} : e.number;
  if (dimension == 0) {
    if (e.is_arg() ? sig.args[e.arg].is_one : e.number == 1) return {};
    return e.is_arg() ? fmt::format("{}: not known to be 1", name_of(sig, e.arg))
                      : fmt::format("strides[0] is {}, must be 1", e.number);
  }
  if (divisor * element % kChunk == 0) return {};
  return e.is_arg() ? fmt::format("{}: not known to be a multiple of {} bytes", name_of(sig, e.arg), kChunk)
                    : fmt::format("strides[{}] is {} bytes, no multiple of {}", dimension, divisor * element, kChunk);
}

std::string base_obstacle(const ArgSig& sig, const TensorMapRecipe& map) {
  if (map.base >= sig.args.size()) return fmt::format("the base is argument {} of {}", map.base + 1, sig.args.size());
  const Arg& a = sig.args[map.base];
  if (a.kind != ArgKind::Pointer) return name_of(sig, map.base) + ": is the base, but no pointer";
  return a.align % kChunk == 0
             ? std::string{}
             : fmt::format("{}: not known to be a multiple of {} bytes", name_of(sig, map.base), kChunk);
}

}  // namespace

TensorMapRecipe view_map(std::uint32_t pointer, DType dtype, std::span<const int> order) {
  TensorMapRecipe map;
  map.base = pointer;
  map.dtype = dtype;
  map.rank = static_cast<std::uint32_t>(order.size());
  for (std::size_t i = 0; i < order.size() && i < map.sizes.size(); ++i) {
    const auto dimension = static_cast<std::uint32_t>(order[i]);
    map.sizes[i].arg = pointer + 1 + dimension;
    map.strides[i].arg = pointer + 1 + map.rank + dimension;
  }
  return map;
}

std::string tensor_map_obstacle(const ArgSig& sig, const TensorMapRecipe& map) {
  if (map.rank < 1 || map.rank > TensorMapRecipe::kMaxRank)
    return fmt::format("rank is {}, must be 1 to {}", map.rank, TensorMapRecipe::kMaxRank);
  if (map.dtype == DType::i1) return "dtype is i1, whose elements are no bytes";
  std::string why = base_obstacle(sig, map);
  for (std::size_t i = 0; i < map.rank && why.empty(); ++i) {
    why = extent_obstacle(sig, map.sizes[i], fmt::format("sizes[{}]", i));
    if (why.empty()) why = extent_obstacle(sig, map.strides[i], fmt::format("strides[{}]", i));
    if (why.empty()) why = stride_obstacle(sig, map.strides[i], i, bytes(map.dtype));
  }
  return why;
}

}  // namespace kiln::rt

// Arguments that are tensor maps: what a map says of a buffer of the same case.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/tools/sim_args.h"

namespace kiln::rt::tools {
namespace {

template <class T>
struct Choice {
  const char* name;
  T value;
};
constexpr Choice<TensorSwizzle> kSwizzles[] = {{"none", TensorSwizzle::None},
                                               {"32", TensorSwizzle::Bytes32},
                                               {"64", TensorSwizzle::Bytes64},
                                               {"128", TensorSwizzle::Bytes128}};
constexpr Choice<TensorFill> kFills[] = {{"zero", TensorFill::Zero}, {"nan", TensorFill::NaN}};
constexpr Choice<TensorPromotion> kPromotions[] = {{"none", TensorPromotion::None},
                                                   {"64", TensorPromotion::Bytes64},
                                                   {"128", TensorPromotion::Bytes128},
                                                   {"256", TensorPromotion::Bytes256}};
constexpr Choice<TensorFloat> kFloats[] = {{"as is", TensorFloat::AsIs},
                                           {"flush", TensorFloat::FlushSubnormals},
                                           {"tf32", TensorFloat::Tf32},
                                           {"tf32 flush", TensorFloat::Tf32FlushSubnormals}};

/// A name of the list, or the number of its text.
template <class T, std::size_t n>
void read_choice(const Input& in, const char* key, const Choice<T> (&all)[n], T& to) {
  if (!in.has(key)) return;
  const Input value = in[key];
  const std::string text = value.json().is_number_unsigned() ? value.json().dump() : value.text();
  std::string names;
  for (const Choice<T>& c : all) {
    if (text == c.name) {
      to = c.value;
      return;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", c.name);
  }
  value.fail(fmt::format("is {}; must be one of {}", value.shown(), names));
}

/// `n` numbers. Their ranges are checked where the map is made.
template <class T, std::size_t most>
void read_numbers(const Input& list, std::size_t n, std::array<T, most>& to) {
  list.must_be_array();
  if (list.size() != n) list.fail(fmt::format("has {} numbers; must be {}", list.size(), n));
  for (std::size_t i = 0; i < n; ++i)
    to[i] = static_cast<T>(list[i].integer(0, sizeof(T) == 4 ? INT64_C(0xFFFFFFFF) : INT64_MAX));
}

const Argument& buffer_named(const Input& of, const std::vector<Argument>& args) {
  const std::string name = of.text();
  std::string names;
  for (const Argument& a : args) {
    if (a.kind != Argument::Kind::Buffer) continue;
    if (a.name == name) return a;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
  }
  of.fail(fmt::format("is '{}', which is no buffer; there are {}", name, names.empty() ? "none" : names));
}

/// Dimension 0 of a map is the last of a shape.
void sizes_of(const Argument& buffer, const Input& in, TensorSpec& spec) {
  const std::size_t rank = buffer.shape.size();
  if (rank < 1 || rank > TensorSpec::kMaxRank)
    in.fail(fmt::format("has no 'sizes', and '{}' has {} dimensions; a map has 1 to 5", buffer.name, rank));
  spec.rank = static_cast<std::uint32_t>(rank);
  std::copy(buffer.shape.rbegin(), buffer.shape.rend(), spec.sizes.begin());
}

}  // namespace

void finish_tensor_map(Argument& a, const Input& in, const std::vector<Argument>& args) {
  in.only({"name", "kind", "of", "dtype", "offset", "sizes", "strides", "box", "steps", "swizzle", "fill", "promotion",
           "floats"});
  TensorSpec& spec = a.map;
  const Argument& buffer = buffer_named(in["of"], args);
  a.of = buffer.name;
  a.where = fmt::format("{}: {}", in.file().string(), in.key());
  spec.dtype = in.has("dtype") ? read_dtype(in["dtype"]) : buffer.dtype;
  if (in.has("offset")) spec.base = static_cast<DevicePtr>(in["offset"].integer(0, INT64_MAX));
  if (in.has("sizes")) {
    const Input sizes = in["sizes"];
    sizes.must_be_array();
    if (sizes.size() < 1 || sizes.size() > TensorSpec::kMaxRank)
      sizes.fail(fmt::format("has {} numbers; must be 1 to 5", sizes.size()));
    spec.rank = static_cast<std::uint32_t>(sizes.size());
    read_numbers(sizes, spec.rank, spec.sizes);
  } else {
    sizes_of(buffer, in, spec);
  }
  auto next = static_cast<std::uint64_t>(bytes(spec.dtype));
  for (std::size_t i = 0; i + 1 < spec.rank; ++i) next *= spec.sizes[i], spec.strides[i] = next;
  if (in.has("strides")) read_numbers(in["strides"], spec.rank - 1u, spec.strides);
  read_numbers(in["box"], spec.rank, spec.box);
  if (in.has("steps")) read_numbers(in["steps"], spec.rank, spec.steps);
  read_choice(in, "swizzle", kSwizzles, spec.swizzle);
  read_choice(in, "fill", kFills, spec.fill);
  read_choice(in, "promotion", kPromotions, spec.promotion);
  read_choice(in, "floats", kFloats, spec.floats);
}

Bytes encoded(const Device& device, const Argument& a, std::uint64_t buffer) {
  TensorSpec spec = a.map;
  spec.base += buffer;
  try {
    const TensorMap map = TensorMap::encode(device, spec, SourceLoc{});
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(map.bytes());
    return {bytes, bytes + TensorMap::kBytes};
  } catch (const Error& e) {
    throw UserError(fmt::format("{}: {}", a.where, e.what()));
  }
}

}  // namespace kiln::rt::tools

#include "runtime/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/device_impl.h"

namespace kiln::rt {
namespace {

// Key word of an argument: dtype in bits 0–7, kind 8–9, access 10–11, =1 in 12, disjoint in 13, extent of a tensor map
// in 14, alignment or divisor in 16–31.
constexpr std::uint64_t kDisjoint = 1 << 13, kExtent = 1 << 14;
constexpr std::uint64_t key_word(ArgKind kind, DType dtype, Access access, std::uint32_t align, bool is_one) {
  return static_cast<std::uint64_t>(dtype) | static_cast<std::uint64_t>(kind) << 8 |
         static_cast<std::uint64_t>(access) << 10 | static_cast<std::uint64_t>(is_one) << 12 |
         static_cast<std::uint64_t>(align) << 16;
}
constexpr DType dtype_of_key(std::uint64_t word) { return static_cast<DType>(word & 0xff); }
constexpr ArgKind kind_of_key(std::uint64_t word) { return static_cast<ArgKind>(word >> 8 & 3); }
constexpr Access access_of_key(std::uint64_t word) { return static_cast<Access>(word >> 10 & 3); }

/// Whether a power of two divides `value`, of either sign; a division would cost more than the rest of a check.
constexpr bool divides(std::uint64_t power, std::uint64_t value) { return (value & (power - 1)) == 0; }

constexpr std::int64_t kMaxGridX = 0x7fffffff, kMaxGridYZ = 65535;

std::string grid_text(const Grid& g) { return fmt::format("grid [{}, {}, {}]", g.x, g.y, g.z); }

std::string device_text(const DeviceImpl& d) {
  return d.ordinal() < 0 ? d.name() : fmt::format("{} (cuda:{})", d.name(), d.ordinal());
}

std::string type_text(ArgKind kind, DType dtype) {
  return kind == ArgKind::Pointer ? fmt::format("pointer to {}", name(dtype)) : name(dtype);
}

/// Checks one launch's arguments; the fail functions are out of the hot path.
class Checker {
 public:
  Checker(const KernelImage& image, const DeviceImpl& device, const ArgPack& pack, SourceLoc at)
      : image_(image), device_(device), pack_(pack), at_(at) {}

  void run() const {
    const std::vector<Arg>& args = image_.signature.args;
    if (args.size() != pack_.size()) fail_count();
    for (std::size_t i = 0; i < args.size(); ++i) {
      const Arg& want = args[i];
      const ArgPack::Packed& got = pack_.packed(i);
      if (kind_of_key(got.key) != want.kind || dtype_of_key(got.key) != want.dtype) fail_type(i);
      if (want.kind == ArgKind::Pointer) pointer(i, want, got);
      else if (want.dtype == DType::index) index(i, want, got);
    }
  }

 private:
  void pointer(std::size_t i, const Arg& want, const ArgPack::Packed& got) const {
    if (got.value == 0) fail(i, "null pointer");
    if (got.owner != &device_) {
      if (got.owner) fail_foreign(i, device_text(*got.owner));
      look_up(i, got);
    }
    if (want.disjoint && (got.key & kDisjoint) == 0)
      fail(i, "its memory may overlap another argument's, this image is compiled for separate ones");
    const auto element = static_cast<std::uint64_t>(bytes(want.dtype));
    if (!divides(std::max<std::uint64_t>(want.align, element), got.value)) fail_alignment(i, element);
  }

  void index(std::size_t i, const Arg& want, const ArgPack::Packed& got) const {
    const auto value = static_cast<std::int64_t>(got.value);
    if (want.is_one && value != 1) fail(i, fmt::format("value is {}, this image is compiled for 1", value));
    if (!divides(want.align, got.value))
      fail(i, fmt::format("value is {}, this image is compiled for multiples of {}", value, want.align));
  }

  /// An address that came without an owner: only the device knows whose it is.
  void look_up(std::size_t i, const ArgPack::Packed& got) const {
    const std::optional<PointerInfo> info = device_.pointer_info(got.value);
    if (!info)
      fail(i, fmt::format("address {:#x} is not memory of {} (host memory or freed; wrap what the device reaches all "
                          "the same in Buffer::foreign)",
                          got.value, device_text(device_)));
    if (info->ordinal != device_.ordinal()) fail_foreign(i, fmt::format("{} (cuda:{})", info->owner, info->ordinal));
    if (info->base == 0) return;
    const std::uint64_t front = got.value - info->base, left = info->bytes - front;
    if (got.bytes > left)
      fail(i, fmt::format("{} bytes at address {:#x}, its allocation ends after {}", got.bytes, got.value, left));
    if (got.before > front)
      fail(i, fmt::format("{} bytes before address {:#x}, its allocation begins {} before it", got.before, got.value,
                          front));
  }

  [[noreturn]] void fail(std::size_t i, const std::string& why) const {
    const std::string& given = image_.signature.args[i].name;
    const std::string argument = given.empty() ? fmt::format("argument {}", i + 1) : given;
    throw UserError(at_, fmt::format("{}: {}: {}", image_.name, argument, why));
  }
  [[noreturn]] void fail_count() const {
    throw UserError(
        at_, fmt::format("{}: expected {} arguments, got {}", image_.name, image_.signature.args.size(), pack_.size()));
  }
  [[noreturn]] void fail_type(std::size_t i) const {
    const Arg& want = image_.signature.args[i];
    const std::uint64_t got = pack_.packed(i).key;
    fail(i, fmt::format("expected {}, got {}", type_text(want.kind, want.dtype),
                        type_text(kind_of_key(got), dtype_of_key(got))));
  }
  [[noreturn]] void fail_foreign(std::size_t i, const std::string& owner) const {
    fail(i, fmt::format("memory of {}, but the launch is on {}", owner, device_text(device_)));
  }
  [[noreturn]] void fail_alignment(std::size_t i, std::uint64_t element) const {
    const Arg& want = image_.signature.args[i];
    const std::uint64_t address = pack_.packed(i).value;
    if (address % element != 0)
      fail(i, fmt::format("address {:#x} is not aligned to its elements, {} of {} bytes", address, name(want.dtype),
                          element));
    fail(i,
         fmt::format("address {:#x}, this image is compiled for addresses aligned to {} bytes", address, want.align));
  }

  const KernelImage& image_;
  const DeviceImpl& device_;
  const ArgPack& pack_;
  SourceLoc at_;
};

[[noreturn]] void fail_axis(const KernelImage& image, const Grid& grid, char axis, std::int64_t value, std::int64_t max,
                            SourceLoc at) {
  if (value < 0)
    throw UserError(at,
                    fmt::format("{}: {}: {} is {}, must not be negative", image.name, grid_text(grid), axis, value));
  throw UserError(at, fmt::format("{}: {}: {} blocks along {}, at most {} are possible", image.name, grid_text(grid),
                                  value, axis, max));
}

std::uint32_t checked_blocks(const KernelImage& image, const Grid& grid, char axis, std::int64_t teams,
                             std::uint32_t cluster, SourceLoc at) {
  const std::int64_t max = axis == 'x' ? kMaxGridX : kMaxGridYZ;
  // Teams first: the product with the cluster cannot overflow then.
  if (teams > max || teams * cluster > max)
    fail_axis(image, grid, axis, teams > max ? teams : teams * cluster, max, at);
  return static_cast<std::uint32_t>(teams * cluster);
}

/// The grid of teams that runs `grid` programs (none of whose axes is 0).
Grid teams_of(const LoadedKernel& kernel, const LaunchRecipe& recipe, const Grid& grid) {
  switch (recipe.grid) {
    case GridRule::Identity: return grid;
    case GridRule::CeilDiv: return {(grid.x - 1) / recipe.programs_per_cta + 1, grid.y, grid.z};
    case GridRule::Persistent: {
      // min(product, left) without overflow: left² fits.
      const std::int64_t left = std::min<std::int64_t>(kernel.resident_clusters(), kMaxGridX);
      const std::int64_t x = std::min(grid.x, left), y = std::min(grid.y, left), z = std::min(grid.z, left);
      return {std::min(std::min(x * y, left) * z, left)};
    }
  }
  throw InternalError(fmt::format("{}: grid rule {} is unknown", kernel.image().name, static_cast<int>(recipe.grid)));
}

/// A team that is told the grid counts the programs that it walks in 31 bits.
void check_walk(const KernelImage& image, const Grid& grid, SourceLoc at) {
  const auto left = [&](std::int64_t n) { return kMaxGridX / n; };  // no axis is 0
  if (grid.x > kMaxGridX || grid.y > left(grid.x) || grid.z > left(grid.x * grid.y))
    throw UserError(
        at, fmt::format("{}: {}: at most {} programs are possible in all", image.name, grid_text(grid), kMaxGridX));
}

LaunchDims blocks_of(const LoadedKernel& kernel, const LaunchRecipe& recipe, const Grid& grid, SourceLoc at) {
  const KernelImage& image = kernel.image();
  const bool walks = recipe.grid == GridRule::Persistent &&
                     std::count(recipe.hidden.begin(), recipe.hidden.end(), HiddenParam::UserGrid) != 0;
  if (walks) check_walk(image, grid, at);
  const Grid teams = teams_of(kernel, recipe, grid);
  return {{checked_blocks(image, grid, 'x', teams.x, recipe.cluster[0], at),
           checked_blocks(image, grid, 'y', teams.y, recipe.cluster[1], at),
           checked_blocks(image, grid, 'z', teams.z, recipe.cluster[2], at)}};
}

/// The user's parameters with the hidden ones behind them.
class HiddenParams {
 public:
  HiddenParams(const LoadedKernel& kernel, const LaunchRecipe& recipe, const Grid& grid, const ArgPack& args,
               std::uint64_t launch)
      : kernel_(kernel), used_(args.param_bytes()) {
    std::memcpy(bytes_.data(), args.params(), used_);
    for (const HiddenParam h : recipe.hidden) {
      if (h == HiddenParam::UserGrid) {
        for (const std::int64_t programs : {grid.x, grid.y, grid.z}) append(static_cast<std::uint64_t>(programs));
      } else if (h == HiddenParam::TensorMaps) {
        TensorMapCache& maps = *kernel.tensor_maps();
        maps.write(args, bytes_.data() + reserve(maps.bytes(), alignof(TensorMap)));
      } else {
        KILN_CHECK(h == HiddenParam::ReportBuffer && kernel.report(),
                   kernel.image().name + ": loaded with a hidden parameter that no one provides");
        append(kernel.report()->address);
        append(launch);
      }
    }
  }
  const void* data() const { return bytes_.data(); }
  std::size_t size() const { return used_; }

 private:
  void append(std::uint64_t word) {
    std::memcpy(bytes_.data() + reserve(sizeof word, sizeof word), &word, sizeof word);
  }

  /// Where `bytes` more begin.
  std::size_t reserve(std::size_t bytes, std::size_t align) {
    const std::size_t at = (used_ + align - 1) / align * align;
    KILN_CHECK(at + bytes <= bytes_.size(), kernel_.image().name + ": no room for hidden parameters");
    used_ = at + bytes;
    return at;
  }

  const LoadedKernel& kernel_;
  alignas(TensorMap) std::array<std::byte, ArgPack::kMaxBytes> bytes_;
  std::size_t used_;
};

}  // namespace

void ArgPack::append(std::uint64_t word, std::uint64_t value, std::size_t size, const DeviceImpl* owner,
                     std::uint64_t extent, std::uint64_t before) {
  const std::size_t at = (used_ + size - 1) & ~(size - 1);
  if (args_used_ == kMaxArgs || at + size > kMaxBytes)
    throw UserError(
        at_, fmt::format("too many arguments: argument {} of {} bytes does not fit, a launch takes {} in {} bytes",
                         args_used_ + 1, size, kMaxArgs, kMaxBytes));
  // Little-endian: the low bytes are the value. The zeros behind a short one are the padding in front of the next.
  std::memcpy(params_.data() + at, &value, sizeof value);
  used_ = at + size;
  packed_[args_used_++] = {word, owner, value, extent, before, 0};
  key(word);
}

void ArgPack::pointer(DType dtype, Access access, DevicePtr address, std::size_t extent, const Device* owner,
                      std::size_t before) {
  const std::uint32_t align = address % kFactDivisor == 0 ? kFactDivisor : static_cast<std::uint32_t>(bytes(dtype));
  const bool separate = keep_apart(access, address, extent, before);
  append(key_word(ArgKind::Pointer, dtype, access, align, false) | (separate ? kDisjoint : 0), address, sizeof address,
         owner ? &owner->impl() : nullptr, extent, before);
  packed_[args_used_ - 1].key_at = static_cast<std::uint16_t>(key_used_ - 1);
}

namespace {
/// Whether `after` bytes from `low` on and `before` bytes below `high` are apart; any number of bytes.
bool fit_between(DevicePtr low, std::size_t after, std::size_t before, DevicePtr high) {
  return after <= high - low && before <= high - low - after;
}
}  // namespace

bool ArgPack::keep_apart(Access access, DevicePtr address, std::size_t extent, std::size_t before) {
  bool separate = true;
  for (std::size_t i = 0; i < args_used_; ++i) {
    Packed& p = packed_[i];
    if (kind_of_key(p.key) != ArgKind::Pointer) continue;
    if (access == Access::Read && access_of_key(p.key) == Access::Read) continue;
    if (extent != 0 && p.bytes != 0 &&
        (address > p.value ? fit_between(p.value, p.bytes, before, address)
                           : fit_between(address, extent, p.before, p.value)))
      continue;
    separate = false;
    p.key &= ~kDisjoint;
    key_[p.key_at] = p.key;
  }
  return separate;
}

void ArgPack::scalar(DType dtype, const void* value) {
  static_assert(std::endian::native == std::endian::little);
  const auto size = static_cast<std::size_t>(bytes(dtype));
  std::uint64_t bits = 0;
  std::memcpy(&bits, value, size);
  append(key_word(ArgKind::Scalar, dtype, Access::Read, 1, false), bits, size);
}

void ArgPack::add_index(std::int64_t value, std::uint32_t divisor, std::uint64_t more_facts) {
  if (divides(kFactDivisor, static_cast<std::uint64_t>(value))) divisor = kFactDivisor;
  else if (!divides(divisor, static_cast<std::uint64_t>(value))) divisor = 1;
  append(key_word(ArgKind::Scalar, DType::index, Access::Read, divisor, value == 1) | more_facts,
         static_cast<std::uint64_t>(value), sizeof value);
}

void ArgPack::index(std::int64_t value) { add_index(value, 1, 0); }

void ArgPack::extent(DType dtype, std::int64_t value) {
  add_index(value, kFactDivisor / static_cast<std::uint32_t>(bytes(dtype)),
            TensorMapRecipe::takes(value) ? kExtent : 0);
}

bool ArgPack::is_extent(std::size_t i) const { return (packed_[i].key & kExtent) != 0; }

void ArgPack::key(std::uint64_t word) {
  if (key_used_ == kMaxKeyWords)
    throw UserError(at_, fmt::format("too many arguments and constants: a launch takes {}", kMaxKeyWords));
  key_[key_used_++] = word;
}

Arg ArgPack::arg_of_key(std::uint64_t word) {
  Arg a;
  a.kind = kind_of_key(word);
  a.dtype = dtype_of_key(word);
  a.access = access_of_key(word);
  a.is_one = word >> 12 & 1;
  a.disjoint = (word & kDisjoint) != 0;
  a.align = static_cast<std::uint32_t>(word >> 16 & 0xffff);
  return a;
}

void launch(LoadedKernel& kernel, const Stream& stream, Grid grid, const ArgPack& args, SourceLoc at) {
  const KernelImage& image = kernel.image();
  if (grid.x < 0) fail_axis(image, grid, 'x', grid.x, kMaxGridX, at);
  if (grid.y < 0) fail_axis(image, grid, 'y', grid.y, kMaxGridYZ, at);
  if (grid.z < 0) fail_axis(image, grid, 'z', grid.z, kMaxGridYZ, at);
  if (grid.empty()) return;
  StreamImpl& target = stream.impl();
  Checker(image, target.device(), args, at).run();
  const LaunchRecipe& recipe = image.recipe();
  const LaunchDims dims = blocks_of(kernel, recipe, grid, at);
  if (recipe.hidden.empty())
    return located(at, [&] { kernel.launch(target, dims, args.params(), args.param_bytes()); });
  const auto go = [&](std::uint64_t number) {
    located(at, [&] {
      const HiddenParams params(kernel, recipe, grid, args, number);
      kernel.launch(target, dims, params.data(), params.size());
    });
  };
  if (ReportBuffer* report = kernel.report()) target.device().reports().launch(*report, target.capturing(), go);
  else go(0);
}

void LoadedKernel::provide_hidden(DeviceImpl& device) {
  for (const HiddenParam h : image_.recipe().hidden) {
    if (h == HiddenParam::ReportBuffer && !report_) report_ = device.reports().open(device, image_);
    if (h == HiddenParam::TensorMaps && !tensor_maps_) tensor_maps_ = std::make_unique<TensorMapCache>(device, image_);
  }
}

}  // namespace kiln::rt

#include "runtime/tensor_map_cache.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/launch.h"

namespace kiln::rt {
namespace {

constexpr std::size_t kWays = 8, kSets = 64, kTable = kWays * kSets;
constexpr std::size_t kMapWords = TensorMap::kBytes / sizeof(std::uint64_t);

/// Words that several threads read and write. Acquire and release keep them between the two looks at the version.
template <std::size_t N>
class SharedWords {
 public:
  void store(const std::uint64_t* from) {
    for (std::size_t i = 0; i < N; ++i) words_[i].store(from[i], std::memory_order_release);
  }
  void load(std::uint64_t* to) const {
    for (std::size_t i = 0; i < N; ++i) to[i] = words_[i].load(std::memory_order_acquire);
  }
  bool equal(const std::uint64_t* to, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i)
      if (words_[i].load(std::memory_order_acquire) != to[i]) return false;
    return true;
  }

 private:
  std::array<std::atomic<std::uint64_t>, N> words_{};
};

}  // namespace

/// The arguments that go into one map.
struct TensorMapCache::Key {
  static constexpr std::size_t kWords = 2 * TensorMapRecipe::kMaxRank;
  std::array<std::uint64_t, kWords> words{};
  std::size_t size = 0;

  Key(const TensorMapRecipe& recipe, const ArgPack& args) {
    words[size++] = args.packed(recipe.base).value;
    for (std::size_t i = 0; i < recipe.rank; ++i) add(recipe.sizes[i], args);
    for (std::size_t i = 1; i < recipe.rank; ++i) add(recipe.strides[i], args);
  }
  std::size_t set() const {
    std::uint64_t h = 0;
    for (std::size_t i = 0; i < size; ++i) {
      h = (h ^ words[i]) * 0x9E3779B97F4A7C15;
      h ^= h >> 32;
    }
    return h % kSets;
  }

 private:
  void add(const TensorExtent& e, const ArgPack& args) {
    if (e.is_arg()) words[size++] = args.packed(e.arg).value;
  }
};

struct alignas(64) TensorMapCache::Entry {
  std::atomic<std::uint64_t> version{0};  ///< odd: being written; 0: empty
  std::atomic<std::uint64_t> turn{0};     ///< of the first of a set: how many were added to the set
  SharedWords<Key::kWords> key;
  SharedWords<kMapWords> map;

  bool find(const Key& wanted, std::byte* to) const {
    const std::uint64_t before = version.load(std::memory_order_acquire);
    if (before == 0 || before % 2 != 0 || !key.equal(wanted.words.data(), wanted.size)) return false;
    std::array<std::uint64_t, kMapWords> words;
    map.load(words.data());
    if (version.load(std::memory_order_relaxed) != before) return false;
    std::memcpy(to, words.data(), sizeof words);
    return true;
  }
  void put(const Key& k, const std::byte* from) {
    std::uint64_t before = version.load(std::memory_order_relaxed);
    if (before % 2 != 0 || !version.compare_exchange_strong(before, before + 1, std::memory_order_acquire)) return;
    std::array<std::uint64_t, kMapWords> words;
    std::memcpy(words.data(), from, sizeof words);
    key.store(k.words.data());
    map.store(words.data());
    version.store(before + 2, std::memory_order_release);
  }
};

TensorMapCache::TensorMapCache(const DeviceImpl& device, const KernelImage& image)
    : device_(device), image_(image), entries_(new Entry[image.recipe().tensor_maps.size() * kTable]) {}

TensorMapCache::~TensorMapCache() = default;

void TensorMapCache::write(const ArgPack& args, std::byte* maps) {
  for (std::size_t i = 0; i < recipes().size(); ++i) write_one(i, args, maps + i * TensorMap::kBytes);
}

void TensorMapCache::write_one(std::size_t map, const ArgPack& args, std::byte* to) {
  const TensorMapRecipe& recipe = recipes()[map];
  const Key key(recipe, args);
  Entry* const set = &entries_[map * kTable + key.set() * kWays];
  for (std::size_t way = 0; way < kWays; ++way)
    if (set[way].find(key, to)) return;
  alignas(TensorMap) std::array<std::byte, TensorMap::kBytes> fresh;
  encode_tensor_map(device_, spec(recipe, args), fresh.data());
  encoded_.fetch_add(1, std::memory_order_relaxed);
  std::memcpy(to, fresh.data(), fresh.size());
  set[set->turn.fetch_add(1, std::memory_order_relaxed) % kWays].put(key, fresh.data());
}

TensorSpec TensorMapCache::spec(const TensorMapRecipe& recipe, const ArgPack& args) const {
  TensorSpec s;
  s.dtype = recipe.dtype;
  s.base = args.packed(recipe.base).value;
  s.rank = recipe.rank;
  for (std::size_t i = 0; i < recipe.rank; ++i) s.sizes[i] = value(recipe.sizes[i], args);
  for (std::size_t i = 1; i < recipe.rank; ++i)
    s.strides[i - 1] = value(recipe.strides[i], args) * std::uint64_t(kiln::bytes(s.dtype));
  s.box = recipe.box;
  s.swizzle = recipe.swizzle;
  s.fill = recipe.fill;
  s.promotion = recipe.promotion;
  s.floats = recipe.floats;
  return s;
}

std::uint64_t TensorMapCache::value(const TensorExtent& e, const ArgPack& args) const {
  const auto v = e.is_arg() ? static_cast<std::int64_t>(args.packed(e.arg).value) : e.number;
  if (TensorMapRecipe::takes(v)) return static_cast<std::uint64_t>(v);
  const std::string& given = image_.signature.args[e.arg].name;
  throw UserError(fmt::format("{}: {}: value is {}, this image has a tensor map that takes 1 to 2^31 - 1", image_.name,
                              given.empty() ? fmt::format("argument {}", e.arg + 1) : given, v));
}

}  // namespace kiln::rt

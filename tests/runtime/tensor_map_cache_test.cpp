// Recipes of tensor maps: what their arguments must be known to be, and the maps that launches get.
#include "runtime/tensor_map_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "runtime/device_impl.h"
#include "runtime/launch.h"
#include "runtime/sim/tensor_map.h"

namespace kiln::rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct ViewOf {
  DevicePtr base;
  std::vector<std::int64_t> sizes, strides;
};

void pack_view(ArgPack& pack, DType dtype, const ViewOf& v) {
  pack.pointer(dtype, Access::Read, v.base, 0, nullptr);
  for (const std::int64_t n : v.sizes) pack.extent(dtype, n);
  for (const std::int64_t n : v.strides) pack.extent(dtype, n);
}

/// An image whose only argument is a view with the facts of `v`, and the recipe of one map of it.
KernelImage image_of(DType dtype, const ViewOf& v, std::initializer_list<int> order) {
  ArgPack pack;
  pack_view(pack, dtype, v);
  KernelImage image;
  image.name = "copy";
  image.ptx = ".entry copy()";
  for (std::size_t i = 0; i < pack.size(); ++i) {
    Arg a = pack.arg(i);
    const std::size_t rank = v.sizes.size();
    a.name = i == 0         ? "argument 1 (x)"
             : i - 1 < rank ? "argument 1 (x.size(" + std::to_string(i - 1) + "))"
                            : "argument 1 (x.stride(" + std::to_string(i - 1 - rank) + "))";
    image.signature.append(a);
  }
  image.candidates.emplace_back();
  image.candidates[0].hidden = {HiddenParam::TensorMaps};
  image.candidates[0].tensor_maps = {view_map(0, dtype, order)};
  image.candidates[0].tensor_maps[0].box = {16, 4, 2, 1, 1};
  return image;
}

/// Why a view is no tensor map of the given order; empty: it is one.
std::string obstacle(DType dtype, const ViewOf& v, std::initializer_list<int> order) {
  const KernelImage image = image_of(dtype, v, order);
  return tensor_map_obstacle(image.signature, image.recipe().tensor_maps[0]);
}

TEST(TensorMapObstacle, IsWhatTheFactsOfAViewLeaveOpen) {
  constexpr DType bf16 = DType::bf16;
  EXPECT_EQ(obstacle(bf16, {0x1000, {5, 64}, {64, 1}}, {1, 0}), "");
  EXPECT_EQ(obstacle(bf16, {0x1000, {5, 7}, {1000, 1}}, {1, 0}), "");  // 2000 bytes
  EXPECT_EQ(obstacle(bf16, {0x1000, {64, 5}, {1, 64}}, {0, 1}), "");   // transposed
  EXPECT_EQ(obstacle(bf16, {0x1000, {3, 9, 4}, {16, 1, 64}}, {1, 0, 2}), "");
  EXPECT_EQ(obstacle(bf16, {0x1010, {100}, {1}}, {0}), "");
  EXPECT_EQ(obstacle(bf16, {0x1008, {5, 64}, {64, 1}}, {1, 0}),
            "argument 1 (x): not known to be a multiple of 16 bytes");
  EXPECT_EQ(obstacle(bf16, {0x1000, {5, 64}, {68, 1}}, {1, 0}),
            "argument 1 (x.stride(0)): not known to be a multiple of 16 bytes");
  EXPECT_EQ(obstacle(f32, {0x1000, {5, 64}, {68, 1}}, {1, 0}), "");
  EXPECT_EQ(obstacle(DType::u8, {0x1000, {5, 64}, {72, 1}}, {1, 0}),
            "argument 1 (x.stride(0)): not known to be a multiple of 16 bytes");
  EXPECT_EQ(obstacle(bf16, {0x1000, {5, 64}, {128, 2}}, {1, 0}), "argument 1 (x.stride(1)): not known to be 1");
  EXPECT_EQ(obstacle(bf16, {0x1000, {64, 5}, {1, 64}}, {1, 0}), "argument 1 (x.stride(1)): not known to be 1");
  EXPECT_EQ(obstacle(DType::i1, {0x1000, {64}, {1}}, {0}), "dtype is i1, whose elements are no bytes");
  EXPECT_EQ(obstacle(bf16, {0x1000, {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, {5, 4, 3, 2, 1, 0}),
            "rank is 6, must be 1 to 5");
}

TEST(TensorMapObstacle, HoldsForNumbersToo) {
  KernelImage image = image_of(f32, {0x1000, {5, 64}, {64, 1}}, {1, 0});
  TensorMapRecipe& map = image.candidates[0].tensor_maps[0];
  const auto why = [&] { return tensor_map_obstacle(image.signature, map); };
  map.sizes[0] = {TensorExtent::kNumber, 64};
  map.strides[0] = {TensorExtent::kNumber, 1};
  map.strides[1] = {TensorExtent::kNumber, 4};
  EXPECT_EQ(why(), "");
  map.strides[1].number = 6;
  EXPECT_EQ(why(), "strides[1] is 24 bytes, no multiple of 16");
  map.strides[1].number = 4;
  map.strides[0].number = 2;
  EXPECT_EQ(why(), "strides[0] is 2, must be 1");
  map.strides[0].number = 1;
  map.sizes[0].number = 0;
  EXPECT_EQ(why(), "sizes[0] is 0, must be 1 to 2^31 - 1");
  map.sizes[0] = {0, 0};
  EXPECT_EQ(why(), "argument 1 (x): is sizes[0], but no index");
  map.sizes[0] = {99, 0};
  EXPECT_EQ(why(), "sizes[0] is argument 100 of 5");
  map = view_map(1, f32, {1, 0});
  EXPECT_EQ(why(), "argument 1 (x.size(0)): is the base, but no pointer");
  map.base = 5;
  EXPECT_EQ(why(), "the base is argument 6 of 5");
}

TEST(TensorMapObstacle, ImagesWithOneAreNotLoaded) {
  const Device d = Device::simulator("sm_90a");
  const auto error = [&](const KernelImage& image) {
    try {
      d.load(image);
      return std::string("loaded");
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
  };
  KernelImage image = image_of(f32, {0x1000, {5, 64}, {66, 1}}, {1, 0});
  EXPECT_THAT(error(image), HasSubstr("kernel copy: tensor map: argument 1 (x.stride(0)): not known to be"));
  image = image_of(f32, {0x1000, {5, 64}, {64, 1}}, {1, 0});
  image.candidates[0].hidden.push_back(HiddenParam::UserGrid);
  EXPECT_THAT(error(image), HasSubstr("the last hidden parameter and no other must be theirs"));
  image.candidates[0].hidden.clear();
  EXPECT_THAT(error(image), HasSubstr("1 tensor maps, but"));
  image.candidates[0].hidden = {HiddenParam::TensorMaps};
  image.candidates[0].tensor_maps.clear();
  EXPECT_THAT(error(image), HasSubstr("0 tensor maps, but"));
}

class Cached : public ::testing::Test {
 protected:
  /// The map that a launch with `v` gets, read back.
  TensorSpec map_for(TensorMapCache& cache, DType dtype, const ViewOf& v) {
    ArgPack pack;
    pack_view(pack, dtype, v);
    TensorMap map;
    cache.write(pack, const_cast<std::byte*>(map.bytes()));
    return sim::read_tensor_map(map.bytes()).value();
  }
  Device device_ = Device::simulator("sm_90a");
};

TEST_F(Cached, MapsDescribeTheArgumentsOfTheLaunch) {
  const ViewOf v{0x4000, {3, 9, 40}, {400, 40, 1}};
  KernelImage image = image_of(DType::bf16, v, {2, 1, 0});
  TensorMapRecipe& map = image.candidates[0].tensor_maps[0];
  map.swizzle = TensorSwizzle::Bytes32;
  map.fill = TensorFill::NaN;
  map.promotion = TensorPromotion::Bytes256;
  TensorMapCache cache(device_.impl(), image);
  const TensorSpec s = map_for(cache, DType::bf16, v);
  EXPECT_EQ(s.base, 0x4000u);
  EXPECT_EQ(s.dtype, DType::bf16);
  EXPECT_EQ(s.rank, 3u);
  EXPECT_THAT(s.sizes, ::testing::ElementsAre(40, 9, 3, 0, 0));
  EXPECT_THAT(s.strides, ::testing::ElementsAre(80, 800, 0, 0));
  EXPECT_THAT(s.box, ::testing::ElementsAre(16, 4, 2, 0, 0));
  EXPECT_EQ(s.swizzle, TensorSwizzle::Bytes32);
  EXPECT_EQ(s.fill, TensorFill::NaN);
  EXPECT_EQ(s.promotion, TensorPromotion::Bytes256);
}

TEST_F(Cached, EachValueIsEncodedOnce) {
  const ViewOf v{0x4000, {9, 64}, {64, 1}};
  const KernelImage image = image_of(f32, v, {1, 0});
  TensorMapCache cache(device_.impl(), image);
  const auto expect = [&](const ViewOf& wanted, std::uint64_t encoded) {
    const TensorSpec s = map_for(cache, f32, wanted);
    EXPECT_EQ(s.base, wanted.base);
    EXPECT_EQ(s.sizes[1], std::uint64_t(wanted.sizes[0]));
    EXPECT_EQ(s.strides[0], 4 * std::uint64_t(wanted.strides[0]));
    EXPECT_EQ(cache.encoded(), encoded);
  };
  for (int i = 0; i < 3; ++i) expect(v, 1);
  expect({0x8000, {9, 64}, {64, 1}}, 2);
  expect({0x4000, {8, 64}, {64, 1}}, 3);
  expect({0x4000, {9, 64}, {68, 1}}, 4);
  expect({0x8000, {9, 64}, {64, 1}}, 4);
  expect(v, 4);
}

TEST_F(Cached, NumbersOfTheRecipeAreNotAskedOfTheLaunch) {
  const ViewOf v{0x4000, {9, 64}, {64, 1}};
  KernelImage image = image_of(f32, v, {1, 0});
  image.candidates[0].tensor_maps[0].sizes[0] = {TensorExtent::kNumber, 32};
  image.candidates[0].tensor_maps[0].strides[1] = {TensorExtent::kNumber, 128};
  TensorMapCache cache(device_.impl(), image);
  const TensorSpec s = map_for(cache, f32, v);
  EXPECT_THAT(s.sizes, ::testing::ElementsAre(32, 9, 0, 0, 0));
  EXPECT_EQ(s.strides[0], 512u);
}

TEST_F(Cached, HundredsOfWeightsStayAndMoreAreStillRight) {
  const KernelImage image = image_of(f32, {0x4000, {9, 64}, {64, 1}}, {1, 0});
  TensorMapCache cache(device_.impl(), image);
  const auto round = [&](std::uint64_t bases) {
    for (std::uint64_t i = 1; i <= bases; ++i)
      ASSERT_EQ(map_for(cache, f32, {i << 20, {9, 64}, {64, 1}}).base, i << 20);
  };
  round(200);
  const std::uint64_t first = cache.encoded();
  EXPECT_EQ(first, 200u);
  round(200);
  EXPECT_LE(cache.encoded() - first, 20u);  // the sets that got more than eight
  round(5000);
}

TEST_F(Cached, ExtentsThatNoMapTakesAreRefusedByName) {
  const KernelImage image = image_of(f32, {0x4000, {9, 64}, {64, 1}}, {1, 0});
  TensorMapCache cache(device_.impl(), image);
  const auto error = [&](const ViewOf& v) {
    try {
      map_for(cache, f32, v);
      return std::string("taken");
    } catch (const UserError& e) {
      return std::string(e.what());
    }
  };
  EXPECT_THAT(error({0x4000, {0, 64}, {64, 1}}),
              HasSubstr("copy: argument 1 (x.size(0)): value is 0, this image has a tensor map that takes 1 to 2^31 - 1"));
  EXPECT_THAT(error({0x4000, {9, 64}, {-64, 1}}), HasSubstr("argument 1 (x.stride(0)): value is -64"));
  EXPECT_THAT(error({0x4000, {9, 64}, {0, 1}}), HasSubstr("argument 1 (x.stride(0)): value is 0"));
  EXPECT_THAT(error({0x4000, {9, std::int64_t{1} << 31}, {64, 1}}),
              HasSubstr("argument 1 (x.size(1)): value is 2147483648"));
  EXPECT_EQ(error({0x4000, {9, (std::int64_t{1} << 31) - 1}, {64, 1}}), "taken");
}

// Entries are replaced all the time: no thread may ever get a map of which a part is another's.
TEST_F(Cached, ThreadsNeverSeeHalfAMap) {
  const KernelImage image = image_of(f32, {0x4000, {9, 64}, {64, 1}}, {1, 0});
  TensorMapCache cache(device_.impl(), image);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 20000; ++i) {
        const std::uint64_t n = 1 + random() % 1500;
        const TensorSpec s = map_for(cache, f32, {n << 16, {std::int64_t(n), 64}, {std::int64_t(64 * n), 1}});
        wrong += s.base != n << 16 || s.sizes[1] != n || s.strides[0] != 256 * n;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cache.encoded(), 1500u);
}

}  // namespace
}  // namespace kiln::rt

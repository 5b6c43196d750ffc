// What a launch costs the host besides the driver, on the fake one, whose own share is some 20 ns. The bounds are those
// of a busy machine; the figures themselves are printed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "runtime/launch.h"
#include "tests/runtime/count_allocations.h"
#include "tests/runtime/cuda_fixture.h"

namespace kiln::rt {
namespace {

/// Nanoseconds. A sanitizer's own work is ten times that of a launch.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kMost = 30000;
#else
constexpr double kMost = 3000;
#endif

class CudaLaunchCost : public OnFakeCuda {
 protected:
  /// Launches an image of the arguments that `pack(p)` packs, 20000 times; prints and bounds the least time of 1000.
  template <class Pack>
  void expect_cheap(const char* what, KernelImage image, const Device& d, Pack&& pack) {
    ArgPack first;
    pack(first);
    image.signature = {};
    for (std::size_t i = 0; i < first.size(); ++i) image.signature.append(first.arg(i));
    const auto kernel = d.load(image);
    const Stream s(d);
    const auto go = [&] {
      ArgPack p;
      pack(p);
      launch(*kernel, s, {16}, p);
    };
    go();
    const std::size_t before = allocations_so_far();
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 1000; ++i) go();
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
      best = std::min(best, took.count() / 1000);
    }
    EXPECT_EQ(allocations_so_far(), before);
    std::printf("[   cost   ] pack, check and launch %s: %.0f ns\n", what, best);
    EXPECT_LT(best, kMost);
  }
  static std::vector<Buffer<float>> buffers(const Device& d, int count) {
    std::vector<Buffer<float>> list;
    for (int i = 0; i < count; ++i) list.emplace_back(d, 64 * 64);
    return list;
  }
  static void pack_views(ArgPack& p, const Device& d, const std::vector<Buffer<float>>& list) {
    for (const Buffer<float>& b : list) {
      p.pointer(f32, &b == &list.back() ? Access::ReadWrite : Access::Read, b.ptr(), b.bytes(), &d);
      for (const std::int64_t extent : {64, 64, 64, 1}) p.extent(f32, extent);
    }
  }
};

TEST_F(CudaLaunchCost, ThreeArguments) {
  const Device d = open();
  const auto list = buffers(d, 2);
  expect_cheap("3 arguments", add_image(), d, [&](ArgPack& p) {
    p.pointer(f32, Access::Read, list[0].ptr(), list[0].bytes(), &d);
    p.pointer(f32, Access::Write, list[1].ptr(), list[1].bytes(), &d);
    p.index(16);
  });
}

TEST_F(CudaLaunchCost, SixteenArguments) {
  const Device d = open();
  const auto list = buffers(d, 14);
  expect_cheap("16 arguments, 14 of them pointers", add_image(), d, [&](ArgPack& p) {
    for (const Buffer<float>& b : list)
      p.pointer(f32, &b == &list.back() ? Access::Write : Access::Read, b.ptr(), b.bytes(), &d);
    p.index(0);
    p.index(16);
  });
}

TEST_F(CudaLaunchCost, ThreeViews) {
  const Device d = open();
  const auto list = buffers(d, 3);
  expect_cheap("3 views", add_image(), d, [&](ArgPack& p) { pack_views(p, d, list); });
}

TEST_F(CudaLaunchCost, ThreeViewsThatBecomeTensorMaps) {
  const Device d = open();
  const auto list = buffers(d, 3);
  KernelImage image = add_image();
  image.ptx = ".visible .entry add(";
  for (unsigned i = 0; i < 15; ++i) {
    image.ptx += ".param .u64 p" + std::to_string(i) + ", ";
    fake_->params.push_back({8 * i, 8});
  }
  image.ptx += ".param .align 64 .b8 maps[384])";
  fake_->params.push_back({128, 384});
  LaunchRecipe& recipe = image.candidates[0];
  recipe.hidden = {HiddenParam::TensorMaps};
  for (std::uint32_t i = 0; i < 3; ++i) {
    recipe.tensor_maps.push_back(view_map(5 * i, f32, {1, 0}));
    recipe.tensor_maps.back().box = {32, 64, 1, 1, 1};
  }
  expect_cheap("3 views and their tensor maps", image, d, [&](ArgPack& p) { pack_views(p, d, list); });
  EXPECT_EQ(fake_->last.param_bytes, 512u);
}

}  // namespace
}  // namespace kiln::rt

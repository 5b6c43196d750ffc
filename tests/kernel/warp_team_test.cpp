// Short rows are run by one warp each, several a block; the last block may be half empty.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class WarpTeam : public EveryDevice {};
KILN_ON_EVERY_DEVICE(WarpTeam);

constinit auto centre =
    kernel("centre", [](In<std::int32_t> x, Out<std::int32_t> y, Out<std::int64_t> seen, Int n, Const<int> WIDTH) {
      Tile i = arange(WIDTH), inside = i < n;
      Scalar row = program_id(1) * num_programs(0) + program_id(0);
      Tile v = load(x + row * n + i, inside, 0);
      store(y + row * n + i, v - sum(v), inside);
      store(seen + row, num_programs(0).cast(i64));
    });

TEST_P(WarpTeam, EveryRowIsRunWhateverTheirNumber) {
  Stream s(device());
  for (int n : {1, 33, 100, 512})
    for (int rows : {1, 2, 3, 7, 20})
      for (int groups : {1, 3}) {
        const auto all = std::size_t(rows * groups * n);
        std::vector<std::int32_t> h(all), want(all);
        for (std::size_t i = 0; i < all; ++i) h[i] = int(i * 2654435761u >> 20) - 2000;
        auto x = buffer_of(device(), h);
        auto y = buffer_of(device(), std::vector<std::int32_t>(all + 64, -1));
        auto seen = buffer_of(device(), std::vector<std::int64_t>(std::size_t(rows * groups) + 2, -1));
        centre.launch(s, {rows, groups}, x, y, seen, n, 512);
        s.synchronize();
        for (int r = 0; r < rows * groups; ++r) {
          std::uint32_t total = 0;
          for (int i = 0; i < n; ++i) total += std::uint32_t(h[std::size_t(r * n + i)]);
          for (int i = 0; i < n; ++i)
            want[std::size_t(r * n + i)] = std::int32_t(std::uint32_t(h[std::size_t(r * n + i)]) - total);
        }
        auto got = y.to_vector();
        for (std::size_t i = all; i < got.size(); ++i) ASSERT_EQ(got[i], -1) << "written by an idle warp";
        got.resize(all);
        ASSERT_EQ(got, want) << n << " " << rows << " " << groups;
        const auto counts = seen.to_vector();
        for (int r = 0; r < rows * groups; ++r) ASSERT_EQ(counts[std::size_t(r)], rows);
        ASSERT_EQ(counts.back(), -1);
      }
}

TEST_P(WarpTeam, TwoShortRowsAreOneBlock) {
  if (device().kind() == DeviceKind::Interpreter) GTEST_SKIP() << "the interpreter has no blocks";
  Buffer<std::int32_t> x(device(), 16), y(device(), 16);
  Buffer<std::int64_t> seen(device(), 16);
  const rt::KernelImage image = centre.image(device(), x, y, seen, 3, 512);
  EXPECT_EQ(image.recipe().grid, rt::GridRule::CeilDiv);
  EXPECT_EQ(image.recipe().programs_per_cta, 2u);
  EXPECT_EQ(image.recipe().block[0], 64u);
  EXPECT_EQ(image.recipe().smem_bytes, 0u);
  EXPECT_THAT(image.ptx, testing::Not(testing::HasSubstr("bar.sync")));
  EXPECT_EQ(centre.with({.num_warps = 4}).image(device(), x, y, seen, 3, 512).recipe().block[0], 128u);
  EXPECT_EQ(centre.image(device(), x, y, seen, 3, 1024).recipe().programs_per_cta, 1u) << "4 KB are no short row";
}

// Scalars that decide a branch are loaded once a program, in shared memory of its own.
constinit auto branch = kernel("branch", [](In<std::int32_t> x, In<std::int32_t> flag, Out<std::int32_t> y) {
  Tile i = arange(64);
  Scalar pid = program_id(0), total = sum(load(x + pid * 64 + i));
  for (auto k : range(load(flag + pid))) total += k.cast(i32) + max(load(x + pid * 64 + i));
  store(y + pid, total);
});
TEST_P(WarpTeam, BranchesDifferBetweenTheProgramsOfABlock) {
  Stream s(device());
  const int rows = 9;
  std::vector<std::int32_t> h(rows * 64), flags(rows), want(rows);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = int(i * 2654435761u >> 22) - 500;
  for (int r = 0; r < rows; ++r) {
    flags[std::size_t(r)] = (r * 5) % 4;
    std::int32_t total = 0, most = -1000;
    for (int i = 0; i < 64; ++i) {
      total += h[std::size_t(r * 64 + i)];
      most = std::max(most, h[std::size_t(r * 64 + i)]);
    }
    for (int k = 0; k < flags[std::size_t(r)]; ++k) total += k + most;
    want[std::size_t(r)] = total;
  }
  auto x = buffer_of(device(), h), flag = buffer_of(device(), flags);
  Buffer<std::int32_t> y(device(), rows);
  branch.launch(s, rows, x, flag, y);
  s.synchronize();
  EXPECT_EQ(y.to_vector(), want);
}

}  // namespace

// Rows that do not fit one multiprocessor: one tile over the blocks of a cluster, in the language.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backend/target.h"
#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class ClusterRows : public EveryDevice {
 protected:
  /// The interpreter runs programs, not blocks.
  bool has_clusters() const {
    return device().kind() == DeviceKind::Interpreter ||
           target_named(device().target(), device().ptx_version()).has_cluster();
  }
};
KILN_ON_EVERY_DEVICE(ClusterRows);

constinit auto statistics = kernel("statistics", [](In<std::int32_t> x, Out<std::int32_t> sums, Out<std::int32_t> found,
                                                    InOut<std::int32_t> seen, Int n, Const<int> WIDTH) {
  Tile i = arange(WIDTH), inside = i < n, row = load(x + program_id(0) * n + i, inside, 0);
  store(sums + program_id(0) * n + i, cumsum(row, 0), inside);
  store(found + program_id(0) * 3, sum(row));
  store(found + program_id(0) * 3 + 1, max(row));
  store(found + program_id(0) * 3 + 2, argmax(row).cast(i32));
  atomic_add(seen + i % 7, 1, inside);
});

TEST_P(ClusterRows, AreReducedAndScannedAsOneTile) {
  if (!has_clusters()) GTEST_SKIP() << device().target() << " has no clusters";
  const Stream s(device());
  for (const int n : {200000, 100003}) {
    const int rows = 2;
    std::vector<std::int32_t> h(std::size_t(rows * n));
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = int(i * 2654435761u >> 16) % 2001 - 1000;
    auto x = buffer_of(device(), h);
    auto seen = buffer_of(device(), std::vector<std::int32_t>(7));
    Buffer<std::int32_t> sums(device(), h.size()), found(device(), 3 * rows);
    statistics.with({.num_warps = 16, .cluster = 8}).launch(s, rows, x, sums, found, seen, n, n);
    s.synchronize();
    const auto got = sums.to_vector(), of_rows = found.to_vector(), counted = seen.to_vector();
    for (int r = 0; r < rows; ++r) {
      const std::int32_t* row = h.data() + r * n;
      std::int32_t total = 0;
      for (int i = 0; i < n; ++i) ASSERT_EQ(got[std::size_t(r * n + i)], total += row[i]) << n << " " << r << " " << i;
      const std::int32_t* best = std::max_element(row, row + n);
      EXPECT_EQ(of_rows[std::size_t(3 * r)], total) << n;
      EXPECT_EQ(of_rows[std::size_t(3 * r + 1)], *best) << n;
      EXPECT_EQ(of_rows[std::size_t(3 * r + 2)], best - row) << n;
    }
    for (int k = 0; k < 7; ++k) EXPECT_EQ(counted[std::size_t(k)], rows * ((n - k + 6) / 7)) << n << " " << k;
  }
}

TEST(ClusterRowErrors, ARowThatOneBlockCannotHoldSaysSo) {
  const Device d = Device::simulator();
  Buffer<std::int32_t> x(d, 1), y(d, 1), z(d, 1), seen(d, 7);
  EXPECT_THAT(kiln::test::error_of<UserError>(
                  [&] { (void)statistics.with({.num_warps = 32}).image(d, x, y, z, seen, 200000, 200000); }),
              testing::HasSubstr("registers a thread on 1024 threads, at most 128 are allowed"));
}

}  // namespace

// Arguments that share memory: whatever overlaps, a program's accesses happen in the order written. The launcher tells
// the compiler which pointers overlap nothing; one kernel object gets code for both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "backend/target.h"
#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"

namespace {
using namespace kiln;
using kiln::test::EveryDevice;

class Overlaps : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Overlaps);

/// Two stores and loads between and after them behind a reduction: the end of a row kernel, where what is disjoint is
/// done in pieces.
constinit auto row = kernel("row", [](In<float> x, In<float> w, Out<float> y, Out<float> z, Const<int> N) {
  Tile i = arange(N), v = load(x + i);
  Scalar most = max(v);
  store(y + i, (v - most) * load(w + i));
  store(z + i, load(w + i) + load(x + i));
  store(y + i, load(z + i) - most, i % 2 == 0);
});

/// The same on the host, element arrays being offsets into one memory.
void row_on_host(std::vector<float>& memory, const std::array<int, 4>& at, int n) {
  const auto tile = [&](int from) { return std::vector<float>(memory.begin() + from, memory.begin() + from + n); };
  const std::vector<float> v = tile(at[0]), w = tile(at[1]);
  const float most = *std::max_element(v.begin(), v.end());
  for (int i = 0; i < n; ++i) memory[std::size_t(at[2] + i)] = (v[std::size_t(i)] - most) * w[std::size_t(i)];
  const std::vector<float> w2 = tile(at[1]), x2 = tile(at[0]);
  for (int i = 0; i < n; ++i) memory[std::size_t(at[3] + i)] = w2[std::size_t(i)] + x2[std::size_t(i)];
  const std::vector<float> z = tile(at[3]);
  for (int i = 0; i < n; i += 2) memory[std::size_t(at[2] + i)] = z[std::size_t(i)] - most;
}

TEST_P(Overlaps, ArgumentsAtAnyOffsetGiveSequentialResults) {
  const Stream s(device());
  for (const auto& [n, warps] : {std::pair{1000, 0}, {4096, 4}, {512, 1}}) {
    std::vector<float> start(std::size_t(4 * n + 600));
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = float(int(i * 2654435761u >> 16) % 7 - 3);
    Buffer<float> memory(device(), start.size());
    const std::array<int, 4> apart{0, n, 2 * n, 3 * n};
    for (const std::array<int, 4>& at : {
             apart,
             {0, n, 1, 3 * n},          // y is x, one element on
             {64, n, 0, 3 * n},         // and 64 back
             {0, n, 2 * n, n},          // z is w
             {0, n, 2 * n, 2 * n},      // two outputs are one
             {0, n, 2 * n, 2 * n + 4},  // or overlap
             {n, n, n, n},              // all are one
             {0, 1, 2, 3},              // or next to each other
             {513, 0, 4, 500},
             apart,  // the code for disjoint arguments is still there
         }) {
      std::vector<float> want = start;
      row_on_host(want, at, n);
      memory.upload(start);
      const auto part = [&](int k) {
        return Buffer<float>::foreign(device(), memory.ptr() + std::uint64_t(4 * at[std::size_t(k)]), std::size_t(n));
      };
      auto x = part(0), w = part(1), y = part(2), z = part(3);
      row.with({.num_warps = warps}).launch(s, 1, x, w, y, z, n);
      s.synchronize();
      ASSERT_EQ(memory.to_vector(), want)
          << n << " elements, x, w, y, z at " << at[0] << " " << at[1] << " " << at[2] << " " << at[3];
    }
  }
}

// The last argument's extent is unknown, so it may overlap all others.
TEST_P(Overlaps, PointersOfUnknownSizeOverlapEverything) {
  const Stream s(device());
  const int n = 300;
  std::vector<float> start(std::size_t(n + 40));
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = float(i % 13);
  Buffer<float> memory(device(), start.size());
  for (int shift : {0, 1, 33}) {
    const auto shifted = kernel("shifted", [](In<float> x, Out<float> y, Const<int> N) {
      Tile i = arange(N), v = load(x + i);
      store(y + i, v - max(v));
      store(y + i, load(x + i) + 1.f, i < 7);
    });
    memory.upload(start);
    auto x = Buffer<float>::foreign(device(), memory.ptr(), std::size_t(n));
    shifted.launch(s, 1, x, device_ptr<float>(memory.ptr() + std::uint64_t(4 * shift)), n);
    s.synchronize();
    std::vector<float> want = start;
    for (int i = 0; i < n; ++i) want[std::size_t(i + shift)] = start[std::size_t(i)] - 12.f;
    const std::vector<float> stored = want;
    for (int i = 0; i < 7; ++i) want[std::size_t(i + shift)] = stored[std::size_t(i)] + 1.f;
    ASSERT_EQ(memory.to_vector(), want) << shift;
  }
}

/// Branches on scalars that the same program may write: all its threads see what was there before each store.
constinit auto toggles = kernel("toggles", [](In<std::int32_t> flag, Out<std::int32_t> y, Const<int> N) {
  Tile i = arange(N);
  Scalar limit = load(flag), k = 0;
  while_([&] { return k < load(flag + 1); },
         [&] {
           store(y + i, i.cast(i32) % 3 + k - limit);
           k += 1 + load(flag + 2);
         });
  if_(limit > 5, [&] { store(y + 3, limit + k); });
});

/// The same on the host.
void toggle(std::vector<std::int32_t>& memory, std::size_t flag, std::size_t y, int n) {
  const std::int32_t limit = memory[flag];
  std::int32_t k = 0;
  while (k < memory[flag + 1]) {
    for (int i = 0; i < n; ++i) memory[y + std::size_t(i)] = i % 3 + k - limit;
    k += 1 + memory[flag + 2];
  }
  if (limit > 5) memory[y + 3] = limit + k;
}

TEST_P(Overlaps, ScalarsThatDecideBranchesAreReadBeforeTheyAreOverwritten) {
  const Stream s(device());
  const bool clusters = device().kind() == DeviceKind::Interpreter ||
                        target_named(device().target(), device().ptx_version()).has_cluster();
  for (const auto& [n, warps, cluster] : {std::tuple{64, 0, 1}, {1000, 4, 1}, {2048, 8, 1}, {1000, 2, 4}})
    for (const std::size_t y : {0, 1, 2, 3, 8}) {
      if (cluster > 1 && !clusters) continue;
      std::vector<std::int32_t> want(std::size_t(n + 16));
      want[5] = 7, want[6] = 5;
      const std::size_t flag = 5;
      Buffer<std::int32_t> memory(device(), want.size());
      memory.upload(want);
      const auto part = [&](std::size_t at, std::size_t size) {
        return Buffer<std::int32_t>::foreign(device(), memory.ptr() + 4 * at, size);
      };
      auto flags = part(flag, 3), out = part(y, std::size_t(n));
      toggle(want, flag, y, n);
      toggles.with({.num_warps = warps, .cluster = cluster}).launch(s, 1, flags, out, n);
      s.synchronize();
      ASSERT_EQ(memory.to_vector(), want) << n << " elements from " << y;
    }
}

// What the compiler knew shows in the code: apart, the end of the row runs in pieces without a barrier between them.
TEST(OverlapFacts, ArePartOfTheKey) {
  const Device d = Device::simulator();
  Buffer<float> a(d, 4096), b(d, 4096), c(d, 4096), e(d, 4096);
  const auto with = row.with({.num_warps = 4});
  const rt::KernelImage apart = with.image(d, a, b, c, e, 4096), same = with.image(d, a, b, a, e, 4096);
  EXPECT_NE(apart.ptx, same.ptx);
  EXPECT_TRUE(apart.signature.args.at(2).disjoint);
  EXPECT_FALSE(same.signature.args.at(2).disjoint);
  EXPECT_TRUE(same.signature.args.at(1).disjoint);
}

}  // namespace

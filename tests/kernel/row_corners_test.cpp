// Row kernels that are out of the ordinary: reports and loops in rows that share a block, elements of every size, what
// the user fixed, clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backend/target.h"
#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class RowCorners : public EveryDevice {
 protected:
  bool has_clusters() const {
    return device().kind() == DeviceKind::Interpreter ||
           target_named(device().target(), device().ptx_version()).has_cluster();
  }
};
KILN_ON_EVERY_DEVICE(RowCorners);

constinit auto told = kernel("told", [](In<std::int32_t> x, Out<std::int32_t> y, Int n) {
  Tile i = arange(64), inside = i < n, v = load(x + program_id(0) * n + i, inside);
  Scalar total = sum(v);
  print("sum {}", total);
  print("{}", v);
  device_assert(total < 100, "too much");
  store(y + program_id(0) * n + i, v - total, inside);
});

TEST_P(RowCorners, TwoRowsOfABlockReportInTheOrderOfPrograms) {
  std::vector<std::string> lines;
  device().on_print([&](const std::string& line) { lines.push_back(line); });
  const Stream s(device());
  auto x = buffer_of(device(), std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  Buffer<std::int32_t> y(device(), 6);
  told.launch(s, 3, x, y, 2);
  s.synchronize();
  device().on_print({});
  std::vector<std::string> sums;
  for (const std::string& l : lines)
    if (l.find("sum") != l.npos) sums.push_back(l);
  EXPECT_THAT(sums, testing::ElementsAre("told (0, 0, 0): sum 3", "told (1, 0, 0): sum 7", "told (2, 0, 0): sum 11"));
  EXPECT_EQ(lines.size(), 3u + 3 * 64);
  EXPECT_EQ(y.to_vector(), (std::vector<std::int32_t>{-2, -1, -4, -3, -6, -5}));
}

TEST_P(RowCorners, AnAssertionOfTheSecondRowNamesItsProgram) {
  const Stream s(device());
  auto x = buffer_of(device(), std::vector<std::int32_t>{1, 2, 300, 4, 5, 6});
  Buffer<std::int32_t> y(device(), 6);
  EXPECT_THAT(kiln::test::error_of<DeviceError>([&] {
                told.launch(s, 3, x, y, 2);
                s.synchronize();
              }),
              testing::AllOf(testing::HasSubstr("too much"), testing::HasSubstr("(1, 0, 0)")));
}

template <class T>
constinit auto centred = kernel("centred", [](View<const T, 2> x, View<T, 2> y, Const<int> N) {
  Tile i = arange(N), inside = i < x.size(1), v = load(x.pointer() + program_id(0) * x.stride(0) + i, inside);
  Scalar most = max(v);
  store(y.pointer() + program_id(0) * y.stride(0) + i, select(v == most, v, v - most), inside);
});

template <class T>
void centre_rows(const Device& d, const CompileOptions& o, int rows, int n, int width, int offset, int stride) {
  SCOPED_TRACE(std::string(name(dtype_of<T>)) + " " + std::to_string(n) + " at " + std::to_string(offset) + " stride " +
               std::to_string(stride));
  const int pitch = std::abs(stride);
  std::vector<T> h(std::size_t(offset + rows * std::max(pitch, 1) + n));
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = T(int(i * 2654435761u >> 20) % 50);
  auto x = buffer_of(d, h);
  std::vector<T> want(std::size_t(rows * n + 3), T(1));
  auto y = buffer_of(d, want);
  const int first = offset + (stride < 0 ? (rows - 1) * pitch : 0);
  for (int r = 0; r < rows; ++r) {
    const T* row = h.data() + first + r * stride;
    T most = T(0);
    for (int i = 0; i < n; ++i) most = std::max(most, row[i]);
    for (int i = 0; i < n; ++i) want[std::size_t(r * n + i + 1)] = row[i] == most ? most : T(row[i] - most);
  }
  const Stream s(d);
  centred<T>.with(o).launch(s, rows, {device_ptr<T>(x.ptr() + std::size_t(first) * sizeof(T)), {rows, n}, {stride, 1}},
                            {device_ptr<T>(y.ptr() + sizeof(T)), {rows, n}}, width);
  s.synchronize();
  EXPECT_EQ(y.to_vector(), want);
}

TEST_P(RowCorners, OfEveryElementSizePlaceAndStride) {
  for (const int n : {1, 33, 1000, 5000}) {
    const int width = n + n / 3;
    for (const auto& [offset, stride] : {std::pair{0, n}, {1, n + 3}, {0, 0}, {3, -n}, {16, 16 * n}}) {
      centre_rows<std::int8_t>(device(), {}, 3, n, width, offset, stride);
      centre_rows<std::int16_t>(device(), {}, 3, n, width, offset, stride);
      centre_rows<std::int64_t>(device(), {}, 3, n, width, offset, stride);
      centre_rows<double>(device(), {}, 3, n, width, offset, stride);
    }
  }
}

TEST_P(RowCorners, WhatTheUserFixedHolds) {
  for (const CompileOptions& o :
       {CompileOptions{.num_warps = 1}, CompileOptions{.num_warps = 16}, CompileOptions{.max_registers = 32},
        CompileOptions{.num_warps = 2, .max_registers = 16}})
    for (const int n : {7, 1024, 3000}) centre_rows<std::int32_t>(device(), o, 3, n, n, 0, n);
  if (!has_clusters()) GTEST_SKIP() << device().target() << " has no clusters";
  for (const CompileOptions& o : {CompileOptions{.cluster = 2}, CompileOptions{.num_warps = 1, .cluster = 8},
                                  CompileOptions{.cluster = 4, .max_registers = 40}})
    for (const int n : {7, 1024, 3000}) {
      centre_rows<std::int32_t>(device(), o, 3, n, n, 0, n);
      centre_rows<std::int8_t>(device(), o, 3, n, n, 1, n);
      centre_rows<double>(device(), o, 3, n, n, 0, 0);
    }
}

// The places of x and y in memory allow different vectors: the row must not need more shared memory than there is.
TEST(RowCornersOfTargets, WideRowsWhoseSidesDifferInAlignment) {
  for (const char* target : {"sm_86", "sm_90a", "sm_120a"}) {
    const Device d = Device::simulator(target);
    centre_rows<float>(d, {}, 1, 32768, 32768, 0, 0);
    centre_rows<double>(d, {}, 1, 16384, 16384, 0, 0);
    centre_rows<double>(d, {.num_warps = 32}, 1, 32768, 32768, 0, 0);
  }
}

/// A chain in read-only memory: every thread follows it for itself.
constinit auto chain = kernel("chain", [](In<std::int32_t> next, In<std::int32_t> x, Out<std::int32_t> y, Int n) {
  Tile i = arange(128), inside = i < n;
  Scalar at = program_id(0).cast(i32), total = 0;
  while_([&] { return load(next + at) >= 0; },
         [&] {
           Tile v = load(x + at * n + i, inside);
           total += sum(v);
           store(y + program_id(0) * n + i, v + total, inside);
           at = load(next + at);
         });
  if_(load(next + at) == -2, [&] { store(y + program_id(0) * n, total); });
});

TEST_P(RowCorners, LoopsFollowReadOnlyMemory) {
  for (const auto& [warps, cluster] : {std::pair{0, 1}, {1, 1}, {4, 1}, {2, 2}}) {
    if (cluster > 1 && !has_clusters()) continue;
    const Stream s(device());
    const int rows = 5, n = 100;
    const std::vector<std::int32_t> next{3, 2, -2, 1, -1};
    std::vector<std::int32_t> h(std::size_t(rows * n)), want(h.size(), 9);
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = int(i * 2654435761u >> 20);
    for (int p = 0; p < rows; ++p) {
      std::int32_t at = p, total = 0;
      for (; next[std::size_t(at)] >= 0; at = next[std::size_t(at)]) {
        for (int i = 0; i < n; ++i) total += h[std::size_t(at * n + i)];
        for (int i = 0; i < n; ++i) want[std::size_t(p * n + i)] = h[std::size_t(at * n + i)] + total;
      }
      if (next[std::size_t(at)] == -2) want[std::size_t(p * n)] = total;
    }
    auto links = buffer_of(device(), next), x = buffer_of(device(), h);
    auto y = buffer_of(device(), std::vector<std::int32_t>(want.size(), 9));
    chain.with({.num_warps = warps, .cluster = cluster}).launch(s, rows, links, x, y, n);
    s.synchronize();
    EXPECT_EQ(y.to_vector(), want) << warps << " " << cluster;
  }
}

/// Masks are rows, too.
constinit auto any_of = kernel("any_of", [](In<bool> x, Out<bool> y, Out<std::int32_t> count, Int n) {
  Tile i = arange(96), inside = i < n, v = load(x + program_id(0) * n + i, inside);
  Scalar some = max(v.cast(i32)), c = sum(v.cast(i32));
  store(y + program_id(0) * n + i, v != (some != 0), inside);
  store(count + program_id(0), c);
});

TEST_P(RowCorners, OfMasks) {
  const Stream s(device());
  const int rows = 3, n = 67;
  std::vector<std::uint8_t> h(std::size_t(rows * n));
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = i >= std::size_t(n) && i % 3 == 0;
  Buffer<std::uint8_t> x = buffer_of(device(), h), y(device(), h.size());
  Buffer<std::int32_t> count(device(), rows);
  any_of.launch(s, rows, device_ptr<bool>(x.ptr(), h.size()), device_ptr<bool>(y.ptr(), h.size()), count, n);
  s.synchronize();
  std::vector<std::uint8_t> want(h.size());
  std::vector<std::int32_t> counts(rows);
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < n; ++i) counts[std::size_t(r)] += h[std::size_t(r * n + i)];
    for (int i = 0; i < n; ++i)
      want[std::size_t(r * n + i)] = (h[std::size_t(r * n + i)] != 0) != (counts[std::size_t(r)] != 0);
  }
  EXPECT_EQ(y.to_vector(), want);
  EXPECT_EQ(count.to_vector(), counts);
}

}  // namespace

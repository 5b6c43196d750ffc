// Transposition: every element of every type and shape, bit for bit, and what the compiled kernel does to memory.
#include "dsl/lib/transpose.h"

#include <cstring>

#include "dsl/lib/blocks.h"
#include "tests/support/devices.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

/// n elements of any bits, NaNs of every payload among them.
template <class T>
std::vector<T> bits(std::size_t n) {
  std::vector<T> v(n);
  std::uint32_t state = 1;
  for (T& x : v) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t word = state ^ state >> 15;
    std::memcpy(static_cast<void*>(&x), &word, sizeof(T));
  }
  return v;
}
template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// The rows of x and of y are `gap` elements apart, and begin at element `offset`.
template <class T>
void check(const Device& device, std::int64_t rows, std::int64_t cols, std::int64_t gap = 0, std::int64_t offset = 0) {
  SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(cols) + " gap " + std::to_string(gap));
  const std::int64_t from_pitch = cols + gap, to_pitch = rows + gap;
  const std::vector<T> x = bits<T>(std::size_t(offset + rows * from_pitch));
  std::vector<T> want = bits<T>(std::size_t(offset + cols * to_pitch + 3));
  Buffer<T> from = buffer_of(device, x), to = buffer_of(device, want);
  const auto part = [&](const Buffer<T>& b) {
    return device_ptr<T>(b.ptr() + std::size_t(offset) * sizeof(T), b.size() - std::size_t(offset));
  };
  lib::transpose<T>(Stream(device), {part(from), {rows, cols}, {from_pitch, 1}},
                    {part(to), {cols, rows}, {to_pitch, 1}});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      want[std::size_t(offset + c * to_pitch + r)] = x[std::size_t(offset + r * from_pitch + c)];
  const std::vector<T> got = to.to_vector();
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(same(got[i], want[i])) << "element " << i;
}

template <class T>
class Transpose : public testing::Test {};
using Types = testing::Types<float, f16, bf16, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                             std::uint32_t>;
struct TypeNames {
  template <class T>
  static std::string GetName(int) {
    return name(dtype_of<T>);
  }
};
TYPED_TEST_SUITE(Transpose, Types, TypeNames);

TYPED_TEST(Transpose, EveryElementOfEveryShape) {
  on_each_device([](const Device& d) {
    check<TypeParam>(d, 1, 1);
    check<TypeParam>(d, 3, 127);
    check<TypeParam>(d, 144, 160);
    check<TypeParam>(d, 130, 2, 3, 1);
  });
}

// Types of one width run the same code.
template <class T>
class TransposeWidths : public testing::Test {};
using Widths = testing::Types<float, bf16, std::uint8_t>;
TYPED_TEST_SUITE(TransposeWidths, Widths, TypeNames);

TYPED_TEST(TransposeWidths, RowsAnywhereInMemory) {
  on_each_device([](const Device& d) {
    check<TypeParam>(d, 1, 1000);
    check<TypeParam>(d, 1000, 1);
    check<TypeParam>(d, 257, 129, 1);
    check<TypeParam>(d, 128, 128, 16, 16);
    check<TypeParam>(d, 64, 192, 0, 1);
    check<TypeParam>(d, 2, 4097, 5, 3);
    check<TypeParam>(d, 100003, 1);
  });
}

TEST(TransposeMemory, IsMovedInWholeSectorsWithoutBankConflicts) {
  const Device d = Device::simulator();
  Buffer<bf16> x = buffer_of(d, bits<bf16>(256 * 256)), y(d, 256 * 256);
  d.reset_counters();
  lib::transpose<bf16>(Stream(d), {x, {256, 256}}, {y, {256, 256}});
  d.synchronize();
  const Counters c = d.counters();
  const std::uint64_t bytes = 256 * 256 * sizeof(bf16);
  EXPECT_EQ(c.global_bytes_read, bytes);
  EXPECT_EQ(c.global_bytes_written, bytes);
  EXPECT_EQ(c.global_sectors_read * 32, bytes);
  EXPECT_EQ(c.global_sectors_written * 32, bytes);
  EXPECT_EQ(c.bank_conflicts, 0u);
}

TEST(TransposeMemory, NothingIsLaunchedForNoElements) {
  on_each_device([](const Device& d) {
    d.reset_counters();
    Buffer<float> none(d, 0);
    const Stream s(d);
    lib::transpose<float>(s, {none, {0, 8}}, {none, {8, 0}});
    lib::transpose<float>(s, {none, {8, 0}}, {none, {0, 8}});
    s.synchronize();
    EXPECT_EQ(d.counters().launches, 0u);
  });
}

TEST(TransposeErrors, ShapesThatDoNotFit) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 12), y(d, 12);
  expect_user_error(
      [&] {
        lib::transpose<float>(s, {x, {3, 4}}, {y, {3, 4}});
      },
      "transpose: y is 3x4, must be 4x3 for x of 3x4", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::transpose<float>(s, {x, {4, 3}, {1, 4}}, {y, {3, 4}});
      },
      "transpose: the elements of a row of x are 4 apart, must be 1", __FILE__, __LINE__ - 2);
  expect_user_error(
      [&] {
        lib::transpose<float>(s, {x, {3, 4}}, {y, {4, 3}, {1, 4}});
      },
      "transpose: the elements of a row of y are 4 apart, must be 1", __FILE__, __LINE__ - 2);
}

// --- blocks.h --------------------------------------------------------------------------------------------------------

TEST(TransposeErrors, InPlace) {
  const Device d = interpreter();
  const Stream s(d);
  Buffer<float> x(d, 16);
  expect_user_error(
      [&] {
        lib::transpose<float>(s, {x, {4, 4}}, {x, {4, 4}});
      },
      "transpose: y must not be x's own memory", __FILE__, __LINE__ - 2);
  lib::transpose<float>(s, {x, {4, 0}}, {x, {0, 4}});  // no element is shared
}

TEST(Blocks, CoverTheSlowDimensionEvenlyWithinTheLimitOfAnAxis) {
  for (std::int64_t slow : {std::int64_t(0), std::int64_t(1), std::int64_t(65535), std::int64_t(65536),
                            std::int64_t(200000), std::int64_t(4000000000)}) {
    const Grid g = lib::blocks(3, slow);
    EXPECT_EQ(g.x, 3);
    EXPECT_LE(g.y, 65535);
    EXPECT_LE(g.z, 65535);
    EXPECT_GE(g.y * g.z, slow);
    EXPECT_LT(g.y * g.z, slow + std::max<std::int64_t>(g.z, 1)) << "whole rounds of nothing";
    EXPECT_EQ(g.empty(), slow == 0);
  }
}

TEST(Blocks, ThatCoverAnExtent) {
  EXPECT_EQ(lib::block_for(0, 64), 1);
  EXPECT_EQ(lib::block_for(1, 64), 1);
  EXPECT_EQ(lib::block_for(33, 64), 64);
  EXPECT_EQ(lib::block_for(64, 64), 64);
  EXPECT_EQ(lib::block_for(std::int64_t(1) << 40, 64), 64);
}

constinit auto count = kernel("count", [](Out<std::int32_t> seen, Int n) {
  Scalar at = lib::slow_block() * num_programs(0) + program_id(0);
  store(seen + at, at.cast(i32), at < n);
});

TEST(Blocks, EveryProgramOfMoreThanAnAxisHoldsIsRun) {
  const std::int64_t n = 70001;
  std::vector<std::int32_t> want(n);
  for (std::int64_t i = 0; i < n; ++i) want[std::size_t(i)] = std::int32_t(i);
  on_each_device([&](const Device& d) {
    Buffer<std::int32_t> seen = buffer_of(d, std::vector<std::int32_t>(n, -1));
    count.launch(Stream(d), lib::blocks(1, n), seen, n);
    EXPECT_EQ(seen.to_vector(), want);
  });
}

}  // namespace
}  // namespace kiln::test

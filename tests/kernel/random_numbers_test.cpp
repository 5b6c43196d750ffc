// Random numbers: known answers of Philox4x32-10, which counter an element uses, the distributions. Each body runs on
// the interpreter, the simulator and every GPU found.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

using Words = std::array<std::uint32_t, 4>;

/// Philox4x32-10 as the paper has it, for the host.
Words philox_on_host(Words x, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const std::uint64_t p = std::uint64_t(x[0]) * 0xD2511F53u, q = std::uint64_t(x[2]) * 0xCD9E8D57u;
    x = {std::uint32_t(q >> 32) ^ x[1] ^ k0, std::uint32_t(q), std::uint32_t(p >> 32) ^ x[3] ^ k1, std::uint32_t(p)};
  }
  return x;
}
Words words_of(std::uint64_t seed, std::uint64_t offset) {
  return philox_on_host({std::uint32_t(offset), std::uint32_t(offset >> 32), 0, 0}, std::uint32_t(seed),
                        std::uint32_t(seed >> 32));
}

class Random : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Random);

constinit auto known = kernel("known", [](In<std::uint32_t> in, Out<std::uint32_t> out) {
  Tile i = arange(3);
  std::array<Tile, 4> counter;
  for (int w = 0; w < 4; ++w) counter[std::size_t(w)] = load(in + i * 4 + w);
  const std::array<Tile, 4> zero = philox(counter, {Scalar(0).cast(u32), Scalar(0).cast(u32)});
  const std::array<Tile, 4> ones = philox(counter, {Scalar(-1).cast(u32), Scalar(-1).cast(u32)});
  const std::array<Tile, 4> pi = philox(counter, {Scalar(0xa4093822u).cast(u32), Scalar(0x299f31d0).cast(u32)});
  for (int w = 0; w < 4; ++w)
    store(out + i * 4 + w,
          select(i == 0, zero[std::size_t(w)], select(i == 1, ones[std::size_t(w)], pi[std::size_t(w)])));
});

// The known answers published with Random123: counters and keys of zeros, of ones, of digits of pi.
TEST_P(Random, PhiloxGivesTheKnownAnswers) {
  const std::uint32_t ones = 0xffffffff;
  Buffer<std::uint32_t> in = buffer_of<std::uint32_t>(
      device(), {0, 0, 0, 0, ones, ones, ones, ones, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344});
  Buffer<std::uint32_t> out(device(), 12);
  const Stream s(device());
  known.launch(s, 1, in, out);
  s.synchronize();
  EXPECT_EQ(out.to_vector(),
            (std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x408f276d, 0x41c83b0e,
                                        0xa20bc7c6, 0x6d5451fd, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

constinit auto words = kernel("words", [](In<std::int64_t> offset, Out<std::uint32_t> out, Val<std::int64_t> seed) {
  Tile i = arange(7);
  const std::array<Tile, 4> w = philox(seed, load(offset + i));
  for (int k = 0; k < 4; ++k) store(out + i * 4 + k, w[std::size_t(k)]);
});

TEST_P(Random, TheCounterIsTheOffsetAndTheKeyTheSeed) {
  const std::vector<std::int64_t> offsets = {0, 1, 0x7fffffff, 0xffffffff, 0x100000000, -1, INT64_MIN};
  Buffer<std::int64_t> in = buffer_of(device(), offsets);
  Buffer<std::uint32_t> out(device(), 28);
  const Stream s(device());
  for (std::int64_t seed : {std::int64_t(0), std::int64_t(1), std::int64_t(0x123456789abcdef), std::int64_t(-1)}) {
    words.launch(s, 1, in, out, seed);
    s.synchronize();
    const auto got = out.to_vector();
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const Words want = words_of(std::uint64_t(seed), std::uint64_t(offsets[i]));
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(got[i * 4 + k], want[k]) << seed << " " << offsets[i] << " " << k;
    }
  }
}

constexpr int kMany = 1 << 15;
constinit auto uniform = kernel("uniform", [](Out<float> out, Out<float> four, Int seed, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK);
  store(out + i, rand(seed, i));
  const std::array<Tile, 4> all = rand4(seed, i);
  for (int k = 0; k < 4; ++k) store(four + i * 4 + k, all[std::size_t(k)]);
});

TEST_P(Random, UniformNumbersAreBitEqualEverywhereAndFillTheUnitInterval) {
  Buffer<float> out(device(), kMany), four(device(), 4 * kMany);
  const Stream s(device());
  uniform.launch(s, kMany / 1024, out, four, 42, 1024);
  s.synchronize();
  const std::vector<float> x = out.to_vector(), all = four.to_vector();
  double sum = 0, square = 0, neighbours = 0;
  std::vector<int> bins(64);
  for (int i = 0; i < kMany; ++i) {
    const Words w = words_of(42, std::uint64_t(i));
    ASSERT_EQ(x[std::size_t(i)], float(w[0] >> 8) * 0x1p-24f) << i;
    for (int k = 0; k < 4; ++k) ASSERT_EQ(all[std::size_t(4 * i + k)], float(w[std::size_t(k)] >> 8) * 0x1p-24f) << i;
    const double v = x[std::size_t(i)];
    ASSERT_TRUE(v >= 0 && v < 1) << v;
    sum += v, square += v * v, ++bins[std::size_t(v * 64)];
    if (i > 0) neighbours += (v - 0.5) * (x[std::size_t(i - 1)] - 0.5);
  }
  // Five standard deviations each.
  EXPECT_NEAR(sum / kMany, 0.5, 5 * std::sqrt(1 / 12.0 / kMany));
  EXPECT_NEAR(square / kMany, 1 / 3.0, 5 * std::sqrt(4 / 45.0 / kMany));
  EXPECT_NEAR(neighbours / kMany, 0, 5 / 12.0 / std::sqrt(kMany));
  double chi = 0;
  for (int n : bins) chi += std::pow(n - kMany / 64.0, 2) / (kMany / 64.0);
  EXPECT_NEAR(chi, 63, 5 * std::sqrt(2.0 * 63));
}

constinit auto normal = kernel("normal", [](Out<float> out, Out<float> four, Int seed, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK);
  store(out + i, randn(seed, i));
  const std::array<Tile, 4> all = randn4(seed, i);
  for (int k = 0; k < 4; ++k) store(four + i * 4 + k, all[std::size_t(k)]);
});

/// Box and Muller in f64, from the u and v that the page states.
double normal_of(std::uint32_t first, std::uint32_t second, bool sine) {
  const double u = std::fma(float(first), 0x1p-32f, 0x1p-33f), turn = 2 * M_PI * std::int32_t(second) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * (sine ? std::sin(turn) : std::cos(turn));
}

TEST_P(Random, NormalNumbersAreWithinTheBoundAndNormal) {
  Buffer<float> out(device(), kMany), four(device(), 4 * kMany);
  const Stream s(device());
  normal.launch(s, kMany / 1024, out, four, 7, 1024);
  s.synchronize();
  const std::vector<float> x = out.to_vector(), all = four.to_vector();
  double sum = 0, square = 0, fourth = 0, inside = 0, both = 0, worst = 0;
  for (int i = 0; i < kMany; ++i) {
    const Words w = words_of(7, std::uint64_t(i));
    ASSERT_EQ(x[std::size_t(i)], all[std::size_t(4 * i)]) << i;
    for (std::size_t k = 0; k < 4; ++k) {
      const double want = normal_of(w[k & 2], w[k | 1], k & 1);
      worst = std::max(worst, std::abs(all[std::size_t(4 * i) + k] - want));
    }
    const double v = x[std::size_t(i)];
    sum += v, square += v * v, fourth += v * v * v * v, inside += std::abs(v) < 1;
    both += v * all[std::size_t(4 * i + 1)];
  }
  EXPECT_LE(worst, 0x1p-17);
  EXPECT_NEAR(sum / kMany, 0, 5 / std::sqrt(kMany));
  EXPECT_NEAR(square / kMany, 1, 5 * std::sqrt(2.0 / kMany));
  EXPECT_NEAR(fourth / kMany, 3, 5 * std::sqrt(96.0 / kMany));
  EXPECT_NEAR(inside / kMany, 0.6827, 5 * 0.4655 / std::sqrt(kMany));
  EXPECT_NEAR(both / kMany, 0, 5 / std::sqrt(kMany));
}

constinit auto integers =
    kernel("integers", [](Out<std::uint32_t> any, Out<std::int32_t> some, Int seed, Int32 low, Int32 high) {
      Tile i = arange(1024);
      store(any + i, randint(seed, i));
      store(some + i, randint(seed, i, low, high));
    });

TEST_P(Random, IntegersFillTheirRangeAndStayInIt) {
  Buffer<std::uint32_t> any(device(), 1024);
  Buffer<std::int32_t> some(device(), 1024);
  const Stream s(device());
  const std::pair<int, int> ranges[] = {{0, 6}, {-3, 4}, {5, 6}, {INT32_MIN, INT32_MAX}, {7, 7}, {7, -7}, {0, 1 << 30}};
  for (auto [low, high] : ranges) {
    integers.launch(s, 1, any, some, 3, low, high);
    s.synchronize();
    const auto all = any.to_vector();
    const auto got = some.to_vector();
    const auto count = std::uint64_t(std::max<std::int64_t>(std::int64_t(high) - low, 0));
    std::vector<int> seen(count <= 8 ? count : 0);
    for (std::size_t i = 0; i < 1024; ++i) {
      const Words w = words_of(3, i);
      ASSERT_EQ(all[i], w[0]);
      __extension__ using Wide = unsigned __int128;
      const auto scaled = std::uint64_t(((Wide(w[0]) << 32 | w[1]) * count) >> 64);
      ASSERT_EQ(got[i], std::int32_t(std::uint32_t(low) + std::uint32_t(scaled))) << low << " " << high << " " << i;
      if (!seen.empty()) ++seen[std::size_t(got[i] - low)];
    }
    for (int n : seen) EXPECT_NEAR(n, 1024.0 / double(seen.size()), 5 * std::sqrt(1024.0 / double(seen.size())));
  }
}

constinit auto dropout = kernel("dropout", [](Out<float> out, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK);
  store(out + i, select(rand(1234, i) >= 0.25f, 1.f, 0.f), i < n);
});
constinit auto dropout_rows = kernel("dropout_rows", [](Out<float> out, Int cols, Const<int> BLOCK) {
  Tile c = arange(BLOCK), i = program_id(0) * cols + c;
  store(out + i, select(rand(1234, i.cast(i64)) >= 0.25f, 1.f, 0.f), c < cols);
});

TEST_P(Random, AMaskComesAgainFromSeedAndOffsetWhateverTheTiles) {
  Buffer<float> flat(device(), 3000), rows(device(), 3000);
  const Stream s(device());
  dropout.launch(s, 3, flat, 3000, 1024);
  dropout_rows.launch(s, 30, rows, 100, 128);
  s.synchronize();
  const std::vector<float> mask = flat.to_vector();
  EXPECT_EQ(mask, rows.to_vector());
  EXPECT_NEAR(double(std::count(mask.begin(), mask.end(), 1.f)), 2250, 5 * std::sqrt(3000 * 0.1875));
}

TEST_P(Random, AScalarGetsTheNumbersOfItsOffset) {
  auto k = kernel("scalars", [](Out<float> out, Int n) {
    store(out, rand(5, n));
    store(out + 1, randn(5, n));
    store(out + 2, randint(5, n, 0, 1000).cast(f32));
    store(out + 3, (randint(5, n) >> Scalar(16).cast(u32)).cast(f32));
    store(out + 4, (philox(5, n)[3] >> Scalar(16).cast(u32)).cast(f32));
  });
  Buffer<float> out(device(), 5);
  const Stream s(device());
  k.launch(s, 1, out, 77);
  s.synchronize();
  const Words w = words_of(5, 77);
  const std::vector<float> got = out.to_vector();
  EXPECT_EQ(got[0], float(w[0] >> 8) * 0x1p-24f);
  EXPECT_NEAR(got[1], normal_of(w[0], w[1], false), 0x1p-17);
  EXPECT_EQ(got[2], float((std::uint64_t(w[0]) * 1000 + ((std::uint64_t(w[1]) * 1000) >> 32)) >> 32));
  EXPECT_EQ(got[3], float(w[0] >> 16));
  EXPECT_EQ(got[4], float(w[3] >> 16));
}

TEST(RandomCode, ProductsAreOfThirtyTwoBits) {
  auto k = kernel("one", [](Out<std::uint32_t> out, Int32 seed) {
    Tile i = arange(128);
    store(out + i, randint(seed, i));
  });
  for (const Device& d : kiln::test::devices()) {
    if (d.kind() == DeviceKind::Interpreter) continue;
    Buffer<std::uint32_t> out(d, 128);
    const std::string ptx = k.image(d, out, 1).ptx;
    EXPECT_EQ(ptx.find("mul.lo.s64"), std::string::npos) << ptx;
    EXPECT_NE(ptx.find("mul.wide.u32"), std::string::npos) << ptx;
  }
}

constexpr int kSeedLine = __LINE__ + 2;
TEST(RandomErrors, NameWhatIsNoInteger) {
  auto k = kernel("seed", [](Out<float> o, Float f) { store(o + arange(4), rand(f, arange(4))); });
  kiln::test::expect_user_error([&] { (void)k.trace(device_ptr<float>(0), 1.f); },
                                "rand: seed must be an integer, not f32", __FILE__, kSeedLine);
}

constexpr int kOffsetLine = __LINE__ + 4;
TEST(RandomErrors, NameOffsetsAndLimits) {
  auto offsets = kernel("offsets", [](Out<float> o) {
    Tile f = arange(4).cast(f32);
    store(o + arange(4), randn(1, f));
  });
  kiln::test::expect_user_error([&] { (void)offsets.trace(device_ptr<float>(0)); },
                                "randn: offsets must be an integer, not tile<4xf32>", __FILE__, kOffsetLine);
  auto limits = kernel("limits", [](Out<std::int32_t> o, Int n) { store(o + arange(4), randint(1, arange(4), 0, n)); });
  kiln::test::expect_user_error([&] { (void)limits.trace(device_ptr<std::int32_t>(0), 1); },
                                "randint: high must be i32, not index; cast first", __FILE__, kOffsetLine + 4);
}

}  // namespace

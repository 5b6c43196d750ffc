// Ordinary CUDA C++ kernels (cuda/*.cu) compiled by nvcc, run small against plain references.
#include "tests/sim/cuda_test.h"

#include <gmock/gmock.h>

#include <numeric>

#include "runtime/base/error.h"
#include "tests/support/knob.h"

namespace kiln::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using U32 = std::uint32_t;
using U64 = std::uint64_t;

class Cuda : public CudaTest {};
/// Also as the installed nvcc compiles it now, for debugging too: nothing in registers, every function a call.
class CudaCalls : public CudaTest {};

TEST_P(Cuda, SumsByShufflesAndAtomics) {
  on_each_device([&](const Device& d) {
    const auto x = random_values<double>(5000, -1, 1);
    const auto in = buffer_of(d, x);
    const auto total = buffer_of<double>(d, {0});
    call(d, ptx("reductions"), "sum_f64", {{3, 1, 1}, {256, 1, 1}}, in, total, 5000);
    EXPECT_NEAR(total.to_vector()[0], std::accumulate(x.begin(), x.end(), 0.0), 1e-11);
  });
}

TEST_P(Cuda, FindsTheLargestByAtomicMaxima) {
  on_each_device([&](const Device& d) {
    auto x = random_values<float>(3000, -5, 5);
    x[777] = x[1234] = 6;
    const auto in = buffer_of(d, x);
    const auto best = buffer_of<U64>(d, {0});
    call(d, ptx("reductions"), "argmax", {{4, 1, 1}, {128, 1, 1}}, in, best, 3000);
    EXPECT_EQ(0xFFFFFFFF - static_cast<U32>(best.to_vector()[0]), 777u);
  });
}

TEST_P(Cuda, ReducesAWarpInOneInstruction) {
  on_each_device([&](const Device& d) {
    const auto x = random_values<std::int32_t>(32, -1000, 1000);
    const auto in = buffer_of(d, x);
    const auto out = empty_buffer<std::int32_t>(d, 128);
    call(d, ptx("reductions"), "warp_reduce", {}, in, out);
    U32 most = 0, bits = 0;
    for (std::int32_t v : x) most = std::max(most, static_cast<U32>(v)), bits ^= static_cast<U32>(v);
    const std::vector<std::int32_t> got = out.to_vector();
    EXPECT_EQ(got[4], std::accumulate(x.begin(), x.end(), 0));
    EXPECT_EQ(got[5], *std::min_element(x.begin(), x.end()));
    EXPECT_EQ(static_cast<U32>(got[6]), most);
    EXPECT_EQ(static_cast<U32>(got[7]), bits);
  });
}

TEST_P(CudaCalls, CountsInSharedMemory) {
  on_each_device([&](const Device& d) {
    std::vector<std::uint8_t> data;
    for (int v : random_values<int>(4096, 0, 255)) data.push_back(static_cast<std::uint8_t>(v * v >> 8));
    const auto in = buffer_of(d, data);
    const auto counts = buffer_of(d, std::vector<U32>(256));
    call(d, ptx("histogram"), "histogram", {{3, 1, 1}, {128, 1, 1}}, in, counts, 1024);
    std::vector<U32> want(256);
    for (std::uint8_t v : data) ++want[v];
    EXPECT_EQ(counts.to_vector(), want);
  });
}

std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b, int m, int n, int k) {
  std::vector<double> c;
  const auto at = [](const std::vector<float>& v, int row, int width, int column) {
    return static_cast<double>(v[static_cast<std::size_t>(row * width + column)]);
  };
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += at(a, i, k, l) * at(b, l, n, j);
      c.push_back(sum);
    }
  return c;
}

TEST_P(Cuda, MultipliesMatricesByTiles) {
  on_each_device([&](const Device& d) {
    const auto a = random_values<float>(35 * 50, -1, 1), b = random_values<float>(50 * 41, -1, 1, 2);
    const auto da = buffer_of(d, a), db = buffer_of(d, b), dc = empty_buffer<float>(d, 35 * 41);
    call(d, ptx("matmul"), "matmul", {{3, 3, 1}, {16, 16, 1}}, da, db, dc, 35, 41, 50);
    expect_near(dc.to_vector(), product(a, b, 35, 41, 50), 0, 1e-5);
  });
}

TEST_P(Cuda, MultipliesMatricesThroughAsynchronousCopies) {
  on_each_device([&](const Device& d) {
    const auto a = random_values<float>(35 * 48, -1, 1), b = random_values<float>(48 * 32, -1, 1, 2);
    const auto da = buffer_of(d, a), db = buffer_of(d, b), dc = empty_buffer<float>(d, 35 * 32);
    call(d, ptx("matmul"), "matmul_async", {{2, 3, 1}, {16, 16, 1}}, da, db, dc, 35, 32, 48);
    expect_near(dc.to_vector(), product(a, b, 35, 32, 48), 0, 1e-5);
  });
}

TEST_P(Cuda, BlocksWaitForTheOneInFront) {
  on_each_device([&](const Device& d) {
    constexpr int kN = 3000, kBlock = 256, kBlocks = (kN + kBlock - 1) / kBlock;
    const auto x = random_values<std::int32_t>(kN, -100, 100);
    const auto in = buffer_of(d, x), out = empty_buffer<std::int32_t>(d, kN),
               totals = empty_buffer<std::int32_t>(d, kBlocks);
    const auto ready = buffer_of(d, std::vector<std::int32_t>(kBlocks));
    call(d, ptx("scan"), "prefix_sum", {{kBlocks, 1, 1}, {kBlock, 1, 1}}, in, out, totals, ready, kN);
    std::vector<std::int32_t> want(kN);
    std::partial_sum(x.begin(), x.end(), want.begin());
    EXPECT_EQ(out.to_vector(), want);
  });
}

TEST_P(CudaCalls, StructsByValue) {
  struct Item {
    float scale;
    std::int32_t shift;
    char tag;
    double weight;
  };
  struct Table {
    Item items[5];
    DevicePtr x;
    std::int16_t small[7];
  };
  on_each_device([&](const Device& d) {
    const auto x = random_values<float>(100, -4, 4);
    const auto in = buffer_of(d, x), sums = empty_buffer<float>(d, 100);
    const auto products = empty_buffer<std::int64_t>(d, 100);
    Table t{};
    for (int i = 0; i < 5; ++i)
      t.items[i] = {0.5f * static_cast<float>(i), 1000000 * i, static_cast<char>(3 * i), i * 0.25};
    for (int i = 0; i < 7; ++i) t.small[i] = static_cast<std::int16_t>(-3000 * i);
    t.x = in.ptr();
    call(d, ptx("structs"), "structs", {{4, 1, 1}, {32, 1, 1}}, t, sums, products, 100);
    const auto got = sums.to_vector();
    const auto got_products = products.to_vector();
    for (std::size_t i = 0; i < 100; ++i) {
      const Item& item = t.items[i % 5];
      EXPECT_NEAR(got[i], std::fma(x[i], item.scale, static_cast<float>(item.weight)), 1e-6);
      EXPECT_EQ(got_products[i], std::int64_t{t.small[i % 7]} * (item.shift + static_cast<int>(i & 1)) - item.tag);
    }
  });
}

/// functions.cu on the host.
U32 step(U32 op, U32 a, U32 b) {
  const auto permuted = [&] { return (a & 0xFF) | (b & 0xFF) << 8 | (a & 0xFF00) << 8 | (b & 0xFF00) << 16; };
  switch (op) {
    case 0: return a + b;
    case 1: return a - b * 3;
    case 2: return a ^ b;
    case 3: return a * b;
    case 4: {
      U32 r = 0;
      for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
      return r + b;
    }
    case 5: return static_cast<U32>(std::popcount(a)) * 17 + b;
    case 6: return a << (b & 31);
    case 7: return b << 9 | a >> 23;
    case 8: return b ? a / b : 7;
    case 9: return b ? a % b : 9;
    case 10: return permuted();
    case 11: return static_cast<U32>(std::countl_zero(a | 1) + std::countr_zero(b | 4) + 1);
    default: return a;
  }
}
U32 functions(U32 i, U32 ops) {
  U32 values[8];
  for (U32 k = 0; k < 8; ++k) values[k] = step(ops >> (4 * k) & 15, i * 2654435761u + k, (k ? values[k - 1] : 0) + 5);
  U32 collatz = 0;
  for (U32 n = i + 1; n > 1; ++collatz) n = n & 1 ? 3 * n + 1 : n / 2;
  const auto c = static_cast<std::uint8_t>(i);
  const int sum = c + static_cast<std::int8_t>(-static_cast<int>(i)) + static_cast<std::uint16_t>(i * 300);
  const std::int64_t mixed = sum - 5ll * i + static_cast<std::int64_t>(i * 0.75);
  const auto [low, high] = std::minmax_element(values, values + 8);
  return *low ^ (*high + collatz * 1000003u + values[ops & 7] + (i & 1 ? static_cast<U32>(mixed) : c * 3u));
}

TEST_P(CudaCalls, CallsFunctions) {
  on_each_device([&](const Device& d) {
    std::vector<U32> ops = random_values<U32>(300, 0, 0xFFFFFFFF);
    const auto in = buffer_of(d, ops), out = empty_buffer<U32>(d, 300);
    call(d, ptx("functions"), "functions", {{5, 1, 1}, {64, 1, 1}}, in, out, 300);
    const auto got = out.to_vector();
    for (U32 i = 0; i < 300; ++i) EXPECT_EQ(got[i], functions(i, ops[i])) << i;
  });
}

TEST_P(Cuda, TilesOfCooperativeGroups) {
  on_each_device([&](const Device& d) {
    const auto x = random_values<std::int32_t>(128, -50, 50);
    const auto in = buffer_of(d, x), sums = empty_buffer<std::int32_t>(d, 128),
               scans = empty_buffer<std::int32_t>(d, 128);
    call(d, ptx("cooperative"), "tiles", {{2, 1, 1}, {64, 1, 1}}, in, sums, scans);
    const auto got_sums = sums.to_vector(), got_scans = scans.to_vector();
    for (std::size_t i = 0; i < 128; ++i) {
      const auto tile = x.begin() + static_cast<std::ptrdiff_t>(i / 8 * 8);
      EXPECT_EQ(got_sums[i], std::accumulate(tile, tile + 8, 0));
      EXPECT_EQ(got_scans[i], std::accumulate(tile, tile + static_cast<std::ptrdiff_t>(i % 8), 0));
    }
  });
}

TEST_P(Cuda, LanesThatAreTogetherTakePlaces) {
  on_each_device([&](const Device& d) {
    const auto x = random_values<std::int32_t>(500, -50, 50);
    const auto in = buffer_of(d, x), kept = empty_buffer<std::int32_t>(d, 500), count = buffer_of<std::int32_t>(d, {0});
    call(d, ptx("cooperative"), "keep_positive", {{4, 1, 1}, {128, 1, 1}}, in, kept, count, 500);
    std::vector<std::int32_t> want, got = kept.to_vector();
    std::copy_if(x.begin(), x.end(), std::back_inserter(want), [](std::int32_t v) { return v > 0; });
    ASSERT_EQ(count.to_vector()[0], static_cast<std::int32_t>(want.size()));
    got.resize(want.size());
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
    EXPECT_EQ(got, want);
  });
}

TEST_P(Cuda, GroupsLanesByKey) {
  on_each_device([&](const Device& d) {
    const auto keys = random_values<std::int32_t>(32, 0, 4);
    const auto in = buffer_of(d, keys), out = empty_buffer<std::int32_t>(d, 32);
    call(d, ptx("cooperative"), "same_key", {}, in, out);
    const auto got = out.to_vector();
    for (std::size_t i = 0; i < 32; ++i) {
      const auto all = std::count(keys.begin(), keys.end(), keys[i]);
      const auto before = std::count(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(i), keys[i]);
      EXPECT_EQ(got[i], all * 100 + before);
    }
  });
}

TEST_P(Cuda, PrintsAsTheHardwareDoes) {
  on_each_device([&](const Device& d) {
    std::vector<std::string> lines;
    if (d.is_simulator()) d.on_print([&](const std::string& line) { lines.push_back(line); });
    const auto x = buffer_of<float>(d, {1.5f, -2.25f, 1000});
    const auto result = empty_buffer<std::int32_t>(d, 1);
    call(d, ptx("printing"), "printing", {{2, 1, 1}, {2, 1, 1}}, x, 3);
    call(d, ptx("printing"), "counted", {{1, 1, 1}, {1, 1, 1}}, result);
    EXPECT_EQ(result.to_vector()[0], 2);
    if (!d.is_simulator()) return;
    EXPECT_THAT(lines, ElementsAre("thread 0 of block 0: x =   1.50", "thread 1 of block 0: x =  -2.25",
                                   "plain, % and text|   ab|cd   |", "ok +7  8 -0042 ff FF 10 0xff",
                                   "-1234567890123 18446744073709551615 -5 1.234568e+04 0.0001 abc",
                                   "thread 0 of block 1: x = 1000.00", "1 2"));
  });
}

TEST_P(CudaCalls, VariablesHaveTheirInitialValues) {
  on_each_device([&](const Device& d) {
    const auto which = random_values<std::int32_t>(32, 0, 1);
    const auto in = buffer_of(d, which);
    const auto out = empty_buffer<float>(d, 32);
    const auto letters = empty_buffer<std::int8_t>(d, 32);
    call(d, ptx("tables"), "lookup", {}, in, out, letters);
    const float weights[8] = {0.5f, -1.25f, 3.f, 1e-3f, 7.f};
    const auto got = out.to_vector();
    const auto got_letters = letters.to_vector();
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_NEAR(got[i], (which[i] ? 4 + 9 + 16 : 41) * weights[i & 7] + 3.14159265f, 1e-4);
      // A view: g++ 12 with UBSan evaluates the index of a conditional string literal wrongly.
      const std::string_view name = which[i] ? "squares" : "primes";
      EXPECT_EQ(got_letters[i], name[i % 6]);
    }
  });
}

TEST_P(CudaCalls, SortsAnArrayOfTheThread) {
  on_each_device([&](const Device& d) {
    auto x = random_values<std::int32_t>(64 * 16, -1000, 1000);
    const auto pick = random_values<std::int32_t>(64, 0, 15);
    const auto in = buffer_of(d, x), at = buffer_of(d, pick), out = empty_buffer<std::int32_t>(d, 64);
    call(d, ptx("tables"), "own_array", {{1, 1, 1}, {64, 1, 1}}, in, at, out);
    const auto got = out.to_vector();
    for (std::size_t t = 0; t < 64; ++t) {
      std::sort(x.begin() + static_cast<std::ptrdiff_t>(t * 16), x.begin() + static_cast<std::ptrdiff_t>(t * 16 + 16));
      EXPECT_EQ(got[t], x[t * 16 + static_cast<std::size_t>(pick[t])]);
    }
  });
}

TEST_P(Cuda, ThreadsPushToLists) {
  const Knob unchecked("KILN_SIM_CHECK", "uninit");  // the first look at a head is a plain load, beside others' atomics
  on_each_device([&](const Device& d) {
    const auto bucket = random_values<std::int32_t>(300, 0, 6);
    const auto heads = buffer_of(d, std::vector<std::int32_t>(7, -1)), next = empty_buffer<std::int32_t>(d, 300),
               which = buffer_of(d, bucket);
    call(d, ptx("locks"), "push", {{3, 1, 1}, {128, 1, 1}}, heads, next, which, 300);
    const auto first = heads.to_vector(), link = next.to_vector();
    std::vector<int> seen(300);
    for (std::size_t b = 0; b < 7; ++b)
      for (std::int32_t at = first[b]; at >= 0; at = link[static_cast<std::size_t>(at)]) {
        EXPECT_EQ(bucket[static_cast<std::size_t>(at)], static_cast<std::int32_t>(b));
        ASSERT_EQ(++seen[static_cast<std::size_t>(at)], 1);
      }
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), 300);
  });
}

TEST_P(Cuda, BlocksTakeALockInTurn) {
  on_each_device([&](const Device& d) {
    const auto lock = buffer_of<std::int32_t>(d, {0}), sum = buffer_of<std::int32_t>(d, {0});
    call(d, ptx("locks"), "locked", {{12, 1, 1}, {64, 1, 1}}, lock, sum);
    std::int32_t want = 0;
    for (int i = 0; i < 12; ++i) want = want * 3 + 1;
    EXPECT_EQ(sum.to_vector()[0], want);
  });
}

std::string failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "no failure";
}

TEST_P(Cuda, RefusesByName) {
  const Device d = Device::simulator(GetParam().target);
  const auto refusal = [&](const std::string& kernel) { return failure([&] { load(d, ptx("refused"), kernel, {}); }); };
  EXPECT_THAT(refusal("function_pointer"), HasSubstr("indirect call"));
  EXPECT_THAT(refusal("recursive"), HasSubstr("calls itself"));
  EXPECT_THAT(refusal("heap"), HasSubstr("the function malloc"));
  EXPECT_THAT(refusal("texture"), HasSubstr("'tex'"));
  EXPECT_THAT(refusal("old_matrices"), HasSubstr("'wmma'"));
  EXPECT_THAT(refusal("video"), HasSubstr("'vabsdiff4'"));
}

TEST_P(Cuda, FailedAssertionsNameTheirText) {
  const Device d = Device::simulator(GetParam().target);
  std::vector<std::int32_t> x(32, 1);
  auto in = buffer_of(d, x), out = empty_buffer<std::int32_t>(d, 32);
  call(d, ptx("refused"), "asserted", {}, in, out);
  EXPECT_EQ(out.to_vector(), x);
  x[5] = -1;
  in.upload(x);
  const std::string why = failure([&] { call(d, ptx("refused"), "asserted", {}, in, out); });
  EXPECT_THAT(why, HasSubstr("assertion failed: x[threadIdx.x] >= 0 && \"no negative number\""));
  EXPECT_THAT(why, HasSubstr("refused.cu:"));
  EXPECT_THAT(why, HasSubstr("thread (5, 0, 0)"));
  EXPECT_THAT(failure([&] { call(d, ptx("refused"), "trapped", {}, in); }), HasSubstr("the program executed trap"));
}

const Origin kWithLines{"sm_90a", false, {"-lineinfo"}, "compiled_with_lines"};
const Origin kForDebugging{"sm_80", false, {"-G"}, "compiled_for_debugging"};

INSTANTIATE_TEST_SUITE_P(Nvcc, Cuda, ::testing::Values(kSm80, kSm90a), origin_name);
INSTANTIATE_TEST_SUITE_P(Nvcc, CudaCalls, ::testing::Values(kSm80, kSm90a, kWithLines, kForDebugging), origin_name);

}  // namespace
}  // namespace kiln::test

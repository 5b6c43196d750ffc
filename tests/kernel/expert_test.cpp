// Shared memory by name, barriers, inline PTX, cache hints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::error_of;
using kiln::test::EveryDevice;
using testing::HasSubstr;

class Expert : public EveryDevice {
 protected:
  void SetUp() override {
    if (device().kind() == DeviceKind::Interpreter && needs_ptx()) GTEST_SKIP() << "the interpreter cannot run PTX";
  }
  virtual bool needs_ptx() const { return false; }
};
KILN_ON_EVERY_DEVICE(Expert);
class InlinePtx : public Expert {
  bool needs_ptx() const override { return true; }
};
KILN_ON_EVERY_DEVICE(InlinePtx);

// --- shared memory ---------------------------------------------------------------------------------------------------

constinit auto reversed = kernel("reversed", [](In<float> x, Out<float> y, Const<int> N) {
  Scalar s = shared<float>(N);
  Tile i = arange(N);
  store(s + i, load(x + program_id(0) * N + i));
  store(y + program_id(0) * N + i, load(s + (N - 1 - i)));
});
TEST_P(Expert, SharedMemoryHandsElementsFromThreadToThread) {
  Stream st(device());
  for (int n : {1, 5, 64, 1000, 2048}) {
    std::vector<float> x(std::size_t(2 * n));
    for (int i = 0; i < 2 * n; ++i) x[std::size_t(i)] = float(i);
    auto in = buffer_of(device(), x);
    Buffer<float> out(device(), std::size_t(2 * n));
    reversed.launch(st, 2, in, out, n);
    st.synchronize();
    const auto got = out.to_vector();
    for (int i = 0; i < 2 * n; ++i) ASSERT_EQ(got[std::size_t(i)], float(i / n * n + n - 1 - i % n)) << n << " " << i;
  }
}

// Each step reads what the step before wrote, by another thread, and overwrites it.
constinit auto rotations = kernel("rotations", [](Out<std::int32_t> y, Const<int> N, Const<int> STEPS) {
  Scalar a = shared<std::int32_t>(N), b = shared<std::int32_t>(N + 3);
  Tile i = arange(N);
  store(a + i, i.cast<std::int32_t>());
  for (int k = 0; k < STEPS; ++k) {
    store(b + i, load(a + (i + 1) % N));
    store(a + i, load(b + i));
  }
  store(y + i, load(a + i));
});
TEST_P(Expert, SharedAccessesKeepProgramOrder) {
  Stream st(device());
  Buffer<std::int32_t> y(device(), 512);
  rotations.with({.num_warps = 8}).launch(st, 1, y, 512, 7);
  st.synchronize();
  const auto got = y.to_vector();
  for (int i = 0; i < 512; ++i) ASSERT_EQ(got[std::size_t(i)], (i + 7) % 512);
}

constinit auto shared_histogram =
    kernel("shared_histogram", [](In<std::int32_t> x, InOut<std::int32_t> out, Int n, Const<int> B) {
      Scalar bins = shared<std::int32_t>(64);
      Tile i = program_id(0) * B + arange(B), mask = i < n, k = arange(64);
      store(bins + k, 0);
      atomic_add(bins + load(x + i, mask), 1, mask);
      atomic_add(out + k, load(bins + k));
    });
TEST_P(Expert, SharedAtomicsCountOnce) {
  Stream st(device());
  const int n = 3000;
  std::vector<std::int32_t> x(n), want(64, 0);
  for (int i = 0; i < n; ++i) ++want[std::size_t(x[std::size_t(i)] = i * 7 % 61)];
  auto in = buffer_of(device(), x), out = buffer_of(device(), std::vector<std::int32_t>(64, 0));
  shared_histogram.launch(st, 3, in, out, n, 1024);
  st.synchronize();
  EXPECT_EQ(out.to_vector(), want);
}

constinit auto shared_kinds = kernel("shared_kinds", [](InOut<double> y, InOut<bf16> h) {
  Scalar d = shared<double>(4), b = shared<bf16>(4), one = shared<std::int8_t>(1);
  store(one, -7);
  store(d, load(y));
  store(b, load(h));
  Scalar old = atomic_max(d, 2.5);
  atomic_min(b, -1.f);
  store(y, load(d) + old + load(one).cast<double>());
  store(h, load(b));
});
TEST_P(Expert, SharedMemoryHoldsEveryElementSize) {
  Stream st(device());
  auto y = buffer_of<double>(device(), {1.5});
  auto h = buffer_of<bf16>(device(), {bf16(3.f)});
  shared_kinds.launch(st, 1, y, h);
  st.synchronize();
  EXPECT_EQ(y.to_vector()[0], 2.5 + 1.5 - 7);
  EXPECT_EQ(float(h.to_vector()[0]), -1.f);
}

// A negative value in packed bytes leaves its neighbours alone.
constinit auto fill_bytes = kernel("fill_bytes", [](Out<std::int8_t> y, Const<int> N) {
  Scalar s = shared<std::int8_t>(N);
  store(s + arange(N), -7);
  store(y + arange(N), load(s + arange(N)));
});
TEST_P(Expert, PackedBytesAreFilledOneByOne) {
  Stream st(device());
  for (int n : {1, 7, 64, 256}) {
    Buffer<std::int8_t> y(device(), std::size_t(n));
    fill_bytes.launch(st, 1, y, n);
    st.synchronize();
    EXPECT_EQ(y.to_vector(), std::vector<std::int8_t>(std::size_t(n), -7)) << n;
  }
}

TEST_P(Expert, AccessesBeyondAnAllocationAreErrorsWhereTheyAreChecked) {
  if (device().kind() == DeviceKind::Cuda) GTEST_SKIP() << "a GPU checks no bounds inside shared memory";
  const auto k = kernel("beyond", [](Out<float> y) {
    Scalar s = shared<float>(8);
    store(y, load(s + (1 << 20)));
  });
  Stream st(device());
  Buffer<float> y(device(), 1);
  k.launch(st, 1, y);
  EXPECT_THAT(error_of<DeviceError>([&] { st.synchronize(); }), HasSubstr("expert_test.cpp"));
}

template <class F>
std::string refused(F f) {
  auto k = kernel("refused", f);
  return error_of<UserError>([&] { (void)k.image(Device::simulator(), device_ptr<float>(64), 1); });
}

TEST(ExpertErrors, SharedPointersAreNeverGlobalOnes) {
  EXPECT_THAT(refused([](Out<float> p, Int n) { store(select(n > 0, p, shared<float>(4)), 1.f); }),
              HasSubstr("ptr<shared f32>"));
  EXPECT_THAT(refused([](Out<float>, Int) { store(shared<float>(0), 1.f); }), HasSubstr("count is 0"));
  EXPECT_THAT(refused([](Out<float>, Int) { store(shared<double>(100000), 1.0); }),
              HasSubstr("needs 800000 bytes of shared memory"));
  EXPECT_THAT(refused([](Out<float> p, Int) { store(p, load(shared<float>(4), {.cache = Cache::streaming})); }),
              HasSubstr("load: a cache hint on the pointer ptr<shared f32>: shared memory has no cache"));
}

// --- barriers --------------------------------------------------------------------------------------------------------

constinit auto meeting = kernel("meeting", [](Out<std::int32_t> y, Const<int> N) {
  Scalar s = shared<std::int32_t>(N);
  Tile i = arange(N);
  store(s + i, i.cast<std::int32_t>());
  barrier();
  barrier(3);
  barrier(15, 128);
  store(y + i, load(s + (i ^ 1)));
});
TEST_P(Expert, BarriersLetEveryThreadPass) {
  Stream st(device());
  Buffer<std::int32_t> y(device(), 256);
  meeting.with({.num_warps = 4}).launch(st, 1, y, 256);
  st.synchronize();
  const auto got = y.to_vector();
  for (int i = 0; i < 256; ++i) ASSERT_EQ(got[std::size_t(i)], i ^ 1);
}

TEST(ExpertErrors, BarriersNameWhatTheProgramHas) {
  EXPECT_THAT(refused([](Out<float>, Int) { barrier(0); }), HasSubstr("barrier: id 0 is the compiler's"));
  EXPECT_THAT(refused([](Out<float>, Int) { barrier(16); }), HasSubstr("barriers are 0 to 15, id is 16"));
  EXPECT_THAT(refused([](Out<float>, Int) { barrier(1, 48); }), HasSubstr("threads must be a multiple of 32"));
  EXPECT_THAT(refused([](Out<float>, Int) { barrier(1, 1024); }), HasSubstr("barrier: 1024 threads, the program has"));
}

// --- inline PTX ------------------------------------------------------------------------------------------------------

constinit auto added = kernel("added", [](In<float> x, Out<float> y, Const<int> N) {
  Tile i = arange(N), v = load(x + i);
  store(y + i, inline_ptx<float>("add.rn.f32 $0, $1, $2;", v, 1.f));
});
TEST_P(InlinePtx, RunsForEachElement) {
  Stream st(device());
  for (int n : {1, 7, 500}) {
    std::vector<float> x(std::size_t(n), 0.f), want;
    for (int i = 0; i < n; ++i) want.push_back((x[std::size_t(i)] = float(i)) + 1);
    auto in = buffer_of(device(), x);
    Buffer<float> out(device(), std::size_t(n));
    added.launch(st, 1, in, out, n);
    st.synchronize();
    EXPECT_EQ(out.to_vector(), want) << n;
  }
}

constinit auto several = kernel("several", [](Out<std::int64_t> y, Int n) {
  auto [low, high] = inline_ptx<std::int32_t, std::uint16_t>(
      "{ .reg .b32 t; cvt.u32.u64 t, $2; add.s32 $0, t, 5; cvt.u16.u32 $1, t; }", n);
  Scalar positive = inline_ptx<bool>("setp.gt.s64 $0, $1, 0;", n);
  Scalar byte =
      inline_ptx<std::int8_t>("add.s16 $0, $1, $2;", Scalar(100).cast<std::int8_t>(), Scalar(100).cast<std::int8_t>());
  Scalar half = inline_ptx<f16>("mul.f16 $0, $1, $1;", Scalar(3).cast<f16>());
  store(y + 0, low.cast<std::int64_t>());
  store(y + 1, high.cast<std::int64_t>());
  store(y + 2, positive.cast<std::int64_t>());
  store(y + 3, byte.cast<std::int64_t>());
  store(y + 4, half.cast<std::int64_t>());
});
TEST_P(InlinePtx, HasTypedResultsOfEveryWidth) {
  Stream st(device());
  Buffer<std::int64_t> y(device(), 5);
  several.launch(st, 1, y, 70000);
  st.synchronize();
  EXPECT_EQ(y.to_vector(), (std::vector<std::int64_t>{70005, 70000 - 65536, 1, -56, 9}));
}

constinit auto bell = kernel("bell", [](InOut<std::int32_t> y) {
  inline_ptx<>("membar.gl;");
  inline_ptx<>("red.global.add.s32 [$0], 1;", y);
});
TEST_P(InlinePtx, WithoutAResultIsNotRemoved) {
  Stream st(device());
  auto y = buffer_of<std::int32_t>(device(), {0});
  bell.with({.num_warps = 1}).launch(st, 1, y);
  st.synchronize();
  EXPECT_EQ(y.to_vector()[0], 32);  // every thread of the program holds the scalar
}

TEST(InlinePtxErrors, TheInterpreterSaysThatItCannot) {
  const Device d = interpreter();
  Stream st(d);
  auto x = buffer_of<float>(d, {1.f}), y = buffer_of<float>(d, {1.f});
  added.launch(st, 1, x, y, 1);
  EXPECT_THAT(error_of<DeviceError>([&] { st.synchronize(); }),
              HasSubstr("inline_ptx: the interpreter cannot run PTX; use the simulator or a GPU"));
}

TEST(InlinePtxErrors, NameTheUsersLine) {
  EXPECT_THAT(refused([](Out<float> p, Int) { store(p, inline_ptx<float>("mov.f32 $0, $7;", 1.f)); }),
              HasSubstr("inline_ptx: $7 in \"mov.f32 $0, $7;\": there are 2 results and operands"));
  const int line = __LINE__ + 1;
  const auto k = kernel("wrong", [](Out<float> p) { store(p, inline_ptx<float>("no.such.f32 $0, $1;", 1.f)); });
  const Device d = Device::simulator();
  EXPECT_THAT(error_of<DeviceError>([&] { k.preload(d, device_ptr<float>(64)); }),
              HasSubstr("expert_test.cpp:" + std::to_string(line)));
}

// --- cache hints -----------------------------------------------------------------------------------------------------

constinit auto hinted = kernel("hinted", [](In<float> x, Out<float> y, Int n, Const<int> N, Const<Cache> HINT) {
  Tile i = arange(N), m = i < n;
  Tile v = load(x + i, m, 5, {.cache = HINT});
  store(y + i, v, m, {.cache = HINT});
  store(y + N, load(x, {.cache = HINT}), {.cache = HINT});
});
TEST_P(Expert, HintsChangeNoResult) {
  Stream st(device());
  for (const Cache hint : {Cache::plain, Cache::no_allocate, Cache::streaming, Cache::evict_first, Cache::evict_last}) {
    auto x = buffer_of<float>(device(), {1, 2, 3, 4});
    auto y = buffer_of<float>(device(), {0, 0, 0, 0, 0});
    hinted.launch(st, 1, x, y, 3, 4, hint);
    st.synchronize();
    EXPECT_EQ(y.to_vector(), (std::vector<float>{1, 2, 3, 0, 1})) << int(hint);
  }
}

TEST(CacheHints, AreWordsOfTheInstruction) {
  const Device d = Device::simulator("sm_90a");
  const auto ptx = [&](Cache hint) {
    return hinted.image(d, device_ptr<float>(64), device_ptr<float>(64), 4, 4, hint).ptx;
  };
  EXPECT_THAT(ptx(Cache::no_allocate),
              testing::AllOf(HasSubstr("ld.global.L1::no_allocate"), HasSubstr("st.global.cs")));
  EXPECT_THAT(ptx(Cache::streaming), testing::AllOf(HasSubstr("ld.global.cs"), HasSubstr("st.global.cs")));
  EXPECT_THAT(ptx(Cache::evict_first),
              testing::AllOf(HasSubstr("ld.global.L1::evict_first"), HasSubstr("st.global.L1::evict_first")));
  EXPECT_THAT(ptx(Cache::evict_last),
              testing::AllOf(HasSubstr("ld.global.L1::evict_last"), HasSubstr("st.global.L1::evict_last")));
}

}  // namespace

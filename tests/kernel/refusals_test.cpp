// What a launch refuses, and that the process goes on afterwards: grids, pointers, allocations, devices, faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"

namespace {
using namespace kiln;
using kiln::test::EveryDevice;
using testing::HasSubstr;

constinit auto copy = kernel("copy", [](In<float> x, Out<float> y, Int n, Const<int> BLOCK) {
                        Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
                        store(y + i, load(x + i, mask), mask);
                      }).names("x y n BLOCK");
constinit auto copy_unmasked = kernel("copy_unmasked", [](In<float> x, Out<float> y, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK);
  store(y + i, load(x + i));
});

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class Refusals : public EveryDevice {
 protected:
  void expect_usable() {
    Stream s(device());
    Buffer<float> x(device(), 100), y(device(), 100);
    x.upload(std::vector<float>(100, 2.5f));
    copy.launch(s, 1, x, y, 100, 128);
    s.synchronize();
    EXPECT_EQ(y.to_vector(), std::vector<float>(100, 2.5f));
  }
};
KILN_ON_EVERY_DEVICE(Refusals);

TEST_P(Refusals, EmptyGridTouchesNothing) {
  Stream s(device());
  Buffer<float> x(device(), 4), y(device(), 4);
  y.upload(std::vector<float>(4, 1.f));
  device().reset_counters();
  copy.launch(s, 0, x, y, 4, 128);
  copy.launch(s, Grid(3, 0), x, y, 4, 128);
  s.synchronize();
  EXPECT_EQ(device().counters().launches, 0u);
  EXPECT_EQ(y.to_vector(), std::vector<float>(4, 1.f));
}

TEST_P(Refusals, EmptyBuffersWithAnEmptyGrid) {
  Stream s(device());
  Buffer<float> x(device(), 0), y(device(), 0);
  copy.launch(s, cdiv(std::int64_t(0), 128), x, y, 0, 128);
  s.synchronize();
}

TEST_P(Refusals, GridBeyondTheLimit) {
  Stream s(device());
  Buffer<float> x(device(), 4), y(device(), 4);
  std::string m = message_of<UserError>([&] { copy.launch(s, Grid(1, 70000), x, y, 4, 128); });
  EXPECT_THAT(m, HasSubstr("copy"));
  EXPECT_THAT(m, HasSubstr("70000"));
  EXPECT_THAT(m, HasSubstr("65535"));
  m = message_of<UserError>([&] { copy.launch(s, std::int64_t(1) << 31, x, y, 4, 128); });
  EXPECT_THAT(m, HasSubstr("2147483648"));
  EXPECT_THAT(m, HasSubstr("2147483647"));
  m = message_of<UserError>([&] { copy.launch(s, -1, x, y, 4, 128); });
  EXPECT_THAT(m, HasSubstr("-1"));
  expect_usable();
}

TEST_P(Refusals, NullPointer) {
  Stream s(device());
  Buffer<float> x(device(), 4), none;
  std::string m = message_of<UserError>([&] { copy.launch(s, 1, x, none, 4, 128); });
  EXPECT_THAT(m, HasSubstr("copy"));
  EXPECT_THAT(m, HasSubstr("y"));
  EXPECT_THAT(m, HasSubstr("null"));
  expect_usable();
}

TEST_P(Refusals, PointerOfAnotherDevice) {
  Stream s(device());
  Device other = Device::simulator("sm_86");
  Buffer<float> x(device(), 4), y(other, 4);
  std::string m = message_of<UserError>([&] { copy.launch(s, 1, x, y, 4, 128); });
  EXPECT_THAT(m, HasSubstr("y"));
  EXPECT_THAT(m, HasSubstr(other.name()));
  EXPECT_THAT(m, HasSubstr(device().name()));
  expect_usable();
}

TEST_P(Refusals, HostPointer) {
  Stream s(device());
  std::vector<float> host(4);
  Buffer<float> x(device(), 4);
  std::string m = message_of<UserError>(
      [&] { copy.launch(s, 1, x, device_ptr<float>(reinterpret_cast<DevicePtr>(host.data())), 4, 128); });
  EXPECT_THAT(m, HasSubstr("y"));
  expect_usable();
}

TEST_P(Refusals, AllocationBeyondTheDevice) {
  const std::size_t n = std::size_t(1) << 44;
  std::string m = message_of<DeviceError>([&] { Buffer<float> x(device(), n); });
  EXPECT_THAT(m, HasSubstr(std::to_string(n * 4)));
  expect_usable();
}

/// A tile that is turned in shared memory.
constinit auto turn = kernel("turn", [](In<double> x, Out<double> y, Const<int> N) {
  Tile r = expand(arange(N), 1), c = arange(N);
  store(y + r * N + c, trans(load(x + r * N + c)));
});
// Both refusals name what is needed and what there is, before anything runs.
TEST_P(Refusals, MoreSharedMemoryOrThreadsThanTheDeviceHas) {
  if (device().kind() == DeviceKind::Interpreter)
    GTEST_SKIP() << "the interpreter has neither threads nor shared memory";
  Stream s(device());
  const std::size_t n = 256 * 256;
  Buffer<double> x(device(), n), y(device(), n);
  y.upload(std::vector<double>(n, 3));
  device().reset_counters();
  const std::string memory = message_of<UserError>([&] { turn.with({.num_warps = 32}).launch(s, 1, x, y, 256); });
  EXPECT_THAT(memory, HasSubstr("turn: needs 524288 bytes of shared memory"));
  EXPECT_THAT(memory, HasSubstr("has " + std::to_string(device().max_shared_bytes())));
  EXPECT_THAT(message_of<UserError>([&] { turn.with({.num_warps = 64}).launch(s, 1, x, y, 32); }),
              HasSubstr("turn: num_warps 64 is 2048 threads, at most 1024 fit a block"));
  s.synchronize();
  EXPECT_EQ(device().counters().launches, 0u);
  EXPECT_EQ(y.to_vector(), std::vector<double>(n, 3));
  expect_usable();
}

// A fault is reported at synchronize with kernel and line. A GPU's context does not survive one, so only the others run
// it.
TEST_P(Refusals, AccessOutOfBoundsNamesTheLine) {
  if (device().kind() == DeviceKind::Cuda) GTEST_SKIP() << "a GPU's context does not survive an illegal access";
  Stream s(device());
  Buffer<float> x(device(), 100), y(device(), 128);
  std::string m = message_of<Error>([&] {
    copy_unmasked.launch(s, 1, x, y, 128);
    s.synchronize();
  });
  EXPECT_THAT(m, HasSubstr("copy_unmasked"));
  EXPECT_THAT(m, HasSubstr("refusals_test.cpp:"));
  expect_usable();
}

// Code is compiled for the device that launches it, not for the first one seen (A32).
TEST(Targets, EachDeviceGetsItsOwnCode) {
  for (const char* arch : {"sm_80", "sm_90a", "sm_86", "sm_100a", "sm_120a", "sm_89"}) {
    Device d = Device::simulator(arch);
    Stream s(d);
    Buffer<float> x(d, 100), y(d, 100);
    x.upload(std::vector<float>(100, 1.f));
    copy.launch(s, 1, x, y, 100, 128);
    s.synchronize();
    EXPECT_EQ(y.to_vector(), std::vector<float>(100, 1.f)) << arch;
  }
}

TEST(Threads, OneKernelFromManyThreads) {
  Device d = Device::simulator();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Stream s(d);
      for (int k = 0; k < 20; ++k) {
        Buffer<float> x(d, 100), y(d, 100);
        x.upload(std::vector<float>(100, float(t)));
        copy.launch(s, 1, x, y, 100, 128 << (k % 3));
        s.synchronize();
        EXPECT_EQ(y.to_vector(), std::vector<float>(100, float(t)));
      }
    });
  for (auto& t : threads) t.join();
}

}  // namespace

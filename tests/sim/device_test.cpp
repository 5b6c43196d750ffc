// The simulator as a device: memory, streams, capture and replay, faults that wait, counters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/base/error.h"
#include "runtime/sim/heap.h"
#include "tests/sim/ptx_fixture.h"
#include "tests/support/knob.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using U64 = std::uint64_t;

/// c[i] = max(a[i] + b[i], 0): each of 256 threads takes four neighbours of a block's 1024.
constexpr const char* kAddRelu = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add_relu(.param .u64 a, .param .u64 b, .param .u64 c)
.reqntid 256
{
  .reg .b32 %r<20>; .reg .b64 %rd<9>;
  ld.param.b64 %rd1, [a]; ld.param.b64 %rd2, [b]; ld.param.b64 %rd3, [c];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r1, 10; shl.b32 %r4, %r2, 2; or.b32 %r5, %r3, %r4;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;
  ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd5];
  ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd6];
  add.rn.f32 %r14, %r6, %r10; add.rn.f32 %r15, %r7, %r11; add.rn.f32 %r16, %r8, %r12; add.rn.f32 %r17, %r9, %r13;
  max.NaN.f32 %r14, %r14, 0f00000000; max.NaN.f32 %r15, %r15, 0f00000000; max.NaN.f32 %r16, %r16, 0f00000000; max.NaN.f32 %r17, %r17, 0f00000000;
  st.global.v4.b32 [%rd7], {%r14, %r15, %r16, %r17};
  ret;
}
)";

constexpr const char* kTrap = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n trap;\n}\n";

class Simulator : public ::testing::Test {
 protected:
  const Knob reads_of_nothing_{"KILN_SIM_CHECK", "races"};  // kernels that only count
  Device device_ = Device::simulator("sm_80");
  Stream stream_{device_};
};

TEST_F(Simulator, GridsHaveTheLimitsOfAGpu) {
  const auto kernel =
      load(device_, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n", "k");
  const auto refusal = [&](const std::array<std::uint32_t, 3>& grid) {
    try {
      launch(stream_, *kernel, {grid}, {});
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({1, 70000, 1}), ::testing::HasSubstr("kernel k: 70000 blocks along y; must be 1 to 65535"));
  EXPECT_THAT(refusal({1, 1, 65536}), ::testing::HasSubstr("65536 blocks along z; must be 1 to 65535"));
  EXPECT_EQ(refusal({70000, 1, 1}), "");
}
TEST_F(Simulator, ADeviceMismatchTellsThemApart) {
  const auto kernel =
      load(device_, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n", "k");
  const Device other = Device::simulator("sm_80");
  const Stream stream(other);
  EXPECT_THAT([&] { launch(stream, *kernel, {}, {}); },
              ::testing::ThrowsMessage<DeviceError>(::testing::AllOf(
                  ::testing::HasSubstr("loaded on another device than the stream's: simulator (sm_80, "),
                  ::testing::HasSubstr("the stream is of simulator 2 (sm_80, "))));
}

TEST_F(Simulator, TellsWhatItIs) {
  const Device d = Device::simulator("sm_90a", 7);
  EXPECT_EQ(d.name(), "simulator 2 (sm_90a, 7 SMs)");  // beside the fixture's
  EXPECT_EQ(device_.name().substr(0, 17), "simulator (sm_80,");
  EXPECT_EQ(d.target(), "sm_90a");
  EXPECT_EQ(d.sm_count(), 7);
  EXPECT_EQ(d.ptx_version(), 90);
  EXPECT_EQ(d.max_shared_bytes(), 232448u);
  EXPECT_EQ(Device::simulator("sm_86").max_shared_bytes(), 101376u);
  EXPECT_TRUE(d.is_simulator());
}

TEST_F(Simulator, AddReluCountsBytesSectorsAndInstructions) {
  constexpr std::size_t n = 1024 * 40;
  std::vector<float> x(n), y(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 37) - 20, y[i] = static_cast<float>(i % 11) - 3;
  Buffer<float> a(device_, n), b(device_, n), c(device_, n);
  a.upload(x);
  b.upload(y);
  run(device_, kAddRelu, "add_relu", {{40, 1, 1}, {256, 1, 1}, 0}, Params().add(a).add(b).add(c));
  const auto got = c.to_vector();
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], std::max(x[i] + y[i], 0.0f)) << i;
  const Counters k = device_.counters();
  EXPECT_EQ(k.launches, 1u);
  EXPECT_EQ(k.global_bytes_read, 2 * 4 * n);
  EXPECT_EQ(k.global_bytes_written, 4 * n);
  EXPECT_EQ(k.global_sectors_read, 2 * 4 * n / 32);
  EXPECT_EQ(k.global_sectors_written, 4 * n / 32);
  EXPECT_EQ(k.instructions, 40u * 8 * 24);
  EXPECT_EQ(k.bank_conflicts, 0u);
  device_.reset_counters();
  EXPECT_EQ(device_.counters().launches, 0u);
}

TEST_F(Simulator, CountersDoNotDependOnHostThreads) {
  const auto counted = [&](const char* threads) {
    const Knob host_threads("KILN_SIM_THREADS", threads);
    Buffer<float> a(device_, 65536);
    a.fill_bytes(0);
    device_.reset_counters();
    run(device_, kAddRelu, "add_relu", {{64, 1, 1}, {256, 1, 1}, 0}, Params().add(a).add(a).add(a));
    return device_.counters();
  };
  const Counters one = counted("1"), three = counted("3");
  EXPECT_EQ(one.instructions, three.instructions);
  EXPECT_EQ(one.global_sectors_read, three.global_sectors_read);
}

/// Sectors or conflicts of one warp access whose lane address is `stride`·lane + `offset` bytes.
std::string strided(const std::string& access, int stride, int offset) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .pred %p<4>; .reg "
         ".b32 %r<9>; .reg "
         ".b64 %rd<9>; .shared .align 16 .b8 tile[8192];\n"
         "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, " +
         std::to_string(stride) + "; add.u32 %r2, %r2, " + std::to_string(offset) +
         "; cvt.u64.u32 %rd2, %r2; add.s64 %rd1, %rd1, %rd2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;\n" + access +
         "\nret;\n}\n";
}

TEST_F(Simulator, SectorsAreThoseOfTheWarpAccess) {
  Buffer<std::uint32_t> a(device_, 4096);
  const auto sectors = [&](const std::string& access, int stride, int offset) {
    device_.reset_counters();
    run(device_, strided(access, stride, offset), "k", {}, Params().add(a));
    return device_.counters().global_sectors_read;
  };
  EXPECT_EQ(sectors("ld.global.b32 %r4, [%rd1];", 4, 0), 4u);
  EXPECT_EQ(sectors("ld.global.b32 %r4, [%rd1];", 4, 16), 5u);
  EXPECT_EQ(sectors("ld.global.b32 %r4, [%rd1];", 32, 0), 32u);
  EXPECT_EQ(sectors("ld.global.b32 %r4, [%rd1];", 0, 0), 1u);
  EXPECT_EQ(sectors("ld.global.b8 %r4, [%rd1];", 1, 0), 1u);
  EXPECT_EQ(sectors("ld.global.v4.b32 {%r4,%r5,%r6,%r7}, [%rd1];", 16, 0), 16u);
  // Descending addresses are as many.
  EXPECT_EQ(sectors("shl.b64 %rd2, %rd2, 1; sub.s64 %rd1, %rd1, %rd2; ld.global.b32 %r4, [%rd1+256];", 4, 0), 5u);
}

TEST_F(Simulator, BankConflictsAreExtraPasses) {
  Buffer<std::uint32_t> a(device_, 1);
  const auto conflicts = [&](const std::string& access, int stride) {
    device_.reset_counters();
    run(device_, strided(access, stride, 0), "k", {}, Params().add(a));
    return device_.counters().bank_conflicts;
  };
  EXPECT_EQ(conflicts("ld.shared.b32 %r4, [%r3];", 4), 0u);
  EXPECT_EQ(conflicts("ld.shared.b32 %r4, [%r3];", 8), 1u);
  EXPECT_EQ(conflicts("ld.shared.b32 %r4, [%r3];", 128), 31u);
  EXPECT_EQ(conflicts("ld.shared.b32 %r4, [%r3];", 0), 0u);  // one word for all
  EXPECT_EQ(conflicts("ld.shared.b16 %r4, [%r3];", 2), 0u);  // two lanes a word
  EXPECT_EQ(conflicts("ld.shared.v4.b32 {%r4,%r5,%r6,%r7}, [%r3];", 16), 0u);
  EXPECT_EQ(conflicts("ld.shared.v4.b32 {%r4,%r5,%r6,%r7}, [%r3];", 128), 28u);
}

TEST_F(Simulator, WavefrontsAreThoseOfTheElementSize) {
  Buffer<std::uint32_t> a(device_, 1);
  const auto counted = [&](const std::string& access, int stride) {
    device_.reset_counters();
    run(device_, strided(access, stride, 0), "k", {}, Params().add(a));
    const Counters c = device_.counters();
    return std::array{c.shared_accesses, c.shared_wavefronts, c.bank_conflicts};
  };
  using Counts = std::array<std::uint64_t, 3>;
  EXPECT_EQ(counted("ld.shared.b32 %r4, [%r3];", 4), (Counts{1, 1, 0}));
  EXPECT_EQ(counted("st.shared.b8 [%r3], %r4;", 1), (Counts{1, 1, 0}));
  EXPECT_EQ(counted("ld.shared.b64 %rd3, [%r3];", 8), (Counts{1, 2, 0}));
  EXPECT_EQ(counted("ld.shared.b64 %rd3, [%r3];", 16), (Counts{1, 4, 2}));
  EXPECT_EQ(counted("st.shared.v4.b32 [%r3], {%r4,%r5,%r6,%r7};", 16), (Counts{1, 4, 0}));
  EXPECT_EQ(counted("st.shared.v2.b64 [%r3], {%rd3,%rd4};", 32), (Counts{1, 8, 4}));
  EXPECT_EQ(counted("red.shared.add.u32 [%r3], %r4;", 8), (Counts{1, 2, 1}));
  EXPECT_EQ(counted("setp.eq.u32 %p1, %r1, 40; @%p1 ld.shared.b32 %r4, [%r3];", 4), (Counts{0, 0, 0}));
  EXPECT_EQ(counted("setp.lt.u32 %p1, %r1, 8; @%p1 ld.shared.v4.b32 {%r4,%r5,%r6,%r7}, [%r3];", 16), (Counts{1, 1, 0}));
  // A generic address counts where it points.
  EXPECT_EQ(counted("cvt.u64.u32 %rd3, %r3; cvta.shared.u64 %rd3, %rd3; ld.b32 %r4, [%rd3];", 8), (Counts{1, 2, 1}));
}

TEST_F(Simulator, CountersAreKeptForEachKernel) {
  Buffer<std::uint32_t> a(device_, 4096);
  const std::string clean = strided("ld.shared.b32 %r4, [%r3];", 4, 0);
  std::string clashing = strided("st.shared.b32 [%r3], %r4; ld.shared.b32 %r4, [%r3];", 8, 0);
  clashing.replace(clashing.find("entry k"), 7, "entry other");
  device_.reset_counters();
  run(device_, clean, "k", {{2, 1, 1}, {32, 1, 1}, 0}, Params().add(a));
  run(device_, clashing, "other", {{3, 1, 1}, {32, 1, 1}, 0}, Params().add(a));
  run(device_, clean, "k", {{2, 1, 1}, {32, 1, 1}, 0}, Params().add(a));
  const std::vector<KernelCounters> kernels = device_.kernel_counters();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].kernel, "k");
  EXPECT_EQ(kernels[0].total.launches, 2u);
  EXPECT_EQ(kernels[0].total.shared_accesses, 4u);
  EXPECT_TRUE(kernels[0].conflicts.empty());
  EXPECT_EQ(kernels[1].kernel, "other");
  EXPECT_EQ(kernels[1].total.bank_conflicts, 6u);
  ASSERT_EQ(kernels[1].conflicts.size(), 2u);
  EXPECT_EQ(kernels[1].conflicts[0].wavefronts, 3u);
  EXPECT_EQ(kernels[1].conflicts[0].where, "ptx line 8: ld.shared.b32 %r4, [%r3]");
}

TEST_F(Simulator, FaultWaitsUntilSynchronisation) {
  const auto kernel = load(device_, kTrap, "k");
  launch(stream_, *kernel, {}, {});
  EXPECT_THAT([&] { stream_.synchronize(); }, ThrowsMessage<DeviceError>(HasSubstr("trap")));
  stream_.synchronize();
  launch(stream_, *kernel, {}, {});
  EXPECT_THAT([&] { launch(stream_, *kernel, {}, {}); }, ThrowsMessage<DeviceError>(HasSubstr("trap")));
  launch(stream_, *kernel, {}, {});
  const Buffer<float> b(device_, 4);
  EXPECT_THAT([&] { (void)b.to_vector(); }, ThrowsMessage<DeviceError>(HasSubstr("trap")));
  device_.synchronize();
}

TEST_F(Simulator, CaptureRecordsAndReplayRuns) {
  Buffer<float> a(device_, 1024), c(device_, 1024);
  a.upload(std::vector<float>(1024, 1.0f));
  c.upload(std::vector<float>(1024, 0.0f));
  const auto kernel = load(device_, kAddRelu, "add_relu", {{1, 1, 1}, {256, 1, 1}, 0});
  const Graph graph = Graph::capture(stream_, [&] {
    for (int i = 0; i < 3; ++i) launch(stream_, *kernel, {{1, 1, 1}, {256, 1, 1}, 0}, Params().add(a).add(c).add(c));
  });
  EXPECT_EQ(graph.kernels(), 3u);
  EXPECT_EQ(device_.counters().launches, 0u);
  EXPECT_EQ(c.to_vector()[7], 0.0f);
  graph.replay(stream_);
  graph.replay(Stream(device_));
  EXPECT_EQ(c.to_vector()[7], 6.0f);
  EXPECT_EQ(device_.counters().launches, 6u);
}

TEST_F(Simulator, CapturingStreamRefusesToWaitAndCopies) {
  Buffer<float> a(device_, 4);
  Graph::capture(stream_, [&] {
    EXPECT_THAT([&] { stream_.synchronize(); }, ThrowsMessage<DeviceError>(HasSubstr("capturing")));
    EXPECT_THAT([&] { a.fill_bytes(0); }, ThrowsMessage<DeviceError>(HasSubstr("is being captured")));
  });
  EXPECT_THROW(Graph::capture(stream_, [] { throw UserError("no"); }), UserError);
  a.fill_bytes(0);
}

TEST_F(Simulator, HugeBuffersCostNothingUntilTouched) {
  constexpr std::size_t n = (std::size_t{1} << 31) + 7;
  Buffer<float> a(device_, n);
  const std::vector<float> tail{1, 2, 3, 4, 5, 6, 7};
  a.upload(tail, n - 7);
  // The last element by a 64-bit index, and one behind it.
  const auto ptx = [](const std::string& index) {
    return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<4>; .reg "
           ".b64 %rd<4>;\n ld.param.u64 %rd1, [a]; mov.b64 %rd2, " +
           index +
           "; shl.b64 %rd2, %rd2, 2; add.s64 %rd1, %rd1, %rd2; ld.global.b32 %r1, [%rd1]; add.f32 %r1, %r1, %r1; "
           "st.global.b32 [%rd1], %r1; ret;\n}\n";
  };
  run(device_, ptx(std::to_string(n - 1)), "k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().add(a));
  std::vector<float> got(7);
  a.download(got, n - 7);
  EXPECT_EQ(got[6], 14.0f);
  EXPECT_THAT(
      [&] {
        run(device_, ptx(std::to_string(n)), "k", {{1, 1, 1}, {1, 1, 1}, 0}, Params().add(a));
      },
      ThrowsMessage<DeviceError>(HasSubstr("0 bytes past the end of the allocation")));
}

TEST_F(Simulator, AllocationBeyondTheMemoryGivesBothNumbers) {
  const std::size_t total = device_.total_memory();
  const Buffer<std::uint8_t> most(device_, total - 1000);
  EXPECT_THAT([&] { Buffer<std::uint8_t>(device_, 1001); },
              ThrowsMessage<DeviceError>(
                  AllOf(HasSubstr("1001 bytes"), HasSubstr("1000 of"), HasSubstr(std::to_string(total)))));
  const Buffer<std::uint8_t> rest(device_, 1000);
}

TEST_F(Simulator, PointerInfoKnowsLiveMemoryOnly) {
  DevicePtr stale = 0;
  {
    const Buffer<float> a(device_, 100);
    stale = a.ptr();
    const auto info = device_.impl().pointer_info(a.ptr() + 40);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->base, a.ptr());
    EXPECT_EQ(info->bytes, 400u);
    EXPECT_FALSE(device_.impl().pointer_info(a.ptr() + 400));
  }
  EXPECT_FALSE(device_.impl().pointer_info(stale));
  EXPECT_FALSE(device_.impl().pointer_info(0));
  int host = 0;
  EXPECT_FALSE(device_.impl().pointer_info(reinterpret_cast<DevicePtr>(&host)));
}

TEST_F(Simulator, LaunchesOfSeveralThreadsAddUp) {
  const auto kernel = load(device_, kAddRelu, "add_relu", {{1, 1, 1}, {256, 1, 1}, 0});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const Stream stream(device_);
      Buffer<float> a(device_, 1024);
      a.fill_bytes(0);
      for (int k = 0; k < 20; ++k) launch(stream, *kernel, {{1, 1, 1}, {256, 1, 1}, 0}, Params().add(a).add(a).add(a));
      stream.synchronize();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(device_.counters().launches, 80u);
}

TEST_F(Simulator, EventsHaveNoClock) {
  Event a(device_), b(device_);
  a.record(stream_);
  b.record(stream_);
  b.synchronize();
  EXPECT_THAT([&] { Event::elapsed_us(a, b); }, ThrowsMessage<DeviceError>(HasSubstr("the simulator has no clock")));
}

// --- heap ---

TEST(Heap, ZeroBytesHaveAnAddressOfTheirOwn) {
  rt::sim::Heap heap(1 << 20);
  const U64 a = heap.allocate(0), b = heap.allocate(0);
  EXPECT_NE(a, 0u);
  EXPECT_NE(a, b);
  EXPECT_TRUE(heap.find(a));
  EXPECT_EQ(heap.view()->find(a, 1), heap.view()->live.size());
  heap.free(a);
  EXPECT_FALSE(heap.find(a));
}

TEST(Heap, AllocationsAreAlignedApartAndNotReusedAtOnce) {
  rt::sim::Heap heap(std::size_t{8} << 30);
  std::vector<U64> seen;
  for (const std::size_t bytes : {1u, 255u, 4096u, 100000u, 3000000u, 1u}) {
    const U64 at = heap.allocate(bytes);
    EXPECT_EQ(at % 256, 0u);
    for (const U64 other : seen) EXPECT_NE(at, other);
    seen.push_back(at);
    if (bytes == 255) heap.free(at);
  }
  EXPECT_THROW(heap.free(seen[1]), DeviceError);
  EXPECT_EQ(heap.used(), 1u + 4096 + 100000 + 3000000 + 1);
}

TEST(Heap, ManyAllocationsStayDistinct) {
  rt::sim::Heap heap(std::size_t{8} << 30);
  std::vector<U64> live;
  for (int i = 0; i < 40000; ++i) {
    live.push_back(heap.allocate(static_cast<std::size_t>(i % 5000)));
    if (i % 3 == 0)
      heap.free(live[live.size() / 2]), live.erase(live.begin() + static_cast<std::ptrdiff_t>(live.size() / 2));
  }
  const auto view = heap.view();
  for (std::size_t i = 1; i < view->live.size(); ++i) ASSERT_GE(view->live[i].base, view->live[i - 1].end() + 1);
  for (const U64 at : live) heap.free(at);
  EXPECT_EQ(heap.used(), 0u);
}

}  // namespace
}  // namespace kiln::test

// What every device promises, on each one of this machine: the simulator, and the GPUs if there are any. The kernels
// are PTX written by hand, so nothing of the compiler is involved.
#include "runtime/device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "runtime/base/env.h"
#include "runtime/device_impl.h"
#include "runtime/launch.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

/// y[i] = x[i] + v for i < n, one block of 64 a program.
constexpr const char* kAddBody = R"(
.address_size 64
.visible .entry add_value(.param .u64 x, .param .u64 y, .param .u64 n, .param .f32 v)
.maxntid 64, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [n];
  ld.param.f32 %f1, [v];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd4, %r1, 64;
  cvt.u64.u32 %rd5, %r2;
  add.s64 %rd4, %rd4, %rd5;
  setp.ge.s64 %p1, %rd4, %rd3;
  @%p1 bra DONE;
  shl.b64 %rd6, %rd4, 2;
  add.s64 %rd7, %rd1, %rd6;
  add.s64 %rd8, %rd2, %rd6;
  ld.global.f32 %f2, [%rd7];
  add.f32 %f3, %f2, %f1;
  st.global.f32 [%rd8], %f3;
DONE:
  ret;
}
)";

rt::Arg arg(rt::ArgKind kind, DType dtype, const char* name) {
  rt::Arg a;
  a.kind = kind;
  a.dtype = dtype;
  a.name = name;
  return a;
}

rt::KernelImage add_value(const Device& d, const std::string& body = kAddBody) {
  rt::KernelImage image;
  image.name = "add_value";
  image.target = d.target();
  image.ptx =
      fmt::format(".version {}.{}\n.target {}\n{}", d.ptx_version() / 10, d.ptx_version() % 10, d.target(), body);
  image.signature.append(arg(rt::ArgKind::Pointer, f32, "x"));
  image.signature.append(arg(rt::ArgKind::Pointer, f32, "y"));
  image.signature.append(arg(rt::ArgKind::Scalar, DType::index, "n"));
  image.signature.append(arg(rt::ArgKind::Scalar, f32, "v"));
  image.candidates.emplace_back();
  image.candidates[0].block = {64, 1, 1};
  return image;
}

class EveryDevice : public ::testing::TestWithParam<std::size_t> {
 protected:
  EveryDevice() : d_(Device::all()[GetParam()]), s_(d_) {}

  struct Arrays {
    explicit Arrays(const Device& d, std::size_t n) : x(d, n), y(d, n) {
      std::vector<float> v(n);
      std::iota(v.begin(), v.end(), 0.0f);
      x.upload(v);
      y.fill_bytes(0);
    }
    Buffer<float> x, y;
  };
  void launch_add(rt::LoadedKernel& kernel, const Arrays& a, std::int64_t n, float v, const Stream& stream) const {
    rt::ArgPack pack;
    pack.pointer(f32, rt::Access::Read, a.x.ptr(), a.x.bytes(), &d_);
    pack.pointer(f32, rt::Access::Write, a.y.ptr(), a.y.bytes(), &d_);
    pack.index(n);
    pack.scalar(f32, &v);
    rt::launch(kernel, stream, {(n + 63) / 64}, pack);
  }
  /// After whatever a test provoked: the device still computes.
  void expect_usable() const {
    const auto kernel = d_.load(add_value(d_));
    const Arrays a(d_, 100);
    launch_add(*kernel, a, 100, 1, s_);
    const std::vector<float> y = a.y.to_vector();
    EXPECT_EQ(y.front(), 1);
    EXPECT_EQ(y.back(), 100);
  }
  template <class E, class F>
  static std::string thrown(F&& body) {
    try {
      body();
    } catch (const E& e) {
      return e.what();
    }
    return "nothing was thrown";
  }

  Device d_;
  Stream s_;
};

INSTANTIATE_TEST_SUITE_P(Devices, EveryDevice, ::testing::Range<std::size_t>(0, Device::all().size()),
                         [](const auto& instance) {
                           std::string name = Device::all()[instance.param].name();
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST_P(EveryDevice, KernelComputesExactlyTheElementsAsked) {
  const auto kernel = d_.load(add_value(d_));
  for (const std::int64_t n : {1, 31, 33, 63, 64, 65, 1000}) {
    const Arrays a(d_, 1024);
    launch_add(*kernel, a, n, 0.5f, s_);
    s_.synchronize();
    const std::vector<float> y = a.y.to_vector();
    for (std::int64_t i = 0; i < 1024; ++i)
      ASSERT_EQ(y[std::size_t(i)], i < n ? float(i) + 0.5f : 0.0f) << n << " " << i;
  }
}

TEST_P(EveryDevice, LaunchesOfAStreamAreInOrder) {
  const auto kernel = d_.load(add_value(d_));
  Arrays a(d_, 200);
  for (int i = 0; i < 10; ++i) {
    launch_add(*kernel, a, 200, 1, s_);
    std::swap(a.x, a.y);
  }
  EXPECT_EQ(a.x.to_vector()[7], 17);
}

TEST_P(EveryDevice, LaunchesAreCounted) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 64);
  d_.reset_counters();
  for (int i = 0; i < 3; ++i) launch_add(*kernel, a, 64, 1, s_);
  launch_add(*kernel, a, 0, 1, s_);
  s_.synchronize();
  EXPECT_EQ(d_.counters().launches, 3u);
}

TEST_P(EveryDevice, CapturedLaunchesRunAtReplayOnly) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 100);
  d_.reset_counters();
  const Graph g = Graph::capture(s_, [&] {
    EXPECT_TRUE(s_.capturing());
    launch_add(*kernel, a, 50, 1, s_);
    launch_add(*kernel, a, 100, 2, s_);
  });
  EXPECT_FALSE(s_.capturing());
  EXPECT_EQ(g.kernels(), 2u);
  EXPECT_EQ(d_.counters().launches, 0u);
  EXPECT_EQ(a.y.to_vector()[3], 0);
  g.replay(s_);
  g.replay(s_);
  s_.synchronize();
  EXPECT_EQ(a.y.to_vector()[3], 5);
  EXPECT_EQ(d_.counters().launches, 4u);
}

TEST_P(EveryDevice, WaitingInsideACaptureIsAnErrorAndSparesTheCapture) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 100);
  const Graph g = Graph::capture(s_, [&] {
    launch_add(*kernel, a, 100, 1, s_);
    EXPECT_NE(thrown<Error>([&] { s_.synchronize(); }), "nothing was thrown");
    EXPECT_NE(thrown<Error>([&] { a.y.to_vector(); }), "nothing was thrown");
  });
  g.replay(s_);
  EXPECT_EQ(a.y.to_vector()[3], 4);
}

TEST_P(EveryDevice, ExceptionInsideACaptureLeavesTheStreamUsable) {
  EXPECT_EQ(thrown<UserError>([&] { Graph::capture(s_, [] { throw UserError("mine"); }); }), "mine");
  expect_usable();
}

TEST_P(EveryDevice, PtxThatCannotBeLoadedIsAnErrorThatNamesTheKernel) {
  std::string body = kAddBody;
  body.replace(body.find("add.f32"), 7, "frobnicate.f32");
  EXPECT_THAT(thrown<DeviceError>([&] { d_.load(add_value(d_, body)); }),
              AllOf(HasSubstr("add_value"), HasSubstr("frobnicate")));
  expect_usable();
}

TEST_P(EveryDevice, FailedAllocationGivesTheSizeAndLeavesTheDeviceUsable) {
  const std::size_t n = std::size_t{1} << 44;
  EXPECT_THAT(thrown<DeviceError>([&] { Buffer<float>(d_, n); }), HasSubstr(std::to_string(4 * n)));
  EXPECT_THAT(thrown<DeviceError>([&] { Buffer<float>(s_, n); }), HasSubstr(std::to_string(4 * n)));
  expect_usable();
}

TEST_P(EveryDevice, AddressesThatAreNotTheDevicesAreRefused) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 64);
  const auto with = [&](DevicePtr x) {
    return thrown<UserError>([&] {
      rt::ArgPack pack;
      pack.pointer(f32, rt::Access::Read, x, 0, nullptr);
      pack.pointer(f32, rt::Access::Write, a.y.ptr(), a.y.bytes(), &d_);
      pack.index(64);
      const float v = 1;
      pack.scalar(f32, &v);
      rt::launch(*kernel, s_, {1}, pack);
    });
  };
  EXPECT_THAT(with(0), HasSubstr("add_value: x: null pointer"));
  EXPECT_THAT(with(64), HasSubstr("add_value: x: address 0x40 is not memory of " + d_.name()));
  EXPECT_EQ(with(a.x.ptr()), "nothing was thrown");
  DevicePtr freed;
  {
    const Buffer<float> b(d_, 4096);
    freed = b.ptr();
  }
  EXPECT_THAT(with(freed), HasSubstr("is not memory of"));
  const Device other = Device::simulator();
  const Buffer<float> b(other, 64);
  EXPECT_THAT(with(b.ptr()), HasSubstr("is not memory of"));
  expect_usable();
}

TEST_P(EveryDevice, EmptyGridTouchesNothing) {
  const auto kernel = d_.load(add_value(d_));
  rt::ArgPack pack;
  d_.reset_counters();
  rt::launch(*kernel, s_, {0}, pack);
  EXPECT_EQ(d_.counters().launches, 0u);
}

TEST_P(EveryDevice, TooLargeAGridIsRefusedAndTheDeviceUsable) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 64);
  EXPECT_THAT(thrown<UserError>([&] { launch_add(*kernel, a, std::int64_t{1} << 40, 1, s_); }),
              HasSubstr("17179869184 blocks along x, at most 2147483647"));
  expect_usable();
}

TEST_P(EveryDevice, StreamOrderedMemoryIsUsableOnItsStream) {
  const auto kernel = d_.load(add_value(d_));
  Arrays a(d_, 100);
  for (int i = 0; i < 20; ++i) {
    Arrays b(d_, 100);
    b.y = Buffer<float>(s_, 100);
    launch_add(*kernel, b, 100, float(i), s_);
    std::swap(b.x, b.y);
    b.y = a.y;
    launch_add(*kernel, b, 100, 1, s_);
  }
  EXPECT_EQ(a.y.to_vector()[5], 25);
}

TEST_P(EveryDevice, ThreadsShareTheDevice) {
  const auto kernel = d_.load(add_value(d_));
  std::vector<std::thread> threads;
  std::array<bool, 4> ok{};
  for (std::size_t t = 0; t < ok.size(); ++t)
    threads.emplace_back([&, t] {
      const Stream own(d_);
      const Arrays a(d_, 300);
      for (int i = 0; i < 10; ++i) launch_add(*kernel, a, 300, float(t), own);
      own.synchronize();
      ok[t] = a.y.to_vector()[299] == 299 + float(t);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(ok, ::testing::Each(true));
}

TEST_P(EveryDevice, InteriorPointersAreKnownWithTheirAllocation) {
  const Buffer<float> b(d_, 100);
  const auto info = d_.impl().pointer_info(b.ptr() + 36);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->ordinal, d_.ordinal());
  if (info->base != 0) {
    EXPECT_EQ(info->base, b.ptr());
    EXPECT_GE(info->bytes, 400u);
  }
}

TEST_P(EveryDevice, ImageSurvivesTheFileFormat) {
  rt::KernelImage image = add_value(d_);
  image.cubin = d_.load(image)->cubin();
  const auto kernel = d_.load(rt::deserialise(rt::serialise(image), "memory"));
  const Arrays a(d_, 64);
  launch_add(*kernel, a, 64, 3, s_);
  EXPECT_EQ(a.y.to_vector()[1], 4);
}

// --- what only a GPU has ---

class EveryGpu : public EveryDevice {
 protected:
  void SetUp() override {
    if (d_.kind() != DeviceKind::Cuda) GTEST_SKIP() << d_.name() << ": a property of GPUs";
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, EveryGpu, ::testing::Range<std::size_t>(0, Device::all().size()));

TEST_P(EveryGpu, MachineCodeAloneIsEnough) {
  rt::KernelImage image = add_value(d_);
  image.cubin = d_.load(image)->cubin();
  ASSERT_FALSE(image.cubin.empty()) << "the driver's linker refused PTX for " << d_.target();
  image.ptx.clear();
  const auto kernel = d_.load(image);
  EXPECT_EQ(kernel->cubin(), image.cubin);
  EXPECT_GT(kernel->image().report.registers, 0);
  EXPECT_EQ(kernel->image().report.spill_bytes, 0);
  const Arrays a(d_, 64);
  launch_add(*kernel, a, 64, 3, s_);
  EXPECT_EQ(a.y.to_vector()[1], 4);
}

TEST_P(EveryGpu, ClusterAndDependentLaunchRun) {
  const std::string t = d_.target();
  if (t == "sm_80" || t == "sm_86" || t == "sm_89") GTEST_SKIP() << t << " has no clusters";
  rt::KernelImage image = add_value(d_);
  image.candidates[0].cluster = {2, 1, 1};
  image.candidates[0].pdl = true;
  const auto kernel = d_.load(image);
  const Arrays a(d_, 256);
  launch_add(*kernel, a, 256, 1, s_);
  EXPECT_EQ(a.y.to_vector()[255], 256);
  const Graph g = Graph::capture(s_, [&] { launch_add(*kernel, a, 256, 2, s_); });
  g.replay(s_);
  EXPECT_EQ(a.y.to_vector()[255], 257);
}

TEST_P(EveryGpu, LargeDynamicSharedMemoryIsGranted) {
  rt::KernelImage image = add_value(d_);
  image.candidates[0].smem_bytes = static_cast<std::uint32_t>(d_.max_shared_bytes());
  const auto kernel = d_.load(image);
  const Arrays a(d_, 64);
  launch_add(*kernel, a, 64, 1, s_);
  EXPECT_EQ(a.y.to_vector()[63], 64);
}

TEST_P(EveryGpu, DefaultStreamIsBorrowed) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 64);
  const Stream s = Stream::foreign(d_, nullptr);
  launch_add(*kernel, a, 64, 1, s);
  s.synchronize();
  EXPECT_EQ(a.y.to_vector()[63], 64);
}

TEST_P(EveryGpu, EventsMeasureTime) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 1 << 20);
  Event begin(d_), end(d_);
  begin.record(s_);
  launch_add(*kernel, a, 1 << 20, 1, s_);
  end.record(s_);
  end.synchronize();
  EXPECT_GT(Event::elapsed_us(begin, end), 0);
  EXPECT_LT(Event::elapsed_us(begin, end), 1e6);
}

TEST_P(EveryGpu, BuffersMayComeAndGoDuringACapture) {
  const auto kernel = d_.load(add_value(d_));
  const Arrays a(d_, 64);
  auto dropped = std::make_unique<Buffer<float>>(d_, 64);
  auto ordered = std::make_unique<Buffer<float>>(s_, 64);
  const Graph g = Graph::capture(s_, [&] {
    const Buffer<float> during(d_, 64);
    dropped.reset();
    ordered.reset();
    launch_add(*kernel, a, 64, 1, s_);
  });
  EXPECT_EQ(g.kernels(), 1u);
  g.replay(s_);
  EXPECT_EQ(a.y.to_vector()[63], 64);
}

// --- choosing a device ---

class Choosing : public ::testing::Test {
 protected:
  Choosing() {
    if (const char* v = std::getenv("KILN_DEVICE")) before_ = v;
  }
  ~Choosing() override { set(before_.empty() ? nullptr : before_.c_str()); }
  static void set(const char* value) {
    if (value) ::setenv("KILN_DEVICE", value, 1);
    else ::unsetenv("KILN_DEVICE");
    env::reload();
  }
  static std::string error() {
    try {
      Device::best();
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing was thrown";
  }
  std::string before_;
};

TEST_F(Choosing, BestIsTheFirstGpuOrElseTheSimulatorAndSaysSoOnce) {
  set(nullptr);
  ::testing::internal::CaptureStderr();
  const Device d = Device::best();
  Device::best();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(d.kind(), Device::cuda_count() > 0 ? DeviceKind::Cuda : DeviceKind::Simulator);
  EXPECT_THAT(log, AllOf(HasSubstr("kiln: running on"), HasSubstr(d.name())));
  EXPECT_EQ(log.find("running on"), log.rfind("running on"));
  if (d.is_simulator()) {
    EXPECT_THAT(log, HasSubstr("no GPU: "));
  }
}

TEST_F(Choosing, BestIsOneSharedDeviceAndSimulatorsAreNew) {
  set("sim");
  EXPECT_EQ(Device::best(), Device::best());
  EXPECT_FALSE(Device::simulator() == Device::simulator());
}

TEST_F(Choosing, KnobNamesTheDevice) {
  set("sim:sm_80");
  EXPECT_EQ(Device::best().target(), "sm_80");
  set("sim");
  EXPECT_EQ(Device::best().target(), "sm_90a");
}

TEST_F(Choosing, KnobThatNamesNothingIsAnError) {
  for (const char* bad : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:0 "}) {
    set(bad);
    EXPECT_THAT(error(), EndsWith(fmt::format("KILN_DEVICE: expected cuda:N, sim or sim:sm_80, got '{}'", bad)));
  }
  set("sim:sm_12");
  EXPECT_THAT(error(), HasSubstr("sm_12"));
  set("cuda:4711");
  EXPECT_NE(error(), "nothing was thrown");
}

TEST_F(Choosing, GpusAreOpenedOnce) {
  if (Device::cuda_count() == 0) {
    EXPECT_THAT([] { Device::cuda(0); }, ::testing::Throws<DeviceError>());
    GTEST_SKIP() << "no GPU";
  }
  EXPECT_EQ(Device::cuda(0), Device::cuda(0));
}

TEST(DefaultBuffer, HasNoMemoryAndNoDevice) {
  const Buffer<float> b;
  EXPECT_EQ(b.ptr(), 0u);
  EXPECT_EQ(b.size(), 0u);
  EXPECT_TRUE(b.to_vector().empty());
  EXPECT_THAT([&] { (void)b.device(); }, ::testing::ThrowsMessage<UserError>(HasSubstr("default-constructed")));
}

}  // namespace
}  // namespace kiln

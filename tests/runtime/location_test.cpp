// Errors of devices, streams, events, graphs and buffers name the caller's line.
#include <cstdlib>

#include "runtime/base/env.h"
#include "runtime/device.h"
#include "runtime/image/kernel_image.h"
#include "runtime/launch.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

// clang-format off: each expectation takes its own line

class Location : public testing::Test {
 protected:
  /// A kernel that stores at address 8.
  static rt::KernelImage faulty() {
    rt::KernelImage image;
    image.name = "faulty";
    image.target = "sm_80";
    image.ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry faulty() {\n.reg .b64 %a;\n"
                "mov.b64 %a, 8;\nst.global.b64 [%a], %a;\nret;\n}\n";
    image.candidates.emplace_back();
    image.candidates[0].block = {32, 1, 1};
    return image;
  }
  void launch_faulty() { rt::launch(*d_.load(faulty()), s_, {1}, rt::ArgPack()); }

  Device d_ = Device::simulator();
  Stream s_{d_};
};

TEST_F(Location, OfADevice) {
  expect_error_at<DeviceError>([] { Device::simulator("sm_12"); }, "unknown target 'sm_12'", __FILE__, __LINE__);
  expect_error_at<DeviceError>([] { Device::simulator("sm_80", 0); }, "0 multiprocessors", __FILE__, __LINE__);
  expect_error_at<DeviceError>([] { Device::cuda(4711); }, "", __FILE__, __LINE__);
  launch_faulty();
  expect_error_at<DeviceError>([&] { d_.synchronize(); }, "faulty", __FILE__, __LINE__);
  rt::KernelImage broken = faulty();
  broken.ptx = "frobnicate";
  expect_error_at<DeviceError>([&] { (void)d_.load(broken); }, "frobnicate", __FILE__, __LINE__);
}

TEST_F(Location, OfTheBestDevice) {
  const char* before = std::getenv("KILN_DEVICE");
  const std::string value = before ? before : "";
  ::setenv("KILN_DEVICE", "abacus", 1);
  env::reload();
  expect_user_error([] { Device::best(); }, "got 'abacus'", __FILE__, __LINE__);
  if (before) ::setenv("KILN_DEVICE", value.c_str(), 1);
  else ::unsetenv("KILN_DEVICE");
  env::reload();
}

TEST_F(Location, OfAStream) {
  int x = 0;
  expect_error_at<DeviceError>([&] { Stream::foreign(d_, &x); }, "CUDA stream", __FILE__, __LINE__);
  launch_faulty();
  expect_error_at<DeviceError>([&] { s_.synchronize(); }, "faulty", __FILE__, __LINE__);
}

TEST_F(Location, OfALaunchTheDeviceRefuses) {
  const auto kernel = Device::simulator().load(faulty());
  expect_error_at<DeviceError>([&] { rt::launch(*kernel, s_, {1}, rt::ArgPack()); }, "loaded on another device", __FILE__, __LINE__);
}

TEST_F(Location, OfTooManyArguments) {
  rt::ArgPack pack(SourceLoc("here.cpp", 7));
  expect_user_error([&] { for (int i = 0; i < 200; ++i) pack.index(i); }, "too many arguments", "here.cpp", 7);
}

TEST_F(Location, OfAnEvent) {
  Event a(d_), b(d_);
  a.record(s_);
  b.record(s_);
  b.synchronize();
  expect_error_at<DeviceError>([&] { (void)Event::elapsed_us(a, b); }, "no clock", __FILE__, __LINE__);
}

TEST_F(Location, OfAGraph) {
  (void)Graph::capture(s_, [&] {
    expect_error_at<DeviceError>([&] { (void)Graph::capture(s_, [] {}); }, "already capturing", __FILE__, __LINE__);
    expect_error_at<DeviceError>([&] { s_.synchronize(); }, "capturing", __FILE__, __LINE__);
  });
  const Graph g = Graph::capture(s_, [&] { launch_faulty(); });
  const Stream elsewhere(Device::simulator());
  expect_error_at<DeviceError>([&] { g.replay(elsewhere); }, "loaded on another device", __FILE__, __LINE__);
}

TEST_F(Location, OfABuffer) {
  const std::size_t wraps = ~std::size_t{0} / 4 + 1, large = std::size_t{1} << 44;
  expect_user_error([&] { Buffer<float> b(d_, wraps); }, "more than a 64-bit size can hold", __FILE__, __LINE__);
  expect_user_error([&] { Buffer<float> b(s_, wraps); }, "more than a 64-bit size can hold", __FILE__, __LINE__);
  expect_user_error([&] { (void)Buffer<float>::foreign(d_, 256, wraps); }, "more than a 64-bit size can hold", __FILE__, __LINE__);
  expect_user_error([] { (void)Buffer<float>().device(); }, "a default-constructed buffer has no device", __FILE__, __LINE__);
  expect_error_at<DeviceError>([&] { Buffer<float> b(d_, large); }, std::to_string(4 * large), __FILE__, __LINE__);
  expect_error_at<DeviceError>([&] { Buffer<float> b(s_, large); }, std::to_string(4 * large), __FILE__, __LINE__);
}

TEST_F(Location, OfTransfers) {
  Buffer<float> b(d_, 4);
  std::vector<float> five(5), out(2);
  expect_user_error([&] { b.upload(five); }, "upload: 20 bytes at element 0 of a buffer of 16 bytes", __FILE__, __LINE__);
  expect_user_error([&] { b.download(out, 3); }, "download: 8 bytes at element 3 of a buffer of 16 bytes", __FILE__, __LINE__);
  Buffer<float> gone = Buffer<float>::foreign(d_, 64, 4);
  expect_error_at<DeviceError>([&] { gone.upload(out); }, "0x40", __FILE__, __LINE__);
  expect_error_at<DeviceError>([&] { gone.download(out); }, "0x40", __FILE__, __LINE__);
  expect_error_at<DeviceError>([&] { (void)gone.to_vector(); }, "0x40", __FILE__, __LINE__);
  expect_error_at<DeviceError>([&] { gone.fill_bytes(1); }, "0x40", __FILE__, __LINE__);
}

TEST_F(Location, IsThatOfTheFirstCallThatWaits) {
  Buffer<float> b(d_, 4);
  launch_faulty();
  expect_error_at<DeviceError>([&] { (void)b.to_vector(); }, "faulty", __FILE__, __LINE__);
  EXPECT_EQ(b.to_vector().size(), 4u);  // and the device is usable
}
// clang-format on

}  // namespace
}  // namespace kiln::test

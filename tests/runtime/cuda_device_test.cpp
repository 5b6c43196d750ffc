// The driver table, devices and memory, on the fake driver.
#include "tests/runtime/cuda_fixture.h"

#include <thread>
#include <vector>

#include "runtime/base/error.h"

namespace kiln::rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(OnFakeCuda, MissingLibraryIsNamed) {
  EXPECT_THAT(thrown<DeviceError>([] { cu::Driver::open("libno-such-cuda.so.1"); }),
              AllOf(HasSubstr("no CUDA driver"), HasSubstr("libno-such-cuda.so.1")));
}

TEST_F(OnFakeCuda, MissingFunctionIsNamed) {
  EXPECT_EQ(thrown<DeviceError>([] { cu::Driver::open("libm.so.6"); }), "CUDA driver too old: libm.so.6 has no cuInit");
}

TEST_F(OnFakeCuda, OldDriverIsRefusedWithBothVersions) {
  fake_->version = 11080;
  EXPECT_EQ(thrown<DeviceError>([&] { open(); }), "CUDA driver too old: it runs CUDA 11.8, Kiln needs 12.0");
}

TEST_F(OnFakeCuda, FailedInitialisationNamesCallCodeAndLibrary) {
  fake_->devices = 0;
  EXPECT_THAT(thrown<DeviceError>([&] { open(); }),
              AllOf(HasSubstr("cuInit: CUDA_ERROR_NO_DEVICE (100, text of the driver)"), HasSubstr(fake_cuda_path())));
}

TEST_F(OnFakeCuda, UnknownCodeStillMakesAMessage) {
  fail_next("cuDevicePrimaryCtxRetain", 4711);
  EXPECT_THAT(thrown<DeviceError>([&] { open(); }),
              AllOf(HasSubstr("cuDevicePrimaryCtxRetain: unknown error (4711"), HasSubstr("Fake GPU A (cuda:0)")));
}

TEST_F(OnFakeCuda, DeviceDescribesItself) {
  const Device d = open(1);
  EXPECT_EQ(d.kind(), DeviceKind::Cuda);
  EXPECT_EQ(d.ordinal(), 1);
  EXPECT_EQ(d.name(), "Fake GPU B");
  EXPECT_EQ(d.target(), "sm_90a");
  EXPECT_EQ(d.ptx_version(), 84);
  EXPECT_EQ(d.sm_count(), 132);
  EXPECT_EQ(d.max_shared_bytes(), 232448u);
}

TEST_F(OnFakeCuda, OrdinalBeyondTheDevicesIsRefused) {
  EXPECT_EQ(thrown<DeviceError>([&] { open(2); }), "no device cuda:2: the driver offers 2");
  EXPECT_EQ(thrown<DeviceError>([&] { open(-1); }), "no device cuda:-1: the driver offers 2");
}

TEST(CudaTarget, IsTheExactOneOrTheNewestPortableOne) {
  EXPECT_EQ(cuda_target(8, 0), "sm_80");
  EXPECT_EQ(cuda_target(8, 6), "sm_86");
  EXPECT_EQ(cuda_target(8, 7), "sm_86");
  EXPECT_EQ(cuda_target(8, 9), "sm_89");
  EXPECT_EQ(cuda_target(9, 0), "sm_90a");
  EXPECT_EQ(cuda_target(10, 0), "sm_100a");
  EXPECT_EQ(cuda_target(10, 3), "sm_89");
  EXPECT_EQ(cuda_target(12, 0), "sm_120a");
  EXPECT_EQ(cuda_target(13, 0), "sm_89");
  EXPECT_EQ(cuda_target(9, 0, "sm_80"), "sm_80");
  EXPECT_EQ(cuda_target(9, 0, "sm_90a"), "sm_90a");
  EXPECT_EQ(thrown<UserError>([] { cuda_target(9, 0, "sm_100a"); }),
            "KILN_TARGET is 'sm_100a', a GPU of compute capability 9.0 runs sm_80, sm_86, sm_89, sm_90a");
  EXPECT_EQ(thrown<DeviceError>([] { cuda_target(7, 5); }),
            "compute capability 7.5 is too old, Kiln needs 8.0 or newer");
}

TEST(CudaPtxVersion, FollowsTheDriver) {
  const std::pair<int, int> known[] = {{12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85},
                                       {12060, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}};
  for (const auto& [driver, ptx] : known) EXPECT_EQ(cuda_ptx_version(driver), ptx) << driver;
  EXPECT_EQ(cuda_ptx_version(14000), 91);
}

TEST_F(OnFakeCuda, BytesComeBackAsTheyWent) {
  const Device d = open();
  Buffer<float> b(d, 5);
  const std::vector<float> v{1, 2, 3, 4, 5};
  b.upload(v);
  EXPECT_EQ(b.to_vector(), v);
  b.upload(std::vector<float>{9}, 2);
  EXPECT_EQ(b.to_vector(), (std::vector<float>{1, 2, 9, 4, 5}));
  b.fill_bytes(0);
  EXPECT_EQ(b.to_vector(), std::vector<float>(5, 0));
}

TEST_F(OnFakeCuda, CopiesWaitForEarlierWork) {
  const Device d = open();
  Buffer<float> b(d, 1);
  for (const bool up : {true, false}) {
    const std::uint64_t from = fake_->call_count;
    if (up) b.upload(std::vector<float>{1});
    else b.to_vector();
    EXPECT_TRUE(called_since("cuCtxSynchronize", from));
    EXPECT_TRUE(called_since("cuStreamSynchronize", from));
  }
}

TEST_F(OnFakeCuda, EmptyBufferHasAnAddressAndNoTraffic) {
  const Device d = open();
  Buffer<float> b(d, 0);
  EXPECT_NE(b.ptr(), 0u);
  const std::uint64_t from = fake_->call_count;
  b.upload({});
  EXPECT_TRUE(b.to_vector().empty());
  b.fill_bytes(1);
  EXPECT_EQ(fake_->call_count, from);
}

TEST_F(OnFakeCuda, FailedAllocationGivesBothNumbersAndLeavesTheDeviceUsable) {
  const Device d = open();
  EXPECT_THAT(
      thrown<DeviceError>([&] { Buffer<float>(d, 1 << 20); }),
      HasSubstr(
          "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2, text of the driver): buffer of 4194304 bytes, 1048576 of 1048576 "
          "are free on Fake GPU A (cuda:0)"));
  const Stream s(d);
  EXPECT_THAT(thrown<DeviceError>([&] { Buffer<float>(s, 1 << 20); }), HasSubstr("cuMemAllocFromPoolAsync"));
  Buffer<float> small(d, 4);
  small.upload(std::vector<float>(4, 1.0f));
}

TEST_F(OnFakeCuda, SizeBeyond64BitsIsAnError) {
  const Device d = open();
  const std::size_t n = ~std::size_t{0} / 4 + 1;  // times 4 wraps to 0
  EXPECT_THAT(thrown<UserError>([&] { Buffer<float>(d, n); }),
              AllOf(HasSubstr("4611686018427387904 elements of 4 bytes")));
}

TEST_F(OnFakeCuda, RangesBeyondTheBufferAreRefused) {
  const Device d = open();
  Buffer<float> b(d, 4);
  EXPECT_THAT(thrown<UserError>([&] { b.upload(std::vector<float>(5)); }),
              HasSubstr("upload: 20 bytes at element 0 of a buffer of 16 bytes"));
  std::vector<float> out(2);
  EXPECT_THAT(thrown<UserError>([&] { b.download(out, 3); }),
              HasSubstr("download: 8 bytes at element 3 of a buffer of 16 bytes"));
  for (const std::size_t first : {std::size_t{5}, ~std::size_t{0} / 4, ~std::size_t{0} / 4 + 1})  // the last: byte 0
    EXPECT_THAT(thrown<UserError>([&] { b.download(out, first); }), HasSubstr("of a buffer of 16 bytes"));
}

TEST_F(OnFakeCuda, PoolIsTrimmedWhenMemoryRunsOut) {
  const Device d = open();
  const Stream s(d);
  { Buffer<std::int8_t> ordered(s, 900000); }
  EXPECT_EQ(fake_->memory_used, 900000u);  // kept by the pool
  Buffer<std::int8_t> direct(d, 900000);
  EXPECT_EQ(fake_->memory_used, 900000u);
}

TEST_F(OnFakeCuda, DeviceWithoutPoolsAllocatesAtOnce) {
  fake_->pools = false;
  const Device d = open();
  const Stream s(d);
  const std::uint64_t from = fake_->call_count;
  { Buffer<std::int8_t> b(s, 10); }
  EXPECT_TRUE(called_since("cuMemAlloc_v2", from));
  EXPECT_TRUE(called_since("cuMemFree_v2", from));
}

TEST_F(OnFakeCuda, BorrowedMemoryIsNotFreed) {
  const Device d = open();
  Buffer<float> owner(d, 8);
  { const auto borrowed = Buffer<float>::foreign(d, owner.ptr(), 8); }
  owner.upload(std::vector<float>(8, 2.0f));
  EXPECT_EQ(Buffer<float>::foreign(d, owner.ptr(), 8).to_vector(), std::vector<float>(8, 2.0f));
}

TEST_F(OnFakeCuda, MemoryOutlivesTheHandlesOfItsDevice) {
  Buffer<float> b;
  { b = Buffer<float>(open(), 3); }
  b.upload(std::vector<float>{1, 2, 3});
  EXPECT_EQ(b.device().name(), "Fake GPU A");
}

TEST_F(OnFakeCuda, EveryThreadMayUseTheDevice) {
  const Device d = open();
  Buffer<int> b(d, 1);
  std::thread([&] { b.upload(std::vector<int>{7}); }).join();
  EXPECT_EQ(b.to_vector(), std::vector<int>{7});
}

TEST_F(OnFakeCuda, ContextOfTheCallerIsGivenBack) {
  const Device d0 = open(0), d1 = open(1);
  const auto& cuda = static_cast<CudaDevice&>(d0.impl());
  cuda.driver().context_set_current(cuda.context());
  Buffer<int> b(d1, 1);
  b.upload(std::vector<int>{1});
  cu::Context now = nullptr;
  cuda.driver().context_get_current(&now);
  EXPECT_EQ(now, cuda.context());
  cuda.driver().context_set_current(nullptr);
}

TEST_F(OnFakeCuda, AfterTheDriverShutDownDestructorsStaySilent) {
  const Device d = open();
  {
    Buffer<float> b(d, 1);
    const Stream s(d);
    const Event e(d);
  }
  auto b = std::make_unique<Buffer<float>>(d, 1);
  std::thread([&] {  // a thread without a context, which cannot get one any more
    fail_next("cuCtxSetCurrent", 4);
    b.reset();
  })
      .join();
  fake_->memory_used = 0;  // the block is lost with the driver
}

TEST_F(OnFakeCuda, PointerInfoKnowsOwnExtentAndHostMemory) {
  const Device d0 = open(0), d1 = open(1);
  Buffer<float> b(d1, 100);
  const auto info = d1.impl().pointer_info(b.ptr() + 40);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->base, b.ptr());
  EXPECT_EQ(info->bytes, 400u);
  EXPECT_EQ(info->ordinal, 1);
  const auto foreign = d0.impl().pointer_info(b.ptr());
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->ordinal, 1);
  EXPECT_EQ(foreign->owner, "Fake GPU B");
  int host = 0;
  EXPECT_FALSE(d0.impl().pointer_info(reinterpret_cast<DevicePtr>(&host)));
}

}  // namespace
}  // namespace kiln::rt

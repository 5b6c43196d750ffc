// Modules, launches, streams and graphs, on the fake driver.
#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/launch.h"
#include "tests/runtime/count_allocations.h"
#include "tests/runtime/cuda_fixture.h"

namespace kiln::rt {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class CudaLaunch : public OnFakeCuda {
 protected:
  /// Two buffers of `n` floats and their arguments for add_image().
  struct Args {
    Args(const Device& d, std::int64_t n) : device(d), a(d, std::size_t(n)), c(d, std::size_t(n)) {
      pack.pointer(f32, Access::Read, a.ptr(), a.bytes(), &device);
      pack.pointer(f32, Access::Write, c.ptr(), c.bytes(), &device);
      pack.index(n);
    }
    Device device;
    Buffer<float> a, c;
    ArgPack pack;
  };
};

TEST_F(CudaLaunch, ParametersArriveAsTheSignatureLaysThemOut) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 1000);
  launch(*kernel, s, {8, 2, 3}, args.pack);
  const FakeCuda::Launch& l = fake_->last;
  EXPECT_FALSE(l.extended);
  EXPECT_EQ(l.stream, s.native());
  EXPECT_THAT(l.grid, ::testing::ElementsAre(8, 2, 3));
  EXPECT_THAT(l.block, ::testing::ElementsAre(128, 1, 1));
  ASSERT_EQ(l.param_bytes, kernel->image().signature.bytes);
  const std::uint64_t expected[3] = {args.a.ptr(), args.c.ptr(), 1000};
  EXPECT_EQ(std::memcmp(l.params.data(), expected, sizeof expected), 0);
}

TEST_F(CudaLaunch, MixedSizesArePaddedNaturally) {
  KernelImage image = add_image();
  image.signature = {};
  ArgPack pack;
  const auto scalar = [&](DType dtype, const void* v) {
    Arg a;
    a.dtype = dtype;
    image.signature.append(a);
    pack.scalar(dtype, v);
  };
  const bool flag = true;
  const std::int16_t half = -2;
  const float f = 1.5f;
  const double wide = 2.5;
  scalar(DType::i1, &flag);
  scalar(DType::i16, &half);
  scalar(f32, &f);
  scalar(DType::i1, &flag);
  scalar(f64, &wide);
  const Device d = open();
  launch(*d.load(image), Stream(d), {1}, pack);
  struct Expected {
    std::uint8_t flag = 1, pad = 0;
    std::int16_t half = -2;
    float f = 1.5f;
    std::uint8_t flag2 = 1, pad2[7] = {};
    double wide = 2.5;
  } expected;
  ASSERT_EQ(fake_->last.param_bytes, sizeof expected);
  EXPECT_EQ(std::memcmp(fake_->last.params.data(), &expected, sizeof expected), 0);
}

TEST_F(CudaLaunch, KernelWithoutParametersGetsNoBuffer) {
  KernelImage image = add_image();
  image.signature = {};
  const Device d = open();
  launch(*d.load(image), Stream(d), {1}, ArgPack{});
  EXPECT_EQ(fake_->last.param_bytes, 0u);
  EXPECT_EQ(fake_->last.count, 1u);
}

/// An image whose PTX has a parameter aligned to 64 behind add_image()'s, and the packed bytes of one launch.
KernelImage wide_image() {
  KernelImage image = add_image();
  image.ptx = ".visible .entry add(.param .u64 a, .param .u64 c, .param .u64 n, .param .align 64 .b8 map[128])";
  return image;
}
struct Wide {
  std::uint64_t a = 1, c = 2, n = 3, pad[5] = {};
  unsigned char map[128];
  Wide() { std::fill(std::begin(map), std::end(map), static_cast<unsigned char>(7)); }
};

// Where such a parameter lies in a packed buffer depends on the architecture.
TEST_F(CudaLaunch, ParametersAlignedToMoreThanSixteenAreGivenOneByOne) {
  fake_->params = {{0, 8}, {8, 8}, {16, 8}, {64, 128}};
  const Device d = open();
  const Stream s(d);
  const Wide params;
  for (const bool cluster : {false, true}) {
    KernelImage image = wide_image();
    if (cluster) image.candidates[0].cluster = {2, 1, 1};
    const auto kernel = d.load(image);
    kernel->launch(s.impl(), {{2, 1, 1}}, &params, sizeof params);
    EXPECT_TRUE(fake_->last.one_by_one);
    EXPECT_EQ(fake_->last.extended, cluster);
    ASSERT_EQ(fake_->last.param_bytes, sizeof params);
    EXPECT_EQ(std::memcmp(fake_->last.params.data(), &params, 24), 0);
    EXPECT_EQ(std::memcmp(fake_->last.params.data() + 64, params.map, sizeof params.map), 0);
  }
  const auto kernel = d.load(add_image());
  Args args(d, 16);
  launch(*kernel, s, {1}, args.pack);
  EXPECT_FALSE(fake_->last.one_by_one);
}

TEST_F(CudaLaunch, WideParametersOfMachineCodeAreThoseOfTheImage) {
  fake_->params = {{0, 8}, {8, 8}, {16, 8}, {64, 128}};
  KernelImage image = wide_image();
  image.params = wide_entry_params(image.ptx, image.name);
  image.ptx.clear();
  image.cubin =
      "\x7f"
      "ELF add";
  const Device d = open();
  const auto kernel = d.load(image);
  const Wide params;
  kernel->launch(Stream(d).impl(), {{1, 1, 1}}, &params, sizeof params);
  EXPECT_TRUE(fake_->last.one_by_one);
  EXPECT_EQ(std::memcmp(fake_->last.params.data() + 64, params.map, sizeof params.map), 0);
}

TEST_F(CudaLaunch, TooFewBytesOfWideParametersAreAnError) {
  const Device d = open();
  const auto kernel = d.load(wide_image());
  const Wide params;
  EXPECT_THAT(thrown<DeviceError>([&] { kernel->launch(Stream(d).impl(), {{1, 1, 1}}, &params, 64); }),
              EndsWith("takes 192 bytes of parameters, the launch gives 64"));
  EXPECT_EQ(fake_->last.count, 0u);
}

/// A kernel of a pointer to rows of 64 floats, their number, and a tensor map of them.
KernelImage image_with_map() {
  KernelImage image = add_image();
  image.ptx = ".visible .entry add(.param .u64 x, .param .u64 rows, .param .align 64 .b8 maps[128])";
  image.signature = {};
  Arg x;
  x.kind = ArgKind::Pointer;
  x.dtype = f32;
  x.align = 16;
  image.signature.append(x);
  Arg rows;
  rows.dtype = DType::index;
  image.signature.append(rows);
  LaunchRecipe& recipe = image.candidates[0];
  recipe.hidden = {HiddenParam::TensorMaps};
  TensorMapRecipe& map = recipe.tensor_maps.emplace_back();
  map.rank = 2;
  map.sizes = {TensorExtent{TensorExtent::kNumber, 64}, TensorExtent{1, 0}};
  map.strides = {TensorExtent{}, TensorExtent{TensorExtent::kNumber, 64}};
  map.box = {16, 8, 1, 1, 1};
  return image;
}

class LaunchWithMap : public CudaLaunch {
 protected:
  LaunchWithMap() { fake_->params = {{0, 8}, {8, 8}, {64, 128}}; }
  static void go(LoadedKernel& kernel, const Stream& s, const Device& d, const Buffer<float>& x) {
    ArgPack pack;
    pack.pointer(f32, Access::Read, x.ptr(), x.bytes(), &d);
    pack.extent(f32, 16);
    launch(kernel, s, {1}, pack);
  }
};

TEST_F(LaunchWithMap, TheMapOfTheArgumentsIsAParameter) {
  const Device d = open();
  const auto kernel = d.load(image_with_map());
  const Stream s(d);
  const Buffer<float> x(d, 1024);
  go(*kernel, s, d, x);
  EXPECT_TRUE(fake_->last.one_by_one);
  EXPECT_EQ(fake_->last.param_bytes, 192u);
  std::uint64_t words[4];
  std::memcpy(words, fake_->last.params.data() + 64, sizeof words);
  EXPECT_EQ(words[0], 7u);  // CU_TENSOR_MAP_DATA_TYPE_FLOAT32
  EXPECT_EQ(words[1], 2u);
  EXPECT_EQ(words[2], x.ptr());
  EXPECT_EQ(words[3], 64u);
}

TEST_F(LaunchWithMap, SteadyLaunchesEncodeAndAllocateNothing) {
  const Device d = open();
  const auto kernel = d.load(image_with_map());
  const Stream s(d);
  std::vector<Buffer<float>> xs;
  for (int i = 0; i < 8; ++i) xs.emplace_back(d, 1024);
  for (const Buffer<float>& x : xs) go(*kernel, s, d, x);
  const std::size_t before = allocations_so_far();
  const std::uint64_t from = fake_->call_count;
  for (int i = 0; i < 1000; ++i) go(*kernel, s, d, xs[std::size_t(i) % 8]);
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_FALSE(called_since("cuTensorMapEncodeTiled", from));
  EXPECT_EQ(kernel->tensor_maps()->encoded(), 8u);
}

TEST_F(LaunchWithMap, AMapThatTheDriverRefusesIsAnErrorAtTheLaunch) {
  const Device d = open();
  const auto kernel = d.load(image_with_map());
  const Stream s(d);
  const Buffer<float> x(d, 1024);
  fail_next("cuTensorMapEncodeTiled", 1);
  EXPECT_THAT(thrown<DeviceError>([&] { go(*kernel, s, d, x); }),
              HasSubstr("cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE (1, text of the driver): encoding a tensor map"));
  EXPECT_EQ(fake_->last.count, 0u);
  go(*kernel, s, d, x);
  EXPECT_EQ(fake_->last.count, 1u);
}

TEST_F(CudaLaunch, ClusterAndDependentLaunchTakeTheExtendedCall) {
  KernelImage image = add_image();
  image.candidates[0].cluster = {2, 1, 1};
  image.candidates[0].pdl = true;
  const Device d = open();
  const auto kernel = d.load(image);
  Args args(d, 16);
  launch(*kernel, Stream(d), {5}, args.pack);
  const FakeCuda::Launch& l = fake_->last;
  EXPECT_TRUE(l.extended);
  EXPECT_EQ(l.grid[0], 10u);  // one cluster a program
  ASSERT_EQ(l.attributes, 2u);
  EXPECT_EQ(l.attribute_ids[0], cu::kAttributeCluster);
  EXPECT_EQ(l.attribute_ids[1], cu::kAttributeProgrammaticSerialization);
  EXPECT_THAT(l.cluster, ::testing::ElementsAre(2, 1, 1));
}

TEST_F(CudaLaunch, SharedMemoryIsCarvedOutForTheResidentBlocks) {
  KernelImage image = add_image();
  image.candidates[0].smem_bytes = 44 * 1024;
  const Device d = open();
  const auto kernel = d.load(image);
  // Two blocks of 44 KB, 1 KB of static shared memory and 1 KB of the driver's, of 228.
  EXPECT_EQ(fake_->shared_carveout, 41);
}

TEST_F(CudaLaunch, HotPathAllocatesNothing) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  launch(*kernel, s, {1}, args.pack);
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 1000; ++i) {
    ArgPack pack;
    pack.pointer(f32, Access::Read, args.a.ptr(), args.a.bytes(), &d);
    pack.pointer(f32, Access::Write, args.c.ptr(), args.c.bytes(), &d);
    pack.index(16);
    launch(*kernel, s, {i + 1}, pack);
  }
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(fake_->last.count, 1001u);
}

TEST_F(CudaLaunch, LaunchesAreCounted) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  for (int i = 0; i < 3; ++i) launch(*kernel, s, {1}, args.pack);
  EXPECT_EQ(d.counters().launches, 3u);
  d.reset_counters();
  EXPECT_EQ(d.counters().launches, 0u);
}

TEST_F(CudaLaunch, FailedLaunchNamesKernelGridAndDevice) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  fail_next("cuLaunchKernel", 1);
  EXPECT_THAT(thrown<DeviceError>([&] {
                launch(*kernel, s, {4, 2}, args.pack);
              }),
              EndsWith("cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1, text of the driver): kernel add for sm_90a on "
                       "Fake GPU A (cuda:0), "
                       "grid [4, 2, 1], block [128, 1, 1], 0 bytes of shared memory"));
  EXPECT_EQ(d.counters().launches, 0u);
  launch(*kernel, s, {4, 2}, args.pack);  // and the device is usable
}

TEST_F(CudaLaunch, ErrorAtSynchroniseNamesTheLastKernelsOfThatStream) {
  const Device d = open();
  const auto add = d.load(add_image("add")), relu = d.load(add_image("relu"));
  const Stream s(d), other(d);
  Args args(d, 16);
  launch(*add, s, {1000}, args.pack);
  launch(*relu, s, {7, 3}, args.pack);
  launch(*add, other, {55}, args.pack);
  fake_->async_error = 700;
  EXPECT_THAT(thrown<DeviceError>([&] { s.synchronize(); }),
              AllOf(HasSubstr("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700, an illegal memory access"),
                    HasSubstr("launched last: relu, grid [7, 3, 1]; add, grid [1000, 1, 1]"), Not(HasSubstr("55"))));
  fake_->async_error = 700;
  EXPECT_THAT(thrown<DeviceError>([&] { d.synchronize(); }),
              HasSubstr("launched last: add, grid [55, 1, 1]; relu, grid [7, 3, 1]"));
  fake_->async_error = 700;
  EXPECT_THAT(thrown<DeviceError>([&] { args.c.to_vector(); }), HasSubstr("relu, grid [7, 3, 1]"));
}

TEST_F(CudaLaunch, StreamOfAnotherDeviceIsRefused) {
  const Device d0 = open(0), d1 = open(1);
  const auto kernel = d0.load(add_image());
  Args args(d1, 16);
  EXPECT_THAT(thrown<UserError>([&] { launch(*kernel, Stream(d1), {1}, args.pack); }),
              EndsWith("add belongs to Fake GPU A (cuda:0), the stream to Fake GPU B"));
}

TEST_F(CudaLaunch, ForeignStreamIsUsedAndNotDestroyed) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  Args args(d, 16);
  const Stream own(d);
  {
    const Stream foreign = Stream::foreign(d, own.native());
    launch(*kernel, foreign, {1}, args.pack);
    EXPECT_EQ(fake_->last.stream, own.native());
  }
  own.synchronize();
  launch(*kernel, Stream::foreign(d, nullptr), {1}, args.pack);
  EXPECT_EQ(fake_->last.stream, nullptr);
  const Device other = open(1);
  EXPECT_THAT(thrown<UserError>([&] { Stream::foreign(other, own.native()); }),
              HasSubstr("does not belong to the primary context of Fake GPU B (cuda:1)"));
}

// --- loading ---

TEST_F(CudaLaunch, MachineCodeOfPtxIsKeptForTheCache) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  EXPECT_EQ(kernel->cubin(),
            "\x7f"
            "ELF.visible .entry add()");
  EXPECT_EQ(kernel->image().report.registers, 42);
  EXPECT_EQ(kernel->image().report.spill_bytes, 16);
  EXPECT_EQ(kernel->image().report.static_smem_bytes, 1024);
}

/// An image whose kernel may have 64 registers, else 80, else as many as it likes.
KernelImage image_with_caps() {
  KernelImage image = add_image();
  image.ptx = ".visible .entry add()\n.reqntid 256\n{\n}\n";
  LaunchRecipe r = image.candidates[0];
  image.candidates.clear();
  for (std::uint32_t cap : {64u, 80u, 0u}) {
    r.max_registers = cap;
    image.candidates.push_back(r);
  }
  return image;
}

TEST_F(CudaLaunch, TheFirstCapOnRegistersWithoutSpillsIsAccepted) {
  const Device d = open();
  EXPECT_EQ(d.load(image_with_caps())->image().accepted, 0u);
  fake_->spilling = {".maxnreg 64"};
  const auto kernel = d.load(image_with_caps());
  EXPECT_EQ(kernel->image().accepted, 1u);
  EXPECT_EQ(kernel->image().report.spill_bytes, 16);
  EXPECT_THAT(kernel->cubin(), HasSubstr(".reqntid 256\n.maxnreg 80\n{"));
  fake_->spilling = {"add"};  // whatever the cap: the last one stands
  EXPECT_EQ(d.load(image_with_caps())->image().accepted, 2u);
  EXPECT_THAT(d.load(image_with_caps())->cubin(), Not(HasSubstr(".maxnreg")));
}

TEST_F(CudaLaunch, AcceptedMachineCodeIsNotAskedAgain) {
  KernelImage image = image_with_caps();
  image.accepted = 1;
  image.cubin =
      "\x7f"
      "ELF add .maxnreg 80";
  fake_->spilling = {".maxnreg"};
  const auto kernel = open().load(image);
  EXPECT_EQ(kernel->image().accepted, 1u);
  EXPECT_EQ(kernel->cubin(), image.cubin);
}

TEST_F(CudaLaunch, MachineCodeForTheExactDeviceGoesFirst) {
  KernelImage image = add_image();
  image.cubin =
      "\x7f"
      "ELF add";
  const Device d = open();
  const std::uint64_t from = fake_->call_count;
  const auto kernel = d.load(image);
  EXPECT_FALSE(called_since("cuLinkCreate_v2", from));
  EXPECT_EQ(kernel->cubin(), image.cubin);
}

TEST_F(CudaLaunch, MachineCodeOfAnotherTargetIsNotTried) {
  KernelImage image = add_image();
  image.cubin =
      "\x7f"
      "ELF add";
  image.target = "sm_80";
  const Device d = open();
  EXPECT_NE(d.load(image)->cubin(), image.cubin);
  image.ptx.clear();
  EXPECT_THAT(thrown<DeviceError>([&] { d.load(image); }),
              HasSubstr("machine code for sm_80 only, no PTX; the device is sm_90a"));
}

TEST_F(CudaLaunch, RefusedMachineCodeFallsBackToPtxAndSaysSo) {
  KernelImage image = add_image();
  image.cubin =
      "\x7f"
      "ELF add";
  fake_->cubin_refused = true;
  const Device d = open();
  ::testing::internal::CaptureStderr();
  const auto kernel = d.load(image);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("kernel add for sm_90a"), HasSubstr("machine code refused"),
                    HasSubstr("CUDA_ERROR_NO_BINARY_FOR_GPU")));
  EXPECT_EQ(kernel->cubin(), "");
}

TEST_F(CudaLaunch, RefusedLinkerStillLoadsThePtx) {
  fake_->linker_refuses = true;
  const Device d = open();
  const auto kernel = d.load(add_image());
  EXPECT_EQ(kernel->cubin(), "");
  Args args(d, 16);
  launch(*kernel, Stream(d), {1}, args.pack);
}

// The linker would leave setmaxnreg out.
TEST_F(CudaLaunch, PtxWhoseRolesMoveRegistersIsNotLinked) {
  KernelImage image = add_image();
  image.ptx += "// setmaxnreg.dec.sync.aligned.u32 40;\n";
  const Device d = open();
  ::testing::internal::CaptureStderr();
  const auto kernel = d.load(image);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(kernel->cubin(), "");
}

TEST_F(CudaLaunch, BadPtxIsAnErrorWithTheAssemblersLogAndAUsableDevice) {
  KernelImage image = add_image();
  image.ptx = "BAD";
  const Device d = open();
  EXPECT_THAT(
      thrown<DeviceError>([&] { d.load(image); }),
      EndsWith(
          "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218, text of the driver): kernel add for sm_90a on Fake GPU A "
          "(cuda:0)\nptxas application ptx input, line 3; fatal: Parsing error near 'BAD'"));
  EXPECT_NE(d.load(add_image()), nullptr);
}

TEST_F(CudaLaunch, MissingEntryIsNamedAndTheModuleUnloaded) {
  KernelImage image = add_image();
  image.ptx = ".visible .entry other()";
  const Device d = open();
  EXPECT_THAT(thrown<DeviceError>([&] { d.load(image); }), HasSubstr("cuModuleGetFunction: unknown error (500"));
  EXPECT_EQ(fake_->modules, 0);
}

TEST_F(CudaLaunch, TooMuchSharedMemoryIsRefusedAtLoad) {
  KernelImage image = add_image();
  image.candidates[0].smem_bytes = 300000;
  const Device d = open();
  EXPECT_THAT(thrown<DeviceError>([&] { d.load(image); }),
              HasSubstr("300000 bytes of shared memory, at most 232448 are possible"));
  image.candidates[0].smem_bytes = 200000;
  const std::uint64_t from = fake_->call_count;
  d.load(image);
  EXPECT_TRUE(called_since("cuFuncSetAttribute", from));
}

TEST_F(CudaLaunch, TooManyThreadsAreRefusedAtLoadAndTheModuleUnloaded) {
  KernelImage image = add_image();
  image.candidates[0].block = {512, 4, 1};
  const Device d = open();
  EXPECT_THAT(thrown<DeviceError>([&] { d.load(image); }),
              HasSubstr("a block of 2048 threads, at most 1024 are possible"));
  EXPECT_EQ(fake_->modules, 0);
}

TEST_F(CudaLaunch, HiddenParameterThatNobodyProvidesIsRefusedAtLoad) {
  KernelImage image = add_image();
  image.candidates[0].hidden = {HiddenParam::TileCounter};
  const Device d = open();
  EXPECT_THAT(thrown<DeviceError>([&] { d.load(image); }), HasSubstr("hidden parameter"));
}

// --- capture ---

TEST_F(CudaLaunch, GraphHoldsTheCapturedKernelsAndCountsThemAtReplay) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  const Graph g = Graph::capture(s, [&] {
    EXPECT_TRUE(s.capturing());
    launch(*kernel, s, {1}, args.pack);
    launch(*kernel, s, {2}, args.pack);
  });
  EXPECT_FALSE(s.capturing());
  EXPECT_EQ(g.kernels(), 2u);
  EXPECT_EQ(d.counters().launches, 0u);
  g.replay(s);
  g.replay(Stream(d));
  EXPECT_EQ(d.counters().launches, 4u);
  fake_->async_error = 700;
  EXPECT_THAT(thrown<DeviceError>([&] { s.synchronize(); }), HasSubstr("a graph of 2 kernels"));
  EXPECT_THAT(thrown<UserError>([&] { g.replay(Stream(open(1))); }), HasSubstr("the graph belongs to Fake GPU A"));
}

TEST_F(CudaLaunch, GraphKeepsItsKernelsLoaded) {
  const Device d = open();
  const Stream s(d);
  Args args(d, 16);
  {
    auto kernel = d.load(add_image());
    const Graph g = Graph::capture(s, [&] { launch(*kernel, s, {1}, args.pack); });
    kernel.reset();
    EXPECT_EQ(fake_->modules, 1);
    g.replay(s);
  }
  EXPECT_EQ(fake_->modules, 0);
}

TEST_F(CudaLaunch, LogOfAGraphHidesNothingThatRanBefore) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  const Graph g = Graph::capture(s, [&] {
    for (int i = 0; i < 3; ++i) launch(*kernel, s, {1}, args.pack);
  });
  for (int i = 0; i < 20; ++i) launch(*kernel, s, {100 + i}, args.pack);
  g.replay(s);
  fake_->async_error = 700;
  EXPECT_THAT(thrown<DeviceError>([&] { s.synchronize(); }),
              HasSubstr("launched last: a graph of 3 kernels; add, grid [119, 1, 1]; add, grid [118, 1, 1]"));
}

TEST_F(CudaLaunch, WaitingInsideACaptureIsAnErrorAndSparesTheCapture) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  const Graph g = Graph::capture(s, [&] {
    launch(*kernel, s, {1}, args.pack);
    EXPECT_THAT(thrown<UserError>([&] { s.synchronize(); }), HasSubstr("is being captured"));
    EXPECT_THAT(thrown<UserError>([&] { d.synchronize(); }), HasSubstr("synchronize on Fake GPU A (cuda:0)"));
    EXPECT_THAT(thrown<UserError>([&] { args.a.to_vector(); }), HasSubstr("download on Fake GPU A (cuda:0)"));
    EXPECT_THAT(thrown<UserError>([&] { args.a.fill_bytes(0); }), HasSubstr("being captured"));
    EXPECT_THAT(thrown<UserError>([&] { Buffer<float>(s, 4); }), HasSubstr("allocate it before"));
  });
  EXPECT_EQ(g.kernels(), 1u);
}

TEST_F(CudaLaunch, BuffersMayComeAndGoDuringACapture) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  auto before = std::make_unique<Buffer<float>>(d, 100);
  auto ordered = std::make_unique<Buffer<float>>(s, 100);
  const Graph g = Graph::capture(s, [&] {
    Buffer<float> during(d, 8);
    before.reset();
    ordered.reset();
    launch(*kernel, s, {1}, args.pack);
  });
  EXPECT_EQ(g.kernels(), 1u);
  const std::size_t held = fake_->memory_used;
  d.synchronize();  // what was dropped goes now
  EXPECT_EQ(fake_->memory_used, held - 400 - 32);
}

TEST_F(CudaLaunch, ExceptionInsideACaptureEndsIt) {
  const Device d = open();
  const Stream s(d);
  EXPECT_EQ(thrown<UserError>([&] { Graph::capture(s, [] { throw UserError("mine"); }); }), "mine");
  EXPECT_FALSE(s.capturing());
  d.synchronize();
}

TEST_F(CudaLaunch, CaptureThatTheDriverInvalidatedIsAnErrorAndTheStreamUsable) {
  const Device d = open();
  const Stream s(d);
  const auto& cuda = static_cast<CudaDevice&>(d.impl());
  EXPECT_THAT(thrown<DeviceError>([&] { Graph::capture(s, [&] { cuda.driver().context_synchronize(); }); }),
              HasSubstr("cuStreamEndCapture: unknown error (901"));
  EXPECT_FALSE(s.capturing());
  s.synchronize();
}

TEST_F(CudaLaunch, CaptureOfAnotherLibraryIsSeen) {
  const Device d = open();
  const Stream s(d);
  const auto& driver = static_cast<CudaDevice&>(d.impl()).driver();
  ASSERT_EQ(driver.stream_begin_capture(static_cast<cu::Stream>(s.native()), cu::kCaptureThreadLocal), cu::kSuccess);
  EXPECT_TRUE(s.capturing());
  EXPECT_TRUE(Stream::foreign(d, nullptr).capturing());
  cu::Graph graph = nullptr;
  driver.stream_end_capture(static_cast<cu::Stream>(s.native()), &graph);
  driver.graph_destroy(graph);
  EXPECT_FALSE(s.capturing());
}

TEST_F(CudaLaunch, EventsMeasureInMicroseconds) {
  const Device d = open();
  const auto kernel = d.load(add_image());
  const Stream s(d);
  Args args(d, 16);
  Event begin(d), end(d);
  begin.record(s);
  launch(*kernel, s, {1}, args.pack);
  end.record(s);
  end.synchronize();
  EXPECT_EQ(Event::elapsed_us(begin, end), 250.0);
  EXPECT_THAT(thrown<UserError>([&] { Event::elapsed_us(begin, Event(open(1))); }), HasSubstr("different devices"));
  EXPECT_THAT(thrown<UserError>([&] { begin.record(Stream(open(1))); }), HasSubstr("the event belongs to Fake GPU A"));
}

}  // namespace
}  // namespace kiln::rt

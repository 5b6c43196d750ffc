// The simulator's speed on pointwise code: one kernel in the form that Kiln emits for elementwise operations, run on
// buffers of its own.
#pragma once
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/device_impl.h"
#include "runtime/image/kernel_image.h"

namespace kiln::bench {

/// What a run did and how long it took.
struct SimFigure {
  double lane_instructions = 0;  ///< instructions times the lanes that executed them
  double seconds = 0;
  double rate() const { return lane_instructions / seconds; }
};

/// y = max(a x + y, 0) (1 + x²/2 - x/4): four elements a thread, a bounds check, 16-byte loads and stores.
inline std::string sim_pointwise_ptx() {
  std::string elements;
  for (const std::string i : {"1", "2", "3", "4"})
    elements += "fma.rn.f32 %f1" + i + ", %f" + i + ", %f9, %f2" + i + "; max.f32 %f1" + i + ", %f1" + i +
                ", 0f00000000; mul.f32 %f3" + i + ", %f" + i + ", %f" + i + "; fma.rn.f32 %f3" + i + ", %f3" + i +
                ", 0f3F000000, 0f3F800000; fma.rn.f32 %f3" + i + ", %f" + i + ", 0fBE800000, %f3" + i +
                "; mul.f32 %f1" + i + ", %f1" + i + ", %f3" + i + ";\n";
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry pointwise(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<40>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f9, [a]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;
  shl.b32 %r4, %r2, 9; shl.b32 %r5, %r3, 2; or.b32 %r6, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1; @%p1 bra END;
  mul.wide.u32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4]; ld.global.v4.f32 {%f21, %f22, %f23, %f24}, [%rd5];
)" + elements +
         R"(  st.global.v4.f32 [%rd5], {%f11, %f12, %f13, %f14};
END:
  ret;
}
)";
}

/// Runs it once to warm up and `times` times on `n` elements of a new simulator. KILN_SIM_CHECK and KILN_SIM_THREADS
/// say with which checks and on how many host threads.
inline SimFigure sim_pointwise(std::uint32_t n = 1 << 22, int times = 3) {
  const Device device = Device::simulator("sm_80");
  rt::KernelImage image;
  image.name = "pointwise";
  image.ptx = sim_pointwise_ptx();
  rt::LaunchRecipe recipe;
  recipe.block = {128, 1, 1};
  image.candidates.push_back(recipe);
  const auto kernel = device.load(image);
  Buffer<float> x(device, n), y(device, n);
  x.upload(std::vector<float>(n, 0.5f));
  y.upload(std::vector<float>(n, 0.25f));
  struct {
    DevicePtr x, y;
    float a;
    std::uint32_t n;
  } const params{x.ptr(), y.ptr(), 0.75f, n};
  const Stream stream(device);
  const auto launch = [&] {
    kernel->launch(stream.impl(), rt::LaunchDims{{(n + 511) / 512, 1, 1}}, &params, sizeof params);
    stream.synchronize();
  };
  launch();
  device.reset_counters();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) launch();
  SimFigure figure;
  figure.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  figure.lane_instructions = static_cast<double>(device.counters().executing_lanes);
  float last = 0;
  y.download({&last, 1}, n - 1);
  if (!(last > 0.25f)) throw std::runtime_error("the pointwise kernel left a wrong value");
  return figure;
}

}  // namespace kiln::bench

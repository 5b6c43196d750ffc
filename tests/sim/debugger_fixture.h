// A program with lines of a source file, and a debugger on it whose stops are listed.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/base/error.h"
#include "runtime/debugger.h"
#include "tests/sim/ptx_fixture.h"

namespace kiln::test {

using debug::Resume;
using debug::Stop;

/// out[i] = 2·(thread + block·100) + sum over k < 3 of k, through shared memory; lines 10 to 40 of demo.cu.
constexpr const char* kProgram = R"(.version 8.0
.target sm_90a
.address_size 64
.file 1 "/src/app/demo.cu"
.func (.param .b32 twice) twice_of(.param .b32 x)
{
  .reg .b32 %r<3>;
  .loc 1 5 3
  ld.param.b32 %r1, [x];
  add.s32 %r2, %r1, %r1;
  .loc 1 6 3
  st.param.b32 [twice], %r2;
  ret;
}
.visible .entry demo(.param .u64 out)
{
  .reg .pred %p<2>; .reg .b32 %r<12>; .reg .f32 %f<2>; .reg .b64 %rd<4>;
  .shared .align 4 .b32 box[64];
  .loc 1 10 3
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.s32 %r3, %r2, 100, %r1;
  .loc 1 11 3
  mov.u32 %r4, box;
  shl.b32 %r5, %r1, 2;
  add.u32 %r4, %r4, %r5;
  st.shared.b32 [%r4], %r3;
  .loc 1 12 3
  bar.sync 0;
  .loc 1 13 3
  ld.shared.b32 %r6, [%r4];
  {
  .param .b32 a; .param .b32 b;
  st.param.b32 [a], %r6;
  call.uni (b), twice_of, (a);
  ld.param.b32 %r7, [b];
  }
  .loc 1 14 3
  mov.u32 %r8, 0;
LOOP:
  .loc 1 15 5
  add.s32 %r7, %r7, %r8;
  .loc 1 14 3
  add.s32 %r8, %r8, 1;
  setp.lt.u32 %p1, %r8, 3;
  @%p1 bra LOOP;
  .loc 1 16 3
  mov.u32 %r9, %ntid.x;
  mad.lo.s32 %r10, %r2, %r9, %r1;
  mul.wide.u32 %rd2, %r10, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.b32 [%rd3], %r7;
  .loc 1 17 1
  ret;
}
)";
constexpr std::uint32_t kThreads = 64, kBlocks = 2;

inline std::uint32_t expected(std::uint32_t block, std::uint32_t thread) { return 2 * (thread + block * 100) + 3; }

class DebuggerTest : public testing::Test {
 protected:
  void run() {
    test::run(device, kProgram, "demo", {{kBlocks, 1, 1}, {kThreads, 1, 1}}, Params().add(out));
    const std::vector<std::uint32_t> got = out.to_vector();
    for (std::uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected(i / kThreads, i % kThreads)) << i;
  }
  /// Runs; the places of the stops, as block/warp:line.
  std::vector<std::string> stops(Resume how = Resume::Continue) {
    std::vector<std::string> seen;
    debugger.on_stop([&](Stop& s) {
      seen.push_back(std::to_string(s.block()[0]) + "/" + std::to_string(s.warp()) + ":" + std::to_string(s.line()));
      return how;
    });
    run();
    return seen;
  }
  Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out{device, kBlocks* kThreads};
  Debugger debugger{device};
};

}  // namespace kiln::test

// The debugger on raw PTX: where launches stop, and what a stop shows.
#include "runtime/debugger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <thread>

#include "runtime/base/error.h"
#include "tests/sim/ptx_fixture.h"

namespace kiln::test {
namespace {

using debug::On;
using debug::Reason;
using debug::Resume;
using debug::Space;
using debug::Stop;
using testing::ElementsAre;
using testing::HasSubstr;

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

std::uint32_t expected(std::uint32_t block, std::uint32_t thread) { return 2 * (thread + block * 100) + 3; }

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

TEST_F(DebuggerTest, StopsEachWarpAtALine) {
  debugger.break_line("demo.cu", 16);
  // The last one at the barrier goes on at once.
  EXPECT_THAT(stops(), ElementsAre("0/1:16", "0/0:16", "1/1:16", "1/0:16"));
}

TEST_F(DebuggerTest, TakesTheLastPartsOfAFileName) {
  debugger.break_line("app/demo.cu", 16, {.block = debug::Index3{1, 0, 0}, .warp = 0});
  debugger.break_line("emo.cu", 16);
  debugger.break_line("other/demo.cu", 16);
  EXPECT_THAT(stops(), ElementsAre("1/0:16"));
}

TEST_F(DebuggerTest, StopsOnceInALineThatIsPickedUpAgain) {
  debugger.break_line("demo.cu", 14, {.block = debug::Index3{0, 0, 0}, .warp = 1});
  // Before the loop, and in each of its three turns.
  EXPECT_THAT(stops(), ElementsAre("0/1:14", "0/1:14", "0/1:14", "0/1:14"));
}

TEST_F(DebuggerTest, ALineWithoutCodeStandsForTheNext) {
  debugger.break_line("demo.cu", 7, {.block = debug::Index3{0, 0, 0}, .warp = 0});
  EXPECT_THAT(stops(), ElementsAre("0/0:10"));
  debugger.break_line("demo.cu", 18);  // behind all code of the file
  debugger.break_line("demo.cu", 2);   // before it
  EXPECT_THAT(stops(), ElementsAre("0/0:10"));
}

TEST_F(DebuggerTest, StopsAtAKernelOnce) {
  debugger.break_kernel("demo");
  debugger.break_kernel("demo", {.block = debug::Index3{1, 0, 0}, .warp = 1});
  debugger.break_kernel("another");
  EXPECT_THAT(stops(), ElementsAre("0/0:10", "1/1:10"));
  EXPECT_THAT(stops(), ElementsAre("0/0:10", "1/1:10"));
}

TEST_F(DebuggerTest, StopsAtALineOfThePtx) {
  const int n = debugger.break_ptx(32, {.block = debug::Index3{1, 0, 0}, .warp = 1, .lane = 7});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_EQ(s.reason(), Reason::Breakpoint);
    EXPECT_EQ(s.number(), n);
    EXPECT_EQ(s.ptx_line(), 32u) << "the next line with an instruction";
    EXPECT_EQ(s.ptx(), "ld.shared.b32 %r6, [%r4]");
    EXPECT_EQ(s.lane(), 7u);
    return Resume::Continue;
  });
  run();
  EXPECT_EQ(stopped, 1);
}

TEST_F(DebuggerTest, ShowsRegistersParametersAndMemory) {
  debugger.break_line("demo.cu", 13, {.block = debug::Index3{1, 0, 0}, .warp = 1});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_EQ(s.kernel(), "demo");
    EXPECT_EQ(s.file(), "/src/app/demo.cu");
    EXPECT_EQ(s.active(), 0xFFFFFFFFu);
    const debug::Register r3 = s.reg("%r3"), tid = s.reg("%tid.x"), lane = s.reg("%laneid");
    EXPECT_EQ(r3.type, "b32");
    for (std::uint32_t l = 0; l < 32; ++l) {
      EXPECT_EQ(r3.bits[l], 100 + 32 + l);
      EXPECT_EQ(tid.bits[l], 32 + l);
      EXPECT_EQ(lane.bits[l], l);
    }
    EXPECT_EQ(s.reg("%rd1").bits[5], out.ptr());
    EXPECT_EQ(s.parameters().at(0).name, "out");
    EXPECT_EQ(s.address_of("out"), std::pair(Space::Global, std::uint64_t{out.ptr()}));
    const auto [space, box] = s.address_of("box");
    EXPECT_EQ(space, Space::Shared);
    EXPECT_EQ(s.load<std::uint32_t>(Space::Shared, box + 4 * 63), 163u);
    EXPECT_EQ(s.load<std::uint32_t>(Space::Global, out.ptr()), expected(0, 0)) << "block 0 is done";
    for (const char* wrong : {"%r12", "%q", "%tid.q", "%r"}) EXPECT_THROW(s.reg(wrong), UserError) << wrong;
    EXPECT_THROW(s.read(Space::Shared, box, 4 * 64 + 1), UserError);
    EXPECT_THROW(s.read(Space::Global, 64, 4), UserError);
    EXPECT_THROW(s.address_of("nothing"), UserError);
    return Resume::Continue;
  });
  run();
  EXPECT_EQ(stopped, 1);
}

TEST_F(DebuggerTest, ShowsWhatWarpsWaitFor) {
  debugger.break_line("demo.cu", 12, {.block = debug::Index3{0, 0, 0}, .warp = 1});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    const auto warps = s.warps();
    EXPECT_EQ(warps.size(), 2u);
    EXPECT_EQ(warps.at(0).state, "waits at barrier 0 (32 of 64 threads arrived)");
    EXPECT_EQ(warps.at(1).state, "ready");
    EXPECT_THAT(warps.at(1).place, HasSubstr("demo.cu:12 (ptx line 30: bar.sync 0)"));
    s.focus({}, 0, 3);
    EXPECT_EQ(s.warp(), 0u);
    EXPECT_EQ(s.reg("%tid.x").bits[s.lane()], 3u);
    EXPECT_THROW(s.focus({}, 2, {}), UserError);
    EXPECT_THROW(s.focus(debug::Index3{1, 0, 0}, {}, {}), UserError);
    return Resume::Continue;
  });
  run();
  EXPECT_EQ(stopped, 1);
}

TEST_F(DebuggerTest, StepsThroughLinesOfOneWarp) {
  debugger.break_kernel("demo", {.warp = 1});
  std::vector<unsigned> lines;
  debugger.on_stop([&](Stop& s) {
    EXPECT_EQ(s.warp(), 1u);
    if (s.reason() == Reason::Exit) return Resume::Continue;
    lines.push_back(s.line());
    return Resume::StepLine;
  });
  run();
  EXPECT_THAT(lines, ElementsAre(10, 11, 12, 13, 5, 6, 14, 15, 14, 15, 14, 15, 14, 16, 17));
}

TEST_F(DebuggerTest, StepsInstructionsInsideAFunction) {
  debugger.break_line("demo.cu", 5, {.block = debug::Index3{0, 0, 0}, .warp = 0});
  std::vector<std::string> seen;
  debugger.on_stop([&](Stop& s) {
    if (seen.size() == 1) {
      EXPECT_THAT(s.functions(), ElementsAre("twice_of", "demo"));
      EXPECT_EQ(s.reg("%r1").bits[9], 9u) << "of the function, not of the kernel";
      EXPECT_EQ(s.reg("%r3").bits[9], 9u) << "of the kernel";
    }
    seen.push_back(s.ptx());
    return seen.size() < 4 ? Resume::StepInstruction : Resume::Continue;
  });
  run();
  EXPECT_THAT(seen, ElementsAre("ld.param.b32 %r1, [x]", "add.s32 %r2, %r1, %r1", "st.param.b32 [twice], %r2", "ret"));
}

TEST_F(DebuggerTest, FinishesABlock) {
  debugger.break_line("demo.cu", 11, {.block = debug::Index3{0, 0, 0}, .warp = 0});
  std::vector<std::string> seen;
  debugger.on_stop([&](Stop& s) {
    seen.push_back(s.what());
    if (s.reason() == Reason::Exit) {
      EXPECT_EQ(s.load<std::uint32_t>(Space::Global, out.ptr() + 4 * 63), expected(0, 63));
      EXPECT_NE(s.load<std::uint32_t>(Space::Global, out.ptr() + 4 * 64), expected(1, 0));
      return Resume::Continue;
    }
    return Resume::FinishBlock;
  });
  run();
  EXPECT_THAT(seen, ElementsAre("breakpoint 1", "block (0, 0, 0) has finished"));
}

TEST_F(DebuggerTest, WatchesGlobalMemory) {
  out.fill_bytes(0);
  debugger.watch(Space::Global, out.ptr() + 4 * 70, 4);
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_EQ(s.reason(), Reason::Watch);
    EXPECT_EQ(s.block()[0], 1u);
    EXPECT_EQ(s.warp(), 0u);
    EXPECT_EQ(s.lane(), 6u);
    EXPECT_EQ(s.line(), 16u);
    EXPECT_EQ(s.ptx(), "st.global.b32 [%rd3], %r7");
    EXPECT_EQ(std::to_integer<std::uint32_t>(s.old_bytes().at(0)), stopped == 1 ? 0 : expected(1, 6));
    EXPECT_EQ(std::to_integer<std::uint32_t>(s.new_bytes().at(0)), expected(1, 6));
    EXPECT_THAT(s.what(),
                HasSubstr(stopped == 1 ? "changed from 00000000 to 000000d7" : "written with what was there"));
    return Resume::Continue;
  });
  run();
  EXPECT_EQ(stopped, 1);
  run();
  EXPECT_EQ(stopped, 2) << "a write of what was there is one, too";
}

TEST_F(DebuggerTest, WatchesReadsAndWritesOfSharedMemory) {
  std::vector<std::string> seen;
  const auto collect = [&](Stop& s) {
    seen.push_back(std::to_string(s.block()[0]) + " " + s.ptx().substr(0, 9) + " lane " + std::to_string(s.lane()));
    return Resume::Continue;
  };
  constexpr std::uint64_t kBox = 1024;
  const int written = debugger.watch(Space::Shared, kBox + 4 * 35, 4, On::Write);
  debugger.on_stop(collect);
  run();
  EXPECT_THAT(seen, ElementsAre("0 st.shared lane 3", "1 st.shared lane 3"));
  debugger.remove(written);
  seen.clear();
  debugger.watch(Space::Shared, kBox + 4 * 35, 4, On::Read, {.block = debug::Index3{1, 0, 0}});
  run();
  EXPECT_THAT(seen, ElementsAre("1 ld.shared lane 3"));
  EXPECT_THAT(debugger.breakpoints(),
              ElementsAre("2: watch of reads of 4 bytes at 0x48c of shared memory block (1, 0, 0)"));
}

TEST_F(DebuggerTest, EndsALaunch) {
  debugger.break_line("demo.cu", 16);
  debugger.on_stop([](Stop&) { return Resume::Abort; });
  try {
    run();
    FAIL() << "the launch went on";
  } catch (const DeviceError& e) {
    EXPECT_THAT(e.what(), HasSubstr("kernel demo: ended in the debugger"));
  }
}

TEST_F(DebuggerTest, LetsGo) {
  debugger.break_line("demo.cu", 16);
  EXPECT_THAT(stops(Resume::Detach), ElementsAre("0/1:16"));
  EXPECT_THAT(stops(), ElementsAre());
}

TEST_F(DebuggerTest, WhatAHandlerThrowsComesOutOfTheLaunch) {
  debugger.break_line("demo.cu", 16);
  debugger.on_stop([](Stop&) -> Resume { throw std::runtime_error("enough"); });
  EXPECT_THROW(run(), std::runtime_error);
  debugger.on_stop({});
  run();
}

TEST_F(DebuggerTest, OneForADevice) {
  EXPECT_THROW(Debugger{device}, UserError);
  { const Debugger elsewhere(Device::simulator("sm_80")); }
  EXPECT_THROW(debugger.watch(Space::Local, 0, 4), UserError);
  EXPECT_THROW(debugger.remove(1), UserError);
}

constexpr const char* kFaulty = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 5;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  @%p1 bra FINE;
  add.s64 %rd3, %rd3, 4096;
  st.global.b32 [%rd3], %r1;
FINE:
  bar.sync 0, %r1;
  ret;
}
)";

TEST(Debugger, StopsAtAFaultBeforeTheLaunchEnds) {
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 32);
  Debugger debugger(device);
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_EQ(s.reason(), Reason::Fault);
    EXPECT_EQ(s.lane(), 5u);
    EXPECT_EQ(s.active(), 1u << 5);
    EXPECT_EQ(s.ptx(), "st.global.b32 [%rd3], %r1");
    EXPECT_EQ(s.reg("%rd3").bits[5], out.ptr() + 20 + 4096);
    EXPECT_THAT(s.what(), HasSubstr("out-of-bounds global store of 4 bytes"));
    return Resume::Continue;
  });
  EXPECT_THROW(run(device, kFaulty, "k", {}, Params().add(out)), DeviceError);
  EXPECT_EQ(stopped, 1);
}

/// Lane 3's word is not written; what is read there is stored. Then warps race.
constexpr const char* kUnwritten = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<4>;
  .shared .align 4 .b32 box[64];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, box;
  shl.b32 %r3, %r1, 2;
  add.u32 %r2, %r2, %r3;
  setp.ne.u32 %p1, %r1, 3;
  @%p1 st.shared.b32 [%r2], %r1;
  ld.shared.b32 %r4, [%r2];
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  st.global.b32 [%rd1], %r4;
  xor.b32 %r2, %r2, 128;
  ld.shared.b32 %r5, [%r2];
  ret;
}
)";

TEST(Debugger, StopsAtAFindingAndGoesOn) {
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 64);
  Debugger debugger(device);
  std::vector<std::string> seen;
  debugger.on_stop([&](Stop& s) {
    EXPECT_EQ(s.reason(), Reason::Finding);
    seen.push_back(s.ptx());
    if (seen.size() == 1) {
      EXPECT_THAT(s.what(), HasSubstr("uninitialised shared load of 4 bytes"));
      EXPECT_EQ(s.lane(), 3u);
      EXPECT_EQ(s.reg("%r4").bits[3], 0xFFFFFFFFu);
      EXPECT_EQ(s.load<std::uint32_t>(Space::Global, out.ptr() + 8), 2u);  // after the store
    } else {
      EXPECT_THAT(s.what(), HasSubstr("race on shared memory with warp"));
    }
    return Resume::Continue;
  });
  EXPECT_THROW(run(device, kUnwritten, "k", {{1, 1, 1}, {64, 1, 1}}, Params().add(out)), DeviceError);
  EXPECT_THAT(seen, ElementsAre("st.global.b32 [%rd1], %r4", HasSubstr("shared.b32"), HasSubstr("shared.b32")));
  EXPECT_EQ(out.to_vector()[63], 63u);
}

TEST(Debugger, IsAskedToStopByAnotherThread) {
  const Device device = Device::simulator("sm_90a");
  Debugger debugger(device);
  int stopped = 0;
  std::jthread other;
  debugger.break_kernel("k");
  debugger.on_stop([&](Stop& s) {
    if (++stopped == 1) {
      other = std::jthread([&] { EXPECT_TRUE(debugger.interrupt()); });
      return Resume::Continue;
    }
    EXPECT_EQ(s.reason(), Reason::Interrupt);
    EXPECT_EQ(s.what(), "interrupted");
    EXPECT_TRUE(debugger.interrupt());
    EXPECT_FALSE(debugger.interrupt());  // one is enough
    return stopped == 4 ? Resume::Abort : Resume::Continue;
  });
  const std::string endless =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r1;\nLOOP: add.u32 %r1, %r1, "
      "1; bra LOOP;\n}\n";
  EXPECT_THAT([&] { run(device, endless, "k", {}, Params()); },
              testing::ThrowsMessage<DeviceError>(HasSubstr("ended in the debugger")));
  EXPECT_EQ(stopped, 4);
}

constexpr const char* kStuck = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{
  .reg .pred %p<2>; .reg .b32 %r<4>;
  mov.u32 %r1, %warpid;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bar.sync 1, 64;
  ret;
}
)";

TEST(Debugger, StopsAtADeadlock) {
  const Device device = Device::simulator("sm_90a");
  Debugger debugger(device);
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_EQ(s.reason(), Reason::Fault);
    EXPECT_EQ(s.warp(), 0u);
    EXPECT_EQ(s.ptx(), "@%p1 bar.sync 1, 64");
    EXPECT_THAT(s.what(), HasSubstr("deadlock"));
    return Resume::Continue;
  });
  EXPECT_THROW(run(device, kStuck, "k", {{1, 1, 1}, {64, 1, 1}}, Params()), DeviceError);
  EXPECT_EQ(stopped, 1);
}

/// A tile of 4 x 30 on two warps, whose elements are 100 · row + column, in a loop that adds 1000 at each turn; a
/// scalar, a predicate, and a dead register.
constexpr const char* kNamed = R"(.version 8.0
.target sm_90a
.address_size 64
.file 1 "named.cu"
.visible .entry named(.param .u64 out)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %rd<3>; .reg .b16 %rs<2>;
  .loc 1 3 1
  mov.u32 %r1, %laneid;
  mov.u32 %r2, %warpid;
  mad.lo.s32 %r3, %r2, 100, %r1;
  add.s32 %r4, %r3, 200;
  cvt.rn.f32.s32 %f1, %r3;
  cvt.rn.f32.s32 %f2, %r4;
  mov.u64 %rd1, -5;
  setp.lt.u32 %p1, %r1, 3;
  mov.b16 %rs1, 0x3C00;
  // kiln.value "count index - warps=2 blocks=1", {%rd1};
  // kiln.value "low i1 32 warps=2 blocks=1 register= lane=1;2;4;8;16 warp=0 block=", {%p1};
  // kiln.value "one f16 - warps=2 blocks=1", {%rs1};
  mov.u32 %r5, 0;
LOOP:
  .loc 1 4 1
  add.f32 %f1, %f1, 0f447A0000;
  add.f32 %f2, %f2, 0f447A0000;
  // kiln.value "x f32 4x30 warps=2 blocks=1 register=2,0;4,0 lane=0,1;0,2;0,4;0,8;0,16 warp=1,0 block=", {%f1, %f2, _, _};
  .loc 1 5 1
  add.s32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 2;
  @%p2 bra LOOP;
  .loc 1 6 1
  ret;
}
)";

TEST(Debugger, ReadsNamedValuesFromRegisters) {
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 1);
  Debugger debugger(device);
  debugger.break_line("named.cu", 5, {.warp = 1});
  int stopped = 0;
  debugger.on_stop([&](Stop& s) {
    ++stopped;
    EXPECT_THAT(s.value_names(), ElementsAre("count", "low", "one", "x"));
    EXPECT_EQ(s.value("count").number(0), -5);
    EXPECT_EQ(s.value("one").number(0), 1);
    const debug::Value low = s.value("low"), x = s.value("x");
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(low.number(i), i < 3);
    EXPECT_EQ(x.where, "named.cu:4");
    EXPECT_EQ(x.turn, std::uint64_t(stopped));
    // Warp 0 has run to its end: it has been through both turns.
    const bool both = stopped == 2;
    EXPECT_EQ(x.absent, both ? std::vector<std::string>{} : std::vector<std::string>{"warp 0: already further on"});
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 30; ++j) {
        const std::size_t at = x.at({i, j});
        EXPECT_EQ(x.known[at], both || i % 2 == 1);
        EXPECT_TRUE(!x.known[at] ||
                    x.number(at) == 1000 * stopped + 100 * static_cast<double>(i) + static_cast<double>(j));
      }
    }
    EXPECT_THROW(x.at({0, 30}), UserError);
    EXPECT_THROW(x.at({0}), UserError);
    return Resume::Continue;
  });
  run(device, kNamed, "named", {{1, 1, 1}, {64, 1, 1}}, Params().add(out));
  EXPECT_EQ(stopped, 2);
}

TEST(Debugger, DescribesATileOnTheTerminal) {
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 1);
  Debugger debugger(device);
  std::istringstream in("i n\nc\np x\np x[3, 29]\np x[2, 0]\np count\np y\n");
  std::ostringstream text;
  debugger.break_kernel("named", {.warp = 1});
  debugger.break_line("named.cu", 5, {.warp = 1});
  debugger.on_stop(debug::console(debugger, in, text, false));
  run(device, kNamed, "named", {{1, 1, 1}, {64, 1, 1}}, Params().add(out));
  EXPECT_EQ(text.str(), R"(breakpoint 1
named, block (0, 0, 0), warp 1, lane 0
named.cu:3
ptx:9: mov.u32 %r1, %laneid
(kiln) i n
count: no value yet
low: no value yet
one: no value yet
x: no value yet
(kiln) c
breakpoint 2
named, block (0, 0, 0), warp 1, lane 0
named.cu:5
ptx:28: add.s32 %r5, %r5, 1
(kiln) p x
f32[4, 30] x   (given at named.cu:4)
  [[   ?,    ?,    ?,    ?, …,    ?,    ?,    ?,    ?],
   [1100, 1101, 1102, 1103, …, 1126, 1127, 1128, 1129],
   [   ?,    ?,    ?,    ?, …,    ?,    ?,    ?,    ?],
   [1300, 1301, 1302, 1303, …, 1326, 1327, 1328, 1329]]
min 1100, max 1329, 60 of 120 elements known
warp 0: already further on
(kiln) p x[3, 29]
x[3, 29] = 1329
(kiln) p x[2, 0]
x[2, 0] = not known
warp 0: already further on
(kiln) p count
index count = -5   (given at named.cu:3)
(kiln) p y
error: there is no 'y' here; variables: count, low, one, x; parameters: out
end of input: the kernel goes on without the debugger
)");
}

TEST(Debugger, SaysWhereABreakpointHasNoCode) {
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 1);
  Debugger debugger(device);
  std::istringstream in("b 400\nb other.cu:3\nb ptx:4000\nb 5\ni b\n");
  std::ostringstream text;
  debugger.break_kernel("named", {.warp = 1});
  debugger.on_stop(debug::console(debugger, in, text, false));
  run(device, kNamed, "named", {{1, 1, 1}, {64, 1, 1}}, Params().add(out));
  const std::string none = " (no code of kernel named stands there)\n";
  EXPECT_THAT(text.str(), ::testing::HasSubstr("(kiln) b 400\nbreakpoint 2: named.cu:400" + none));
  EXPECT_THAT(text.str(), ::testing::HasSubstr("breakpoint 3: other.cu:3" + none));
  EXPECT_THAT(text.str(), ::testing::HasSubstr("breakpoint 4: ptx:4000" + none));
  EXPECT_THAT(text.str(), ::testing::HasSubstr("(kiln) b 5\nbreakpoint 5: named.cu:5\n(kiln) i b\n"));
  EXPECT_THAT(text.str(), ::testing::HasSubstr("\n2: named.cu:400" + none));
}

TEST(Debugger, WarpsComeToABreakpointOneAfterTheOther) {
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 1);
  Debugger debugger(device);
  debugger.break_line("named.cu", 5);
  std::vector<std::string> seen;
  debugger.on_stop([&](Stop& s) {
    const debug::Value x = s.value("x");
    const auto known = std::count(x.known.begin(), x.known.end(), true);
    seen.push_back(std::to_string(s.warp()) + " in turn " + std::to_string(x.turn) + " knows " + std::to_string(known));
    return Resume::Continue;
  });
  run(device, kNamed, "named", {{1, 1, 1}, {64, 1, 1}}, Params().add(out));
  EXPECT_THAT(seen, ElementsAre("0 in turn 1 knows 60", "1 in turn 1 knows 120", "0 in turn 2 knows 60",
                                "1 in turn 2 knows 120"));
}

/// Such a comment in a program that nobody debugs has no effect; one that says nothing is refused.
TEST(Debugger, CommentsOfNamesAreNoCode) {
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 1);
  run(device, kNamed, "named", {{1, 1, 1}, {64, 1, 1}}, Params().add(out));
  EXPECT_EQ(device.counters().instructions, 2u * (10 + 2 * 5 + 1));
  for (const char* wrong : {"\"x f32 4x30 warps=2\", {%f1}", "\"x f32 4x99999999999 warps=1 blocks=1\", {%f1}",
                            "\"x f9 - warps=1 blocks=1\", {%f1}", "\"x f32 - warps=1 blocks=1\", %f1",
                            "\"x f32 4 warps=1 blocks=1 register=1,1\", {%f1}"}) {
    std::string ptx = kNamed;
    const std::size_t at = ptx.find("// kiln.value \"one");
    ptx.replace(at, ptx.find('\n', at) - at, std::string("// kiln.value ") + wrong + ";");
    EXPECT_THROW(load(device, ptx, "named"), DeviceError) << wrong;
  }
}

class ConsoleTest : public DebuggerTest {
 protected:
  std::string session(const std::string& commands) {
    std::istringstream in(commands);
    std::ostringstream text;
    debugger.break_kernel("");
    debugger.on_stop(debug::console(debugger, in, text, false));
    run();
    return std::regex_replace(text.str(), std::regex("0x[0-9a-f]{12,16}"), "ADDRESS");
  }
};

TEST_F(ConsoleTest, RunsASession) {
  EXPECT_EQ(session("b 13 if block 1 warp 1 lane 4\nc\np %r3\np/u32 %r3\np %tid.x\nwhere\nsi 2\np %r6\nx/2u32 box+128\n"
                    "x/u32 shared %r4\ni b\nd\ns\nbogus\np %r99\np x\nx/u32 0x40\nc\n"),
            R"(breakpoint 1
demo, block (0, 0, 0), warp 0, lane 0
demo.cu:10
ptx:20: ld.param.u64 %rd1, [out]
(kiln) b 13 if block 1 warp 1 lane 4
breakpoint 2: /src/app/demo.cu:13 block (1, 0, 0) warp 1 lane 4
(kiln) c
breakpoint 2
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:13
ptx:32: ld.shared.b32 %r6, [%r4]
(kiln) p %r3
b32 %r3 = 0x00000088 (136)
(kiln) p/u32 %r3
b32 %r3 = 136
(kiln) p %tid.x
u32 %tid.x = 36
(kiln) where
breakpoint 2
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:13
ptx:32: ld.shared.b32 %r6, [%r4]
active lanes 0xffffffff
(kiln) si 2
step
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:5
ptx:9: ld.param.b32 %r1, [x]
(kiln) p %r6
b32 %r6 = 0x00000088 (136)
(kiln) x/2u32 box+128
0x480: 132 133
(kiln) x/u32 shared %r4
0x490: 136
(kiln) i b
1: any kernel
2: /src/app/demo.cu:13 block (1, 0, 0) warp 1 lane 4
(kiln) d
(kiln) s
step
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:6
ptx:12: st.param.b32 [twice], %r2
(kiln) bogus
error: there is no command 'bogus'; help lists them
(kiln) p %r99
error: kernel demo has no register %r99
(kiln) p x
error: there is no 'x' here; variables: none; parameters: out
(kiln) x/u32 0x40
error: 4 bytes at 0x40 of global memory: 64 bytes from the null address
(kiln) c
)");
}

TEST_F(ConsoleTest, RunsOnAtTheEndOfTheInput) {
  EXPECT_EQ(session("c\n"), R"(breakpoint 1
demo, block (0, 0, 0), warp 0, lane 0
demo.cu:10
ptx:20: ld.param.u64 %rd1, [out]
(kiln) c
)");
  EXPECT_THAT(session("p/u16 %tid.x all"), testing::EndsWith(R"((kiln) p/u16 %tid.x all
u32 %tid.x, lanes 0 to 31
             0             1             2             3             4             5             6             7
             8             9            10            11            12            13            14            15
            16            17            18            19            20            21            22            23
            24            25            26            27            28            29            30            31
end of input: the kernel goes on without the debugger
)"));
}

TEST_F(ConsoleTest, Watches) {
  out.fill_bytes(0);
  EXPECT_EQ(session("wa out + 280\ni b\nc\nw\nf warp 1\nl\nptx\nfin\ni p"), R"(breakpoint 1
demo, block (0, 0, 0), warp 0, lane 0
demo.cu:10
ptx:20: ld.param.u64 %rd1, [out]
(kiln) wa out + 280
2: watch of 4 bytes at ADDRESS of global memory
(kiln) i b
1: any kernel
2: watch of 4 bytes at ADDRESS of global memory
(kiln) c
watch 2: 4 bytes at ADDRESS of global memory changed from 00000000 to 000000d7
demo, block (1, 0, 0), warp 0, lane 6
demo.cu:16
ptx:53: st.global.b32 [%rd3], %r7
(kiln) w
* block (1, 0, 0) warp 0 lanes 0xffffffff: ready, /src/app/demo.cu:16 (ptx line 53: st.global.b32 [%rd3], %r7)
  block (1, 0, 0) warp 1 lanes 0x00000000: has exited
(kiln) f warp 1
block (1, 0, 0), warp 1, lane 6
(kiln) l
error: cannot read /src/app/demo.cu
(kiln) ptx
      49    mov.u32 %r9, %ntid.x;
      50    mad.lo.s32 %r10, %r2, %r9, %r1;
      51    mul.wide.u32 %rd2, %r10, 4;
      52    add.s64 %rd3, %rd1, %rd2;
      53    st.global.b32 [%rd3], %r7;
      54    .loc 1 17 1
->    55    ret;
      56  }
(kiln) fin
block (1, 0, 0) has finished
demo, block (1, 0, 0), warp 0, lane 0, 0 lanes active
demo.cu:17
ptx:55: ret
(kiln) i p
b64 out = ADDRESS
end of input: the kernel goes on without the debugger
)");
}

TEST_F(ConsoleTest, AnswersWhateverIsTyped) {
  std::string lines;
  for (const char* command : {"b", "wa", "rw", "aw", "d", "p", "x", "l", "ptx", "f", "w", "i", "h", "s", "si"})
    for (const char* rest : {"",
                             " 9",
                             " -1",
                             " 99999999999999999999999",
                             " :",
                             " a:b",
                             " a:1 if lane 32",
                             " if",
                             " [",
                             " %",
                             " %r1",
                             " + + +",
                             " out + out",
                             " block 1,,2",
                             "/ out",
                             "/99999999999999 out",
                             "/3f31 out",
                             "/4f64 local 0",
                             " shared 0xffffffffffffffff 8",
                             " \xff\x01"})
      lines += std::string(command) + rest + "\n";
  const std::string text = session(lines);
  EXPECT_THAT(text, HasSubstr("error: "));
}

}  // namespace
}  // namespace kiln::test

// The debugger on raw PTX: where launches stop, and what a stop shows.
#include "tests/sim/debugger_fixture.h"

namespace kiln::test {
namespace {

using debug::On;
using debug::Reason;
using debug::Space;
using testing::ElementsAre;
using testing::HasSubstr;

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

}  // namespace
}  // namespace kiln::test

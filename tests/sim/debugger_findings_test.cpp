// The debugger where something is wrong: it stops at faults, findings and deadlocks, and when another thread asks.
#include <thread>

#include "tests/sim/debugger_fixture.h"

namespace kiln::test {
namespace {

using debug::Reason;
using debug::Space;
using testing::ElementsAre;
using testing::HasSubstr;

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

}  // namespace
}  // namespace kiln::test

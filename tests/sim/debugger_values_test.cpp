// The debugger's view of values that a compiler named: scalars and tiles in registers.
#include "tests/sim/debugger_fixture.h"

namespace kiln::test {
namespace {

using debug::Space;
using testing::ElementsAre;
using testing::HasSubstr;

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

}  // namespace
}  // namespace kiln::test

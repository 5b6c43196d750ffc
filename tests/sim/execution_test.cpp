// Control flow, barriers, lanes, memory spaces, calls: programs whose result shows that lanes went the right way.
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "tests/sim/ptx_fixture.h"

namespace kiln::test {
namespace {

using U32 = std::uint32_t;

/// out[global thread] = %r9 after `body`; %r1 is the thread in the block, %r0 holds the parameter n.
std::string program(const std::string& body, const std::string& before = "") {
  return R"(.version 8.0
.target sm_80
.address_size 64
)" + before +
         R"(
.visible .entry k(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r9, 0;
)" + body +
         R"(
  mov.u32 %r18, %ctaid.x;
  mov.u32 %r19, %ntid.x;
  mad.lo.s32 %r18, %r18, %r19, %r1;
  mul.wide.u32 %rd8, %r18, 4;
  add.s64 %rd8, %rd1, %rd8;
  st.global.b32 [%rd8], %r9;
  ret;
}
)";
}

std::vector<U32> results(const std::string& ptx, const Shape& shape = {}, U32 n = 0) {
  const Device device = Device::simulator("sm_80");
  Buffer<U32> out(device, shape.grid[0] * shape.block[0]);
  out.fill_bytes(0xAB);
  run(device, ptx, "k", shape, Params().add(out).add(n));
  return out.to_vector();
}

void expect_each(const std::string& body, const std::function<U32(U32)>& want, const Shape& shape = {}, U32 n = 0,
                 const std::string& before = "") {
  const std::vector<U32> got = results(program(body, before), shape, n);
  for (U32 i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want(i)) << "thread " << i;
}

TEST(ControlFlow, NestedBranchesMeetAgain) {
  // The shuffle at the end needs all lanes.
  expect_each(R"(
  and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
  setp.lt.u32 %p2, %r1, 16; @%p2 bra ODD_LOW;
  mov.u32 %r9, 3; bra JOIN;
ODD_LOW: mov.u32 %r9, 2; bra JOIN;
EVEN: mov.u32 %r9, 1;
JOIN: shfl.sync.bfly.b32 %r3, %r9, 1, 31, -1; mad.lo.s32 %r9, %r3, 10, %r9;)",
              [](U32 t) {
                const auto v = [](U32 i) { return i % 2 == 0 ? 1u : i < 16 ? 2u : 3u; };
                return v(t ^ 1) * 10 + v(t);
              });
}

TEST(ControlFlow, LanesLeaveALoopOneByOneAndMeet) {
  expect_each(R"(
  mov.u32 %r2, 0;
LOOP: add.u32 %r9, %r9, %r2; add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1; @%p1 bra LOOP;
  shfl.sync.idx.b32 %r3, %r9, 31, 31, -1; add.u32 %r9, %r9, %r3;)",
              [](U32 t) { return t * (t + 1) / 2 + 31 * 32 / 2; });
}

TEST(ControlFlow, NestedLoopsWithDifferentTripCounts) {
  expect_each(R"(
  mov.u32 %r2, 0;
OUTER: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;
  and.b32 %r3, %r2, 3; mov.u32 %r4, 0;
INNER: setp.ge.u32 %p2, %r4, %r3; @%p2 bra NEXT; add.u32 %r9, %r9, 1; add.u32 %r4, %r4, 1; bra INNER;
NEXT: add.u32 %r2, %r2, 1; bra OUTER;
DONE: vote.sync.ballot.b32 %r5, %p1, -1; popc.b32 %r5, %r5; mad.lo.s32 %r9, %r5, 1000, %r9;)",
              [](U32 t) {
                U32 n = 0;
                for (U32 i = 0; i < t; ++i) n += i & 3;
                return 32000 + n;
              });
}

TEST(ControlFlow, EarlyExitLeavesTheOthersRunning) {
  const auto got = results(program("setp.lt.u32 %p1, %r1, 10; @%p1 exit; activemask.b32 %r9;"));
  for (U32 t = 0; t < 32; ++t) EXPECT_EQ(got[t], t < 10 ? 0xABABABABu : 0xFFFFFC00u) << t;
}

TEST(ControlFlow, ReturnInsideABranchDoesNotSplitTheRest) {
  const auto got = results(program(R"(
  and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
  setp.gt.u32 %p2, %r1, 40; @%p2 bra OUT; mov.u32 %r9, 5; bra JOIN;
OUT: ret;
EVEN: mov.u32 %r9, 6;
JOIN: shfl.sync.bfly.b32 %r3, %r9, 1, 31, -1; mad.lo.s32 %r9, %r3, 10, %r9;)"));
  for (U32 t = 0; t < 32; ++t) EXPECT_EQ(got[t], t % 2 ? 65u : 56u) << t;
}

TEST(ControlFlow, BranchTableSendsEachLaneToItsLabel) {
  expect_each(R"(
  and.b32 %r2, %r1, 3;
TABLE: .branchtargets A, B, C, A;
  brx.idx %r2, TABLE;
A: mov.u32 %r9, 10; bra JOIN;
B: mov.u32 %r9, 20; bra JOIN;
C: mov.u32 %r9, 30;
JOIN: activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r9, %r9, %r3;)",
              [](U32 t) {
                return std::array<U32, 4>{10, 20, 30, 10}[t & 3] + 32;
              });
}

TEST(ControlFlow, CallsOfFunctionsReturnToTheirPlace) {
  const std::string helper = R"(
.func (.param .b32 result) twice_or_inc(.param .b32 x)
{
  .reg .pred %p<2>; .reg .b32 %r<4>;
  ld.param.b32 %r1, [x]; setp.gt.u32 %p1, %r1, 9; @%p1 bra BIG;
  add.u32 %r2, %r1, 1; st.param.b32 [result], %r2; ret;
BIG: shl.b32 %r2, %r1, 1; st.param.b32 [result], %r2; ret;
}
)";
  const std::string call =
      "{ .param .b32 p; .param .b32 r; st.param.b32 [p], %r9; call.uni (r), twice_or_inc, (p); ld.param.b32 %r9, [r]; "
      "}\n";
  expect_each(
      "mov.u32 %r9, %r1;\n" + call + call + "activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r9, %r9, %r3;",
      [](U32 t) {
        const auto f = [](U32 x) { return x > 9 ? 2 * x : x + 1; };
        return f(f(t)) + 32;
      },
      {}, 0, helper);
}

TEST(ControlFlow, CallsUnderAPredicateAreOfItsThreads) {
  const std::string helper = R"(
.func (.param .b32 result) add_lanes(.param .b32 x)
{
  .reg .pred %p<2>; .reg .b32 %r<4>;
  ld.param.b32 %r1, [x]; activemask.b32 %r2; popc.b32 %r2, %r2; setp.lt.u32 %p1, %r1, 4; add.u32 %r1, %r1, %r2;
  st.param.b32 [result], %r1; @%p1 ret;
  add.u32 %r1, %r1, 1000; st.param.b32 [result], %r1; ret;
}
.func (.param .b32 result) outer(.param .b32 x)
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .param .b32 r;
  ld.param.b32 %r1, [x]; setp.lt.u32 %p1, %r1, 2; mov.u32 %r2, %r1;
  { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; @%p1 call (q), add_lanes, (p); @%p1 ld.param.b32 %r2, [q]; }
  st.param.b32 [result], %r2; ret;
}
)";
  const auto call = [](const std::string& guard, const std::string& name) {
    return "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; " + guard + " call (q), " + name + ", (p); " +
           guard + " ld.param.b32 %r9, [q]; }\n";
  };
  const std::string odd = "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;",
                    all = "activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r9, %r3, 10000, %r9;";
  expect_each(
      odd + call("@%p1", "add_lanes") + all,
      [](U32 t) { return 320000 + (t % 2 == 0 ? 0 : t + 16 + (t < 4 ? 0 : 1000)); }, {}, 0, helper);
  expect_each(
      odd + call("@!%p1", "outer") + all, [](U32 t) { return 320000 + (t % 2 == 1 ? 0
                                                                       : t == 0   ? t + 1
                                                                                  : t); }, {}, 0,
      helper);
  expect_each(
      "setp.gt.u32 %p1, %r1, 99;" + call("@%p1", "outer") + all, [](U32) { return 320000u; }, {}, 0, helper);
}

TEST(ControlFlow, ScopesHideRegistersAndLabels) {
  expect_each(R"(
  { .reg .b32 %r9; .reg .b32 t; mov.u32 %r9, 77; mov.u32 t, 5; bra L; trap; L: add.u32 %r1, %r1, 0; }
  { .reg .b32 t; mov.u32 t, 6; bra L; trap; L: add.u32 %r9, t, 1; })",
              [](U32) { return 7u; });
}

TEST(Barrier, WarpsExchangeThroughSharedMemory) {
  expect_each(R"(
  .shared .align 4 .b8 tile[1024];
  mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r3, %r2, %r3; st.shared.b32 [%r3], %r1;
  bar.sync 0;
  xor.b32 %r4, %r1, 255; shl.b32 %r4, %r4, 2; add.u32 %r4, %r2, %r4; ld.shared.b32 %r9, [%r4];)",
              [](U32 t) { return (t & 255) ^ 255; }, {{3, 1, 1}, {256, 1, 1}, 0});
}

TEST(Barrier, LoopWithBarrierKeepsWarpsInStep) {
  // Each round every thread adds its neighbour's value of the round before.
  expect_each(R"(
  .shared .align 4 .b8 tile[512];
  mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r3, %r2, %r3; add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, 128; shl.b32 %r4, %r4, 2; add.u32 %r4, %r2, %r4;
  mov.u32 %r9, 1; mov.u32 %r5, 0;
LOOP: st.shared.b32 [%r3], %r9; bar.sync 0; ld.shared.b32 %r6, [%r4]; add.u32 %r9, %r9, %r6; bar.sync 0;
  add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 10; @%p1 bra LOOP;)",
              [](U32) { return 1024u; }, {{1, 1, 1}, {128, 1, 1}, 0});
}

TEST(Barrier, NamedBarriersSeparateGroups) {
  // Warps 0,1 meet at barrier 1 and warps 2,3 at barrier 2; the first only arrives at 3, where the last waits.
  expect_each(R"(
  shr.u32 %r2, %r1, 6; add.u32 %r3, %r2, 1;
  bar.sync %r3, 64;
  setp.lt.u32 %p1, %r1, 32; @!%p1 bra OTHER; bar.arrive 3, 64; bra DONE;
OTHER: setp.ge.u32 %p2, %r1, 96; @!%p2 bra DONE; bar.sync 3, 64;
DONE: mov.u32 %r9, %r3;)",
              [](U32 t) { return t / 64 + 1; }, {{1, 1, 1}, {128, 1, 1}, 0});
}

TEST(Barrier, WithoutAlignedLanesComeFromSeveralPlaces) {
  // Three paths of each warp, each with a barrier of its own; then all meet at one. Twice, so that they are one again.
  expect_each(R"(
  .shared .align 4 .b8 tile[512]; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r3, %r2, %r3; sub.u32 %r4, 127, %r1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r2, %r4;
  mov.u32 %r9, %r1; mov.u32 %r5, 0; rem.u32 %r6, %r1, 3; setp.eq.u32 %p1, %r6, 0; setp.eq.u32 %p2, %r6, 1;
LOOP: st.shared.b32 [%r3], %r9; @%p1 bra FIRST; @%p2 bra SECOND; barrier.sync 2, 128; bra MEET;
FIRST: barrier.sync 2, 128; bra MEET;
SECOND: barrier.sync 2, 128;
MEET: ld.shared.b32 %r9, [%r4]; bar.sync 0; add.u32 %r9, %r9, 1; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra LOOP;)",
              [](U32 t) { return 130 - t; }, {{1, 1, 1}, {128, 1, 1}, 0});
}

TEST(Barrier, ReductionsCountAllThreads) {
  expect_each(R"(
  setp.lt.u32 %p1, %r1, 40; bar.red.popc.u32 %r2, 0, %p1;
  bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, !%p1;
  selp.u32 %r3, 100, 0, %p2; selp.u32 %r4, 1000, 0, %p3; add.u32 %r9, %r2, %r3; add.u32 %r9, %r9, %r4;)",
              [](U32) { return 1040u; }, {{1, 1, 1}, {96, 1, 1}, 0});
}

TEST(Lanes, ShufflesFollowTheirModes) {
  expect_each("shfl.sync.up.b32 %r9, %r1, 3, 0, -1;", [](U32 t) { return t >= 3 ? t - 3 : t; });
  expect_each("shfl.sync.down.b32 %r9, %r1, 5, 31, -1;", [](U32 t) { return t + 5 < 32 ? t + 5 : t; });
  expect_each("shfl.sync.bfly.b32 %r9, %r1, 16, 31, -1;", [](U32 t) { return t ^ 16; });
  expect_each("shfl.sync.idx.b32 %r9, %r1, 7, 31, -1;", [](U32) { return 7u; });
  // Segments of 8: mask 24 in bits 8–12, clamp 7.
  expect_each("shfl.sync.down.b32 %r9|%p1, %r1, 2, 6151, -1; selp.u32 %r2, 100, 0, %p1; add.u32 %r9, %r9, %r2;",
              [](U32 t) { return t % 8 + 2 < 8 ? t + 102 : t; });
}

TEST(Lanes, VotesAndMatches) {
  expect_each("setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r9, %p1, -1;", [](U32) { return 31u; });
  expect_each("setp.lt.u32 %p1, %r1, 32; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;",
              [](U32) { return 1u; });
  expect_each("setp.lt.u32 %p1, %r1, 1; vote.sync.any.pred %p2, !%p1, -1; selp.u32 %r9, 1, 0, %p2;",
              [](U32) { return 1u; });
  expect_each("setp.lt.u32 %p1, %r1, 1; vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;",
              [](U32) { return 0u; });
  expect_each("and.b32 %r2, %r1, 3; match.any.sync.b32 %r9, %r2, -1;", [](U32 t) { return 0x11111111u << (t & 3); });
  expect_each("mov.b32 %r2, 9; match.all.sync.b32 %r9|%p1, %r2, -1; selp.u32 %r9, %r9, 7, %p1;",
              [](U32) { return ~0u; });
  expect_each("redux.sync.add.s32 %r9, %r1, -1;", [](U32) { return 496u; });
  expect_each("sub.s32 %r2, %r1, 9; redux.sync.min.s32 %r9, %r2, -1;", [](U32) { return static_cast<U32>(-9); });
  expect_each("sub.s32 %r2, %r1, 9; redux.sync.max.u32 %r9, %r2, -1;", [](U32) { return ~0u; });
}

TEST(Special, RegistersDescribeThread) {
  expect_each(
      "mov.u32 %r2, %laneid; mov.u32 %r3, %warpid; mov.u32 %r4, %nwarpid; mad.lo.u32 %r9, %r3, 100, %r2; mad.lo.u32 "
      "%r9, %r4, 10000, %r9;",
      [](U32 t) { return 20000 + t % 64 / 32 * 100 + t % 32; }, {{2, 1, 1}, {64, 1, 1}, 0});
  expect_each("mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r9, %r2, 100, %r3;",
              [](U32 t) { return 300 + t / 32; }, {{3, 1, 1}, {32, 1, 1}, 0});
  expect_each("mov.u32 %r9, %lanemask_lt;", [](U32 t) { return (1u << t) - 1; });
  expect_each("mov.u32 %r9, %lanemask_ge;", [](U32 t) { return ~((1u << t) - 1); });
  expect_each("mov.u32 %r2, %dynamic_smem_size; mov.u32 %r9, %r2;", [](U32) { return 512u; },
              {{1, 1, 1}, {32, 1, 1}, 512});
}

TEST(Special, ClockCountsUp) {
  expect_each(
      "mov.u64 %rd2, %clock64; mov.u32 %r2, %clock; mov.u64 %rd3, %globaltimer; setp.gt.u64 %p1, %rd3, %rd2; selp.u32 "
      "%r9, 1, 0, %p1;",
      [](U32) { return 1u; });
}

TEST(Blocks, ThreeDimensionsOfThreadsAndBlocks) {
  const std::string ptx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<20>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
  mad.lo.u32 %r7, %r3, 3, %r2; mad.lo.u32 %r7, %r7, 5, %r1;
  mad.lo.u32 %r8, %r6, 2, %r5; mad.lo.u32 %r8, %r8, 4, %r4;
  mad.lo.u32 %r9, %r8, 30, %r7;
  mul.wide.u32 %rd2, %r9, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r9; ret;
})";
  const Device device = Device::simulator("sm_80");
  Buffer<U32> out(device, 30 * 24);
  run(device, ptx, "k", {{4, 2, 3}, {5, 3, 2}, 0}, Params().add(out));
  const auto got = out.to_vector();
  for (U32 i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i);
}

TEST(Memory, ModuleVariablesAreInitialised) {
  const std::string before = R"(
.global .align 4 .u32 numbers[4] = {10, 20, 30};
.const .align 4 .f32 half = 0f3F000000;
.global .align 8 .u64 pointer[2] = {0, generic(numbers)};
)";
  expect_each(R"(
  and.b32 %r2, %r1, 3; mul.wide.u32 %rd2, %r2, 4; ld.global.u64 %rd3, [pointer+8]; add.s64 %rd2, %rd3, %rd2; ld.u32 %r9, [%rd2];
  ld.const.b32 %r3, [half]; shr.u32 %r3, %r3, 24; add.u32 %r9, %r9, %r3;)",
              [](U32 t) {
                return std::array<U32, 4>{10, 20, 30, 0}[t & 3] + 0x3F;
              },
              {}, 0, before);
}

TEST(Memory, LocalMemoryBelongsToTheThread) {
  expect_each(R"(
  .local .align 8 .b8 depot[32];
  mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2;
  st.local.u32 [%rd2+4], %r1; ld.u32 %r2, [%rd3+4]; add.u32 %r2, %r2, 1; st.u32 [%rd3+8], %r2; ld.local.u32 %r9, [%rd2+8];
  isspacep.local %p1, %rd3; selp.u32 %r3, 100, 0, %p1; add.u32 %r9, %r9, %r3; isspacep.global %p2, %rd1; selp.u32 %r3, 1000, 0, %p2; add.u32 %r9, %r9, %r3;)",
              [](U32 t) { return t + 1101; }, {{1, 1, 1}, {64, 1, 1}, 0});
}

TEST(Memory, GenericLanesMayPointIntoDifferentSpaces) {
  expect_each(R"(
  .shared .align 4 .b8 tile[128];
  mul.wide.u32 %rd2, %r1, 4; mov.u64 %rd3, tile; cvta.shared.u64 %rd4, %rd3; add.s64 %rd4, %rd4, %rd2; add.s64 %rd5, %rd1, %rd2;
  and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; selp.b64 %rd6, %rd4, %rd5, %p1; st.u32 [%rd6], %r1; ld.u32 %r9, [%rd6];)",
              [](U32 t) { return t; });
}

TEST(Memory, VectorsAndNarrowElements) {
  expect_each(R"(
  .shared .align 16 .b8 tile[1024];
  mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
  mov.u32 %r4, -2; st.shared.v4.b32 [%r2], {%r1, %r4, 7, %r3};
  ld.shared.s8 %r5, [%r2+4]; ld.shared.u8 %r6, [%r2+4]; ld.shared.s16 %r7, [%r2+4]; ld.shared.v2.u16 {%rs1, %rs2}, [%r2+8];
  ld.shared.s32 %rd2, [%r2+4]; cvt.u32.u16 %r8, %rs1; cvt.u32.u64 %r10, %rd2; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r11, %rd2;
  add.u32 %r9, %r5, %r6; add.u32 %r9, %r9, %r7; add.u32 %r9, %r9, %r8; add.u32 %r9, %r9, %r10; add.u32 %r9, %r9, %r11;)",
              [](U32) { return static_cast<U32>(-2 + 254 - 2 + 7 - 2 - 1); });
}

TEST(Memory, DynamicSharedMemoryFollowsTheStatic) {
  expect_each(R"(
  .shared .align 4 .b8 fixed[4];
  mov.u32 %r2, fixed; mov.u32 %r3, dynamic; sub.u32 %r9, %r3, %r2; shl.b32 %r4, %r1, 2; add.u32 %r4, %r3, %r4; st.shared.b32 [%r4], %r9; ld.shared.b32 %r9, [%r4];)",
              [](U32) { return 128u; }, {{1, 1, 1}, {32, 1, 1}, 128}, 0, ".extern .shared .align 128 .b8 dynamic[];");
}

TEST(Atomics, AddAndExchangeReturnTheOldValue) {
  const std::string ptx = program("atom.global.add.u32 %r9, [%rd1+512], 2;");
  const Device device = Device::simulator("sm_80");
  Buffer<U32> out(device, 129);
  out.fill_bytes(0);
  run(device, ptx, "k", {{4, 1, 1}, {32, 1, 1}, 0}, Params().add(out).add(0));
  auto got = out.to_vector();
  EXPECT_EQ(got[128], 256u);
  for (U32 i = 0; i < 128; ++i) EXPECT_EQ(got[i], 2 * i);  // blocks and lanes in order
}

TEST(Atomics, EveryOperation) {
  const auto shared = [](const std::string& op, const std::string& init) {
    return ".shared .align 8 .b8 cell[8]; mov.u32 %r2, cell; mov.u32 %r3, " + init + "; st.shared.b32 [%r2], %r3; " +
           op + " ld.shared.b32 %r9, [%r2];";
  };
  expect_each(shared("red.shared.max.s32 [%r2], %r1;", "-5"), [](U32) { return 31u; });
  expect_each(shared("red.shared.min.s32 [%r2], -9;", "-5"), [](U32) { return static_cast<U32>(-9); });
  expect_each(shared("red.shared.max.u32 [%r2], %r1;", "-5"), [](U32) { return static_cast<U32>(-5); });
  expect_each(shared("red.shared.and.b32 [%r2], 12;", "10"), [](U32) { return 8u; });
  expect_each(shared("red.shared.or.b32 [%r2], %r1;", "0"), [](U32) { return 31u; });
  expect_each(shared("red.shared.xor.b32 [%r2], %r1;", "0"), [](U32) { return 0u; });
  expect_each(shared("red.shared.inc.u32 [%r2], 9;", "0"), [](U32) { return 2u; });
  expect_each(shared("red.shared.dec.u32 [%r2], 9;", "0"), [](U32) { return 8u; });
  expect_each(shared("atom.shared.exch.b32 %r4, [%r2], %r1;", "0"), [](U32) { return 31u; });
  expect_each(shared("atom.shared.cas.b32 %r4, [%r2], 7, %r1;", "7"), [](U32) { return 0u; });
  expect_each(shared("mov.f32 %f1, 0f3F800000; red.shared.add.f32 [%r2], %f1;", "0"),
              [](U32) { return std::bit_cast<U32>(32.0f); });
  expect_each(shared("mov.b32 %r4, 0x3C003C00; red.shared.add.noftz.f16x2 [%r2], %r4;", "0"),
              [](U32) { return 0x50005000u; });
}

TEST(Atomics, BlocksWaitForEachOther) {
  // Block b spins until block b - 1 has published; the last result counts them all.
  const std::string ptx = program(R"(
  mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
SPIN: ld.acquire.gpu.global.u32 %r3, [%rd1+1024]; add.u32 %r4, %r2, %r3; setp.ne.u32 %p2, %r4, 7; @%p2 bra SPIN;
  red.release.gpu.global.add.u32 [%rd1+1024], 1;
DONE: mov.u32 %r9, 1;)");
  const Device device = Device::simulator("sm_80", 1);
  Buffer<U32> out(device, 257);
  out.fill_bytes(0);
  run(device, ptx, "k", {{8, 1, 1}, {32, 1, 1}, 0}, Params().add(out).add(0));
  EXPECT_EQ(out.to_vector()[256], 8u);
}

}  // namespace
}  // namespace kiln::test

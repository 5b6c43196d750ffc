// Programs that wait in loops: they make progress where somebody can end the wait, and a wait that nobody can end is a
// deadlock that says who waits for what.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/sim/schedules.h"
#include "tests/sim/thread_program.h"
#include "tests/support/knob.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using U32 = std::uint32_t;

constexpr Shape kOneWarp{{1, 1, 1}, {32, 1, 1}, 0};
constexpr Shape kTwoWarps{{1, 1, 1}, {64, 1, 1}, 0};

std::string fault(const std::string& body, const Shape& shape, const std::string& target = "sm_90a") {
  ThreadProgram p{body, target, shape};
  p.data.resize(64);
  p.portable = false;
  return fault_of(std::move(p));
}

TEST(Spins, OnAFlagThatNobodySetsAreADeadlock) {
  for (const char* load : {"ld.volatile.global.b32", "ld.acquire.gpu.global.b32", "ld.relaxed.gpu.global.b32"})
    EXPECT_THAT(
        fault("LOOP: " + std::string(load) + " %r2, [%rd2+8]; setp.eq.u32 %p1, %r2, 0; @%p1 bra LOOP;", kOneWarp),
        AllOf(HasSubstr("deadlock: warp 0 spins on byte 8 of the allocation 0x"),
              HasSubstr("(it holds 0x0, nobody has written it in this launch) at ptx line 15: " + std::string(load)),
              HasSubstr("(block (0, 0, 0), warp 0, lane 0, thread (0, 0, 0); ptx line 15")))
        << load;
}
TEST(Spins, OnSharedMemoryNameTheLastWriter) {
  const std::string flag =
      ".shared .align 4 .b32 flag; mov.u32 %r4, flag; setp.lt.u32 %p2, %r1, 32; setp.eq.u32 %p3, "
      "%r1, 0; @%p3 st.shared.b32 [%r4], 7; bar.sync 0; @!%p2 bra END;\n";
  EXPECT_THAT(
      fault(flag + "LOOP: ld.acquire.cta.shared.b32 %r2, [%r4]; setp.ne.u32 %p1, %r2, 8; @%p1 bra LOOP;\nEND:",
            kTwoWarps),
      AllOf(HasSubstr("deadlock: warp 0 spins on shared memory at 0x400 (it holds 0x7, last written by block (0, "
                      "0, 0), warp 0, lane 0 at ptx line 15: @%p3 st.shared.b32 [%r4], 7) at ptx line 16"),
            HasSubstr(", warp 1 has exited")));
}
TEST(Spins, OfAtomicsThatChangeNothingAreADeadlock) {
  const std::string cas = "LOOP: atom.global.cas.b32 %r2, [%rd2], 5, 6; setp.ne.u32 %p1, %r2, 5; @%p1 bra LOOP;";
  const std::string exch = "LOOP: atom.global.exch.b32 %r2, [%rd2], 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra LOOP;";
  const std::string add = "LOOP: atom.global.add.u32 %r2, [%rd2], 0; setp.eq.u32 %p1, %r2, 0; @%p1 bra LOOP;";
  for (const std::string& body : {cas, exch, add})
    EXPECT_THAT(fault(body, kOneWarp), HasSubstr("deadlock: warp 0 spins on byte 0 of the allocation")) << body;
}
TEST(Spins, WithBackOffAndStoresOfTheSameAreADeadlock) {
  EXPECT_THAT(
      fault("mov.u32 %r3, 8;\nLOOP: ld.volatile.global.b32 %r2, [%rd2]; setp.ne.u32 %p1, %r2, 0; @%p1 bra END; "
            "nanosleep.u32 %r3; shl.b32 %r3, %r3, 1; min.u32 %r3, %r3, 256; st.volatile.global.b32 [%rd2+4], 3; "
            "bra LOOP;\nEND:",
            kOneWarp),
      HasSubstr("deadlock: warp 0 spins on byte 0 of the allocation"));
}
TEST(Spins, AndOtherWaitsAreOneDeadlock) {
  const std::string body =
      ".shared .align 8 .b8 bar[8]; mov.u32 %r10, bar; setp.eq.u32 %p8, %r1, 0; @%p8 mbarrier.init.shared::cta.b64 "
      "[%r10], 1; bar.sync 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra POLL; setp.lt.u32 %p2, %r1, 64; @%p2 bra TRY; "
      "bar.sync "
      "1, 96; bra END;\n"
      "TRY: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r10], 0; @!%p1 bra TRY; bra END;\n"
      "POLL: ld.volatile.global.b32 %r2, [%rd2]; setp.eq.u32 %p1, %r2, 0; @%p1 bra POLL;\nEND:";
  EXPECT_THAT(
      fault(body, {{1, 1, 1}, {96, 1, 1}, 0}),
      AllOf(HasSubstr("deadlock: warp 0 spins on byte 0 of the allocation"),
            HasSubstr("warp 1 waits for the mbarrier at 0x400 (phase 0: 1 of 1 arrivals and 0 bytes are missing) "
                      "since ptx line 16"),
            HasSubstr("warp 2 waits at barrier 1 (32 of 96 threads arrived)")));
}
TEST(Spins, OnUnwrittenMemoryAreADeadlockToo) {
  const std::string spin = "LOOP: ld.volatile.shared.b32 %r2, [%r4]; setp.ne.u32 %p1, %r2, 77; @%p1 bra LOOP;";
  const std::string flag = ".shared .align 4 .b32 flag; mov.u32 %r4, flag;";
  under_every_schedule([&] {
    for (const std::string& body :
         {flag + spin,
          flag + "setp.lt.u32 %p2, %r1, 32; @%p2 bra LOOP; bar.sync 3, 64; bra END;\n" + spin + "\nEND:"}) {
      const std::string ptx = thread_program(body);
      expect_assembles(ptx, "sm_90a");
      const Device device = Device::simulator("sm_90a");
      Buffer<U32> out(device, 64), data(device, 1);
      EXPECT_THROW(run(device, ptx, "k", kTwoWarps, Params().add(out).add(data)), DeviceError);
      std::vector<FindingKind> kinds;
      for (const Finding& f : device.findings()) kinds.push_back(f.kind);
      EXPECT_THAT(kinds, ::testing::ElementsAre(FindingKind::Uninitialised, FindingKind::Deadlock));
      EXPECT_THAT(device.findings().back().message, HasSubstr("spins on shared memory at 0x400"));
    }
  });
}
TEST(Spins, AreDeadlocksUnderEverySchedule) {
  const std::string ring =
      "mov.u32 %r4, %nctaid.x; mov.u32 %r2, %ctaid.x; add.u32 %r5, %r2, %r4; sub.u32 %r5, %r5, 1; rem.u32 %r5, %r5, "
      "%r4; mul.wide.u32 %rd3, %r5, 4; add.u64 %rd3, %rd2, %rd3;\nLOOP: ld.acquire.gpu.global.u32 %r3, [%rd3]; "
      "setp.eq.u32 %p1, %r3, 0; @%p1 bra LOOP;";
  for (int seed = 1; seed <= 8; ++seed) {
    const Knob schedule("KILN_SIM_SCHEDULE", "random:" + std::to_string(seed));
    EXPECT_THAT(fault(ring, {{64, 1, 1}, {256, 1, 1}, 0}), HasSubstr("deadlock: block (0, 0, 0): warp 0 spins on"));
    EXPECT_THAT(fault(ring, {{1, 1, 1}, {1024, 1, 1}, 0}), HasSubstr("deadlock: warp 0 spins on byte 0"));
  }
}
TEST(Spins, ThatEndInTheMiddleOfTheirLoopAreNone) {
  // The flag is set at some moment of a loop that takes longer than a warp's turn, or less.
  for (const char* trips : {"2", "20", "60", "700"})
    under_every_schedule([&] {
      for (U32 delay = 500; delay < 8000; delay += 1499) {
        ThreadProgram p{
            "ld.global.b32 %r8, [%rd2+4]; setp.lt.u32 %p3, %r1, 32; @%p3 bra LOOP; mov.u32 %r4, 0;\nDELAY: add.u32 "
            "%r4, "
            "%r4, 1; setp.lt.u32 %p2, %r4, %r8; @%p2 bra DELAY; st.volatile.global.b32 [%rd2], 1; bra END;\n"
            "LOOP: ld.volatile.global.b32 %r9, [%rd2]; setp.eq.u32 %p1, %r9, 0; mov.u32 %r5, 0;\nWORK: add.u32 %r5, "
            "%r5, 1; setp.lt.u32 %p2, %r5, " +
                std::string(trips) + "; @%p2 bra WORK; @%p1 bra LOOP;\nEND:",
            "sm_90a", kTwoWarps};
        p.data = {0, delay};
        EXPECT_EQ(p.run()[0], 1u);
      }
    });
}
TEST(Spins, OfThousandsOfWarpsAreFoundAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(fault("LOOP: ld.acquire.gpu.global.b32 %r2, [%rd2]; setp.eq.u32 %p1, %r2, 0; @%p1 bra LOOP;",
                    {{512, 1, 1}, {1024, 1, 1}, 0}),
              AllOf(HasSubstr("deadlock: block (0, 0, 0): warp 0 spins on byte 0 of the allocation"),
                    HasSubstr(" more warps wait; "),
                    HasSubstr(" clusters have not started, as no more fit on the "
                              "device at a time")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));  // a step limit would be hours
}
TEST(Spins, ForABlockThatCannotStartAreADeadlock) {
  // The first blocks wait for the last one, and none of them leaves.
  const std::string body =
      "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; sub.u32 %r3, %r3, 1; setp.eq.u32 %p1, %r2, "
      "%r3; @%p1 st.release.gpu.global.b32 [%rd2], 1; @%p1 bra END;\n"
      "LOOP: ld.acquire.gpu.global.b32 %r4, [%rd2]; setp.eq.u32 %p2, %r4, 0; @%p2 bra LOOP;\nEND:";
  EXPECT_THAT(fault(body, {{5000, 1, 1}, {1024, 1, 1}, 0}), HasSubstr("clusters have not started"));
  EXPECT_EQ(fault(body, {{40, 1, 1}, {1024, 1, 1}, 0}), "no fault");
}
TEST(Spins, OfLanesThatWaitForOthersOfTheirWarpEnd) {
  // Lane 0 waits for what lane 1 of the same warp stores behind the branch.
  ThreadProgram p{
      ".shared .align 4 .b32 flag; mov.u32 %r4, flag; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.b32 [%r4], 0; "
      "bar.warp.sync -1; @!%p1 bra SET;\nLOOP: ld.volatile.shared.b32 %r9, [%r4]; setp.eq.u32 %p2, %r9, 0; @%p2 bra "
      "LOOP; bra END;\nSET: mov.u32 %r9, 5; st.volatile.shared.b32 [%r4], 5;\nEND:"};
  p.portable = false;
  const auto got = p.run();
  EXPECT_EQ(got[0], 5u);
  EXPECT_EQ(got[31], 5u);
}
TEST(Spins, ThatSomebodyEndsAreNone) {
  // A chain of blocks: each waits for the one before, after a long calculation of the first.
  ThreadProgram p{
      "mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd3, %rd2; setp.ne.u32 %p1, %r2, 0; "
      "@%p1 bra WAIT; mov.u32 %r3, 0;\nCOUNT: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 300000; @%p2 bra "
      "COUNT; mov.u32 %r9, 1; bra SET;\n"
      "WAIT: ld.acquire.gpu.global.b32 %r9, [%rd3+-4]; setp.eq.u32 %p2, %r9, 0; @%p2 bra WAIT; add.u32 %r9, "
      "%r9, 1;\nSET: st.release.gpu.global.b32 [%rd3], %r9;",
      "sm_90a",
      {{64, 1, 1}, {1, 1, 1}, 0}};
  p.data.resize(64);
  const auto got = p.run();
  for (U32 i = 0; i < 64; ++i) EXPECT_EQ(got[i], i + 1);
}
TEST(Spins, ThatManyChangesDoNotEndTakeFewSteps) {
  // Blocks go on in the order opposite to that of the rounds: nearly all of them look in vain after each change.
  const Knob steps("KILN_SIM_STEPS", "100000");
  ThreadProgram p{
      "mov.u32 %r2, %ctaid.x; sub.u32 %r9, 263, %r2;\n"
      "WAIT: ld.acquire.gpu.global.b32 %r3, [%rd2]; setp.ne.u32 %p2, %r3, %r9; @%p2 bra WAIT;\n"
      "red.release.gpu.global.add.u32 [%rd2], 1;",
      "sm_90a",
      {{264, 1, 1}, {1, 1, 1}, 0}};
  p.data.resize(264);
  EXPECT_EQ(fault_of(p), "no fault");
}
TEST(Spins, ForACopyTakeIt) {
  // A warp polls the word that its own copy writes last, instead of waiting for the mbarrier.
  under_every_schedule([] {
    ThreadProgram p{
        ".shared .align 8 .b8 bar[8]; .shared .align 16 .b8 tile[16]; mov.u32 %r10, bar; mov.u32 %r2, tile; "
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra END; st.shared.b32 [%r2+12], 0; mbarrier.init.shared::cta.b64 "
        "[%r10], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta; "
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 16; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 16, [%r10];\n"
        "LOOP: ld.volatile.shared.b32 %r9, [%r2+12]; setp.eq.u32 %p2, %r9, 0; @%p2 bra LOOP;\n"
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], 0; @!%p3 bra W;\nEND:"};
    p.data = {1, 2, 3, 4};
    p.portable = false;
    const std::string message = fault_of(p);
    EXPECT_THAT(message, HasSubstr("race on shared memory")) << "polling what a copy writes is no order";
  });
}
TEST(Spins, ThatCountAreNone) {
  // A bounded number of looks ends by itself.
  ThreadProgram p{
      "mov.u32 %r3, 0;\nLOOP: ld.volatile.global.b32 %r2, [%rd2]; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, "
      "100000; @%p1 bra LOOP; mov.u32 %r9, %r3;"};
  p.data = {0};
  const auto got = p.run();
  EXPECT_EQ(got[0], 100000u);
}
TEST(Spins, WithoutReadingAreEndless) {
  EXPECT_THAT(fault("setp.eq.u32 %p1, %r1, %r1;\nLOOP: @%p1 bra LOOP;", kOneWarp),
              HasSubstr("an endless loop: the warp repeats itself and reads no memory that anybody could change"));
}

}  // namespace
}  // namespace kiln::test

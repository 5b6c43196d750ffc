// mbarriers: phases, arrivals, bytes, waits of every form, other blocks' objects, and what is reported.
#include <gmock/gmock.h>

#include "tests/sim/schedules.h"
#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using U32 = std::uint32_t;

const Shape kTwoWarps{{1, 1, 1}, {64, 1, 1}, 0, {1, 1, 1}};
const Shape kOne{{1, 1, 1}, {1, 1, 1}, 0, {1, 1, 1}};
const Shape kPair{{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}};
const std::string kMeet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";

/// %r10: the address of an mbarrier that thread 0 initialised for `count` arrivals.
std::string barrier(const std::string& count) {
  return ".shared .align 8 .b8 bar[16]; .shared .align 16 .b8 tile[1024]; mov.u32 %r10, bar; setp.eq.u32 %p8, %r1, 0; "
         "@%p8 mbarrier.init.shared::cta.b64 [%r10], " +
         count + "; @%p8 fence.mbarrier_init.release.cluster; bar.sync 0;\n";
}
/// Spins until the phase of this parity has ended.
std::string await(const std::string& address, const std::string& parity, const std::string& label) {
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p7, [" + address + "], " + parity + "; @!%p7 bra " +
         label + ";\n";
}

TEST(Mbarrier, WhatThreadsDidBeforeTheyArrivedIsSeenBehindTheWait) {
  under_every_schedule([] {
    expect_each({barrier("64") +
                     "mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; add.u32 %r4, %r1, 500; st.shared.b32 [%r3], %r4; "
                     "mbarrier.arrive.shared::cta.b64 %rd3, [%r10];\n"
                     "W: mbarrier.test_wait.shared::cta.b64 %p1, [%r10], %rd3; @!%p1 bra W;\n"
                     "xor.b32 %r5, %r1, 63; mad.lo.u32 %r5, %r5, 4, %r2; ld.shared.b32 %r9, [%r5];",
                 "sm_90a", kTwoWarps},
                [](U32 t) { return 500 + (t ^ 63); });
  });
}

TEST(Mbarrier, PhasesAlternate) {
  // Warp 0 writes a round's number and arrives, warp 1 reads it and answers, four times.
  const std::string full = "%r10", empty = "%r10+8";
  under_every_schedule([&] {
    expect_each(
        {".shared .align 8 .b8 bar[16]; .shared .align 16 .b8 tile[1024]; mov.u32 %r10, bar; mov.u32 %r2, tile; "
         "and.b32 %r11, %r1, 31; mad.lo.u32 %r2, %r11, 4, %r2; setp.eq.u32 %p1, %r1, 0; @!%p1 bra READY; "
         "mbarrier.init.shared.b64 [%r10], 32; mbarrier.init.shared.b64 [%r10+8], 32; READY: bar.sync 0; "
         "mov.u32 %r3, 0; mov.u32 %r4, 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra READ;\n"
         "WRITE: xor.b32 %r5, %r4, 1;\n" +
             await(empty, "%r5", "A") +
             "mad.lo.u32 %r6, %r3, 100, %r11; st.shared.b32 [%r2], %r6; mbarrier.arrive.shared.b64 _, [%r10]; "
             "xor.b32 %r4, %r4, 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 4; @%p3 bra WRITE; bra DONE;\n"
             "READ:\n" +
             await(full, "%r4", "B") +
             "ld.shared.b32 %r6, [%r2]; add.u32 %r9, %r9, %r6; mbarrier.arrive.release.cta.shared::cta.b64 _, "
             "[%r10+8]; xor.b32 %r4, %r4, 1; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 4; @%p3 bra READ;\nDONE:",
         "sm_90a", kTwoWarps},
        [](U32 t) { return t < 32 ? 0 : 600 + 4 * (t - 32); });
  });
}

TEST(Mbarrier, CountsAreTakenAtOnce) {
  expect_each({barrier("7") + "mbarrier.arrive.shared.b64 %rd3, [%r10], 3; mbarrier.test_wait.shared.b64 %p1, [%r10], "
                              "%rd3; selp.u32 %r9, 1, 0, %p1; mbarrier.arrive.shared.b64 %rd4, [%r10], 4; "
                              "mbarrier.test_wait.shared.b64 %p1, [%r10], %rd3; selp.u32 %r2, 10, 0, %p1; add.u32 %r9, "
                              "%r9, %r2; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd4; selp.u32 %r2, 100, 0, %p1; "
                              "add.u32 %r9, %r9, %r2;",
               "sm_90a", kOne},
              [](U32) { return 110u; });
}

TEST(Mbarrier, BytesAreAwaitedLikeArrivals) {
  // Completed before they are expected, expected apart from the arrival, and both at once.
  const std::string test =
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r10], 0; selp.u32 %r2, 1, 0, %p1; mad.lo.u32 "
      "%r9, %r9, 10, %r2;\n";
  expect_each({barrier("1") + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r10], 48;" + test +
                   "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r10], 16;" + test +
                   "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 64;" + test +
                   "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r10], 32;" + test +
                   "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r10], 0, 100; selp.u32 %r2, 1, 0, %p1; "
                   "mad.lo.u32 %r9, %r9, 10, %r2;",
               "sm_90a", kOne},
              [](U32) { return 11u; });
}

TEST(Mbarrier, StatesKnowWhatWasMissing) {
  expect_each({barrier("9") + "mbarrier.arrive.noComplete.shared.b64 %rd3, [%r10], 2; mbarrier.arrive_drop.noComplete."
                              "shared.b64 %rd4, [%r10], 3; mbarrier.arrive.noComplete.release.cta.shared.b64 %rd5, "
                              "[%r10], 1; mbarrier.pending_count.b64 %r2, %rd3; mbarrier.pending_count.b64 %r3, %rd4; "
                              "mbarrier.pending_count.b64 %r4, %rd5; mad.lo.u32 %r9, %r2, 10, %r3; mad.lo.u32 %r9, "
                              "%r9, 10, %r4;",
               "sm_90a", kOne},
              [](U32) { return 974u; });
}

TEST(Mbarrier, DroppedThreadsAreNotAwaitedAgain) {
  // Two of three stay: the second phase ends with two arrivals.
  expect_each({barrier("3") + "mbarrier.arrive.shared.b64 _, [%r10], 2; mbarrier.arrive_drop.shared.b64 _, [%r10]; "
                              "mbarrier.arrive.shared.b64 _, [%r10]; mbarrier.test_wait.parity.shared.b64 %p1, [%r10], "
                              "1; selp.u32 %r9, 1, 0, %p1; mbarrier.arrive.shared.b64 _, [%r10]; "
                              "mbarrier.test_wait.parity.shared.b64 %p1, [%r10], 1; selp.u32 %r2, 10, 0, %p1; add.u32 "
                              "%r9, %r9, %r2;",
               "sm_90a", kOne},
              [](U32) { return 10u; });
}

TEST(Mbarrier, GenericAddressesWork) {
  expect_each({barrier("1") + "cvt.u64.u32 %rd3, %r10; cvta.shared.u64 %rd3, %rd3; mbarrier.arrive.b64 %rd4, [%rd3]; "
                              "mbarrier.test_wait.b64 %p1, [%rd3], %rd4; selp.u32 %r9, 1, 0, %p1; mbarrier.inval.b64 "
                              "[%rd3]; mbarrier.init.b64 [%rd3], 5;",
               "sm_90a", kOne},
              [](U32) { return 1u; });
}

TEST(Mbarrier, OtherBlocksArrive) {
  // Each thread of a block arrives at the other block's object, half of them with bytes that they complete themselves.
  under_every_schedule([] {
    expect_each(
        {barrier("32") + kMeet +
             "mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mapa.shared::cluster.u32 %r4, %r10, %r3; "
             "mov.u32 %r5, tile; mad.lo.u32 %r5, %r1, 4, %r5; mapa.shared::cluster.u32 %r6, %r5, %r3; mad.lo.u32 %r7, "
             "%r2, 1000, %r1; st.shared::cluster.b32 [%r6], %r7; setp.lt.u32 %p1, %r1, 16;\n"
             "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];\n"
             "@!%p1 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r4], 16;\n"
             "@!%p1 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r4], 16;\n"
             "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r10], 0; @!%p2 bra W;\n"
             "ld.shared.b32 %r9, [%r5];\n" +
             kMeet,
         "sm_90a", kPair},
        [](U32 t) { return (t / 32 ^ 1) * 1000 + t % 32; });
  });
}

TEST(Mbarrier, AFailedTestIsSeenWhereNothingElseCanHappen) {
  // One thread asks, gets no, and does itself what it would wait for.
  expect_each({barrier("1") + "mbarrier.try_wait.parity.shared.b64 %p1, [%r10], 0; @%p1 bra DONE; "
                              "mbarrier.arrive.shared.b64 _, [%r10]; mov.u32 %r9, 3;\nDONE:",
               "sm_90a", kOne},
              [](U32) { return 3u; });
}

TEST(Mbarrier, LanesOfAWarpWaitForOneAnother) {
  // Lane 0 spins on the way to where the others are; they arrive only behind that.
  expect_each({barrier("31") + "setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHERS;\n" + await("%r10", "0", "A") +
                   "mov.u32 %r9, 5; bra DONE;\nOTHERS: mbarrier.arrive.shared.b64 _, [%r10]; mov.u32 %r9, 6;\nDONE: "
                   "bar.warp.sync -1;",
               "sm_90a"},
              [](U32 t) { return t == 0 ? 5u : 6u; });
}

TEST(Mbarrier, AWarpThatReadsMemoryInALoopDoesNotKeepOthersWaiting) {
  // Warp 1 spins on a word that warp 0 sets after its copies are there.
  expect_each({barrier("1") +
                   ".shared .align 4 .b8 flag[4]; mov.u32 %r2, flag; mov.u32 %r3, tile; @%p8 st.shared.b32 "
                   "[%r2], 0; bar.sync 0; setp.ge.u32 %p1, %r1, 32; @%p1 bra SPIN; @!%p8 bra DONE;\n"
                   "mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 16; "
                   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 16, "
                   "[%r10];\n" +
                   await("%r10", "0", "A") +
                   "st.release.cta.shared.b32 [%r2], 1; bra DONE;\n"
                   "SPIN: ld.acquire.cta.shared.b32 %r4, [%r2]; setp.eq.u32 %p2, %r4, 0; @%p2 bra SPIN;\n"
                   "ld.shared.b32 %r9, [%r3];\nDONE:",
               "sm_90a",
               kTwoWarps,
               "",
               {77, 0, 0, 0}},
              [](U32 t) { return t < 32 ? 0u : 77u; });
}

// --- cp.async ---

TEST(Mbarrier, CopiesOfThreadsArrive) {
  for (const auto& [form, count] : std::vector<std::pair<std::string, std::string>>{{"", "1"}, {".noinc", "33"}})
    under_every_schedule([&, form = form, count = count] {
      expect_each(
          {barrier(count) +
               "mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, "
               "%rd2; cp.async.ca.shared.global [%r3], [%rd3], 4; cp.async.mbarrier.arrive" +
               form + ".shared.b64 [%r10]; bar.warp.sync -1; @%p8 mbarrier.arrive.shared.b64 _, [%r10];\n" +
               await("%r10", "0", "A") + "xor.b32 %r4, %r1, 31; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.b32 %r9, [%r4];",
           "sm_90a",
           Shape{},
           "",
           {100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115,
            116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131}},
          [](U32 t) { return 100 + (t ^ 31); });
    });
}

// --- st.async and red.async ---

TEST(RemoteStores, TellTheMbarrierOfTheirBlock) {
  under_every_schedule([] {
    expect_each(
        {barrier("1") +
             "mov.u32 %r5, tile; mad.lo.u32 %r5, %r1, 16, %r5; @%p8 mbarrier.arrive.expect_tx.shared.b64 _, "
             "[%r10], 896; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1;\n" +
             kMeet +
             "mapa.shared::cluster.u32 %r4, %r10, %r3; mapa.shared::cluster.u32 %r6, %r5, %r3; mad.lo.u32 %r7, %r2, "
             "1000, %r1; mul.wide.u32 %rd3, %r7, 3;\n"
             "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r6], %r7, [%r4];\n"
             "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%r6+8], {%r7, %r1}, [%r4];\n" +
             "add.u32 %r8, %r6, 512; and.b32 %r11, %r1, 15; setp.lt.u32 %p1, %r1, 16; @%p1 "
             "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%r8], {%rd3, %rd3}, [%r4]; @!%p1 "
             "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r8], {%r7, %r7, %r7, %r7}, [%r4];\n" +
             await("%r10", "0", "A") +
             "ld.shared.b32 %r9, [%r5]; ld.shared.v2.b32 {%r12, %r13}, [%r5+8]; add.u32 %r9, %r9, %r12; add.u32 %r9, "
             "%r9, %r13; ld.shared.b32 %r12, [%r5+512]; add.u32 %r9, %r9, %r12;\n" +
             kMeet,
         "sm_90a", kPair},
        [](U32 t) {
          const U32 lane = t % 32, value = (t / 32 ^ 1) * 1000 + lane;
          return 2 * value + lane + (lane < 16 ? 3 * value : value);
        });
  });
}

TEST(RemoteReductions, WorkOnWhatIsThere) {
  struct Case {
    std::string form, start;
    U32 want;
  };
  for (const Case& c : std::vector<Case>{{"add.u32", "1000", 1000 + 496},
                                         {"add.s32", "5", 501},
                                         {"min.s32", "7", 0},
                                         {"max.u32", "7", 31},
                                         {"and.b32", "0xFF", 0},
                                         {"or.b32", "0x100", 0x11F},
                                         {"xor.b32", "3", 3},
                                         {"inc.u32", "0", 0},
                                         {"dec.u32", "0", 0}}) {
    SCOPED_TRACE(c.form);
    // Of inc and dec the value is the limit: 32 steps lead back to the start.
    const std::string value = c.form == "inc.u32" || c.form == "dec.u32" ? "31" : "%r1";
    ThreadProgram p{barrier("1") + "mov.u32 %r5, tile; mov.u32 %r2, " + c.start + "; @%p8 st.shared.b32 [%r5], %r2; " +
                        "@%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128; mov.u32 %r2, %cluster_ctarank; "
                        "xor.b32 %r3, %r2, 1; mov.u32 %r7, " +
                        value + ";\n" + kMeet +
                        "mapa.shared::cluster.u32 %r4, %r10, %r3; mapa.shared::cluster.u32 %r6, %r5, %r3; "
                        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." +
                        c.form + " [%r6], %r7, [%r4];\n" + await("%r10", "0", "A") + "ld.shared.b32 %r9, [%r5];\n" +
                        kMeet,
                    "sm_90a", kPair};
    under_every_schedule([&] { expect_each(p, [&](U32) { return c.want; }); });
  }
}

// --- faults ---

std::string fault(const std::string& body, const std::string& count = "1") {
  return fault_of({barrier(count) + body, "sm_90a", kOne, "", {1, 2, 3, 4}});
}

TEST(MbarrierFaults, MisuseIsReported) {
  EXPECT_THAT(fault("mbarrier.arrive.shared.b64 _, [%r10+8];"), HasSubstr("the mbarrier at 0x408 is not initialised"));
  EXPECT_THAT(fault("mbarrier.arrive.shared.b64 _, [%r10+4];"), HasSubstr("misaligned shared atomic of 8 bytes"));
  EXPECT_THAT(fault("mbarrier.arrive.shared.b64 _, [%r10+4096];"), HasSubstr("out-of-bounds shared atomic"));
  EXPECT_THAT(
      fault("mbarrier.arrive.shared.b64 _, [%r10], 2;"),
      AllOf(HasSubstr("2 arrivals at the mbarrier at 0x400, whose phase 0 misses 1"), HasSubstr("initialised at")));
  EXPECT_THAT(fault("mov.u32 %r2, 0; mbarrier.arrive.shared.b64 _, [%r10], %r2;"),
              HasSubstr("0 arrivals at an mbarrier; must be 1 to 1048575"));
  EXPECT_THAT(fault("mbarrier.init.shared.b64 [%r10], 3;"), HasSubstr("is initialised again without mbarrier.inval"));
  EXPECT_THAT(fault("mov.u32 %r2, 0; mbarrier.init.shared.b64 [%r10+8], %r2;"), HasSubstr("an mbarrier of 0 arrivals"));
  EXPECT_THAT(fault("mbarrier.inval.shared.b64 [%r10]; mbarrier.arrive.shared.b64 _, [%r10];"),
              HasSubstr("is not initialised"));
  EXPECT_THAT(fault("mov.u32 %r2, 7; st.shared.b32 [%r10], %r2; mbarrier.arrive.shared.b64 _, [%r10];"),
              HasSubstr("the mbarrier at 0x400 was overwritten"));
  EXPECT_THAT(fault("mov.u32 %r2, 1048000; mbarrier.expect_tx.relaxed.cta.shared.b64 [%r10], %r2; "
                    "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r10], %r2;"),
              HasSubstr("would miss 2096000 bytes; the count goes from -1048575 to 1048575"));
  EXPECT_THAT(fault("mbarrier.arrive.noComplete.shared.b64 %rd3, [%r10], 1;"), HasSubstr("in spite of .noComplete"));
  EXPECT_THAT(fault("mov.u64 %rd3, 5; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd3;"),
              HasSubstr("0x5 is no state that mbarrier.arrive returned"));
  EXPECT_THAT(fault("mbarrier.arrive.shared.b64 %rd3, [%r10]; mbarrier.pending_count.b64 %r9, %rd3;"),
              HasSubstr("is no state that an arrival with .noComplete returned"));
  EXPECT_THAT(fault("mbarrier.arrive.shared.b64 %rd3, [%r10]; mbarrier.arrive.shared.b64 _, [%r10]; "
                    "mbarrier.test_wait.shared.b64 %p1, [%r10], %rd3;"),
              HasSubstr("a state of phase 0, but the mbarrier is in phase 2 already"));
  EXPECT_THAT(fault("mov.u32 %r2, 2; mbarrier.test_wait.parity.shared.b64 %p1, [%r10], %r2;"),
              HasSubstr("a phase of parity 2; must be 0 or 1"));
  EXPECT_THAT(fault("mov.u64 %rd3, 64; mbarrier.arrive.b64 _, [%rd3];"), Not(HasSubstr("no fault")));
}

TEST(MbarrierFaults, AnInitialisationIsFencedForAsynchronousOperations) {
  EXPECT_THAT(
      fault_of({".shared .align 8 .b8 bar[8]; .shared .align 16 .b8 tile[16]; mov.u32 %r10, bar; mov.u32 %r3, tile; "
                "mbarrier.init.shared.b64 [%r10], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 16; "
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 16, [%r10];",
                "sm_90a",
                kOne,
                "",
                {1, 2, 3, 4}}),
      HasSubstr("no fence.mbarrier_init or fence.proxy.async followed its initialisation at"));
}

TEST(MbarrierFaults, DeadlockNamesWhatIsAwaited) {
  EXPECT_THAT(
      fault_of({barrier("3") + "mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 32;\n" + await("%r10", "0", "W"),
                "sm_90a", kOne}),
      AllOf(HasSubstr("deadlock: warp 0 waits for the mbarrier at 0x400 (phase 0: 2 of 3 arrivals and 32 bytes "
                      "are missing) since"),
            HasSubstr("mbarrier.try_wait.parity")));
}

TEST(MbarrierFaults, FormsThatDoNotExistAreRefused) {
  const auto refused = [](const std::string& body) {
    try {
      load(Device::simulator("sm_90a"), thread_program(barrier("1") + body), "k", kOne);
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(refused("mbarrier.arrive.shared::cluster.b64 %rd3, [%r10];"), HasSubstr("returns no state"));
  EXPECT_THAT(refused("mbarrier.init.shared::cluster.b64 [%r10], 1;"), HasSubstr("no modifier '.shared::cluster'"));
  EXPECT_THAT(refused("mbarrier.try_wait.parity.shared.b64 %p1, [%r10], 0, 1, 2;"), HasSubstr("not supported"));
}

}  // namespace
}  // namespace kiln::test

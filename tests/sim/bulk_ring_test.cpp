// Rings of stages that bulk copies fill, and the schedules under which they take effect.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/sim/bulk_copy.h"
#include "tests/support/knob.h"

namespace kiln::test::bulk {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Stages of 128 bytes: warp 0 fills them (one thread), warps 1 and 2 add their word of each to a sum. %r17: stages;
/// rounds: 13. The mbarriers of stage s: full at bar + 16·s, empty behind it.
std::string ring(const std::string& release = "mbarrier.arrive.shared::cta.b64 _, [%r5+8];") {
  return ".shared .align 8 .b8 bar[64]; .shared .align 128 .b8 tile[512]; mov.u32 %r10, bar; mov.u32 %r2, tile; "
         "setp.ne.u32 %p8, %r1, 0; mov.u32 %r17, 3; @%p8 bra READY;\n"
         "mov.u32 %r3, 0;\nINIT: mad.lo.u32 %r5, %r3, 16, %r10; mbarrier.init.shared::cta.b64 [%r5], 1; "
         "mbarrier.init.shared::cta.b64 [%r5+8], 64; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r17; @%p1 bra INIT; "
         "fence.mbarrier_init.release.cluster;\n"
         "READY: bar.sync 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r6, 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra "
         "CONSUME; @%p8 bra DONE;\n"
         "PRODUCE: mad.lo.u32 %r5, %r3, 16, %r10; xor.b32 %r7, %r4, 1;\n"
         "P: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5+8], %r7; @!%p3 bra P;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 128; mad.lo.u32 %r8, %r3, 128, %r2; mul.wide.u32 %rd3, "
         "%r6, 128; add.s64 %rd3, %rd3, %rd2; " +
         kLoad +
         "[%r8], [%rd3], 128, [%r5];\n"
         "add.u32 %r3, %r3, 1; setp.eq.u32 %p4, %r3, %r17; selp.u32 %r3, 0, %r3, %p4; @%p4 xor.b32 %r4, %r4, 1; "
         "add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, 13; @%p5 bra PRODUCE; bra DONE;\n"
         "CONSUME: mad.lo.u32 %r5, %r3, 16, %r10; and.b32 %r11, %r1, 31; mad.lo.u32 %r11, %r11, 4, %r2; mad.lo.u32 "
         "%r11, %r3, 128, %r11;\n"
         "C: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], %r4; @!%p3 bra C;\n"
         "ld.shared.b32 %r12, [%r11]; add.u32 %r9, %r9, %r12; " +
         release +
         "\nadd.u32 %r3, %r3, 1; setp.eq.u32 %p4, %r3, %r17; selp.u32 %r3, 0, %r3, %p4; @%p4 xor.b32 %r4, %r4, 1; "
         "add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, 13; @%p5 bra CONSUME;\nDONE:";
}
const Shape kRing{{3, 1, 1}, {96, 1, 1}, 0, {1, 1, 1}};
U32 ring_sum(U32 t) {
  U32 sum = 0;
  for (U32 k = 0; k < 13; ++k) sum += 1000 + k * 32 + t % 32;
  return t % 96 < 32 ? 0 : sum;
}

TEST(Ring, AProducerFeedsTwoConsumers) {
  under_every_schedule([] { expect_each({ring(), "sm_90a", kRing, "", counted(13 * 32)}, ring_sum); });
}

TEST(Ring, AStageReleasedTooEarlyIsSeen) {
  // Arriving before reading lets the producer refill the stage: a race, or the wrong words.
  std::string body = ring("");
  const std::string load = "ld.shared.b32 %r12, [%r11];", early = "mbarrier.arrive.shared::cta.b64 _, [%r5+8];";
  body.replace(body.find(load), load.size(), early + load);
  bool found = false;
  under_every_schedule([&] {
    ThreadProgram p{body, "sm_90a", kRing, "", counted(13 * 32)};
    p.portable = false;
    try {
      const auto got = p.run();
      for (U32 t = 0; t < got.size(); ++t) found |= got[t] != ring_sum(t);
    } catch (const DeviceError&) {
      found = true;
    }
  });
  EXPECT_TRUE(found);
}

TEST(Ring, ABlockFeedsItsCluster) {
  // Two blocks, two stages; each block multicasts one half of every stage to both, and a stage is free when both blocks
  // have read it: their 32 threads arrive at both blocks' empty mbarriers.
  const std::string body =
      ".shared .align 8 .b8 bar[64]; .shared .align 128 .b8 tile[512]; mov.u32 %r10, bar; mov.u32 %r2, tile; mov.u32 "
      "%r15, %cluster_ctarank; setp.ne.u32 %p8, %r1, 0; @%p8 bra READY; mbarrier.init.shared::cta.b64 [%r10], 1; "
      "mbarrier.init.shared::cta.b64 [%r10+16], 1; mbarrier.init.shared::cta.b64 [%r10+8], 64; "
      "mbarrier.init.shared::cta.b64 [%r10+24], 64; fence.mbarrier_init.release.cluster;\nREADY:" +
      kMeet +
      "mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r6, 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra CONSUME; @%p8 bra DONE;\n"
      "PRODUCE: mad.lo.u32 %r5, %r3, 16, %r10; xor.b32 %r7, %r4, 1;\n"
      "P: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5+8], %r7; @!%p3 bra P;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 128; mad.lo.u32 %r8, %r3, 256, %r2; mad.lo.u32 %r8, %r15, "
      "64, %r8; mul.wide.u32 %rd3, %r6, 128; mul.wide.u32 %rd4, %r15, 64; add.s64 %rd3, %rd3, %rd2; add.s64 %rd3, "
      "%rd3, "
      "%rd4; mov.u16 %rs1, 3; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%r8], [%rd3], 64, [%r5], %rs1;\n"
      "xor.b32 %r3, %r3, 1; setp.eq.u32 %p4, %r3, 0; @%p4 xor.b32 %r4, %r4, 1; add.u32 %r6, %r6, 1; setp.lt.u32 %p5, "
      "%r6, 11; @%p5 bra PRODUCE; bra DONE;\n"
      "CONSUME: mad.lo.u32 %r5, %r3, 16, %r10; and.b32 %r11, %r1, 31; mad.lo.u32 %r11, %r11, 4, %r2; mad.lo.u32 %r11, "
      "%r3, 256, %r11;\n"
      "C: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], %r4; @!%p3 bra C;\n"
      "ld.shared.b32 %r12, [%r11]; add.u32 %r9, %r9, %r12; add.u32 %r5, %r5, 8; mapa.shared::cluster.u32 %r13, %r5, 0; "
      "mapa.shared::cluster.u32 %r14, %r5, 1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13]; "
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14];\n"
      "xor.b32 %r3, %r3, 1; setp.eq.u32 %p4, %r3, 0; @%p4 xor.b32 %r4, %r4, 1; add.u32 %r6, %r6, 1; setp.lt.u32 %p5, "
      "%r6, 11; @%p5 bra CONSUME;\nDONE:\n" +
      kMeet;
  under_every_schedule([&] {
    expect_each({body, "sm_90a", {{4, 1, 1}, {64, 1, 1}, 0, {2, 1, 1}}, "", counted(11 * 32)}, [](U32 t) {
      U32 sum = 0;
      for (U32 k = 0; k < 11; ++k) sum += 1000 + k * 32 + t % 32;
      return t % 64 < 32 ? 0 : sum;
    });
  });
}

TEST(Schedules, TheSameSeedGivesTheSameRun) {
  // Words are read without a wait: what they are depends on the schedule alone, however many host threads run it.
  const std::string body = kBegin +
                           "mov.u32 %r4, 0; st.shared.b32 [%r3], %r4; bar.sync 0; @%p8 "
                           "mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128; @!%p8 bra LOOP; mov.u32 %r6, "
                           "0;\nISSUE: mad.lo.u32 %r7, %r6, 16, %r2; mul.wide.u32 %rd3, %r6, 16; add.s64 "
                           "%rd3, %rd3, %rd2;" +
                           kLoad +
                           "[%r7], [%rd3], 16, [%r10]; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 8; @%p1 bra "
                           "ISSUE;\nLOOP: bar.warp.sync -1; ld.shared.b32 %r5, [%r3]; mov.u32 %r6, 0;\n" +
                           kAwait + "mov.u32 %r9, %r5;";
  const auto run_with = [&](const char* threads, const char* schedule) {
    const Knob host_threads("KILN_SIM_THREADS", threads), unchecked("KILN_SIM_CHECK", "none");
    const Knob scope("KILN_SIM_SCHEDULE", schedule);
    ThreadProgram p{body, "sm_90a", {{24, 1, 1}, {32, 1, 1}, 0, {1, 1, 1}}, "", counted(32)};
    p.portable = false;
    return p.run();
  };
  const auto one = run_with("1", "random:5"), three = run_with("3", "random:5"), other = run_with("1", "random:6");
  const auto late = run_with("2", "late"), early = run_with("2", "early");
  EXPECT_EQ(one, three);
  EXPECT_NE(one, other);
  EXPECT_NE(one, late);
  for (U32 t = 0; t < 768; ++t) {
    EXPECT_EQ(late[t], 0u);
    EXPECT_EQ(early[t], 1000 + t % 32);
  }
}

TEST(Schedules, AnUnknownOneIsAnError) {
  const Knob scope("KILN_SIM_SCHEDULE", "sometimes");
  EXPECT_THAT(fault_of({""}), HasSubstr("KILN_SIM_SCHEDULE is 'sometimes'; must be late, early or random:SEED"));
}

}  // namespace
}  // namespace kiln::test::bulk

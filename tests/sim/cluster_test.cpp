// Blocks that run together: their numbers, their barrier, and each other's shared memory.
#include <gmock/gmock.h>

#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using U32 = std::uint32_t;

constexpr Shape kFourOfTwo{{8, 1, 1}, {32, 1, 1}, 0, {4, 1, 1}};
const std::string kMeet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";

TEST(Cluster, RegistersNumberBlocks) {
  expect_each({"mov.u32 %r2, %clusterid.x; mov.u32 %r3, %nclusterid.x; mov.u32 %r4, %cluster_ctaid.x; mov.u32 %r5, "
               "%cluster_nctaid.x; mov.u32 %r6, %cluster_ctarank; mov.u32 %r7, %cluster_nctarank;\n"
               "mad.lo.u32 %r9, %r2, 10, %r3; mad.lo.u32 %r9, %r9, 10, %r4; mad.lo.u32 %r9, %r9, 10, %r5; mad.lo.u32 "
               "%r9, %r9, 10, %r6; mad.lo.u32 %r9, %r9, 10, %r7;",
               "sm_90a", kFourOfTwo},
              [](U32 t) {
                const U32 block = t / 32, rank = block % 4;
                return block / 4 * 100000 + 20000 + rank * 1000 + 400 + rank * 10 + 4;
              });
}

TEST(Cluster, ShapesOfThreeDimensionsAreCut) {
  // Blocks (4, 2, 3) in clusters of (2, 2, 1): the rank counts along x first.
  ThreadProgram p{
      "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z; mad.lo.u32 %r18, %r4, 2, %r3; "
      "mad.lo.u32 %r18, %r18, 4, %r2;\n"
      "mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %clusterid.x; mov.u32 %r7, %clusterid.y; mov.u32 %r8, "
      "%clusterid.z; mad.lo.u32 %r9, %r8, 10, %r7; mad.lo.u32 %r9, %r9, 10, %r6; mad.lo.u32 %r9, %r9, 10, %r5;"};
  const std::string ptx = thread_program(p.body);
  expect_assembles(ptx, "sm_90a");
  const Device device = Device::simulator("sm_90a");
  Buffer<U32> out(device, 24);
  run(device, ptx, "k", {{4, 2, 3}, {1, 1, 1}, 0, {2, 2, 1}}, Params().add(out).add(out));
  const auto got = out.to_vector();
  for (U32 i = 0; i < 24; ++i) {
    const U32 x = i % 4, y = i / 4 % 2, z = i / 8;
    EXPECT_EQ(got[i], z * 1000 + x / 2 * 10 + y * 2 + x % 2) << i;
  }
}

TEST(Cluster, BlocksReadEachOthersSharedMemory) {
  // Every block publishes its rank · 100 + thread and reads what the next one has.
  expect_each({".shared .align 4 .b8 tile[128];\n"
               "mov.u32 %r2, %cluster_ctarank; mad.lo.u32 %r3, %r2, 100, %r1; shl.b32 %r4, %r1, 2; mov.u32 %r5, tile; "
               "add.u32 %r5, %r5, %r4; st.shared.b32 [%r5], %r3;\n" +
                   kMeet +
                   "add.u32 %r2, %r2, 1; and.b32 %r2, %r2, 3; mapa.shared::cluster.u32 %r6, %r5, %r2; "
                   "ld.shared::cluster.b32 %r9, [%r6];\n" +
                   kMeet,
               "sm_90a", kFourOfTwo},
              [](U32 t) { return (t / 32 + 1) % 4 * 100 + t % 32; });
}

TEST(Cluster, GenericAddressesReachOtherBlocks) {
  expect_each(
      {".shared .align 8 .b8 tile[128];\n"
       "mov.u64 %rd3, tile; cvta.shared.u64 %rd3, %rd3; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd3, %rd3, %rd4; "
       "mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1; mapa.u64 %rd5, %rd3, %r2;\n" +
           kMeet +
           "st.b32 [%rd5], %r18; getctarank.u64 %r3, %rd5; isspacep.shared::cluster %p1, %rd5; "
           "isspacep.shared::cta %p2, %rd5; isspacep.shared::cta %p3, %rd3;\n" +
           kMeet +
           "ld.shared.b32 %r4, [tile]; ld.b32 %r9, [%rd3]; mad.lo.u32 %r9, %r3, 1000, %r9; selp.u32 %r5, 10000, "
           "0, %p1; add.u32 %r9, %r9, %r5; selp.u32 %r5, 100000, 0, %p2; add.u32 %r9, %r9, %r5; selp.u32 %r5, "
           "1000000, 0, %p3; add.u32 %r9, %r9, %r5;",
       "sm_90a", kFourOfTwo},
      [](U32 t) {
        const U32 other = t / 32 ^ 1;
        return 1010000 + other % 4 * 1000 + other * 32 + t % 32;
      });
}

TEST(Cluster, AtomicsOnTheFirstBlockCountAll) {
  expect_each({".shared .align 4 .b8 cell[4];\n"
               "mov.u32 %r2, cell; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 0; @%p1 st.shared.b32 [%r2], %r3;\n" +
                   kMeet +
                   "mapa.shared::cluster.u32 %r4, %r2, 0; red.relaxed.cluster.shared::cluster.add.u32 [%r4], 1; "
                   "atom.shared::cluster.add.u32 %r5, [%r4], 1;\n" +
                   kMeet + "ld.shared::cluster.b32 %r9, [%r4];\n" + kMeet,
               "sm_90a", kFourOfTwo},
              [](U32) { return 256u; });
}

TEST(Cluster, BarrierNeedsNoConvergence) {
  expect_each(
      {".shared .align 4 .b8 tile[4]; mov.u32 %r2, tile; setp.eq.u32 %p1, %r1, 3; @%p1 st.shared.b32 [%r2], 7;\n"
       "barrier.cluster.arrive.release; add.u32 %r3, %r1, 1; barrier.cluster.wait.acquire;\n"
       "mapa.shared::cluster.u32 %r4, %r2, 0; ld.shared::cluster.b32 %r9, [%r4]; barrier.cluster.arrive; "
       "barrier.cluster.wait;",
       "sm_90a",
       {{4, 1, 1}, {96, 1, 1}, 0, {2, 1, 1}}},
      [](U32) { return 7u; });
}

TEST(Cluster, ExitedThreadsAreNotWaitedFor) {
  const auto got = ThreadProgram{"setp.ge.u32 %p1, %r1, 32; @%p1 exit;\n" + kMeet + "mov.u32 %r9, 5;",
                                 "sm_90a",
                                 {{2, 1, 1}, {64, 1, 1}, 0, {2, 1, 1}}}
                       .run();
  for (U32 t = 0; t < 128; ++t) EXPECT_EQ(got[t], t % 64 < 32 ? 5u : 0xABABABABu) << t;
}

TEST(Cluster, BlocksThatSpinOnEachOtherProgress) {
  // The second block waits for a flag that the first sets in it, and answers.
  expect_each({".shared .align 4 .b8 flag[4];\n"
               "mov.u32 %r2, flag; mov.u32 %r3, 0; st.shared.b32 [%r2], %r3;\n" +
                   kMeet +
                   "mov.u32 %r4, %cluster_ctarank; xor.b32 %r5, %r4, 1; mapa.shared::cluster.u32 %r6, %r2, %r5; "
                   "setp.ne.u32 %p1, %r4, 0; @%p1 bra WAIT;\n"
                   "st.release.cluster.shared::cluster.b32 [%r6], 1;\n"
                   "WAIT: ld.acquire.cluster.shared::cta.b32 %r7, [%r2]; setp.eq.u32 %p2, %r7, 0; @%p2 bra WAIT;\n"
                   "@%p1 st.release.cluster.shared::cluster.b32 [%r6], 2; mov.u32 %r9, %r7;\n" +
                   kMeet,
               "sm_90a",
               {{2, 1, 1}, {1, 1, 1}, 0, {2, 1, 1}}},
              [](U32 t) { return t == 0 ? 2u : 1u; });
}

TEST(Cluster, RemoteAccessesCountBanksOfTheirBlock) {
  ThreadProgram p{
      ".shared .align 4 .b8 tile[512]; mov.u32 %r2, tile; shl.b32 %r3, %r1, 3; add.u32 %r2, %r2, %r3; "
      "mapa.shared::cluster.u32 %r4, %r2, 1;\n" +
          kMeet + "st.shared::cluster.b32 [%r4], %r1;\n" + kMeet,
      "sm_90a",
      {{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}}};
  p.run();
  EXPECT_EQ(p.counters.shared_accesses, 2u);
  EXPECT_EQ(p.counters.bank_conflicts, 2u);
}

// --- faults ---

constexpr Shape kPair{{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}};

TEST(ClusterFaults, RemoteAccessBeforeTheClusterMetIsReported) {
  EXPECT_THAT(fault_of({".shared .align 4 .b8 tile[4]; mov.u32 %r2, tile; mapa.shared::cluster.u32 %r3, %r2, 1; "
                        "st.shared::cluster.b32 [%r3], %r1;",
                        "sm_90a", kPair}),
              HasSubstr("shared store in block 1 of the cluster, which need not have started"));
}
TEST(ClusterFaults, AccessToAnExitedBlockIsReported) {
  EXPECT_THAT(fault_of({".shared .align 4 .b8 tile[4]; mov.u32 %r2, tile; mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, "
                        "%r4, 1; mapa.shared::cluster.u32 %r3, %r2, %r4;\n" +
                            kMeet + "ld.shared::cluster.b32 %r9, [%r3];",
                        "sm_90a", kPair}),
              HasSubstr("shared load in block 1 of the cluster, which has exited"));
}
TEST(ClusterFaults, RemoteAccessHasBounds) {
  EXPECT_THAT(fault_of({".shared .align 4 .b8 tile[128]; mov.u32 %r2, tile; mapa.shared::cluster.u32 %r3, %r2, 1;\n" +
                            kMeet + "ld.shared::cluster.b32 %r9, [%r3+128];",
                        "sm_90a", kPair}),
              AllOf(HasSubstr("out-of-bounds shared load of 4 bytes"), HasSubstr("it has 128 bytes")));
}
TEST(ClusterFaults, RankBeyondTheClusterIsReported) {
  EXPECT_THAT(fault_of({"mov.u32 %r2, 0; mapa.shared::cluster.u32 %r3, %r2, 2;", "sm_90a", kPair}),
              HasSubstr("block 2 of a cluster of 2"));
}
TEST(ClusterFaults, ArrivingTwiceIsReported) {
  EXPECT_THAT(fault_of({"barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;", "sm_90a", kPair}),
              HasSubstr("arrives at the cluster's barrier again without having waited"));
}
TEST(ClusterFaults, WaitingWithoutArrivingIsReported) {
  EXPECT_THAT(fault_of({"barrier.cluster.wait.aligned;", "sm_90a", kPair}),
              HasSubstr("waits at the cluster's barrier without having arrived"));
}
TEST(ClusterFaults, DeadlockNamesEveryBlock) {
  EXPECT_THAT(
      fault_of(
          {"mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 0; setp.ge.u32 %p2, %r1, 32; @%p1 bra A; @%p2 exit; "
           "bar.sync 1, 64; bra B;\nA: " +
               kMeet + "B:",
           "sm_90a",
           {{2, 1, 1}, {64, 1, 1}, 0, {2, 1, 1}}}),
      AllOf(HasSubstr("deadlock: block (0, 0, 0): warp 0 waits at the cluster's barrier (64 of 96 threads arrived)"),
            HasSubstr("block (1, 0, 0): warp 0 waits at barrier 1 (32 of 64 threads arrived), warp 1 has exited")));
}
TEST(ClusterFaults, GridMustBeAMultiple) {
  EXPECT_THAT(fault_of({"", "sm_90a", {{3, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}}}),
              HasSubstr("3 blocks along x, which is no multiple of the cluster's 2"));
}
TEST(ClusterFaults, OlderTargetsHaveNone) {
  EXPECT_THAT(fault_of({"", "sm_80", kPair}), HasSubstr("clusters of 2 blocks; sm_80 has none"));
}
TEST(ClusterFaults, SizesAreLimited) {
  EXPECT_THAT(fault_of({"", "sm_90a", {{16, 1, 1}, {32, 1, 1}, 0, {16, 1, 1}}}),
              HasSubstr("clusters of 16 blocks; must be 1 to 8"));
}

}  // namespace
}  // namespace kiln::test

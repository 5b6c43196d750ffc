// Where things begin and end: mbarriers are used behind their initialisation, the shared memory of a block before its
// exit. What is not ordered is found whichever came first in the run; what is ordered gives no report.
#include <gmock/gmock.h>

#include "tests/sim/schedules.h"
#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using U32 = std::uint32_t;

constexpr Shape kTwoWarps{{1, 1, 1}, {64, 1, 1}, 0};
constexpr Shape kOne{{1, 1, 1}, {1, 1, 1}, 0};
constexpr Shape kPair{{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}};
const std::string kMeet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";

std::string fault(const std::string& body, const Shape& shape, std::vector<U32> data = {}) {
  ThreadProgram p{body, "sm_90a", shape};
  p.data = std::move(data);
  p.portable = false;
  return fault_of(std::move(p));
}

/// %r10: an mbarrier that thread 0 initialises for 65 arrivals, at which it arrives itself; both warps arrive.
std::string initialised(const std::string& order) {
  return ".shared .align 8 .b8 bar[8]; mov.u32 %r10, bar; setp.eq.u32 %p8, %r1, 0; @!%p8 bra GO; "
         "mbarrier.init.shared::cta.b64 [%r10], 65; mbarrier.arrive.shared::cta.b64 _, [%r10];\nGO: " +
         order +
         " mbarrier.arrive.shared::cta.b64 %rd3, [%r10];\n"
         "W: mbarrier.test_wait.shared::cta.b64 %p1, [%r10], %rd3; @!%p1 bra W;\n";
}

TEST(MbarrierLifetime, UseByAnotherWarpIsOrderedBehindTheInitialisation) {
  under_every_schedule([] {
    EXPECT_EQ(fault(initialised("bar.sync 0;"), kTwoWarps), "no fault");
    EXPECT_EQ(fault(initialised("fence.mbarrier_init.release.cluster; bar.sync 0;"), kTwoWarps), "no fault");
  });
  EXPECT_THAT(fault(initialised(""), kTwoWarps),
              AllOf(HasSubstr("race on shared memory with warp 0, lane 0 at"), HasSubstr("mbarrier.init.shared::cta"),
                    HasSubstr("nothing orders them")));
}
TEST(MbarrierLifetime, AFenceAloneOrdersNothing) {
  EXPECT_THAT(fault(initialised("fence.mbarrier_init.release.cluster; fence.acq_rel.cta;"), kTwoWarps),
              HasSubstr("race on shared memory with warp 0, lane 0 at"));
}
TEST(MbarrierLifetime, AFlagOrders) {
  const auto with = [](const std::string& store, const std::string& load) {
    return ".shared .align 8 .b8 bar[8]; .shared .align 4 .b32 flag; mov.u32 %r10, bar; mov.u32 %r11, flag; "
           "setp.lt.u32 %p8, %r1, 32; setp.eq.u32 %p7, %r1, 0; @%p7 st.shared.b32 [%r11], 0; bar.sync 0; @!%p8 bra "
           "READ; @%p7 mbarrier.init.shared::cta.b64 [%r10], 65; @%p7 mbarrier.arrive.shared::cta.b64 _, [%r10]; "
           "bar.warp.sync -1; @%p7 " +
           store + " [%r11], 1; bra GO;\nREAD: " + load +
           " %r12, [%r11]; setp.eq.u32 %p1, %r12, 0; @%p1 bra READ;\nGO: mbarrier.arrive.shared::cta.b64 %rd3, [%r10];";
  };
  EXPECT_EQ(fault(with("st.release.cta.shared.b32", "ld.acquire.cta.shared.b32"), kTwoWarps), "no fault");
  EXPECT_THAT(fault(with("st.relaxed.cta.shared.b32", "ld.relaxed.cta.shared.b32"), kTwoWarps),
              HasSubstr("race on shared memory with warp 0, lane 0 at"));
}

/// Block 1 arrives at block 0's mbarrier, which thread 0 of block 0 initialised and arrived at.
std::string remote(const std::string& fence, const std::string& arrive) {
  return ".shared .align 8 .b8 bar[8]; mov.u32 %r10, bar; mov.u32 %r7, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; "
         "setp.eq.and.u32 %p2, %r7, 0, %p1; @!%p2 bra GO; mbarrier.init.shared::cta.b64 [%r10], 2; "
         "mbarrier.arrive.shared::cta.b64 _, [%r10];" +
         fence + "\nGO: " + arrive +
         " barrier.cluster.wait.acquire.aligned; setp.eq.u32 %p3, %r7, 1; and.pred %p3, %p3, %p1; "
         "mapa.shared::cluster.u32 %r12, %r10, 0; @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];\n"
         "@!%p2 bra END;\nW: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r10], 0; @!%p4 bra W;\n"
         "END: " +
         kMeet;
}
TEST(MbarrierLifetime, OtherBlocksNeedTheClustersBarrierAndTheFence) {
  const std::string fence = " fence.mbarrier_init.release.cluster;";
  under_every_schedule([&] {
    EXPECT_EQ(fault(remote(fence, "barrier.cluster.arrive.relaxed.aligned;"), kPair), "no fault");
    EXPECT_EQ(fault(remote(fence, "barrier.cluster.arrive.aligned;"), kPair), "no fault");
    EXPECT_EQ(fault(remote("", "barrier.cluster.arrive.release.aligned;"), kPair), "no fault");
  });
  EXPECT_THAT(fault(remote("", "barrier.cluster.arrive.relaxed.aligned;"), kPair),
              AllOf(HasSubstr("race on shared memory with block (0, 0, 0), warp 0, lane 0 at"),
                    HasSubstr("mbarrier.init.shared::cta")));
}
TEST(MbarrierLifetime, CopiesAreIssuedBehindTheInitialisationToo) {
  const auto with = [](const std::string& order) {
    return ".shared .align 8 .b8 bar[8]; .shared .align 16 .b8 tile[64]; mov.u32 %r10, bar; mov.u32 %r2, tile; "
           "setp.eq.u32 %p1, %r1, 0; @!%p1 bra GO; mbarrier.init.shared::cta.b64 [%r10], 2; "
           "mbarrier.arrive.shared::cta.b64 _, [%r10]; fence.mbarrier_init.release.cluster;\nGO: " +
           order +
           " setp.ne.u32 %p2, %r1, 32; @%p2 bra END; "
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 16, [%r10];"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 16;\n"
           "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], 0; @!%p3 bra W;\nEND:";
  };
  const std::vector<U32> data{1, 2, 3, 4};
  EXPECT_EQ(fault(with("bar.sync 0;"), kTwoWarps, data), "no fault");
  EXPECT_THAT(fault(with(""), kTwoWarps, data),
              AllOf(HasSubstr("race on shared memory with warp 0, lane 0 at"), HasSubstr("mbarrier.init.shared::cta")));
}

/// %r6: this lane's word in the other block; %p1: block 1, which runs on first where both meet; both have written
/// theirs.
const std::string kPeer =
    ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4; st.shared.b32 "
    "[%r2], %r1; mov.u32 %r7, %cluster_ctarank; xor.b32 %r8, %r7, 1; mapa.shared::cluster.u32 %r6, %r2, %r8; "
    "setp.eq.u32 %p1, %r7, 1;\n" +
    kMeet;

TEST(BlockLifetime, APeersAccessIsOrderedBeforeTheExit) {
  // Block 1 runs first, so it accesses the memory of a block that is there still.
  const std::string load = kPeer + "@%p1 ld.shared::cluster.b32 %r9, [%r6];",
                    store = kPeer + "@%p1 st.shared::cluster.b32 [%r6], 7;",
                    atomic = kPeer + "@%p1 red.relaxed.cluster.shared::cluster.add.u32 [%r6], 7;";
  for (const std::string& body : {load, store, atomic}) {
    EXPECT_THAT(fault(body, kPair),
                AllOf(HasSubstr("race on shared memory with the exit of block (0, 0, 0), to which it belongs: nothing "
                                "orders this access before it"),
                      HasSubstr("(block (1, 0, 0), warp 0, lane 0, thread (0, 0, 0); ptx line")))
        << body;
    EXPECT_EQ(fault(body + kMeet, kPair), "no fault") << body;
  }
  // Where the reader runs later the memory is gone.
  EXPECT_THAT(fault(kPeer + "@!%p1 ld.shared::cluster.b32 %r9, [%r6];", kPair), HasSubstr("which has exited"));
}
TEST(BlockLifetime, OneOfItsWarpsMustKnow) {
  // Block 1 says that it is done by arriving at an mbarrier of block 0, which waits there.
  const auto with = [](const std::string& wait) {
    return ".shared .align 8 .b8 bar[8]; mov.u32 %r10, bar; setp.eq.u32 %p5, %r1, 0; @%p5 "
           "mbarrier.init.shared::cta.b64 "
           "[%r10], 32; fence.mbarrier_init.release.cluster;" +
           kPeer +
           "@!%p1 bra OTHER; ld.shared::cluster.b32 %r9, [%r6]; mapa.shared::cluster.u32 %r12, %r10, %r8; "
           "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12]; bra END;\nOTHER: " +
           wait + "\nEND:";
  };
  under_every_schedule([&] {
    EXPECT_EQ(
        fault(with("W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r10], 0; @!%p4 bra W;"), kPair),
        "no fault");
  });
  EXPECT_THAT(fault(with(""), kPair), HasSubstr("race on shared memory with the exit of block (0, 0, 0)"));
}

TEST(BlockLifetime, CopiesAreWaitedForUnderEverySchedule) {
  const std::string begin =
      ".shared .align 8 .b8 bar[8]; .shared .align 16 .b8 tile[64]; mov.u32 %r10, bar; mov.u32 %r2, tile; "
      "st.shared.b64 [%r2], 1; st.shared.b64 [%r2+8], 1; mbarrier.init.shared::cta.b64 [%r10], 1; "
      "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;\n";
  const std::string store = begin +
                            "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 16; "
                            "cp.async.bulk.commit_group;",
                    load = begin +
                           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 16;"
                           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 16, "
                           "[%r10];\n";
  const std::string wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], 0; @!%p3 bra W;";
  const std::vector<U32> data{1, 2, 3, 4};
  under_every_schedule([&] {
    EXPECT_THAT(fault(store, kOne, data), HasSubstr("its block exits while the copy still reads its shared memory: "
                                                    "cp.async.bulk.wait_group is missing"));
    EXPECT_EQ(fault(store + "cp.async.bulk.wait_group.read 0;", kOne, data), "no fault");
    EXPECT_EQ(fault(store + "cp.async.bulk.wait_group 0;", kOne, data), "no fault");
    EXPECT_THAT(fault(load, kOne, data),
                HasSubstr("the block whose shared memory is written exits without having waited for it"));
    EXPECT_EQ(fault(load + wait, kOne, data), "no fault");
  });
}
TEST(BlockLifetime, StoresInAPeerAreWaitedForThere) {
  const auto with = [](const std::string& wait) {
    return ".shared .align 8 .b8 bar[8]; mov.u32 %r10, bar; setp.eq.u32 %p5, %r1, 0; @%p5 "
           "mbarrier.init.shared::cta.b64 "
           "[%r10], 1; @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 128; "
           "fence.mbarrier_init.release.cluster;" +
           kPeer +
           "@!%p1 bra OTHER; mapa.shared::cluster.u32 %r12, %r10, %r8; "
           "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r6], %r1, [%r12]; bra END;\nOTHER: " +
           wait + "\nEND:";
  };
  under_every_schedule([&] {
    EXPECT_EQ(
        fault(with("W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [%r10], 0; @!%p4 bra W;"), kPair),
        "no fault");
    EXPECT_THAT(fault(with(""), kPair),
                HasSubstr("the block whose shared memory is written exits without having waited for it"));
  });
}

}  // namespace
}  // namespace kiln::test

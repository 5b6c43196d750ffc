// Races on shared memory: what needs a barrier and has none is a fault that names both accesses; what is ordered is
// none.
#include <gmock/gmock.h>

#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Shape kTwoWarps{{1, 1, 1}, {64, 1, 1}, 0};

/// %r2: the thread's word of `tile`; %r3: the word of the same lane of the other warp.
const std::string kWords =
    ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; xor.b32 %r3, %r2, 128; add.u32 "
    "%r2, %r2, %r4; add.u32 %r3, %r3, %r4;\n";

std::string fault(const std::string& body, const Shape& shape = kTwoWarps) {
  return fault_of({kWords + body, "sm_90a", shape});
}

TEST(Races, LoadBehindAStoreOfAnotherWarpNeedsABarrier) {
  EXPECT_THAT(fault("st.shared.b32 [%r2], %r1; ld.shared.b32 %r9, [%r3];"),
              AllOf(HasSubstr("race on shared memory with warp"), HasSubstr("st.shared.b32 [%r2], %r1"),
                    HasSubstr("nothing orders them"), HasSubstr("ld.shared.b32 %r9, [%r3]")));
  EXPECT_EQ(fault("st.shared.b32 [%r2], %r1; bar.sync 0; ld.shared.b32 %r9, [%r3];"), "no fault");
}
TEST(Races, StoreBehindALoadOfAnotherWarpNeedsABarrier) {
  const std::string first = "st.shared.b32 [%r2], %r1; bar.sync 0; ld.shared.b32 %r9, [%r3];";
  EXPECT_THAT(fault(first + "st.shared.b32 [%r2], %r9;"), HasSubstr("race on shared memory with warp"));
  EXPECT_EQ(fault(first + "bar.sync 0; st.shared.b32 [%r2], %r9;"), "no fault");
}
TEST(Races, TwoStoresRaceUnlessTheyAgree) {
  EXPECT_THAT(fault("st.shared.b32 [%r4], %r1;"), HasSubstr("race on shared memory with warp 0"));
  EXPECT_EQ(fault("mov.u32 %r5, 7; st.shared.b32 [%r4], %r5;"), "no fault");
}
TEST(Races, BytesOfOneWordAreApart) { EXPECT_EQ(fault("add.u32 %r5, %r4, %r1; st.shared.b8 [%r5], %r1;"), "no fault"); }
TEST(Races, LanesOfOneWarpDoNotRace) {
  EXPECT_EQ(fault("st.shared.b32 [%r2], %r1; ld.shared.b32 %r9, [%r4];", {{1, 1, 1}, {32, 1, 1}, 0}), "no fault");
}
TEST(Races, AtomicsDoNotRaceAmongThemselves) {
  const std::string clear = "mov.u32 %r5, 0; st.shared.b32 [%r4], %r5; bar.sync 0;";
  EXPECT_EQ(fault(clear + "red.shared.add.u32 [%r4], 1;"), "no fault");
  EXPECT_THAT(fault(clear + "red.shared.add.u32 [%r4], 1; ld.shared.b32 %r9, [%r4];"), HasSubstr("red.shared.add.u32"));
  EXPECT_EQ(fault(clear + "red.shared.add.u32 [%r4], 1; bar.sync 0; ld.shared.b32 %r9, [%r4];"), "no fault");
}
TEST(Races, FenceOrdersOnlyWithAVariable) {
  EXPECT_THAT(fault("st.shared.b32 [%r2], %r1; membar.cta; ld.volatile.shared.b32 %r9, [%r3];"),
              HasSubstr("race on shared memory with warp"));
}
TEST(Races, CopiesAreStores) {
  const std::string data = "and.b32 %r5, %r1, 0; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd3, %rd2, %rd3;";
  EXPECT_THAT(fault(data + "cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.wait_all; ld.shared.b32 %r9, [%r3];"),
              HasSubstr("race on shared memory with warp 0"));
  EXPECT_EQ(
      fault(data +
            "cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.wait_all; bar.sync 0; ld.shared.b32 %r9, [%r3];"),
      "no fault");
}
TEST(Races, OtherBlocksOfTheClusterRace) {
  const std::string meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
  const std::string remote = meet + "mapa.shared::cluster.u32 %r6, %r2, 0; st.shared::cluster.b32 [%r6], %r18;\n";
  EXPECT_THAT(fault(remote + meet, {{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}}), HasSubstr("race on shared memory with"));
  EXPECT_EQ(fault("mov.u32 %r7, %cluster_ctarank; setp.ne.u32 %p1, %r7, 0;" + meet +
                      "mapa.shared::cluster.u32 %r6, %r2, 0; @%p1 st.shared::cluster.b32 [%r6], %r18;\n" + meet +
                      "@!%p1 st.shared.b32 [%r2], %r1;",
                  {{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}}),
            "no fault");
}
TEST(Races, TheIssuerOfACopyWaitsForItToo) {
  const std::string copy =
      "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3; mov.u32 %r5, 7; st.shared.b32 [%r2], %r5;"
      "cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.commit_group;\n";
  const std::string wait = "cp.async.wait_group 0;\n";
  const auto of_words = [](const std::string& body) {
    ThreadProgram p{kWords + body, "sm_90a", {{1, 1, 1}, {32, 1, 1}, 0}};
    p.data.resize(32, 9);
    return fault_of(std::move(p));
  };
  for (const char* access : {"st.shared.b32 [%r2], %r1;", "ld.shared.b32 %r9, [%r2];", "st.global.b32 [%rd3], %r1;",
                             "add.u32 %r6, %r2, 4; setp.lt.u32 %p1, %r1, 31; @%p1 st.shared.b32 [%r6], %r1;"}) {
    EXPECT_THAT(of_words(copy + access + wait), AllOf(HasSubstr("race on "), HasSubstr("cp.async"))) << access;
    EXPECT_EQ(of_words(copy + wait + access), "no fault") << access;
  }
  EXPECT_EQ(of_words(copy + "ld.global.b32 %r9, [%rd3];" + wait), "no fault");
}

}  // namespace
}  // namespace kiln::test

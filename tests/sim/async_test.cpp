// cp.async: groups, zero fill, and that data is not there before the wait; hints that change nothing.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/sim/thread_program.h"
#include "tests/support/knob.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using U32 = std::uint32_t;

constexpr Shape kWarp{};

std::vector<U32> counted(U32 n) {
  std::vector<U32> v(n);
  std::iota(v.begin(), v.end(), 1000u);
  return v;
}

/// %r2: 16 bytes of shared memory of the thread, cleared; %rd3: 16 bytes of `data` of the thread.
const std::string kPlaces =
    ".shared .align 16 .b8 tile[2048]; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; mov.u32 %r4, 0; "
    "st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4}; cvt.u64.u32 %rd3, %r3; add.s64 %rd3, %rd2, %rd3;\n";

TEST(CpAsync, CopiesOfEverySizeArrive) {
  for (const auto& [copy, words] :
       std::vector<std::pair<std::string, U32>>{{"cp.async.ca.shared.global [%r2], [%rd3], 4;", 1},
                                                {"cp.async.ca.shared.global [%r2], [%rd3], 8;", 2},
                                                {"cp.async.ca.shared::cta.global.L2::128B [%r2], [%rd3], 16;", 4},
                                                {"cp.async.cg.shared.global [%r2], [%rd3], 16;", 4}})
    expect_each({kPlaces + copy +
                     "cp.async.commit_group; cp.async.wait_group 0; ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r2]; "
                     "add.u32 %r9, %r5, %r6; add.u32 %r9, %r9, %r7; add.u32 %r9, %r9, %r8;",
                 "sm_80", kWarp, "", counted(128)},
                [words = words](U32 t) {
                  U32 sum = 0;
                  for (U32 i = 0; i < words; ++i) sum += 1000 + 4 * t + i;
                  return sum;
                });
}

TEST(CpAsync, AddressesHaveOffsets) {
  expect_each(
      {kPlaces + "cp.async.ca.shared.global [%r2+4], [%rd3+8], 4; cp.async.wait_all; ld.shared.b32 %r9, [%r2+4];",
       "sm_80", kWarp, "", counted(128)},
      [](U32 t) { return 1002 + 4 * t; });
}

TEST(CpAsync, DataIsNotThereBeforeTheWait) {
  const Knob unchecked("KILN_SIM_CHECK", "none");  // what is not awaited is a race
  // What is read before the wait, in tens of thousands; after it, in ones.
  expect_each({kPlaces + "cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.commit_group; ld.shared.b32 %r5, [%r2]; "
                         "cp.async.wait_group 0; ld.shared.b32 %r6, [%r2]; mad.lo.u32 %r9, %r5, 10000, %r6;",
               "sm_80", kWarp, "", counted(128)},
              [](U32 t) { return 1000 + 4 * t; });
}

TEST(CpAsync, AWaitLeavesTheNewestGroupsUnderWay) {
  const Knob unchecked("KILN_SIM_CHECK", "none");  // what is not awaited is a race
  // On the simulator, where a copy takes effect when it is waited for. Three groups of a word each; after wait_group 1
  // two words are there, after wait_all the third.
  const std::string group = "cp.async.commit_group;\n";
  expect_each(
      {kPlaces + "cp.async.ca.shared.global [%r2], [%rd3], 4;" + group +
           "cp.async.ca.shared.global [%r2+4], [%rd3], 4;" + group + "cp.async.ca.shared.global [%r2+8], [%rd3], 4;" +
           group +
           "cp.async.wait_group 1; ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r2];\n"
           "setp.ne.u32 %p1, %r5, 0; selp.u32 %r9, 1, 0, %p1; setp.ne.u32 %p1, %r6, 0; selp.u32 %r5, 10, 0, %p1; "
           "add.u32 %r9, %r9, %r5; setp.ne.u32 %p1, %r7, 0; selp.u32 %r5, 100, 0, %p1; add.u32 %r9, %r9, %r5;\n"
           "cp.async.wait_all; ld.shared.b32 %r7, [%r2+8]; setp.ne.u32 %p1, %r7, 0; selp.u32 %r5, 1000, 0, %p1; "
           "add.u32 %r9, %r9, %r5;",
       "sm_80", kWarp, "", counted(128), false},
      [](U32) { return 1011u; });
}

TEST(CpAsync, WaitAllTakesCopiesOfNoGroup) {
  const std::string copy = kPlaces + "cp.async.ca.shared.global [%r2], [%rd3], 4;";
  expect_each({copy + "cp.async.wait_group 0; ld.shared.b32 %r9, [%r2];", "sm_80", kWarp, "", counted(128), false},
              [](U32) { return 0u; });
  expect_each({copy + "cp.async.wait_all; ld.shared.b32 %r9, [%r2];", "sm_80", kWarp, "", counted(128)},
              [](U32 t) { return 1000 + 4 * t; });
}

TEST(CpAsync, LanesWaitForTheirOwn) {
  const Knob unchecked("KILN_SIM_CHECK", "none");  // what is not awaited is a race
  // Odd lanes commit one group more, so wait_group 1 leaves the copy of the even ones under way.
  expect_each(
      {kPlaces + "cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.commit_group; and.b32 %r5, %r1, 1; "
                 "setp.eq.u32 %p1, %r5, 1; @%p1 cp.async.commit_group; cp.async.wait_group 1; ld.shared.b32 %r9, "
                 "[%r2]; cp.async.wait_all;",
       "sm_80", kWarp, "", counted(128), false},
      [](U32 t) { return t % 2 ? 1000 + 4 * t : 0; });
}

TEST(CpAsync, TheRestOfAShortSourceIsZero) {
  // Lane t reads t % 5 words, and the last lanes none at all beyond the end of `data`.
  expect_each(
      {".shared .align 16 .b8 tile[512]; mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; cvt.u64.u32 "
       "%rd3, %r3; add.s64 %rd3, %rd2, %rd3; rem.u32 %r4, %r1, 5; shl.b32 %r4, %r4, 2; setp.gt.u32 %p1, %r1, 15; "
       "selp.u32 %r4, 0, %r4, %p1; cp.async.cg.shared.global [%r2], [%rd3], 16, %r4; cp.async.wait_all; "
       "ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r2]; add.u32 %r9, %r5, %r6; add.u32 %r9, %r9, %r7; add.u32 %r9, "
       "%r9, %r8;",
       "sm_80", kWarp, "", counted(64)},
      [](U32 t) {
        U32 sum = 0;
        for (U32 i = 0; i < (t > 15 ? 0 : t % 5); ++i) sum += 1000 + 4 * t + i;
        return sum;
      });
}

TEST(CpAsync, AnIgnoredSourceIsZero) {
  expect_each(
      {kPlaces + "setp.lt.u32 %p1, %r1, 7; mov.u32 %r4, 9; st.shared.b32 [%r2], %r4; cp.async.cg.shared.global [%r2], "
                 "[%rd3], 16, %p1; cp.async.wait_all; ld.shared.b32 %r9, [%r2];",
       "sm_80", kWarp, "", counted(128)},
      [](U32 t) { return t < 7 ? 0 : 1000 + 4 * t; });
}

TEST(CpAsync, OtherThreadsSeeDataAfterWaitAndBarrier) {
  expect_each(
      {kPlaces + "cp.async.cg.shared.global [%r2], [%rd3], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync "
                 "0; mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; xor.b32 %r6, %r6, 508; add.u32 %r5, %r5, %r6; "
                 "ld.shared.b32 %r9, [%r5];",
       "sm_80",
       {{1, 1, 1}, {128, 1, 1}, 0},
       "",
       counted(512)},
      [](U32 t) { return 1000 + (t ^ 127); });
}

TEST(CpAsyncFaults, BoundsAndAlignmentAreThoseOfTheCopy) {
  const auto fault = [](const std::string& body) {
    return fault_of({kPlaces + body, "sm_80", kWarp, "", counted(127)});
  };
  EXPECT_THAT(fault("cp.async.cg.shared.global [%r2], [%rd3], 16;"),
              AllOf(HasSubstr("out-of-bounds global load of 16 bytes"), HasSubstr("thread (31, 0, 0)")));
  EXPECT_THAT(fault("cp.async.ca.shared.global [%r2], [%rd3+2], 4;"), HasSubstr("misaligned global load of 4 bytes"));
  EXPECT_THAT(fault("cp.async.ca.shared.global [%r2+4], [%rd3], 8;"), HasSubstr("misaligned shared store of 8 bytes"));
  EXPECT_THAT(fault("cp.async.ca.shared.global [%r2+2048], [%rd3], 8;"), HasSubstr("out-of-bounds shared store"));
  EXPECT_THAT(fault("mov.u32 %r5, 17; cp.async.cg.shared.global [%r2], [%rd3], 16, %r5;"),
              HasSubstr("a source of 17 bytes for a copy of 16"));
}

TEST(CacheHints, ChangeNothing) {
  std::vector<U32> data = counted(64);
  expect_each(
      {"mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3; prefetch.global.L2 [%rd3]; prefetch.global.L1 [%rd3]; "
       "prefetch.global.L2::evict_last [%rd3];\n"
       "createpolicy.fractional.L2::evict_first.b64 %rd4, 1.0; "
       "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 "
       "%rd5, 0.5; createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd6, [%rd2], 64, 128;\n"
       "ld.global.L1::no_allocate.L2::cache_hint.b32 %r2, [%rd3], %rd4; ld.global.nc.L1::evict_last.L2::128B.b32 %r3, "
       "[%rd3+128]; ld.global.cg.b32 %r4, [%rd3]; ld.global.lu.b32 %r5, [%rd3]; ld.global.cv.b32 %r6, [%rd3];\n"
       "add.u32 %r7, %r2, %r3; add.u32 %r7, %r7, %r4; add.u32 %r7, %r7, %r5; add.u32 %r9, %r7, %r6;\n"
       "st.global.L2::cache_hint.b32 [%rd3], %r9, %rd5; st.global.wt.b32 [%rd3], %r9; st.global.cs.b32 [%rd3], %r9; "
       "st.global.L1::evict_first.b32 [%rd3], %r9; ld.global.b32 %r9, [%rd3];\n"
       "setp.eq.u32 %p1, %r1, 0; @%p1 cp.async.bulk.prefetch.L2.global [%rd2], 256; @%p1 "
       "applypriority.global.L2::evict_normal "
       "[%rd2], 128; @%p1 discard.global.L2 [%rd2+128], 128;",
       "sm_90a", kWarp, "", data},
      [](U32 t) { return 5 * (1000 + t) + 32; });
}

TEST(CacheHints, WholeLinesAreChecked) {
  EXPECT_THAT(fault_of({"discard.global.L2 [%rd2+64], 128;", "sm_90a", kWarp, "", counted(64)}),
              HasSubstr("misaligned discard of a line"));
  EXPECT_THAT(fault_of({"applypriority.global.L2::evict_normal [%rd2+256], 128;", "sm_90a", kWarp, "", counted(64)}),
              HasSubstr("out-of-bounds applypriority to a line of 128 bytes"));
  EXPECT_THAT(fault_of({"cp.async.bulk.prefetch.L2.global [%rd2], 272;", "sm_90a", kWarp, "", counted(64)}),
              HasSubstr("out-of-bounds bulk prefetch of 272 bytes"));
  EXPECT_THAT(
      fault_of({"mov.u32 %r2, 8; cp.async.bulk.prefetch.L2.global [%rd2], %r2;", "sm_90a", kWarp, "", counted(64)}),
      HasSubstr("a prefetch of 8 bytes, which is no multiple of 16"));
}

TEST(Time, SleepingAndDependentLaunchesAreTaken) {
  expect_each(
      {"griddepcontrol.wait; nanosleep.u32 100; mov.u64 %rd3, %globaltimer; griddepcontrol.launch_dependents; mov.u32 "
       "%r2, %clock; mov.u32 %r9, 4;"},
      [](U32) { return 4u; });
}

TEST(Fences, EveryFormIsTaken) {
  expect_each(
      {"membar.cta; membar.gl; membar.sys; fence.sc.cta; fence.acq_rel.gpu; fence.acq_rel.cluster; fence.sc.sys; "
       "fence.proxy.alias; fence.proxy.async; fence.proxy.async.global; fence.proxy.async.shared::cta; "
       "fence.mbarrier_init.release.cluster; mov.u32 %r9, 4;"},
      [](U32) { return 4u; });
}

}  // namespace
}  // namespace kiln::test

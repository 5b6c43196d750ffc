// Bulk copies and reductions between global and shared memory and between blocks, and rings of stages made of them.
#include <gmock/gmock.h>

#include <bit>

#include "runtime/base/float16.h"
#include "tests/sim/bulk_copy.h"

namespace kiln::test::bulk {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BulkCopy, GlobalMemoryArrivesBehindTheMbarrier) {
  under_every_schedule([] {
    expect_each({kBegin + "@%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 112; @%p8 " + kLoad +
                     "[%r2], [%rd2], 96, [%r10]; @%p8 createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0; @%p8 "
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r2+96], "
                     "[%rd2+160], 16, [%r10], %rd5;\n" +
                     kAwait + "setp.lt.u32 %p1, %r1, 28; @%p1 ld.shared.b32 %r9, [%r3];",
                 "sm_90a", kWarp, "", counted(64)},
                [](U32 t) { return t < 24   ? 1000 + t
                                   : t < 28 ? 1040 + t - 24
                                            : 0; });
  });
}

TEST(BulkCopy, DataIsNotThereBeforeItIsAwaited) {
  ThreadProgram p{kBegin +
                      "mov.u32 %r4, 7; st.shared.b32 [%r2], %r4; fence.proxy.async.shared::cta; "
                      "mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 16;" +
                      kLoad + "[%r2], [%rd2], 16, [%r10]; ld.shared.b32 %r5, [%r2];\n" + kAwait +
                      "ld.shared.b32 %r6, [%r2]; mad.lo.u32 %r9, %r5, 10000, %r6;",
                  "sm_90a", kOne, "", counted(4)};
  p.portable = false;
  EXPECT_THAT(fault_of(p), ::testing::AnyOf(HasSubstr("race"), HasSubstr("no fault")));
  const Knob late("KILN_SIM_SCHEDULE", "late");
  const Knob unchecked("KILN_SIM_CHECK", "none");
  EXPECT_EQ(p.run()[0], 71000u);
}

TEST(BulkCopy, SharedMemoryIsStored) {
  under_every_schedule([] {
    ThreadProgram p{kBegin +
                        "add.u32 %r4, %r1, 50; st.shared.b32 [%r3], %r4; fence.proxy.async.shared::cta; bar.sync "
                        "0; @%p8 " +
                        kStore + "[%rd2+16], [%r2], 64; @%p8 cp.async.bulk.commit_group; @%p8 " + kStore +
                        "[%rd2+96], [%r2+64], 32; @%p8 cp.async.bulk.commit_group; @%p8 cp.async.bulk.wait_group 0;",
                    "sm_90a", kWarp, "", counted(40)};
    p.run();
    for (U32 i = 0; i < 40; ++i)
      EXPECT_EQ(p.data[i], i >= 4 && i < 20 ? 50 + i - 4 : i >= 24 && i < 32 ? 66 + i - 24 : 1000 + i) << i;
  });
}

TEST(BulkCopy, SourcesMayBeReusedWhenTheyHaveBeenRead) {
  // Writes of the second group's source follow wait_group.read 1, and the kernel ends with its stores under way.
  under_every_schedule([] {
    const std::string fence = "fence.proxy.async.shared::cta;";
    ThreadProgram p{
        kBegin + "mov.u32 %r4, 1; st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};" + fence + kStore +
            "[%rd2], [%r2], 16; cp.async.bulk.commit_group; mov.u32 %r4, 2; st.shared.v4.b32 [%r2+16], "
            "{%r4, %r4, %r4, %r4};" +
            fence + kStore +
            "[%rd2+16], [%r2+16], 16; cp.async.bulk.commit_group; "
            "cp.async.bulk.wait_group.read 1; mov.u32 %r4, 3; st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};" +
            fence + kStore +
            "[%rd2+32], [%r2], 16; cp.async.bulk.commit_group; "
            "cp.async.bulk.wait_group.read 0;",
        "sm_90a", kOne, "", counted(12)};
    p.run();
    for (U32 i = 0; i < 12; ++i) EXPECT_EQ(p.data[i], i / 4 + 1) << i;
  });
}

TEST(BulkCopy, AMulticastReachesTheBlocksOfItsMask) {
  // Block 1 sends to blocks 0, 1 and 3; block 2 has nothing to wait for.
  under_every_schedule([] {
    expect_each(
        {kBegin +
             "mov.u32 %r4, %cluster_ctarank; setp.ne.u32 %p1, %r4, 2; mov.u32 %r5, 0; st.shared.b32 [%r3], %r5; "
             "fence.proxy.async; and.pred %p2, %p1, %p8; @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], "
             "128;\n" +
             kMeet +
             "setp.eq.u32 %p3, %r4, 1; and.pred %p3, %p3, %p8; mov.u16 %rs1, 11; @%p3 "
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd2], 128, "
             "[%r10], %rs1; @!%p1 bra NONE;\n" +
             kAwait + "NONE: ld.shared.b32 %r9, [%r3];\n" + kMeet,
         "sm_90a", kFour, "", counted(32)},
        [](U32 t) { return t / 32 == 2 ? 0 : 1000 + t % 32; });
  });
}

TEST(BulkCopy, BlocksSendToEachOther) {
  under_every_schedule([] {
    expect_each(
        {kBegin +
             "mov.u32 %r4, %cluster_ctarank; mad.lo.u32 %r5, %r4, 100, %r1; st.shared.b32 [%r3], %r5; "
             "fence.proxy.async.shared::cta; @%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128;\n" +
             kMeet +
             "add.u32 %r6, %r4, 1; and.b32 %r6, %r6, 3; mapa.shared::cluster.u32 %r7, %r2, %r6; "
             "mapa.shared::cluster.u32 %r8, %r10, %r6; @%p8 "
             "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7+1024], [%r2], 128, [%r8];\n" +
             kAwait + "ld.shared.b32 %r9, [%r3+1024];\n" + kMeet,
         "sm_90a", kFour},
        [](U32 t) { return (t / 32 + 3) % 4 * 100 + t % 32; });
  });
}

TEST(BulkCopy, TrafficIsCounted) {
  ThreadProgram p{kBegin + "@%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128; @%p8 " + kLoad +
                      "[%r2], [%rd2+16], 128, [%r10];\n" + kAwait + "@%p8 " + kStore +
                      "[%rd2], [%r2], 64; @%p8 cp.async.bulk.commit_group; @%p8 cp.async.bulk.wait_group 0;",
                  "sm_90a", kWarp, "", counted(64)};
  p.run();
  EXPECT_EQ(p.counters.global_bytes_read, 128u);
  EXPECT_EQ(p.counters.global_sectors_read, 5u);
  EXPECT_EQ(p.counters.global_bytes_written, 64u + 128u);
  EXPECT_EQ(p.counters.global_sectors_written, 2u + 4u);
}

// --- reductions ---

struct Reduction {
  std::string form;
  std::vector<U32> there, values, want;  ///< four words
};

U32 two(float lo, float hi, bool bf) {
  const auto bits = [&](float v) -> U32 { return bf ? bf16(v).bits : f16(v).bits; };
  return bits(lo) | bits(hi) << 16;
}
std::vector<U32> wide(std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return {static_cast<U32>(x), static_cast<U32>(x >> 32), static_cast<U32>(y), static_cast<U32>(y >> 32)};
}
std::vector<U32> doubles(double a, double b) {
  return wide(std::bit_cast<std::int64_t>(a), std::bit_cast<std::int64_t>(b));
}
std::vector<U32> floats(float a, float b, float c, float d) {
  return {std::bit_cast<U32>(a), std::bit_cast<U32>(b), std::bit_cast<U32>(c), std::bit_cast<U32>(d)};
}

const std::vector<Reduction> kShared = {{"add.u32", {1, 2, 3, 0xFFFFFFFF}, {10, 20, 30, 2}, {11, 22, 33, 1}},
                                        {"add.s32", {1, 2, 3, 4}, {10, 20, 30, U32(-9)}, {11, 22, 33, U32(-5)}},
                                        {"add.u64", wide(0xFFFFFFFF, -1), wide(1, 5), wide(0x100000000, 4)},
                                        {"min.u32", {1, 20, 3, U32(-4)}, {10, 2, 30, 4}, {1, 2, 3, 4}},
                                        {"max.s32", {1, 20, 3, U32(-4)}, {10, 2, 30, 4}, {10, 20, 30, 4}},
                                        {"inc.u32", {0, 4, 5, 9}, {5, 5, 5, 5}, {1, 5, 0, 0}},
                                        {"dec.u32", {0, 4, 5, 9}, {5, 5, 5, 5}, {5, 3, 4, 5}},
                                        {"and.b32", {12, 0xFF, 7, 1}, {10, 0xF0, 8, 1}, {8, 0xF0, 0, 1}},
                                        {"or.b32", {12, 0xFF, 7, 1}, {10, 0xF0, 8, 1}, {14, 0xFF, 15, 1}},
                                        {"xor.b32", {12, 0xFF, 7, 1}, {10, 0xF0, 8, 1}, {6, 15, 15, 0}}};
const std::vector<Reduction> kGlobal = {
    {"add.f32", floats(1, 2, 3, -4), floats(0.5F, 0.25F, 8, 4), floats(1.5F, 2.25F, 11, 0)},
    {"add.f64", doubles(1, 1e300), doubles(0.5, 1e300), doubles(1.5, 2e300)},
    {"add.noftz.f16", {two(1, 2, false), 0, 0, 1}, {two(0.5F, -4, false), 5, 0, 1}, {two(1.5F, -2, false), 5, 0, 2}},
    {"add.noftz.bf16", {two(1, 2, true), 0, 0, 1}, {two(0.5F, -4, true), 5, 0, 1}, {two(1.5F, -2, true), 5, 0, 2}},
    {"min.f16", {two(1, -2, false), 0, 0, 0}, {two(0.5F, 4, false), 0, 0, 0}, {two(0.5F, -2, false), 0, 0, 0}},
    {"max.bf16", {two(1, -2, true), 0, 0, 0}, {two(0.5F, 4, true), 0, 0, 0}, {two(1, 4, true), 0, 0, 0}},
    {"min.s64", wide(-1, 7), wide(3, -9), wide(-1, -9)},
    {"max.u64", wide(-1, 7), wide(3, 9), wide(-1, 9)},
    {"and.b64", wide(-1, 12), wide(0x1234567890, 10), wide(0x1234567890, 8)},
    {"or.b64", wide(1, 12), wide(0x1234567890, 10), wide(0x1234567891, 14)},
    {"xor.b64", wide(1, 12), wide(0x1234567891, 10), wide(0x1234567890, 6)}};

std::vector<U32> joined(const std::vector<U32>& a, const std::vector<U32>& b) {
  std::vector<U32> out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

TEST(BulkReduction, CombinesWithGlobalMemory) {
  std::vector<Reduction> all = kShared;
  all.insert(all.end(), kGlobal.begin(), kGlobal.end());
  for (const Reduction& r : all) {
    SCOPED_TRACE(r.form);
    ThreadProgram p{kBegin +
                        "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd2+16]; st.shared.v4.b32 [%r2], {%r4, %r5, %r6, "
                        "%r7}; fence.proxy.async.shared::cta; cp.reduce.async.bulk.global.shared::cta.bulk_group." +
                        r.form + " [%rd2], [%r2], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
                    "sm_90a", kOne, "", joined(r.there, r.values)};
    p.run();
    EXPECT_EQ(p.data, joined(r.want, r.values));
  }
}

TEST(BulkReduction, CombinesWithSharedMemoryOfABlock) {
  for (const Reduction& r : kShared) {
    SCOPED_TRACE(r.form);
    ThreadProgram p{
        kBegin +
            "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd2]; st.shared.v4.b32 [%r2+16], {%r4, %r5, %r6, %r7}; "
            "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd2+16]; st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7}; "
            "fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 16;\n" +
            kMeet +
            "mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1; mapa.shared::cluster.u32 %r5, %r2, %r4; "
            "mapa.shared::cluster.u32 %r6, %r10, %r4; "
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." +
            r.form + " [%r5+16], [%r2], 16, [%r6];\n" + kAwait +
            "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2+16]; mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd3, %r8, 16; "
            "add.s64 %rd3, %rd3, %rd2; st.global.v4.b32 [%rd3+32], {%r4, %r5, %r6, %r7};\n" +
            kMeet,
        "sm_90a",
        {{2, 1, 1}, {1, 1, 1}, 0, {2, 1, 1}},
        "",
        joined(joined(r.there, r.values), std::vector<U32>(8))};
    p.run();
    EXPECT_EQ(p.data, joined(joined(r.there, r.values), joined(r.want, r.want)));
  }
}

// --- faults ---

std::string fault(const std::string& body, const Shape& shape = kOne) {
  ThreadProgram p{kBegin + body, "sm_90a", shape, "", counted(16)};
  p.portable = false;
  return fault_of(p);
}

TEST(BulkFaults, SizesAndAddressesAreMultiplesOf16) {
  EXPECT_THAT(fault("mov.u32 %r4, 24;" + kLoad + "[%r2], [%rd2], %r4, [%r10];"),
              HasSubstr("a bulk copy of 24 bytes, which is no multiple of 16"));
  EXPECT_THAT(fault(kLoad + "[%r2+8], [%rd2], 16, [%r10];"), HasSubstr("misaligned destination of a bulk copy"));
  EXPECT_THAT(fault(kLoad + "[%r2], [%rd2+4], 16, [%r10];"), HasSubstr("misaligned source of a bulk copy"));
  EXPECT_THAT(fault(kStore + "[%rd2], [%r2+4], 16;"), HasSubstr("misaligned source of a bulk copy"));
  EXPECT_THAT(fault(kLoad + "[%r2], [%rd2], 16, [%r10+4];"), HasSubstr("misaligned mbarrier"));
}
TEST(BulkFaults, RangesHaveBounds) {
  const std::string expect = "mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128;";
  EXPECT_THAT(fault(expect + kLoad + "[%r2], [%rd2], 128, [%r10];\n" + kAwait),
              HasSubstr("out-of-bounds global load of 128 bytes"));
  EXPECT_THAT(
      fault(expect + kLoad + "[%r2+1984], [%rd2], 64, [%r10];" + kLoad + "[%r2+2016], [%rd2], 64, [%r10];\n" + kAwait),
      HasSubstr("out-of-bounds shared store of 64 bytes"));
  EXPECT_THAT(fault(kStore + "[%rd2], [%r2], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"),
              AllOf(HasSubstr("global store of 128 bytes"), HasSubstr("out-of-bounds")));
}
TEST(BulkFaults, MbarriersAreNotWrittenOver) {
  EXPECT_THAT(
      fault("mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 16; mov.u32 %r4, bar; and.b32 %r4, %r4, 0xFFFFFFF0;" +
            kLoad + "[%r4], [%rd2], 16, [%r10];\n" + kAwait),
      HasSubstr("the copy writes over the mbarrier at"));
}
TEST(BulkFaults, ABlockMayNotExitBeforeItsMemoryWasReadOrWritten) {
  EXPECT_THAT(
      fault(kStore + "[%rd2], [%r2], 16; cp.async.bulk.commit_group;"),
      HasSubstr("its block exits while the copy still reads its shared memory: cp.async.bulk.wait_group is missing"));
  EXPECT_THAT(fault(kLoad + "[%r2], [%rd2], 16, [%r10];"),
              HasSubstr("the block whose shared memory is written exits without having waited for it"));
}
TEST(BulkFaults, DestinationAndMbarrierAreInOneBlock) {
  EXPECT_THAT(fault(kMeet + "mapa.shared::cluster.u32 %r4, %r2, 1;" + kLoad + "[%r4], [%rd2], 16, [%r10];\n" + kMeet,
                    {{2, 1, 1}, {1, 1, 1}, 0, {2, 1, 1}}),
              HasSubstr("the destination is in block 1 of the cluster, but its mbarrier in block 0"));
}
TEST(BulkFaults, MulticastGoesToBlocksOfTheCluster) {
  const std::string copy =
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd2], 16, [%r10], "
      "%rs1;";
  EXPECT_THAT(fault("mov.u16 %rs1, 5;" + copy), HasSubstr("shared memory of block 2 of a cluster of 1"));
  EXPECT_THAT(fault("mov.u16 %rs1, 0;" + copy), HasSubstr("a multicast to no block"));
}
TEST(BulkFaults, FormsOfLaterTargetsAreRefusedByName) {
  const auto refused = [](const std::string& body) {
    try {
      load(Device::simulator("sm_90a"), thread_program(kBegin + body), "k", kOne);
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(refused("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2], [%r2], 16, %rs1;"),
              HasSubstr("cp.async.bulk has no modifier '.cp_mask' here"));
  EXPECT_THAT(refused("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd2], [%r2], 16;"),
              HasSubstr("this form is not supported"));
  EXPECT_THAT(refused("st.async.release.global.b32 [%rd2], %r2;"),
              HasSubstr("st.async has no modifier '.release' here"));
}

}  // namespace
}  // namespace kiln::test::bulk

// fence.sc (membar.gl, __threadfence) orders what barriers carry to and from other threads: the thread that fences need
// not be the one that accesses the variable. Each right program runs on every device there is; each faulty twin races.
#include <gmock/gmock.h>

#include "tests/sim/schedules.h"
#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;
using U32 = std::uint32_t;

constexpr Shape kTwoByTwo{{2, 1, 1}, {64, 1, 1}, 0};
constexpr const char* kReader = "ld.global.b32 %r9, [%rd6]";

/// Two blocks of two warps. Thread 32 writes the block's word, thread 0 meets the other block, then thread 32 reads the
/// word of that. %rd5, %rd6: the words; [%rd5+64], [%rd6+64]: a flag of each block; [%rd2+128]: a counter of both. The
/// parts between stand where the steps of a grid's barrier stand.
struct GridBarrier {
  std::string all_before = "", one_before = "";
  std::string arrive = "red.relaxed.gpu.global.add.u32 [%rd2+128], 1;";
  std::string behind = "";
  std::string look = "ld.relaxed.gpu.global.u32 %r6, [%rd2+128]; setp.lt.u32 %p2, %r6, 2;";
  std::string one_after = "", all_after = "";

  ThreadProgram program() const {
    ThreadProgram p{
        "mov.u32 %r2, %ctaid.x; xor.b32 %r3, %r2, 1; mul.wide.u32 %rd5, %r2, 4; mul.wide.u32 %rd6, %r3, 4; add.s64 "
        "%rd5, %rd5, %rd2; add.s64 %rd6, %rd6, %rd2; setp.eq.u32 %p3, %r1, 32; setp.ne.u32 %p4, %r1, 0;\n"
        "add.u32 %r4, %r18, 7; @%p3 st.global.b32 [%rd5], %r4;\n" +
        all_before + "bar.sync 0; @%p4 bra MET;\n" + one_before + arrive + behind + "\nLOOK: " + look +
        "@%p2 bra LOOK;\n" + one_after + "\nMET: bar.sync 0;\n" + all_after + "@%p3 " + kReader + ";"};
    p.shape = kTwoByTwo;
    p.data.resize(64);
    return p;
  }
};

void expect_ordered(const GridBarrier& b) {
  under_every_schedule([&] {
    const std::vector<U32> got = b.program().run();
    EXPECT_EQ(got[32], 64u + 32 + 7);
    EXPECT_EQ(got[64 + 32], 32u + 7);
  });
}
void expect_race(const GridBarrier& b) {
  under_every_schedule([&] {
    const std::string ptx = thread_program(b.program().body);
    expect_assembles(ptx, "sm_90a");
    const Device device = Device::simulator("sm_90a");
    Buffer<U32> out(device, 128), data(device, 64);
    data.fill_bytes(0);
    EXPECT_THROW(run(device, ptx, "k", kTwoByTwo, Params().add(out).add(data)), DeviceError);
    bool found = false;
    for (const Finding& f : device.findings())
      found |= f.kind == FindingKind::Race && f.ptx.find(kReader) != std::string::npos;
    EXPECT_TRUE(found) << b.program().body;
  });
}

TEST(FenceOrder, AGridMeetsByFencesOfAllThreadsAndOneCounter) {
  for (const char* fence : {"fence.sc.gpu;", "membar.gl;", "fence.sc.sys;", "membar.sys;"}) {
    expect_ordered({.all_before = fence, .one_after = fence});
    expect_ordered({.all_before = fence, .all_after = fence});
    expect_ordered({.one_before = fence, .one_after = fence});
    expect_ordered({.one_before = fence, .all_after = fence});
  }
}
TEST(FenceOrder, BothFencesAreNeeded) {
  const std::string fence = "fence.sc.gpu;";
  expect_race({.all_before = fence});
  expect_race({.all_after = fence});
  expect_race({.one_after = fence});
  expect_race({});
}
TEST(FenceOrder, OtherFencesSpeakForTheirOwnThreadOnly) {
  const std::string sc = "fence.sc.gpu;", weaker = "fence.acq_rel.gpu;";
  expect_race({.all_before = weaker, .one_after = sc});
  expect_race({.all_before = sc, .one_after = weaker});
  expect_race({.one_before = weaker, .all_after = weaker});
  expect_ordered({.one_before = weaker, .one_after = weaker});
  expect_race({.all_before = "fence.sc.cta;", .one_after = sc});
  expect_race({.all_before = sc, .one_after = "membar.cta;"});
  expect_race({.all_before = sc, .look = "ld.acquire.gpu.global.u32 %r6, [%rd2+128]; setp.lt.u32 %p2, %r6, 2;"});
}
TEST(FenceOrder, FencesStandBeforeTheWriteAndBehindTheRead) {
  const std::string fence = "fence.sc.gpu;";
  expect_race({.behind = fence, .one_after = fence});
  expect_race({.all_before = fence, .one_before = "ld.relaxed.gpu.global.u32 %r6, [%rd2+128];" + fence});
}
TEST(FenceOrder, TheVariableIsWrittenAndReadStrongly) {
  const std::string fence = "fence.sc.gpu;", set = ".global.b32 [%rd5+64], 1;",
                    get = ".global.b32 %r6, [%rd6+64]; setp.eq.u32 %p2, %r6, 0;";
  for (const char* strong : {"relaxed.gpu", "volatile"})
    expect_ordered({.all_before = fence,
                    .arrive = "st." + std::string(strong) + set,
                    .look = "ld." + std::string(strong) + get,
                    .one_after = fence});
  expect_race({.all_before = fence, .arrive = "st" + set, .look = "ld.volatile" + get, .one_after = fence});
  expect_race({.all_before = fence,
               .arrive = "st.volatile" + set,
               .look = "mov.u32 %r6, 1; setp.ne.u32 %p2, %r6, 1;",
               .one_after = fence});
}
TEST(FenceOrder, AnAtomicThatReadsIsARead) {
  expect_ordered({.all_before = "membar.gl;",
                  .look = "atom.relaxed.gpu.global.or.b32 %r6, [%rd2+128], 0; setp.lt.u32 %p2, %r6, 2;",
                  .one_after = "membar.gl;"});
}

/// Four blocks of a warp that pass a flag on; the last reads what the first wrote. Lane 0 works.
ThreadProgram relay(const std::string& first, const std::string& middle, const std::string& last) {
  ThreadProgram p{
      "setp.ne.u32 %p4, %r1, 0; @%p4 bra END; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 1; @%p1 bra MIDDLE; "
      "setp.eq.u32 %p1, %r2, 2; @%p1 bra LAST;\n"
      "st.global.b32 [%rd2], 7;" +
      first + "bra END;\nMIDDLE: " + middle + "bra END;\nLAST: " + last + "ld.global.b32 %r9, [%rd2];\nEND:"};
  p.shape = {{3, 1, 1}, {32, 1, 1}, 0};
  p.data.resize(64);
  return p;
}
TEST(FenceOrder, ReleasesCarryWhatAFenceKnew) {
  const std::string first = "fence.sc.gpu; st.release.gpu.global.b32 [%rd2+32], 1;",
                    take = "\nM: ld.acquire.gpu.global.b32 %r6, [%rd2+32]; setp.eq.u32 %p2, %r6, 0; @%p2 bra M;",
                    pass = "st.relaxed.gpu.global.b32 [%rd2+64], 1;",
                    wait = "\nL: ld.relaxed.gpu.global.b32 %r6, [%rd2+64]; setp.eq.u32 %p2, %r6, 0; @%p2 bra L;",
                    fence = "fence.sc.gpu;";
  const auto plain = [](ThreadProgram p) {
    p.portable = false;
    return fault_of(std::move(p));
  };
  under_every_schedule([&] {
    EXPECT_EQ(relay(first, take + pass, wait + fence).run()[64], 7u);
    EXPECT_THAT(plain(relay("st.release.gpu.global.b32 [%rd2+32], 1;", take + pass, wait + fence)), HasSubstr("race"));
    EXPECT_THAT(plain(relay(first, take + pass, wait)), HasSubstr("race"));
  });
}
TEST(FenceOrder, AReadOfALaterWriteIsEnough) {
  // The middle block overwrites the flag, without a fence: its write comes behind the first one's.
  const std::string first = "fence.sc.gpu; st.relaxed.gpu.global.b32 [%rd2+32], 1;",
                    take = "\nM: ld.relaxed.gpu.global.b32 %r6, [%rd2+32]; setp.eq.u32 %p2, %r6, 0; @%p2 bra M;",
                    over = "st.relaxed.gpu.global.b32 [%rd2+32], 2;",
                    wait = "\nL: ld.relaxed.gpu.global.b32 %r6, [%rd2+32]; setp.ne.u32 %p2, %r6, 2; @%p2 bra L;";
  under_every_schedule([&] { EXPECT_EQ(relay(first, take + over, wait + "fence.sc.gpu;").run()[64], 7u); });
}

/// One block of four warps: 0 writes a tile, 1 sets a flag in shared memory, 2 waits for it, 3 reads the tile.
ThreadProgram in_shared_memory(const std::string& before, const std::string& after) {
  ThreadProgram p{
      ".shared .align 16 .b8 tile[128]; .shared .align 4 .b32 flag; mov.u32 %r4, tile; mov.u32 %r6, flag; and.b32 %r5, "
      "%r1, 31; shl.b32 %r3, %r5, 2; add.u32 %r4, %r4, %r3; setp.eq.u32 %p5, %r1, 0; @%p5 st.shared.b32 [%r6], 0; "
      "bar.sync 0; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2; setp.eq.u32 %p3, %r2, 3; "
      "@%p1 bra SET; @%p2 bra WAIT; @%p3 bra READ;\n"
      "add.u32 %r7, %r5, 5; st.shared.b32 [%r4], %r7;" +
      before +
      "bar.sync 1, 64; bra END;\nSET: bar.sync 1, 64; st.volatile.shared.b32 [%r6], 1; bra END;\n"
      "WAIT: ld.volatile.shared.b32 %r8, [%r6]; setp.eq.u32 %p4, %r8, 0; @%p4 bra WAIT; bar.sync 2, 64; bra END;\n"
      "READ: bar.sync 2, 64;" +
      after + "ld.shared.b32 %r9, [%r4];\nEND:"};
  p.shape = {{1, 1, 1}, {128, 1, 1}, 0};
  return p;
}
TEST(FenceOrder, HoldsForFlagsInSharedMemory) {
  const std::string sc = "membar.gl;", weaker = "fence.acq_rel.gpu;";
  under_every_schedule([&] {
    const std::vector<U32> got = in_shared_memory(sc, sc).run();
    for (U32 l = 0; l < 32; ++l) EXPECT_EQ(got[96 + l], l + 5);
    for (const auto& [before, after] :
         {std::pair{sc, std::string()}, {std::string(), sc}, {sc, weaker}, {weaker, sc}}) {
      ThreadProgram p = in_shared_memory(before, after);
      p.portable = false;
      EXPECT_THAT(fault_of(p), HasSubstr("race on shared memory")) << before << " … " << after;
    }
  });
}

TEST(FenceOrder, OneWayFencesDoNotOrderTheOtherWay) {
  const auto with = [](const std::string& before, const std::string& after) {
    const std::string set = "st.relaxed.gpu.global.b32 [%rd2+64], 1;",
                      wait = "\nL: ld.relaxed.gpu.global.b32 %r6, [%rd2+64]; setp.eq.u32 %p2, %r6, 0; @%p2 bra L;";
    ThreadProgram p = relay(before + set, "", wait + after);
    p.target = "sm_90";
    p.version = "8.6";
    return p;
  };
  EXPECT_EQ(with("fence.release.gpu;", "fence.acquire.gpu;").run()[64], 7u);
  for (const auto& [before, after] :
       {std::pair{"fence.acquire.gpu;", "fence.acquire.gpu;"}, {"fence.release.gpu;", "fence.release.gpu;"}}) {
    ThreadProgram p = with(before, after);
    p.portable = false;
    EXPECT_THAT(fault_of(p), HasSubstr("race on global memory")) << before << after;
  }
}

}  // namespace
}  // namespace kiln::test

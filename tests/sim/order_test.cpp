// Planted faults of order: each is found with its kind, and its corrected twin gives no report.
#include <gmock/gmock.h>

#include <numeric>

#include "runtime/sim/shadow.h"
#include "tests/sim/thread_program.h"
#include "tests/support/knob.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using U32 = std::uint32_t;
using Kinds = std::vector<FindingKind>;

constexpr Shape kTwoWarps{{1, 1, 1}, {64, 1, 1}, 0};
constexpr Shape kTwoBlocks{{2, 1, 1}, {32, 1, 1}, 0};
constexpr Shape kPair{{2, 1, 1}, {32, 1, 1}, 0, {2, 1, 1}};

/// What a run of the body finds; `data` has 64 words, counted from 100.
std::vector<Finding> findings_of(const std::string& body, const Shape& shape, const std::string& target = "sm_90a") {
  const std::string ptx = thread_program(body, target);
  expect_assembles(ptx, target);
  const Device device = Device::simulator(target);
  std::vector<U32> words(64);
  std::iota(words.begin(), words.end(), 100);
  Buffer<U32> out(device, std::size_t{shape.grid[0]} * shape.block[0]), data(device, words.size());
  out.fill_bytes(0);
  data.upload(words);
  try {
    run(device, ptx, "k", shape, Params().add(out).add(data));
  } catch (const DeviceError&) {
  }
  return device.findings();
}
Kinds kinds_of(const std::string& body, const Shape& shape) {
  Kinds kinds;
  for (const Finding& f : findings_of(body, shape)) kinds.push_back(f.kind);
  return kinds;
}
/// `faulty` has findings, all of them of this kind; `right` has none.
void expect_found(FindingKind kind, const std::string& faulty, const std::string& right, const Shape& shape) {
  const Kinds found = kinds_of(faulty, shape);
  EXPECT_THAT(found, ::testing::Not(IsEmpty())) << faulty;
  for (const FindingKind k : found) EXPECT_EQ(k, kind) << name(k) << ": " << faulty;
  for (const Finding& f : findings_of(right, shape)) ADD_FAILURE() << f.message;
}

/// %r2: the thread's word of `tile`, which holds 0; %r3: the word of the same lane of the other warp. %p1: warp 0.
const std::string kTile =
    ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; xor.b32 %r3, %r2, 128; add.u32 %r2, "
    "%r2, %r4; add.u32 %r3, %r3, %r4; setp.lt.u32 %p1, %r1, 32; mov.u32 %r5, 0; st.shared.b32 [%r2], %r5; bar.sync "
    "0;\n";

TEST(SharedOrder, NamedBarriersOrderThoseThatMeetThere) {
  const std::string write = kTile + "@!%p1 bra READ; st.shared.b32 [%r2], %r18;", read = "ld.shared.b32 %r9, [%r3];";
  expect_found(FindingKind::Race, write + "bar.sync 1, 32; bra END;\nREAD: bar.sync 2, 32;" + read + "\nEND:",
               write + "bar.sync 1, 64; bra END;\nREAD: bar.sync 1, 64;" + read + "\nEND:", kTwoWarps);
}
TEST(SharedOrder, ArrivingIsEnoughForAWriterOnly) {
  const std::string write = kTile + "@!%p1 bra READ;", read = "\nREAD: bar.sync 1, 64; ld.shared.b32 %r9, [%r3];\nEND:";
  expect_found(FindingKind::Race,
               write + "bar.arrive 1, 64; add.u32 %r5, %r18, 7; st.shared.b32 [%r2], %r5; bra END;" + read,
               write + "add.u32 %r5, %r18, 7; st.shared.b32 [%r2], %r5; bar.arrive 1, 64; bra END;" + read, kTwoWarps);
}
TEST(SharedOrder, AFlagNeedsReleaseAndAcquire) {
  const std::string begin = kTile +
                            ".shared .align 4 .b32 flag; mov.u32 %r6, flag; @%p1 st.shared.b32 [%r6], 0; "
                            "bar.sync 0; @!%p1 bra READ; add.u32 %r5, %r18, 7; st.shared.b32 [%r2], %r5; "
                            "bar.warp.sync -1; mov.u32 %r7, 1;",
                    read = " bra END;\nREAD: ", loop = " setp.eq.u32 %p2, %r8, 0; @%p2 bra READ;",
                    end = "ld.shared.b32 %r9, [%r3];\nEND:";
  const auto with = [&](const char* store, const char* load, const char* behind = "") {
    return begin + store + read + load + loop + behind + end;
  };
  const char *relaxed = "st.relaxed.cta.shared.b32 [%r6], %r7;", *look = "ld.relaxed.cta.shared.b32 %r8, [%r6];";
  const std::string right = with("st.release.cta.shared.b32 [%r6], %r7;", "ld.acquire.cta.shared.b32 %r8, [%r6];");
  expect_found(FindingKind::Race, with(relaxed, look), right, kTwoWarps);
  expect_found(FindingKind::Race, with("fence.acq_rel.cta; st.relaxed.cta.shared.b32 [%r6], %r7;", look),
               with("fence.acq_rel.cta; st.relaxed.cta.shared.b32 [%r6], %r7;", look, "fence.acq_rel.cta;"), kTwoWarps);
  expect_found(
      FindingKind::Race, with("membar.cta; st.volatile.shared.b32 [%r6], %r7;", look),
      with("membar.cta; st.volatile.shared.b32 [%r6], %r7;", "ld.volatile.shared.b32 %r8, [%r6];", "membar.cta;"),
      kTwoWarps);
}
TEST(SharedOrder, AtomicsHandOnWhatTheyRelease) {
  const std::string begin = kTile +
                            ".shared .align 4 .b32 flag; mov.u32 %r6, flag; @%p1 st.shared.b32 [%r6], 0; "
                            "bar.sync 0; @!%p1 bra READ; add.u32 %r5, %r18, 7; st.shared.b32 [%r2], %r5; ";
  const auto with = [&](const std::string& order) {
    return begin + "atom" + order + ".cta.shared.add.u32 %r8, [%r6], 1; bra END;\nREAD: atom" + order +
           ".cta.shared.add.u32 %r8, [%r6], 0; setp.lt.u32 %p2, %r8, 32; @%p2 bra READ; ld.shared.b32 %r9, "
           "[%r3];\nEND:";
  };
  expect_found(FindingKind::Race, with(".relaxed"), with(".acq_rel"), kTwoWarps);
}
TEST(SharedOrder, OtherBlocksMeetAtTheClustersBarrier) {
  const std::string meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
  const std::string begin =
                        kTile +
                        "mov.u32 %r7, %cluster_ctarank; xor.b32 %r8, %r7, 1; mapa.shared::cluster.u32 %r6, %r2, %r8;" +
                        meet,
                    send = "add.u32 %r5, %r18, 7; st.shared::cluster.b32 [%r6], %r5;",
                    read = "ld.shared.b32 %r9, [%r2];" + meet;
  expect_found(FindingKind::Race, begin + send + read, begin + send + meet + read, kPair);
  const std::string relaxed = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n";
  expect_found(FindingKind::Race, begin + send + relaxed + read,
               begin + send + "fence.acq_rel.cluster;" + relaxed + read, kPair);
}
TEST(SharedOrder, ScopesMustHoldBothThreads) {
  const std::string meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
  const auto with = [&](const std::string& scope) {
    return kTile + meet + "mapa.shared::cluster.u32 %r6, %r4, 0; red.relaxed." + scope +
           ".shared::cluster.add.u32 [%r6], 1;" + meet;
  };
  expect_found(FindingKind::Race, with("cta"), with("cluster"), kPair);
}

TEST(AsyncOrder, CopiesOfThreadsAreAwaitedBeforeTheBarrier) {
  const std::string copy = kTile +
                           "and.b32 %r7, %r1, 31; mul.wide.u32 %rd3, %r7, 4; add.s64 %rd3, %rd2, %rd3; "
                           "cp.async.ca.shared.global [%r2], [%rd3], 4; cp.async.commit_group;";
  const std::string wait = "cp.async.wait_group 0;", read = "ld.shared.b32 %r9, [%r3];";
  expect_found(FindingKind::Race, copy + "bar.sync 0;" + read + wait, copy + wait + "bar.sync 0;" + read, kTwoWarps);
}
/// Thread 0 stores 128 bytes of shared memory, which warp 0 wrote, to `data`.
const std::string kStore =
    "setp.ne.u32 %p2, %r1, 0; @%p2 bra END; cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r4], 128; "
    "cp.async.bulk.commit_group;";
TEST(AsyncOrder, TheAsyncProxySeesWhatItsWriterFenced) {
  const std::string write = kTile + "@%p1 st.shared.b32 [%r2], %r18;", wait = "cp.async.bulk.wait_group 0;\nEND:";
  const std::string fence = "fence.proxy.async.shared::cta;", meet = "bar.sync 0;";
  expect_found(FindingKind::Race, write + meet + kStore + wait, write + fence + meet + kStore + wait, kTwoWarps);
  // A fence of the one that issues the copy does not do for other warps.
  const std::string late = kTile + "@!%p1 st.shared.b32 [%r3], %r18;" + meet + fence + kStore + wait;
  expect_found(FindingKind::Race, late, kTile + "@!%p1 st.shared.b32 [%r3], %r18;" + fence + meet + kStore + wait,
               kTwoWarps);
}
TEST(AsyncOrder, SourcesAreReusedBehindTheWaitForReads) {
  const std::string begin = kTile + "st.shared.b32 [%r2], %r18; fence.proxy.async.shared::cta; bar.sync 0;" + kStore;
  const std::string wait = "cp.async.bulk.wait_group.read 0;", reuse = "st.shared.b32 [%r4], 999;",
                    end = "cp.async.bulk.wait_group 0;\nEND:";
  expect_found(FindingKind::Race, begin + reuse + end, begin + wait + reuse + end, kTwoWarps);
}

/// %rd5: the word of `data` that both blocks or warps use; %p1: block 0.
const std::string kWord =
    "setp.eq.u32 %p3, %r1, 0; mov.u32 %r7, %ctaid.x; setp.eq.u32 %p1, %r7, 0; mov.u64 %rd5, %rd2;\n";

TEST(GlobalOrder, BlocksMayNotReadWhatOthersWrite) {
  const std::string write = kWord + "@%p1 st.global.b32 [%rd5], %r18;", read = "@!%p1 ld.global.b32 %r9, ";
  expect_found(FindingKind::Race, write + read + "[%rd5];", write + read + "[%rd5+4];", kTwoBlocks);
}
TEST(GlobalOrder, BlocksMayWriteTheSameOnly) {
  expect_found(FindingKind::Race, kWord + "@%p3 st.global.b32 [%rd5], %r7;", kWord + "@%p3 st.global.b32 [%rd5], 5;",
               kTwoBlocks);
}
TEST(GlobalOrder, BytesOfAWordAreApart) {
  EXPECT_THAT(
      kinds_of(kWord + "cvt.u64.u32 %rd6, %r7; add.s64 %rd5, %rd5, %rd6; st.global.b8 [%rd5], %r7;", kTwoBlocks),
      IsEmpty());
}
TEST(GlobalOrder, WarpsOfABlockNeedABarrier) {
  const std::string mine =
                        "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3; xor.b32 %r3, %r1, 32; mul.wide.u32 "
                        "%rd4, %r3, 4; add.s64 %rd4, %rd2, %rd4; st.global.b32 [%rd3], %r1;",
                    read = "ld.global.b32 %r9, [%rd4];";
  expect_found(FindingKind::Race, mine + read, mine + "bar.sync 0;" + read, kTwoWarps);
}
TEST(GlobalOrder, WhichOfTwoWarpsWritesLastIsLeftOpen) {
  EXPECT_THAT(kinds_of("st.global.b32 [%rd2], %r1;", kTwoWarps), IsEmpty());
}
TEST(GlobalOrder, AFlagBetweenBlocksNeedsReleaseAndAcquire) {
  const auto with = [](const std::string& store, const std::string& load) {
    return kWord + "@!%p3 bra END; @!%p1 bra READ; st.global.b32 [%rd5], 7;" + store +
           " [%rd5+4], 1; bra END;\nREAD: " + load +
           " %r8, [%rd5+4]; setp.ne.u32 %p2, %r8, 1; @%p2 bra READ; ld.global.b32 %r9, [%rd5];\nEND:";
  };
  const std::string right = with("st.release.gpu.global.b32", "ld.acquire.gpu.global.b32");
  expect_found(FindingKind::Race, with("st.relaxed.gpu.global.b32", "ld.relaxed.gpu.global.b32"), right, kTwoBlocks);
  expect_found(FindingKind::Race, with("st.release.gpu.global.b32", "ld.relaxed.gpu.global.b32"), right, kTwoBlocks);
  // The scope of the block does not hold the other one.
  expect_found(FindingKind::Race, with("st.release.gpu.global.b32", "ld.acquire.cta.global.b32"), right, kTwoBlocks);
}
TEST(GlobalOrder, AFlagSpeaksForThoseItsWriterMet) {
  // Warp 1 of block 0 writes; warp 0 sets the flag, with a barrier before or without.
  const auto with = [](const std::string& meet) {
    return kWord + "@!%p1 bra READ; setp.eq.u32 %p4, %r1, 32; @%p4 st.global.b32 [%rd5], 7;" + meet +
           "@%p3 st.release.gpu.global.b32 [%rd5+4], 1; bra END;\nREAD: @!%p3 bra END;\nLOOP: "
           "ld.acquire.gpu.global.b32 "
           "%r8, [%rd5+4]; setp.ne.u32 %p2, %r8, 1; @%p2 bra LOOP; ld.global.b32 %r9, [%rd5];\nEND:";
  };
  expect_found(FindingKind::Race, with(""), with("bar.sync 0;"), {{2, 1, 1}, {64, 1, 1}, 0});
}
TEST(GlobalOrder, TheLastBlockReadsWhatAllCounted) {
  // Each block writes its word and counts; the last one sums.
  const auto with = [](const std::string& order) {
    return kWord +
           "@!%p3 bra END; mul.wide.u32 %rd6, %r7, 4; add.s64 %rd6, %rd6, %rd2; st.global.b32 [%rd6], %r7; atom." +
           order +
           ".gpu.global.add.u32 %r8, [%rd2+128], 1; setp.ne.u32 %p2, %r8, 139; @%p2 bra END; ld.global.b32 %r9, "
           "[%rd2]; ld.global.b32 %r9, [%rd2+100];\nEND:";
  };
  expect_found(FindingKind::Race, with("relaxed"), with("acq_rel"), {{8, 1, 1}, {32, 1, 1}, 0});
}
TEST(GlobalOrder, AtomicsDoNotRaceWithEachOther) {
  expect_found(FindingKind::Race, kWord + "@%p1 red.global.add.u32 [%rd5], 1; @!%p1 ld.global.b32 %r9, [%rd5];",
               kWord + "red.global.add.u32 [%rd5], 1;", kTwoBlocks);
}

TEST(Uninitialised, SharedMemoryIsWrittenBeforeItIsRead) {
  const std::string tile =
      ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4;";
  expect_found(FindingKind::Uninitialised, tile + "st.shared.b16 [%r2], 1; ld.shared.b32 %r9, [%r2];",
               tile + "st.shared.b16 [%r2], 1; st.shared.b16 [%r2+2], 1; ld.shared.b32 %r9, [%r2];", {});
  EXPECT_THAT(findings_of(tile + "st.shared.b16 [%r2], 1; ld.shared.b32 %r9, [%r2];", {}).at(0).message,
              AllOf(HasSubstr("uninitialised shared load of 4 bytes at 0x400: nobody wrote 0x402"),
                    HasSubstr("(block (0, 0, 0), warp 0, lane 0, thread (0, 0, 0); ptx line")));
}
TEST(Uninitialised, GlobalMemoryIsWrittenBeforeItIsRead) {
  const std::string ptx =
      thread_program("mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, %rd2; ld.global.b32 %r9, [%rd3];");
  const Device device = Device::simulator("sm_90a");
  Buffer<U32> out(device, 32), data(device, 32);
  const auto launch = [&] { run(device, ptx, "k", {}, Params().add(out).add(data)); };
  data.upload(std::vector<U32>(31, 1));
  EXPECT_THAT(launch, ::testing::ThrowsMessage<DeviceError>(AllOf(HasSubstr("uninitialised global load of 4 bytes at"),
                                                                  HasSubstr("nobody wrote byte 124 of the allocation"),
                                                                  HasSubstr("lane 31"))));
  data.fill_bytes(0);
  EXPECT_NO_THROW(launch());
  // What a kernel wrote is written.
  Buffer<U32> next(device, 32);
  EXPECT_NO_THROW(run(device, ptx, "k", {}, Params().add(next).add(out)));
}
TEST(Uninitialised, ABlockDoesNotSeeWhatAnEarlierOneLeft) {
  const std::string body =
      ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; mov.u32 %r7, %ctaid.x; setp.eq.u32 %p1, "
      "%r7, 0; @%p1 st.shared.b32 [%r4], 1; ld.shared.b32 %r9, [%r4];";
  const std::vector<Finding> found = findings_of(body, kTwoBlocks);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].block, (std::array<U32, 3>{1, 0, 0}));
}

TEST(Reports, TheRunGoesOnAndNamesTheFirstAndTheNumberOfOthers) {
  const std::string body = kTile +
                           "st.shared.b32 [%r2], %r1; ld.shared.b32 %r9, [%r3]; ld.shared.b32 %r8, [%r3];"
                           "bar.sync 0; st.shared.b32 [%r2], %r1; add.u32 %r9, %r9, 1000;";
  const Device device = Device::simulator("sm_90a");
  Buffer<U32> out(device, 64), data(device, 1);
  EXPECT_THAT([&] { run(device, thread_program(body), "k", kTwoWarps, Params().add(out).add(data)); },
              ::testing::ThrowsMessage<DeviceError>(
                  AllOf(HasSubstr("race on shared memory with warp 1, lane 0 at ptx line"), HasSubstr("st.shared.b32"),
                        HasSubstr("more findings in this launch"))));
  EXPECT_EQ(out.to_vector()[31], 1063u);  // the last to arrive at a barrier goes on first
  const std::vector<Finding> found = device.findings();
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0].kind, FindingKind::Race);
  EXPECT_EQ(found[0].kernel, "k");
  EXPECT_EQ(found[0].warp, 0u);
  EXPECT_GT(found[0].ptx_line, 10u);
  device.clear_findings();
  EXPECT_THAT(device.findings(), IsEmpty());
}
TEST(Reports, ChecksMayBeTurnedOff) {
  const std::string body =
      ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; xor.b32 %r3, %r2, 128; add.u32 "
      "%r2, %r2, %r4; add.u32 %r3, %r3, %r4; st.shared.b32 [%r2], %r1; ld.shared.b32 %r9, [%r3];";
  const auto found = [&](const char* checks) {
    const Knob knob("KILN_SIM_CHECK", checks);
    return kinds_of(body, kTwoWarps);
  };
  EXPECT_THAT(found("none"), IsEmpty());
  EXPECT_THAT(found("uninit"), ElementsAre(FindingKind::Uninitialised));
  EXPECT_THAT(found("races"), ::testing::Each(FindingKind::Race));
  EXPECT_THAT(found("races"), ::testing::Not(IsEmpty()));
  EXPECT_THAT(found("all"), ::testing::Contains(FindingKind::Uninitialised));
  EXPECT_THAT([&] { found("everything"); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("KILN_SIM_CHECK names 'everything'")));
}
TEST(Reports, ShadowsHaveALimit) {
  class Limit {
   public:
    explicit Limit(std::uint64_t bytes) : before_(rt::sim::limit_shadows(bytes)) {}
    ~Limit() { rt::sim::limit_shadows(before_); }

   private:
    std::uint64_t before_;
  };
  const std::string body = "mul.wide.u32 %rd3, %r18, 4; add.s64 %rd3, %rd2, %rd3; st.global.b32 [%rd3], %r18;";
  const Device device = Device::simulator("sm_90a");
  constexpr U32 kBlocks = 4096;
  Buffer<U32> out(device, 32 * kBlocks), data(device, 32 * kBlocks);
  const auto launch = [&] {
    run(device, thread_program(body), "k", {{kBlocks, 1, 1}, {32, 1, 1}, 0}, Params().add(out).add(data));
  };
  {
    const Limit small(1 << 16);
    EXPECT_THAT(launch,
                ::testing::ThrowsMessage<DeviceError>(AllOf(
                    HasSubstr("more than 65536 bytes; KILN_SIM_CHECK=uninit,registers"), HasSubstr("st.global.b32"))));
    EXPECT_EQ(device.findings().back().kind, FindingKind::Limit);
  }
  device.clear_findings();
  EXPECT_NO_THROW(launch());
  EXPECT_THAT(device.findings(), IsEmpty());
}
TEST(Reports, AnEndlessLoopIsFound) {
  const Knob steps("KILN_SIM_STEPS", "10000");
  const std::vector<Finding> found = findings_of("LOOP: add.u32 %r9, %r9, 1; bra LOOP;", {{3, 1, 1}, {64, 1, 1}, 0});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::Limit);
  EXPECT_THAT(found[0].message, AllOf(HasSubstr("an endless loop: the warp has executed 10000 instructions"),
                                      HasSubstr("block (0, 0, 0), warp 0"), HasSubstr("bra LOOP")));
}
TEST(Reports, FindingsAreTheSameForAnyNumberOfHostThreads) {
  // Blocks read what their neighbours write, write one word together and race inside.
  const std::string body =
      kTile +
      "and.b32 %r7, %r18, 63; mul.wide.u32 %rd3, %r7, 4; add.s64 %rd3, %rd3, %rd2; ld.global.b32 %r9, [%rd3]; "
      "xor.b32 %r7, %r7, 33; mul.wide.u32 %rd4, %r7, 4; add.s64 %rd4, %rd4, %rd2; setp.gt.u32 %p2, %r18, 900; @%p2 "
      "st.global.b32 [%rd4], %r18; mov.u32 %r7, %ctaid.x; setp.eq.u32 %p3, %r7, 17; @%p3 st.shared.b32 [%r2], %r1; "
      "@%p3 ld.shared.b32 %r8, [%r3]; ld.global.b32 %r8, [%rd2+252]; st.global.b32 [%rd2+252], %r18;";
  const auto run_with = [&](const char* threads) {
    const Knob knob("KILN_SIM_THREADS", threads);
    std::vector<std::string> out;
    for (const Finding& f : findings_of(body, {{40, 1, 1}, {64, 1, 1}, 0})) {
      // Addresses differ from run to run.
      const std::size_t address = f.message.find(" of the allocation");
      out.push_back(f.message.substr(0, address) + f.ptx + std::to_string(f.block[0]) + " " + std::to_string(f.warp) +
                    " " + std::to_string(f.lane));
    }
    return out;
  };
  const auto one = run_with("1");
  EXPECT_GE(one.size(), 4u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(run_with("2"), one);
    EXPECT_EQ(run_with("5"), one);
  }
}

}  // namespace
}  // namespace kiln::test

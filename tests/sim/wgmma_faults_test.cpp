// Faults in the use of wgmma that the simulator must name: descriptors, registers, warps that differ.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

/// 64 rows of 128 bytes of zeros in shared memory; %rd5 describes them as A, %rd6 as B, in %f0…%f3 are zeros.
const std::string kReady = R"(
 .shared .align 1024 .b8 tile[8192];
 .reg .b64 %bits;
 mov.u32 %r3, tile;
 shl.b32 %r4, %r1, 6;
 add.u32 %r4, %r4, %r3;
 mov.u32 %r5, 0;
 mov.u32 %r6, 0;
zero:
 st.shared.b32 [%r4], %r5;
 add.u32 %r4, %r4, 4;
 add.u32 %r6, %r6, 1;
 setp.lt.u32 %p1, %r6, 16;
 @%p1 bra zero;
 fence.proxy.async;
 bar.sync 0;
 shr.u32 %r4, %r3, 4;
 cvt.u64.u32 %rd5, %r4;
 mov.b64 %bits, 0x4000004000010000;
 or.b64 %rd5, %rd5, %bits;
 mov.b64 %rd6, %rd5;
 mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
 mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000; mov.f32 %f6, 0f00000000; mov.f32 %f7, 0f00000000;
 mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;
 setp.eq.u32 %p2, %r1, %r1;
)";
const std::string kFence = " wgmma.fence.sync.aligned;\n";
const std::string kIssue =
    " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd5, %rd6, %p2, 1, 1, 0, 0;\n";
const std::string kIssueWithA =
    " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r10,%r11,%r12,%r13}, %rd6, %p2, 1, 1, "
    "0;\n";
const std::string kCommit = " wgmma.commit_group.sync.aligned;\n";
const std::string kWait = " wgmma.wait_group.sync.aligned 0;\n";
const std::string kUse = " add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f3; add.f32 %f0, %f0, %f2; mov.b32 %r9, %f0;\n";

ThreadProgram program(const std::string& body, std::uint32_t threads = 128) {
  ThreadProgram p{kReady + body};
  p.shape.block = {threads, 1, 1};
  return p;
}
std::string fault_in(const std::string& body, std::uint32_t threads = 128) { return fault_of(program(body, threads)); }

void expect_in(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(WgmmaFaults, NoneInACorrectKernel) {
  expect_each(program(kFence + kIssue + kIssue + kCommit + kWait + kUse), [](std::uint32_t) { return 0u; });
  // Registers of A may be read while they are multiplied.
  expect_each(program(kFence + kIssueWithA + kCommit + " mov.b32 %r9, %r10;\n" + kWait + kUse),
              [](std::uint32_t) { return 0u; });
}

TEST(WgmmaFaults, AccumulatorReadBeforeTheWait) {
  const std::string e = fault_in(kFence + kIssue + kCommit + kUse + kWait);
  expect_in(e,
            "register %f0 is read while it is an accumulator of a wgmma that was not waited for, issued at ptx line ");
  expect_in(e, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}");
  expect_in(e, "add.f32 %f0, %f0, %f1");
}

TEST(WgmmaFaults, AccumulatorOfAGroupThatIsNotCommittedYet) {
  expect_in(fault_in(kFence + kIssue + kWait + kUse), "register %f0 is read while it is an accumulator");
}

TEST(WgmmaFaults, TheWaitLeavesOneGroup) {
  const std::string one = " wgmma.wait_group.sync.aligned 1;\n";
  expect_in(fault_in(kFence + kIssue + kCommit + one + kUse), "register %f0 is read while");
  expect_each(
      program(kFence + kIssue + kCommit +
              " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f4,%f5,%f6,%f7}, %rd5, %rd6, %p2, 1, 1, 0, 0;\n" +
              kCommit + one + kUse + kWait),
      [](std::uint32_t) { return 0u; });
}

TEST(WgmmaFaults, AccumulatorWrittenBeforeTheWait) {
  expect_in(fault_in(kFence + kIssue + kCommit + " mov.f32 %f3, 0f3F800000;\n" + kWait + kUse),
            "register %f3 is written while it is an accumulator");
}

TEST(WgmmaFaults, AWrittenBeforeTheWait) {
  expect_in(fault_in(kFence + kIssueWithA + kCommit + " mov.u32 %r12, 1;\n" + kWait + kUse),
            "register %r12 is written while it is part of A of a wgmma that was not waited for");
}

TEST(WgmmaFaults, AccumulatorsOfAnotherShape) {
  expect_in(
      fault_in(kFence + kIssue +
               " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f0,%f2,%f3}, %rd5, %rd6, %p2, 1, 1, 0, 0;\n" +
               kCommit + kWait + kUse),
      "is an accumulator of a wgmma of another shape or use that was not waited for");
}

TEST(WgmmaFaults, NoFenceAtAll) {
  expect_in(fault_in(kIssue + kCommit + kWait + kUse), "no wgmma.fence before the first wgmma of the warp");
}

TEST(WgmmaFaults, NoFenceSinceTheAccumulatorWasWritten) {
  const std::string e =
      fault_in(kFence + kIssue + kCommit + kWait + " mul.f32 %f2, %f2, %f1;\n" + kIssue + kCommit + kWait + kUse);
  expect_in(e, "no wgmma.fence since register %f2, an accumulator, was written at ptx line ");
  expect_in(e, "mul.f32 %f2, %f2, %f1");
}

TEST(WgmmaFaults, NoFenceSinceAWasWritten) {
  expect_in(fault_in(kFence + " mov.u32 %r11, 7;\n" + kIssueWithA + kCommit + kWait + kUse),
            "no wgmma.fence since register %r11, part of A, was written at");
}

TEST(WgmmaFaults, Descriptors) {
  const auto with = [](const std::string& change) {
    return fault_in(change + kFence + kIssue + kCommit + kWait + kUse);
  };
  expect_in(with(" or.b64 %rd5, %rd5, 0x0000400000000000;\n"), "of A: bits 46 to 48 are 0x1; they must be zero");
  expect_in(with(" or.b64 %rd6, %rd6, 0x8000;\n"), "of B: bits 14 to 15 are 0x2; they must be zero");
  expect_in(with(" add.s64 %rd6, %rd6, 7;\n"), "lies 112 bytes into a row of 128 bytes, in which 32 must fit");
  expect_in(with(" mov.b64 %bits, 0x00003FFF00000000; or.b64 %rd5, %rd5, %bits;\n"),
            "stride byte offset 262128 reach from");
  expect_in(with(" mov.b64 %rd6, 0x0002000800010040;\n"), "the base offset is 1; without swizzle it must be 0");
  expect_in(with(" cvt.u64.u32 %rd7, %r1; and.b64 %rd7, %rd7, 2; add.s64 %rd6, %rd6, %rd7;\n"), "in lane 0 it is");
  expect_in(with(" and.b32 %r7, %r1, 32; shr.u32 %r7, %r7, 4; cvt.u64.u32 %rd7, %r7; add.s64 %rd6, %rd6, %rd7;\n"),
            "in another warp of the warpgroup 0x");
}

TEST(WgmmaFaults, ScaleDMustBeUniform) {
  expect_in(fault_in(" setp.lt.u32 %p2, %r1, 16;\n" + kFence + kIssue + kCommit + kWait + kUse),
            "scale-d is true in lanes 0x0000ffff only");
}

TEST(WgmmaFaults, WarpsOfAWarpgroup) {
  expect_in(fault_in(kFence + kIssue + kCommit + kWait + kUse, 96),
            "an instruction of a warpgroup, of which the block has 3 of 4 warps");
  // One warp goes another way.
  // One does not come. It is told from what the others do, or when they are, whatever happens first.
  for (const char* who : {"lt.u32 %p3, %r1, 32", "ge.u32 %p3, %r1, 96"}) {
    const std::string e = fault_in(fmt::format(" setp.{};\n @%p3 bra past;\n", who) + kFence + kIssue + kCommit +
                                   kWait + "past:\n" + kUse);
    const bool told = e.find("but another warp of its warpgroup executed") != std::string::npos ||
                      e.find("all warps of a warpgroup must execute this, but warp") != std::string::npos;
    EXPECT_TRUE(told) << e;
  }
}

TEST(WgmmaFaults, FormsThatDoNotExistAreNamed) {
  const auto refusal = [](const std::string& instruction, const std::string& target = "sm_90a") {
    try {
      (void)load(Device::simulator(target == "sm_90" ? "sm_90a" : target), thread_program(instruction, target), "k");
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  expect_in(refusal("wgmma.fence.sync.aligned;", "sm_90"), "needs sm_90a, the module is for sm_90");
  expect_in(refusal("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%r0,%r1,%r2,%r3}, %rd0, %rd1, %p0;"),
            "matrices of b1 elements are not simulated");
  expect_in(refusal("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %r9, 0, %p0, "
                    "1, 1, 0, 0;"),
            "sparse matrices are not simulated");
  expect_in(refusal("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1}, %rd0, %rd1, %p0, 1, 1, 0, 0;"),
            "D must be a vector of 4 registers");
  expect_in(
      refusal("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %p0, 2, 1, 0, 0;"),
      "a scale of 2; it must be 1 or -1");
  expect_in(refusal("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r0,%r1,%r2,%r3}, %rd0, %rd1, %p0;"),
            "this form is not supported");
  expect_in(
      refusal(
          "wgmma.mma_async.sync.aligned.m64n8k16.weird.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd0, %rd1, %p0, 1, 1, 0, 0;"),
      "has no modifier '.weird' here");
}

}  // namespace
}  // namespace kiln::test

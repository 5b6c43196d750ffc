// What a wrong program is told: kind of fault, address, allocation, block, thread, and the user's line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/sim/ptx_fixture.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// c[t] = a[t] as f32 from line 12 of kernel.cpp, with `access` in place of the load.
std::string kernel(const std::string& body) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.file 1 "kernel.cpp"
.visible .entry k(.param .u64 a, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %rs<4>;
  .shared .align 16 .b8 tile[256];
  .loc 1 10 0
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [c];
  ld.param.u32 %r7, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  .loc 1 12 7
)" + body +
         "\n  ret;\n}\n";
}

class Faults : public ::testing::Test {
 protected:
  /// Message of the fault of one block of `threads`.
  std::string message(const std::string& body, std::uint32_t threads = 32, std::uint32_t n = 0) {
    try {
      run(device_, kernel(body), "k", {{2, 1, 1}, {threads, 1, 1}, 0}, Params().add(a_).add(c_).add(n));
    } catch (const DeviceError& e) {
      return e.what();
    }
    return "no fault";
  }
  Device device_ = Device::simulator("sm_80");
  Buffer<float> a_{device_, 31}, c_{device_, 64};
};

TEST_F(Faults, LoadPastTheEndNamesLineThreadAndAllocation) {
  EXPECT_THAT(message("ld.global.b32 %r2, [%rd4];"),
              AllOf(HasSubstr("kernel.cpp:12: kernel k: out-of-bounds global load of 4 bytes at 0x"),
                    HasSubstr("0 bytes past the end of the allocation"), HasSubstr("of 124 bytes"),
                    HasSubstr("(block (0, 0, 0), warp 0, lane 31, thread (31, 0, 0); ptx line"),
                    HasSubstr("ld.global.b32 %r2, [%rd4]")));
}
TEST_F(Faults, AccessThatCrossesTheEndIsOutOfBounds) {
  EXPECT_THAT(message("and.b64 %rd6, %rd1, -16; ld.global.v4.b32 {%r2,%r3,%r4,%r5}, [%rd6+112];"),
              AllOf(HasSubstr("out-of-bounds global load of 16 bytes"),
                    HasSubstr("12 bytes before the end of the allocation")));
}
TEST_F(Faults, StoreBeforeTheStartIsOutOfBounds) {
  EXPECT_THAT(message("st.global.b32 [%rd2+-4], %r1;"),
              AllOf(HasSubstr("out-of-bounds global store"), HasSubstr("4 bytes before the start of the allocation")));
}
TEST_F(Faults, MisalignedAddressIsNamed) {
  EXPECT_THAT(message("ld.global.v2.b32 {%r2,%r3}, [%rd2+4];"),
              AllOf(HasSubstr("misaligned global load of 8 bytes"), HasSubstr("no multiple of 8")));
}
TEST_F(Faults, NullPointerIsNamed) {
  EXPECT_THAT(message("mov.b64 %rd6, 0; ld.global.b32 %r2, [%rd6];"),
              HasSubstr("null global load of 4 bytes at 0x0, the null address"));
}
TEST_F(Faults, FreedMemoryIsNamed) {
  const DevicePtr stale = Buffer<float>(device_, 100).ptr();
  EXPECT_THAT(message("mov.b64 %rd6, " + std::to_string(stale + 8) + "; ld.global.b32 %r2, [%rd6];"),
              AllOf(HasSubstr("use-after-free global load"), HasSubstr("8 bytes into the freed allocation"),
                    HasSubstr("of 400 bytes")));
}
TEST_F(Faults, FreedMemoryIsNamedWhateverReachesIt) {
  const Device hopper = Device::simulator("sm_90a");
  const auto message_of = [&](const std::string& access) {
    const DevicePtr stale = Buffer<float>(hopper, 1024).ptr();
    Buffer<float> again(hopper, 512);  // new memory is not given out in place of what was just freed
    std::string ptx = kernel(".shared .align 8 .b8 bar[8]; mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u64 %rd6, " +
                             std::to_string(stale) + "; setp.ne.u32 %p1, %r1, 0; @%p1 ret;\n" + access);
    ptx.replace(ptx.find("sm_80"), 5, "sm_90a");
    Buffer<float> a(hopper, 32), c(hopper, 32);
    try {
      run(hopper, ptx, "k", {{1, 1, 1}, {32, 1, 1}, 0}, Params().add(a).add(c).add(0));
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string("no fault");
  };
  const std::string fill = "mov.u32 %r4, 0; st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4}; ";
  const std::vector<std::string> accesses{
      "st.global.b32 [%rd6], %r1;",
      "atom.global.add.u32 %r4, [%rd6+16], 1;",
      "red.global.add.f32 [%rd6+4092], 0f3F800000;",
      "ld.b32 %r4, [%rd6];",
      "cp.async.ca.shared.global [%r2], [%rd6+8], 4; cp.async.wait_all;",
      "mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; "
      "mbarrier.arrive.expect_tx.shared::cta.b64 %rd7, [%r3], 64; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd6], 64, [%r3];\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;",
      fill +
          "fence.proxy.async.shared::cta; cp.async.bulk.global.shared::cta.bulk_group [%rd6], [%r2], 16; "
          "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"};
  for (const std::string& access : accesses)
    EXPECT_THAT(message_of(access), AllOf(HasSubstr("use-after-free global"), HasSubstr("of 4096 bytes"))) << access;
}
TEST_F(Faults, SharedMemoryHasBounds) {
  EXPECT_THAT(message("mov.b32 %r2, tile; shl.b32 %r3, %r1, 3; add.s32 %r2, %r2, %r3; st.shared.b64 [%r2+8], %rd1;"),
              AllOf(HasSubstr("out-of-bounds shared store of 8 bytes"), HasSubstr("it has 256 bytes"),
                    HasSubstr("thread (31, 0, 0)")));
}
TEST_F(Faults, SharedAddressZeroIsNoAddress) {
  EXPECT_THAT(message("mov.b32 %r2, 0; ld.shared.b32 %r3, [%r2];"), HasSubstr("out-of-bounds shared load"));
}
TEST_F(Faults, GenericAddressesAreCheckedInTheirSpace) {
  EXPECT_THAT(message("mov.b64 %rd6, tile; cvta.shared.u64 %rd6, %rd6; ld.b32 %r2, [%rd6+256];"),
              HasSubstr("out-of-bounds shared load"));
}
TEST_F(Faults, LowestFaultingBlockIsReportedForAnyThreadCount) {
  const std::string body = "mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 ld.global.b32 %r3, [%rd1+4096];";
  EXPECT_THAT(message(body), HasSubstr("(block (1, 0, 0)"));
}
TEST_F(Faults, TrapIsAFault) { EXPECT_THAT(message("trap;"), HasSubstr("the program executed trap")); }
TEST_F(Faults, DeviceIsUsableAfterwards) {
  EXPECT_NE(message("trap;"), "no fault");
  EXPECT_EQ(message("st.global.b32 [%rd5], %r1;"), "no fault");
  EXPECT_EQ(std::bit_cast<std::uint32_t>(c_.to_vector()[5]), 5u);
}

TEST_F(Faults, BarrierInDivergentCodeIsReported) {
  EXPECT_THAT(message("setp.lt.u32 %p1, %r1, 16; @%p1 bra L1; bra L2; L1: bar.sync 0; bra L3; L2: bar.sync 0; L3:"),
              HasSubstr("barrier 0 reached by 16 of the 32 threads of the warp"));
  EXPECT_THAT(message("setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;"),
              HasSubstr("barrier 0 reached by 16 of the 32 threads of the warp"));
  EXPECT_THAT(message("setp.lt.u32 %p1, %r1, 16; @%p1 bra L1; bra L2; L1: bar.sync 0; L2:"),
              HasSubstr("a warp of which 16 threads have exited"));
}
TEST_F(Faults, LanesAtDifferentBarriersAreReported) {
  EXPECT_THAT(
      message("setp.lt.u32 %p1, %r1, 16; @%p1 bra L1; bra L2; L1: barrier.sync 1; bra L3; L2: barrier.sync 0; L3:"),
      HasSubstr("reached by 16 of the 32 threads of the warp"));
}
TEST_F(Faults, BarrierWithExitedLanesIsReported) {
  EXPECT_THAT(message("setp.lt.u32 %p1, %r1, 16; @%p1 exit; bar.sync 0;"),
              HasSubstr("a warp of which 16 threads have exited"));
}
TEST_F(Faults, BarrierThatAnExitedWarpMissesIsReported) {
  EXPECT_THAT(message("setp.lt.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;", 64), HasSubstr("but warp 0 has exited"));
}
TEST_F(Faults, WaitingForWarpsThatExitIsADeadlock) {
  EXPECT_THAT(message("setp.ge.u32 %p1, %r1, 32; @%p1 exit; bar.sync 1, 64;", 64),
              AllOf(HasSubstr("deadlock: warp 0 waits at barrier 1 (32 of 64 threads arrived), warp 1 has exited"),
                    HasSubstr("kernel.cpp:12")));
}
TEST_F(Faults, ShuffleWithDivergedMembersIsReported) {
  EXPECT_THAT(message("setp.lt.u32 %p1, %r1, 16; @%p1 shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;"),
              HasSubstr("member mask 0xffffffff names lanes 0xffff0000 that have diverged"));
}

// --- refused when loaded ---

std::string load_message(const Device& d, const std::string& ptx, const std::string& entry = "k",
                         const Shape& shape = {}) {
  try {
    load(d, ptx, entry, shape);
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "no error";
}

TEST_F(Faults, UnknownInstructionIsNamedWithLineAndKernel) {
  EXPECT_THAT(load_message(device_, kernel("tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 3;")),
              AllOf(HasSubstr("kernel.cpp:12: kernel k: unsupported instruction: 'tensormap' is not known"),
                    HasSubstr("(ptx line 18: tensormap.replace")));
}
TEST_F(Faults, UnknownModifierIsNamed) {
  EXPECT_THAT(load_message(device_, kernel("add.s32.fancy %r2, %r1, %r1;")),
              HasSubstr("add has no modifier '.fancy' here"));
}
TEST_F(Faults, OffsetBeyond32BitsIsNoPtx) {
  EXPECT_THAT(load_message(device_, kernel("ld.global.b32 %r2, [%rd1+2147483648];")),
              HasSubstr("the offset 2147483648 of an address needs more than 32 bits"));
}
TEST_F(Faults, MinusInAnAddressIsNoPtx) {
  EXPECT_THAT(load_message(device_, kernel("ld.global.b32 %r2, [%rd1-4];")), HasSubstr("an address takes no '-'"));
  EXPECT_EQ(load_message(device_, kernel("ld.global.b32 %r2, [%rd1+-4];")), "no error");
}
TEST_F(Faults, RegisterOfWrongWidthIsNamed) {
  EXPECT_THAT(load_message(device_, kernel("add.s32 %r2, %rd1, %r1;")),
              HasSubstr("register %rd1 has 64 bits, the operation needs 32"));
}
TEST_F(Faults, SpecialRegisterNotKnownIsNamed) {
  EXPECT_THAT(load_message(device_, kernel("mov.u32 %r2, %pm0;")),
              HasSubstr("the special register %pm0 is not supported"));
}
TEST_F(Faults, MissingEntryListsTheOthers) {
  EXPECT_THAT(load_message(device_, kernel(""), "other"), HasSubstr("no entry other; its entries: k"));
}

TEST_F(Faults, NewerTargetIsRefusedWithBothNames) {
  std::string ptx = kernel("");
  ptx.replace(ptx.find("sm_80"), 5, "sm_90a");
  EXPECT_THAT(load_message(device_, ptx), HasSubstr("compiled for sm_90a, the device is sm_80"));
  EXPECT_EQ(load_message(Device::simulator("sm_90a"), ptx), "no error");
  EXPECT_THAT(load_message(Device::simulator("sm_100a"), ptx), HasSubstr("compiled for sm_90a, the device is sm_100a"));
  EXPECT_EQ(load_message(Device::simulator("sm_120a"), kernel("")), "no error");
}
TEST_F(Faults, NewerPtxVersionIsRefused) {
  std::string ptx = kernel("");
  ptx.replace(ptx.find("8.0"), 3, "9.7");
  EXPECT_THAT(load_message(device_, ptx), HasSubstr("PTX 9.7, the simulator takes up to 9.0"));
}
TEST_F(Faults, UnknownTargetListsTheKnown) {
  EXPECT_THAT([] { Device::simulator("sm_42"); },
              ::testing::ThrowsMessage<DeviceError>(AllOf(HasSubstr("unknown target 'sm_42'"), HasSubstr("sm_90"))));
}

TEST_F(Faults, BlockShapeMustBeThePtxs) {
  std::string ptx = kernel("");
  ptx.replace(ptx.find("\n{"), 1, "\n.reqntid 128, 1, 1\n");
  EXPECT_THAT(load_message(device_, ptx, "k", {{1, 1, 1}, {64, 1, 1}, 0}),
              HasSubstr("blocks are (64, 1, 1), its PTX requires (128, 1, 1)"));
  EXPECT_THAT(load_message(device_, kernel(""), "k", {{1, 1, 1}, {2048, 1, 1}, 0}),
              HasSubstr("a block of 2048 threads"));
}
TEST_F(Faults, ParameterBytesMustMatch) {
  EXPECT_THAT([&] { run(device_, kernel(""), "k", {}, Params().add(a_)); },
              ::testing::ThrowsMessage<DeviceError>(HasSubstr("takes 20 bytes of parameters, the launch gives 8")));
}
TEST_F(Faults, TooMuchSharedMemoryGivesBothNumbers) {
  EXPECT_THAT(
      [&] {
        run(device_, kernel(""), "k", {{1, 1, 1}, {32, 1, 1}, 200000}, Params().add(a_).add(c_).add(0));
      },
      ::testing::ThrowsMessage<DeviceError>(
          AllOf(HasSubstr("needs 200256 bytes of shared memory"), HasSubstr("has 166912"))));
}

struct BadText {
  const char *name, *text, *message;
};
class ParserErrors : public ::testing::TestWithParam<BadText> {};
TEST_P(ParserErrors, NameLineAndCause) {
  const std::string got = load_message(Device::simulator("sm_80"), GetParam().text);
  EXPECT_THAT(got, HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    Ptx, ParserErrors,
    ::testing::Values(
        BadText{"NoVersion", ".target sm_80\n.address_size 64\n", "the text has no .version"},
        BadText{"Character", ".version 8.0\n.target sm_80\n`\n", "ptx:3: unexpected character '`'"},
        BadText{"String", ".version 8.0\n.file 1 \"abc\n", "ptx:2: string is never closed"},
        BadText{"Comment", ".version 8.0 /* abc\n", "ptx:1: comment is never closed"},
        BadText{"Directive", ".version 8.0\n.target sm_80\n.frob 3\n",
                "ptx:3: expected a directive, function or variable, found '.frob'"},
        BadText{"Address", ".version 8.0\n.target sm_80\n.address_size 32\n", "ptx:3: .address_size is 32, must be 64"},
        BadText{"Body", ".version 8.0\n.target sm_80\n.entry k()\n{\n ret;\n", "the body of k is never closed"},
        BadText{"Semicolon", ".version 8.0\n.target sm_80\n.entry k()\n{\n ret\n}\n",
                "ptx:6: expected an operand, found '}'"},
        BadText{"Guard", ".version 8.0\n.target sm_80\n.entry k()\n{\n @%p1 ret;\n}\n",
                "ptx:5: unknown predicate '%p1'"},
        BadText{"Label", ".version 8.0\n.target sm_80\n.entry k()\n{\n bra L1;\n}\n", "unknown label L1"},
        BadText{"LabelTwice", ".version 8.0\n.target sm_80\n.entry k()\n{\nL1:\nL1:\n ret;\n}\n",
                "ptx:6: label L1 is defined twice"},
        BadText{"Register", ".version 8.0\n.target sm_80\n.entry k()\n{\n .reg .b32 %r<2>;\n mov.b32 %r1, %r2;\n}\n",
                "the special register %r2 is not supported"},
        BadText{"Number", ".version 8.0\n.target sm_80\n.entry k()\n{\n .reg .b32 %r<2>;\n mov.b32 %r1, 12x;\n}\n",
                "ptx:6: '12x' is not an integer"}),
    [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace kiln::test

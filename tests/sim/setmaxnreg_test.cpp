// Registers that warps hand to each other.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

/// Warpgroup 0 executes `first`, warpgroup 1 `second`, of a kernel that starts with 128 registers a thread.
std::string kernel(const std::string& first, const std::string& second, const std::string& directives) {
  return ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n" + directives + R"(
{
  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 128;
  @%p1 bra first;
)" + second +
         "  bra end;\nfirst:\n" + first + R"(
end:
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd2, %rd1, %rd2;
  st.global.b32 [%rd2], %r1;
  ret;
}
)";
}

std::string outcome(const std::string& first, const std::string& second,
                    const std::string& directives = ".maxntid 256, 1, 1\n.minnctapersm 2", bool assembles = true) {
  const std::string ptx = kernel(first, second, directives);
  if (assembles) expect_assembles(ptx, "sm_90a");
  const Device device = Device::simulator("sm_90a");
  Buffer<std::uint32_t> out(device, 256);
  try {
    test::run(device, ptx, "k", {.block = {256, 1, 1}}, Params().add(out));
  } catch (const DeviceError& e) {
    return e.what();
  }
  const auto got = out.to_vector();
  for (std::uint32_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i);
  return "done";
}
std::string inc(int n) { return fmt::format("  setmaxnreg.inc.sync.aligned.u32 {};\n", n); }
std::string dec(int n) { return fmt::format("  setmaxnreg.dec.sync.aligned.u32 {};\n", n); }

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(SetMaxNReg, WhatOneGivesBackTheOtherGets) {
  EXPECT_EQ(outcome(dec(40), inc(216)), "done");
  EXPECT_EQ(outcome(inc(216), dec(40)), "done");  // waits for it
}

TEST(SetMaxNReg, MoreThanThePoolHasIsADeadlock) {
  const std::string e = outcome(dec(40), inc(224));
  expect_in(e, "deadlock: ");
  expect_in(e, "waits for 224 registers a thread (it has 128, the block's pool ");
}

TEST(SetMaxNReg, TheStartIsThatOfTheDirectives) {
  EXPECT_EQ(outcome(dec(24), inc(168), ".maxnreg 96"), "done");
  expect_in(outcome(dec(24), inc(176), ".maxnreg 96"), "it has 96");
  EXPECT_EQ(outcome("", inc(256), ""), "done");  // no count to start from: not in effect
}

/// NVIDIA's assembler refuses the first.
/// NVIDIA's assembler refuses the first.
TEST(SetMaxNReg, TheWrongWay) {
  const char* const k128 = ".maxntid 256, 1, 1\n.minnctapersm 2";
  expect_in(outcome(dec(136), "", k128, false), "the warp has 128 registers a thread, less than 136");
  expect_in(outcome(inc(120), "", k128, false), "the warp has 128 registers a thread, more than 120");
}

TEST(SetMaxNReg, OperandsAreChecked) {
  const auto refusal = [](const std::string& i) {
    try {
      (void)load(Device::simulator("sm_90a"), thread_program(i), "k");
    } catch (const DeviceError& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  expect_in(refusal(dec(20)), "20 registers; must be a multiple of 8 from 24 to 256");
  expect_in(refusal(inc(264)), "264 registers; must be a multiple of 8 from 24 to 256");
}

}  // namespace
}  // namespace kiln::test

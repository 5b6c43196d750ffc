// Bytes of shared memory that nobody wrote may be loaded and dropped. It is a finding when an instruction needs what
// comes of them, whatever way it took there, and none when nothing does.
#include <gmock/gmock.h>

#include <set>

#include "tests/sim/thread_program.h"
#include "tests/support/knob.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using U32 = std::uint32_t;

/// tile: 512 bytes that nobody wrote; %r2: the address of the thread's word there, %r3: what it holds; %r5: 5.
const std::string kUnwritten =
    ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4; mov.u32 %r5, 5;\n"
    "ld.shared.b32 %r3, [%r2];\n";
/// … whose upper half was written.
const std::string kHalf =
    ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4; mov.u32 %r5, 5;\n"
    "mov.b16 %rs1, 0x4000; st.shared.b16 [%r2+2], %rs1; ld.shared.b32 %r3, [%r2];\n";

/// NVIDIA's assembler takes all programs, where it is installed: they are kernels of one text at the end.
class Unknown : public ::testing::Test {
 public:
  static void note(const std::string& program) { programs().insert(program); }

 protected:
  static void TearDownTestSuite() {
    std::string text;
    int number = 0;
    for (const std::string& p : programs()) {
      const std::size_t kernel = p.find(".visible .entry k(");
      if (text.empty()) text = p.substr(0, kernel);
      text +=
          ".visible .entry k" + std::to_string(number++) + p.substr(kernel + std::string(".visible .entry k").size());
    }
    expect_assembles(text, "sm_90a");
    programs().clear();
  }

 private:
  static std::set<std::string>& programs() {
    static std::set<std::string> all;
    return all;
  }
};

/// The findings of a run, after which thread t's %r9 is in global memory.
std::vector<Finding> findings_of(const std::string& body, const Shape& shape = {}) {
  const std::string ptx = thread_program(body);
  Unknown::note(ptx);
  const Device device = Device::simulator("sm_90a");
  Buffer<U32> out(device, std::size_t{shape.grid[0]} * shape.block[0]), data(device, 64);
  out.fill_bytes(0);
  data.fill_bytes(0);
  try {
    run(device, ptx, "k", shape, Params().add(out).add(data));
  } catch (const DeviceError&) {
  }
  return device.findings();
}

void expect_needed(const std::string& body, const std::string& by, const Shape& shape = {}) {
  const std::vector<Finding> found = findings_of(body, shape);
  ASSERT_EQ(found.size(), 1u) << body;
  EXPECT_EQ(found[0].kind, FindingKind::Uninitialised) << body;
  EXPECT_THAT(found[0].message,
              AllOf(HasSubstr("uninitialised shared load of"), HasSubstr("is needed at"), HasSubstr(": " + by)))
      << body;
  EXPECT_THAT(found[0].ptx, HasSubstr("ld"));  // the load is what is named first
}
void expect_dropped(const std::string& body, const Shape& shape = {}) {
  for (const Finding& f : findings_of(body, shape)) ADD_FAILURE() << f.message << "\n" << body;
}

const char* const kStored = "st.global.b32 [%rd15], %r9";

TEST_F(Unknown, ValuesMayBeDropped) {
  expect_dropped(kUnwritten);
  expect_dropped(kUnwritten + "add.u32 %r3, %r3, 1; mov.u32 %r3, 7; mov.u32 %r9, %r3;");
  expect_dropped(kUnwritten + "setp.lt.u32 %p1, %r1, 40; selp.u32 %r9, %r1, %r3, %p1;");
  expect_dropped(kUnwritten + "and.b32 %r9, %r3, 0;");
  expect_dropped(kUnwritten + "setp.gt.u32 %p1, %r1, 40; @%p1 st.global.b32 [%rd2], %r3;");
  expect_dropped(kUnwritten +
                 "setp.gt.u32 %p1, %r1, 40; setp.lt.s32 %p2, %r3, 9; and.pred %p2, %p2, %p1; @%p2 mov.u32 "
                 "%r9, 1;");
  expect_dropped(kUnwritten +
                 "setp.gt.u32 %p1, %r1, 40; setp.lt.and.s32 %p2, %r3, 9, %p1; @%p2 bra END; mov.u32 %r9, 1;"
                 "\nEND:");
}

TEST_F(Unknown, WhatAnEffectNeedsIsAFinding) {
  expect_needed(kUnwritten + "mov.u32 %r9, %r3;", kStored);
  expect_needed(kUnwritten +
                    "and.b32 %r3, %r3, 252; cvt.u64.u32 %rd3, %r3; mov.u64 %rd4, 0; and.b64 %rd3, %rd3, 4; "
                    "add.s64 %rd3, %rd3, %rd2; ld.global.b32 %r6, [%rd3];",
                "ld.global.b32 %r6, [%rd3]");
  expect_needed(kUnwritten + "setp.lt.s32 %p1, %r3, 9; @%p1 bra END; mov.u32 %r9, 1;\nEND:", "@%p1 bra END");
  expect_needed(kUnwritten + "setp.lt.s32 %p1, %r3, 9; @%p1 st.global.b32 [%rd2], %r5;",
                "@%p1 st.global.b32 [%rd2], %r5");
  expect_needed(kUnwritten + "red.global.add.u32 [%rd2], %r3;", "red.global.add.u32 [%rd2], %r3");
  expect_needed(kUnwritten + "setp.lt.s32 %p1, %r3, 9; bar.red.or.pred %p2, 0, %p1;", "bar.red.or.pred %p2, 0, %p1");
}

TEST_F(Unknown, EveryComputationPassesThemOn) {
  for (const char* step : {"add.u32 %r9, %r3, 1;",
                           "mul.lo.u32 %r9, %r3, %r5;",
                           "xor.b32 %r9, %r3, 1;",
                           "shr.u32 %r9, %r3, 31;",
                           "and.b32 %r9, %r3, 1;",
                           "popc.b32 %r9, %r3;",
                           "clz.b32 %r9, %r3;",
                           "min.s32 %r9, %r3, %r5;",
                           "min.u32 %r9, %r3, %r5;",
                           "max.u32 %r9, %r3, %r5;",
                           "max.s32 %r9, %r3, %r5;",
                           "div.s32 %r9, %r5, %r3;",
                           "div.s32 %r9, %r3, %r5;",
                           "rem.u32 %r9, %r3, %r5;",
                           "prmt.b32 %r9, %r3, %r5, 0x4442;",
                           "mov.b32 %f1, %r3; cvt.rzi.s32.f32 %r9, %f1;",
                           "mov.b32 %f1, %r3; min.f32 %f1, %f1, 0f40000000; mov.b32 %r9, %f1;",
                           "mov.b32 %f1, %r3; max.f32 %f1, %f1, 0f40000000; mov.b32 %r9, %f1;",
                           "mov.b32 %f1, %r3; add.sat.f32 %f1, %f1, 0f00000000; mov.b32 %r9, %f1;",
                           "mov.b32 %f1, %r3; fma.rn.f32 %f1, %f1, 0f00000000, 0f3F800000; mov.b32 %r9, %f1;",
                           "mov.b32 %f1, %r3; set.lt.u32.f32 %r9, %f1, 0f3F800000;",
                           "setp.eq.u32 %p1, %r3, 77; selp.u32 %r9, 1, 2, %p1;",
                           "setp.eq.u32 %p1, %r3, 77; @%p1 mov.u32 %r9, 1;",
                           "setp.ne.u32 %p1, %r3, 77; not.pred %p2, %p1; selp.u32 %r9, 1, 2, %p2;",
                           "popc.b32 %r9, %r3; and.b32 %r9, %r9, 31;",
                           "xor.b32 %r6, %r2, 64; ld.shared.b32 %r6, [%r6]; sub.u32 %r9, %r3, %r6;",
                           "xor.b32 %r6, %r2, 64; ld.shared.b32 %r6, [%r6]; xor.b32 %r9, %r3, %r6;",
                           "ld.shared.b32 %r6, [%r2+128]; st.shared.b32 [%r2+256], %r6; ld.shared.b32 %r6, [%r2+256]; "
                           "sub.u32 %r9, %r3, %r6;",
                           "shr.s32 %r6, %r3, 31; popc.b32 %r6, %r6; popc.b32 %r9, %r3; xor.b32 %r9, %r9, %r6; and.b32 "
                           "%r9, %r9, 31;",
                           "add.cc.u32 %r6, %r3, 1; addc.u32 %r9, %r5, 0;",
                           "mov.b32 {%rs2, %rs3}, %r3; mov.b32 %r9, {%rs3, %rs1};",
                           "cvt.u64.u32 %rd3, %r3; shr.u64 %rd3, %rd3, 8; cvt.u32.u64 %r9, %rd3;"})
    expect_needed(kUnwritten + "mov.b16 %rs1, 1;" + step, kStored);
}

TEST_F(Unknown, WhatDoesNotDependOnThemIsNone) {
  // The same bytes, by whatever way they came: twice from memory, through another word, from another lane.
  for (const char* step : {"sub.u32 %r9, %r3, %r3;", "ld.shared.b32 %r6, [%r2]; sub.u32 %r9, %r3, %r6;",
                           "st.shared.b32 [%r2+256], %r3; ld.shared.b32 %r6, [%r2+256]; sub.u32 %r9, %r3, %r6;",
                           "st.shared.b32 [%r2+256], %r3; st.shared.b32 [%r2+384], %r3; ld.shared.b32 %r6, [%r2+256]; "
                           "ld.shared.b32 %r7, [%r2+384]; xor.b32 %r9, %r6, %r7;",
                           "and.b32 %r9, %r3, 0;", "mul.lo.u32 %r9, %r3, 0;", "or.b32 %r9, %r3, -1;",
                           "popc.b32 %r6, %r3; not.b32 %r7, %r3; popc.b32 %r7, %r7; add.u32 %r9, %r6, %r7;"})
    EXPECT_EQ(findings_of(kUnwritten + step).size(), 0u) << step;
}

TEST_F(Unknown, PartsOfARegisterAreApart) {
  expect_dropped(kHalf + "shr.u32 %r9, %r3, 16;");
  expect_needed(kHalf + "shr.u32 %r9, %r3, 15;", kStored);
  expect_dropped(kHalf + "mov.b32 {%rs2, %rs3}, %r3; cvt.u32.u16 %r9, %rs3;");
  expect_dropped(kHalf + "mov.b32 %r6, 0x40004000; max.f16x2 %r7, %r3, %r6; shr.u32 %r9, %r7, 16;");
  expect_needed(kHalf + "mov.b32 %r6, 0x40004000; max.f16x2 %r7, %r3, %r6; and.b32 %r9, %r7, 255;", kStored);
  expect_dropped(kHalf + "mov.b32 %r6, 0x40004000; setp.lt.f16x2 %p1|%p2, %r3, %r6; selp.u32 %r9, 1, 2, %p2;");
  expect_needed(kHalf + "mov.b32 %r6, 0x40004000; setp.lt.f16x2 %p1|%p2, %r3, %r6; selp.u32 %r9, 1, 2, %p1;", kStored);
  expect_dropped(kHalf + "ld.shared.v2.b16 {%rs2, %rs3}, [%r2]; cvt.u32.u16 %r9, %rs3;");
  expect_dropped(kHalf + "ld.shared.u8 %r9, [%r2+3];");
  expect_needed(kHalf + "ld.shared.s8 %r9, [%r2]; shr.u32 %r9, %r9, 31;", kStored);
}

TEST_F(Unknown, MemoryPassesThemOn) {
  const std::string again = "add.u32 %r3, %r3, 1; st.shared.b32 [%r2+256], %r3; ";
  expect_dropped(kUnwritten + again + "ld.shared.b32 %r6, [%r2+256];");
  expect_needed(kUnwritten + again + "ld.shared.b32 %r9, [%r2+256];", kStored);
  // The load that began it is named, not the one in between.
  EXPECT_THAT(findings_of(kUnwritten + again + "ld.shared.b32 %r9, [%r2+256];").at(0).ptx,
              HasSubstr("ld.shared.b32 %r3, [%r2]"));
  expect_dropped(kUnwritten + again + "st.shared.b32 [%r2+256], %r5; ld.shared.b32 %r9, [%r2+256];");
  const std::string local = ".local .align 4 .b8 own[8]; mov.u64 %rd5, own; ";
  expect_needed(kUnwritten + local + "st.local.b32 [%rd5], %r3; mov.u32 %r3, 0; ld.local.b32 %r9, [%rd5];", kStored);
  expect_dropped(kUnwritten + local + "st.local.b32 [%rd5], %r3; st.local.b32 [%rd5], %r5; ld.local.b32 %r9, [%rd5];");
  expect_dropped(kHalf + local + "st.local.b32 [%rd5], %r3; ld.local.u16 %rs2, [%rd5+2]; cvt.u32.u16 %r9, %rs2;");
  // Through another warp.
  expect_needed(kUnwritten +
                    "xor.b32 %r6, %r2, 128; st.shared.b32 [%r6+256], %r3; bar.sync 0; ld.shared.b32 %r9, "
                    "[%r2+256];",
                kStored, {{1, 1, 1}, {64, 1, 1}, 0});
}

TEST_F(Unknown, LanesPassThemOn) {
  // Lane 31's word alone is not written.
  const std::string one =
      ".shared .align 16 .b8 tile[128]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %r4; setp.lt.u32 "
      "%p3, "
      "%r1, 31; @%p3 st.shared.b32 [%r2], %r1; ld.shared.b32 %r3, [%r2];\n";
  expect_dropped(one + "shfl.sync.idx.b32 %r9, %r3, 30, 31, -1;");
  expect_needed(one + "shfl.sync.idx.b32 %r9, %r3, 31, 31, -1;", kStored);
  expect_dropped(one + "@%p3 mov.u32 %r9, %r3;");
  expect_needed(one + "redux.sync.min.s32 %r9, %r3, -1;", kStored);
  expect_needed(one + "redux.sync.add.s32 %r9, %r3, -1;", kStored);
  expect_needed(one + "setp.lt.u32 %p1, %r3, 64; vote.sync.ballot.b32 %r9, %p1, -1;", kStored);
  expect_dropped(one + "setp.lt.u32 %p1, %r3, 64; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r9, 1, 2, %p2;");
  expect_needed(one + "setp.lt.u32 %p1, %r3, 64; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 2, %p2;", kStored);
  expect_needed(one + "@%p3 mov.u32 %r3, -1; shfl.sync.idx.b32 %r9, %r1, 0, 31, %r3;",
                "shfl.sync.idx.b32 %r9, %r1, 0, 31, %r3");
}

TEST_F(Unknown, MatricesPassThemOnByRowsAndColumns) {
  // Row 3 of the matrix is not written; A's row 3 gives that of the product alone.
  const std::string rows =
      ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r2, %r1, 4; add.u32 %r2, %r2, %r4; setp.ne.u32 "
      "%p3, "
      "%r1, 3; mov.b32 %r6, 0x3C003C00; @%p3 st.shared.v4.b32 [%r2], {%r6, %r6, %r6, %r6}; bar.warp.sync -1;\n"
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r2];\n"
      "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, {%r6, %r6}, "
      "{%f1, "
      "%f2, %f3, %f4};\n";
  const std::string row_of_lane = "shr.u32 %r7, %r1, 2; setp.ne.u32 %p4, %r7, 3;";
  expect_needed(rows + "mov.b32 %r9, %f1;", kStored);
  expect_dropped(rows + "mov.b32 %r9, %f3;");
  expect_dropped(rows + row_of_lane + "@%p4 mov.b32 %r9, %f1;");
  // What stmatrix stores of it is unknown in the same row.
  const std::string stored = rows +
                             "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r2], {%r10, %r11, %r12, %r13}; bar.warp.sync "
                             "-1; ld.shared.b32 %r8, [%r2+4];";
  expect_needed(stored + "mov.u32 %r9, %r8;", kStored);
  expect_dropped(stored + "@%p3 mov.u32 %r9, %r8;");
}

TEST_F(Unknown, EachUseIsReportedOnce) {
  const std::string loop =
      kUnwritten +
      "mov.u32 %r6, 0;\nLOOP: ld.shared.b32 %r7, [%r2]; st.global.b32 [%rd2], %r7; add.u32 %r6, %r6, 1; "
      "setp.lt.u32 %p1, %r6, 9; @%p1 bra LOOP;";
  EXPECT_EQ(findings_of(loop, {{1, 1, 1}, {32, 1, 1}, 0}).size(), 1u);
  // After a report the value counts as known, so that what follows from it is not reported again.
  EXPECT_EQ(
      findings_of(kUnwritten + "setp.lt.s32 %p1, %r3, 9; @%p1 st.global.b32 [%rd2], %r5; @%p1 bra END;\nEND:").size(),
      1u);
}

TEST_F(Unknown, CountsAreThoseOfOneRun) {
  ThreadProgram p{kUnwritten + "add.u32 %r3, %r3, 1; st.shared.b32 [%r2+256], %r3; ld.shared.b32 %r6, [%r2+256];"};
  p.run();
  const Counters with = p.counters;
  const Knob off("KILN_SIM_CHECK", "none");
  p.run();
  EXPECT_EQ(with.shared_wavefronts, p.counters.shared_wavefronts);
  EXPECT_EQ(with.shared_accesses, p.counters.shared_accesses);
  EXPECT_EQ(with.instructions, p.counters.instructions);
}

}  // namespace
}  // namespace kiln::test

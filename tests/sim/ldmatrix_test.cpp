// Matrices of 16-bit elements between shared memory and registers.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/sim/thread_program.h"

namespace kiln::test {
namespace {

/// Shared memory of 32 rows of 16 bytes that lie 48 bytes apart; element e of row r is 16·r + e. Lane l's row address
/// is in %r2.
const std::string kFilled = R"(
  .shared .align 16 .b8 tile[1536];
  mov.u32 %r3, tile;
  mad.lo.u32 %r2, %r1, 48, %r3;
  shl.b32 %r4, %r1, 4;
  mov.u32 %r5, 0;
fill:
  add.u32 %r6, %r4, %r5;
  cvt.u16.u32 %rs1, %r6;
  mad.lo.u32 %r7, %r5, 2, %r2;
  st.shared.b16 [%r7], %rs1;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, 8;
  @%p1 bra fill;
  bar.sync 0;
)";
/// data[r·32 + lane] = register %r(10 + r)
std::string stored(int n) {
  std::string s = " mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3;\n";
  for (int r = 0; r < n; ++r) s += fmt::format(" st.global.b32 [%rd3+{}], %r{};\n", 128 * r, 10 + r);
  return s;
}

std::uint32_t two(std::uint32_t low, std::uint32_t high) { return high << 16 | low; }

/// The word of `lane` for the matrix whose rows are those of lanes 8·m … 8·m + 7.
std::uint32_t fragment_of(std::uint32_t m, std::uint32_t lane, bool trans) {
  const std::uint32_t g = lane / 4, t = lane % 4;
  const auto element = [=](std::uint32_t row, std::uint32_t column) { return 16 * (8 * m + row) + column; };
  return trans ? two(element(2 * t, g), element(2 * t + 1, g)) : two(element(g, 2 * t), element(g, 2 * t + 1));
}

TEST(LdMatrix, EveryCountWithAndWithoutTransposition) {
  for (const auto& [count, registers] :
       {std::pair{1, "{%r10}"}, std::pair{2, "{%r10,%r11}"}, std::pair{4, "{%r10,%r11,%r12,%r13}"}})
    for (const bool trans : {false, true}) {
      ThreadProgram p{kFilled +
                      fmt::format(" ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%r2];\n", count,
                                  trans ? ".trans" : "", registers) +
                      stored(count)};
      p.data.resize(static_cast<std::size_t>(32 * count));
      p.run();
      for (std::uint32_t i = 0; i < p.data.size(); ++i)
        ASSERT_EQ(p.data[i], fragment_of(i / 32, i % 32, trans)) << "x" << count << " " << trans << " word " << i;
    }
}

TEST(LdMatrix, GenericAddressesAndOffsets) {
  ThreadProgram p{kFilled +
                  " cvt.u64.u32 %rd4, %r2; cvta.shared.u64 %rd4, %rd4;\n"
                  " ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%rd4+384];\n" +
                  stored(1)};
  p.data.resize(32);
  p.run();
  for (std::uint32_t l = 0; l < 32; ++l) ASSERT_EQ(p.data[l], fragment_of(1, l, false));
}

TEST(LdMatrix, RowsMustBeAlignedAndInsideSharedMemory) {
  const auto fault = [](const std::string& address) {
    return fault_of({kFilled + address + " ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2];\n" + stored(1)});
  };
  EXPECT_NE(fault(" add.u32 %r2, %r2, 8;").find("misaligned shared load of 16 bytes"), std::string::npos);
  EXPECT_NE(fault(" add.u32 %r2, %r2, 1536;").find("out-of-bounds shared load"), std::string::npos);
  EXPECT_NE(fault_of({kFilled + " ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%rd2];\n" + stored(1),
                      "sm_90a",
                      {},
                      {},
                      std::vector<std::uint32_t>(64)})
                .find("the row is not in shared memory"),
            std::string::npos);
}

/// stmatrix writes what ldmatrix of the same form reads.
TEST(StMatrix, IsTheInverse) {
  for (const auto& [count, registers] :
       {std::pair{1, "{%r10}"}, std::pair{2, "{%r10,%r11}"}, std::pair{4, "{%r10,%r11,%r12,%r13}"}})
    for (const bool trans : {false, true}) {
      const std::string form = fmt::format("matrix.sync.aligned.m8n8.x{}{}.shared.b16", count, trans ? ".trans" : "");
      // Stored to rows in the reverse order of the lanes, then read element by element.
      ThreadProgram p{kFilled + " ld" + form + " " + registers + ", [%r2];\n bar.sync 0;\n" +
                      fmt::format(" xor.b32 %r5, %r1, {}; mad.lo.u32 %r5, %r5, 48, %r3;\n", 8 * count - 1) + " st" +
                      form + " [%r5], " + registers + ";\n bar.sync 0;\n ld.shared.u16 %r9, [%r2+6];\n"};
      const auto got = p.run();
      const auto rows = static_cast<std::uint32_t>(8 * count);
      for (std::uint32_t l = 0; l < rows; ++l) ASSERT_EQ(got[l], 16 * (rows - 1 - l) + 3) << form << " row " << l;
      for (std::uint32_t l = rows; l < 32; ++l) ASSERT_EQ(got[l], 16 * l + 3) << form << " row " << l;
    }
}

TEST(MovMatrix, Transposes) {
  expect_each({kFilled + " ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2];\n"
                         " movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r10;\n"},
              [](std::uint32_t l) { return fragment_of(0, l, true); });
}

}  // namespace
}  // namespace kiln::test

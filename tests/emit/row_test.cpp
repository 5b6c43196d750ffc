// The PTX of kernels that reduce rows: how much of what the hardware has a reduction takes.
#include "tests/emit/emit_fixture.h"
#include "tests/support/ptxas.h"

namespace kiln::test {
namespace {

/// y = x - max(x), then y / sum(y), of a row of `n` elements of `dtype` computed in `wide`.
std::string row_kernel(int n, const std::string& dtype, const std::string& wide, const std::string& first = "max") {
  const std::string tile = "tile<" + std::to_string(n) + "x", t = tile + wide + ">";
  const std::string reduce = " : " + wide + " {(%a : " + wide + ", %b : " + wide + ")\n %c = ";
  return kernel(
      "param \"x\" : ptr<const " + dtype + "> access=read align=16\nparam \"y\" : ptr<" + dtype +
          "> access=write align=16\n",
      "  %0 = param index=0 : ptr<const " + dtype + ">\n  %1 = param index=1 : ptr<" + dtype + ">\n" +
          "  %2 = arange start=0 end=" + std::to_string(n) + " : " + tile + "index>\n" + "  %3 = splat %0 : " + tile +
          "ptr<const " + dtype + ">>\n  %4 = ptr_add %3, %2 : " + tile + "ptr<const " + dtype +
          ">>\n  %5 = load %4 : " + tile + dtype + ">\n  %6 = cast %5 : " + t + "\n  %7 = reduce axis=0 %6" + reduce +
          first + " %a, %b : " + wide + "\n yield %c\n }\n  %8 = splat %7 : " + t + "\n  %9 = sub %6, %8 : " + t +
          "\n  %10 = reduce axis=0 %9 : " + wide + " {(%d : " + wide + ", %e : " + wide +
          ")\n %f = add %d, %e : " + wide + "\n yield %f\n }\n  %11 = splat %10 : " + t +
          "\n  %12 = mul %9, %11 : " + t + "\n  %13 = cast %12 : " + tile + dtype + ">\n  %14 = splat %1 : " + tile +
          "ptr<" + dtype + ">>\n  %15 = ptr_add %14, %2 : " + tile + "ptr<" + dtype + ">>\n  store %15, %13\n");
}

CompileOptions warps(int n) {
  CompileOptions o;
  o.num_warps = n;
  return o;
}

TEST(Row, TwoReductionsAreTenShufflesAndTwoBarriers) {
  const std::string ptx = ptx_of(row_kernel(4096, "bf16", "f32"), "sm_90a", warps(8));
  EXPECT_EQ(count(ptx, "shfl.sync.bfly.b32"), 10);
  EXPECT_EQ(count(ptx, "bar.sync"), 2);
  EXPECT_EQ(count(ptx, "st.shared"), 2);
  EXPECT_EQ(count(ptx, "ld.shared.v4.b32"), 4);
}

TEST(Row, OneWarpNeedsNoSharedMemory) {
  const rt::KernelImage image = image_of(row_kernel(1024, "bf16", "f32"), "sm_90a", warps(1));
  EXPECT_EQ(count(image.ptx, ".shared"), 0);
  EXPECT_EQ(image.recipe().smem_bytes, 0u);
}

TEST(Row, IntegersTakeTheWarpsOwnReduction) {
  const std::string ptx = ptx_of(row_kernel(512, "i32", "i32"), "sm_80", warps(1));
  EXPECT_EQ(count(ptx, "redux.sync.max.s32"), 1);
  EXPECT_EQ(count(ptx, "redux.sync.add.s32"), 1);
  EXPECT_EQ(count(ptx, "shfl"), 0);
}

TEST(Row, LongIntegersAreShuffledInHalves) {
  const std::string ptx = ptx_of(row_kernel(64, "i64", "i64"), "sm_90a", warps(1));
  EXPECT_EQ(count(ptx, "shfl.sync.bfly.b32"), 20);
}

TEST(Row, EveryAssemblerTakesItWithoutSpills) {
  const auto tool = ptxas();
  if (!tool) GTEST_SKIP() << "no ptxas in PATH or /usr/local/cuda/bin";
  CompileOptions capped = warps(16);
  capped.max_registers = 64;
  const std::pair<std::string, CompileOptions> rows[] = {{row_kernel(1024, "bf16", "f32"), {}},
                                                         {row_kernel(4096, "bf16", "f32"), {}},
                                                         {row_kernel(32768, "bf16", "f32"), capped},
                                                         {row_kernel(500, "i32", "i32"), {}},
                                                         {row_kernel(1000, "f64", "f64"), {}}};
  for (const std::string& arch : known_targets())
    for (const auto& [row, options] : rows) {
      const Assembly a = assemble(*tool, rt::capped_ptx(image_of(row, arch, options)), arch);
      EXPECT_TRUE(a.accepted) << arch << a.log;
      EXPECT_THAT(a.log, testing::HasSubstr(" 0 bytes spill stores, 0 bytes spill loads")) << arch;
    }
}

}  // namespace
}  // namespace kiln::test

#include "runtime/base/error.h"
#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;
using testing::HasSubstr;

/// A kernel that loads `inputs` tiles of n elements and stores one.
std::string pointwise(int inputs, int n, const std::string& dtype = "f32") {
  const std::string tile = "tile<" + std::to_string(n) + "x";
  std::string params = "param : ptr<" + dtype + "> access=write align=16\n", body;
  body += "%i = arange start=0 end=" + std::to_string(n) + " : " + tile + "index>\n%z = constant value=" + dtype +
          "(0) : " + dtype + "\n";
  body += "%s0 = splat %z : " + tile + dtype + ">\n";
  for (int k = 1; k <= inputs; ++k) {
    const std::string n_k = std::to_string(k);
    params += "param : ptr<const " + dtype + "> access=read align=16\n";
    body += "%p" + n_k + " = param index=" + n_k + " : ptr<const " + dtype + ">\n%q" + n_k + " = splat %p" + n_k +
            " : " + tile + "ptr<const " + dtype + ">>\n";
    body += "%r" + n_k + " = ptr_add %q" + n_k + ", %i : " + tile + "ptr<const " + dtype + ">>\n%l" + n_k +
            " = load %r" + n_k + " : " + tile + dtype + ">\n";
    body += "%s" + n_k + " = add %s" + std::to_string(k - 1) + ", %l" + n_k + " : " + tile + dtype + ">\n";
  }
  body += "%p = param index=0 : ptr<" + dtype + ">\n%q = splat %p : " + tile + "ptr<" + dtype +
          ">>\n%r = ptr_add %q, %i : " + tile + "ptr<" + dtype + ">>\n";
  return kernel(params, body + "store %r, %s" + std::to_string(inputs) + "\n");
}

std::string exec_line(const std::string& text, const CompileOptions& options = {}) {
  const std::string out = after({choose_exec}, text, options);
  const std::size_t at = out.find("exec ");
  return out.substr(at, out.find('\n', at) - at);
}

std::string error(const std::string& text, const CompileOptions& options) {
  try {
    (void)after({choose_exec}, text, options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(ChooseExec, AddOf1024FloatsIsOneVectorOn256Threads) {
  EXPECT_EQ(exec_line(pointwise(2, 1024)),
            "exec team=cta warps=8 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0");
}

TEST(ChooseExec, CopyOfHalvesIsOneVectorOn256Threads) {
  EXPECT_THAT(exec_line(pointwise(1, 2048, "bf16")), HasSubstr("warps=8 "));
}

/// A kernel that loads `inputs` rows of n bf16 of its own and one that all programs share, and reduces them.
std::string row(int inputs, int n) {
  const std::string t = "tile<" + std::to_string(n) + "x", width = std::to_string(n);
  std::string params = "param : ptr<const bf16> access=read align=16\n",
              body = "%i = arange start=0 end=" + width + " : " + t + "index>\n%w = param index=0 : ptr<const bf16>\n" +
                     "%ws = splat %w : " + t + "ptr<const bf16>>\n%wp = ptr_add %ws, %i : " + t +
                     "ptr<const bf16>>\n%s0 = load %wp : " + t + "bf16>\n%p = program_id axis=0 : index\n" +
                     "%n = constant value=index(" + width + ") : index\n%at = mul %p, %n : index\n";
  for (int k = 1; k <= inputs; ++k) {
    const std::string c = std::to_string(k);
    params += "param : ptr<const bf16> access=read align=16\n";
    body += "%a" + c + " = param index=" + c + " : ptr<const bf16>\n%b" + c + " = ptr_add %a" + c +
            ", %at : ptr<const bf16>\n%q" + c + " = splat %b" + c + " : " + t + "ptr<const bf16>>\n%r" + c +
            " = ptr_add %q" + c + ", %i : " + t + "ptr<const bf16>>\n%l" + c + " = load %r" + c + " : " + t +
            "bf16>\n%s" + c + " = add %s" + std::to_string(k - 1) + ", %l" + c + " : " + t + "bf16>\n";
  }
  return kernel(params, body + "%m = reduce axis=0 %s" + std::to_string(inputs) +
                            " : bf16 {(%u : bf16, %v : bf16)\n%x = max %u, %v : bf16\nyield %x\n}\n");
}

TEST(ChooseExec, RowsUpToTwoKilobytesAreAWarpsTwoABlock) {
  EXPECT_THAT(exec_line(row(1, 1024)),
              HasSubstr("team=warp warps=1 programs_per_cta=2 cluster=1 max_registers=0 register_goal=80"));
  EXPECT_THAT(exec_line(row(1, 100)), HasSubstr("team=warp warps=1 "));
}

TEST(ChooseExec, LongerRowsTakeThreeToSixVectorsAThread) {
  for (const auto& [width, warps] :
       {std::pair{1536, 2}, {2048, 2}, {4096, 4}, {5000, 4}, {8192, 8}, {12288, 8}, {16384, 16}})
    EXPECT_THAT(exec_line(row(1, width)), HasSubstr("team=cta warps=" + std::to_string(warps) +
                                                    " programs_per_cta=1 cluster=1 max_registers=0 register_goal=64"))
        << width;
}

TEST(ChooseExec, TheLongestRowsLeaveRoomForASecondBlockUnlessTheyReadTwice) {
  EXPECT_THAT(exec_line(row(1, 32768)), HasSubstr("warps=16 "));
  EXPECT_THAT(exec_line(row(2, 32768)), HasSubstr("warps=32 "));
}

TEST(ChooseExec, ShortRowsOfTwoInputsAreABlocks) {
  EXPECT_THAT(exec_line(row(2, 1024)), HasSubstr("team=cta warps=2 "));
  EXPECT_THAT(exec_line(row(2, 512)), HasSubstr("team=warp warps=1 "));
}

TEST(ChooseExec, AGoalForRegistersYieldsToTheUsersCap) {
  EXPECT_THAT(exec_line(row(1, 4096), {.max_registers = 96}), HasSubstr("max_registers=96 register_goal=0"));
}

TEST(ChooseExec, SmallTilesTakeFewWarpsAndLargeOnesMany) {
  EXPECT_THAT(exec_line(pointwise(2, 16)), HasSubstr("warps=1 "));
  EXPECT_THAT(exec_line(pointwise(2, 256)), HasSubstr("warps=2 "));
  EXPECT_THAT(exec_line(pointwise(2, 8192)), HasSubstr("warps=8 "));
  EXPECT_THAT(exec_line(pointwise(2, 16384)), HasSubstr("warps=16 "));
  EXPECT_THAT(exec_line(pointwise(2, 131072)), HasSubstr("warps=32 "));
}

TEST(ChooseExec, OddSizesCountAsPadded) { EXPECT_THAT(exec_line(pointwise(2, 600)), HasSubstr("warps=8 ")); }

TEST(ChooseExec, BroadcastOperandsTakeFourVectorsAThread) {
  EXPECT_PASS(kernel("param : ptr<f32> access=readwrite align=16\n", R"(
  %p = param index=0 : ptr<f32>
  %i = arange start=0 end=1024 : tile<1024xindex>
  %q = splat %p : tile<1024xptr<f32>>
  %r = ptr_add %q, %i : tile<1024xptr<f32>>
  %bias = load %r : tile<1024xf32>
  %b0 = expand_dims axis=0 %bias : tile<1x1024xf32>
  %b = broadcast %b0 : tile<4x1024xf32>
  %q2 = splat %p : tile<4x1024xptr<f32>>
  %j0 = expand_dims axis=0 %i : tile<1x1024xindex>
  %j = broadcast %j0 : tile<4x1024xindex>
  %r2 = ptr_add %q2, %j : tile<4x1024xptr<f32>>
  %x = load %r2 : tile<4x1024xf32>
  %s = add %x, %b : tile<4x1024xf32>
  store %r2, %s
// CHECK: exec team=cta warps=8 {{.*}}register_goal=0
)"),
              choose_exec);
}

std::string product(int m, int n, int k) {
  const auto tile = [](int rows, int columns) {
    return "tile<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
  };
  return kernel("", "%z = constant value=f32(0) : f32\n%a = splat %z : " + tile(m, k) +
                        "\n%b = splat %z : " + tile(k, n) + "\n%c = splat %z : " + tile(m, n) +
                        "\n%d = dot %a, %b, %c : " + tile(m, n) + "\n");
}

TEST(ChooseExec, ProductsGiveAThreadSixtyFourRegistersOfATile) {
  EXPECT_THAT(exec_line(product(128, 128, 16)), HasSubstr("warps=8 "));
  EXPECT_THAT(exec_line(product(128, 256, 16)), HasSubstr("warps=16 "));
  EXPECT_THAT(exec_line(product(32, 32, 1024)), HasSubstr("warps=16 "));
  EXPECT_THAT(exec_line(product(16, 16, 16)), HasSubstr("warps=4 "));
}

// No access sees the tile: only its registers say how many threads it takes.
TEST(ChooseExec, TilesThatMemoryDoesNotSeeGetTheRegistersTheyNeed) {
  const auto made = [](const std::string& type) {
    return kernel("", "%one = constant value=f32(1) : f32\n%a = splat %one : tile<" + type + ">\n");
  };
  EXPECT_THAT(exec_line(made("4096xf32")), HasSubstr("warps=1 "));
  EXPECT_THAT(exec_line(made("4097xf32")), HasSubstr("warps=2 "));
  EXPECT_THAT(exec_line(made("131072xf32")), HasSubstr("warps=32 "));
  EXPECT_THAT(exec_line(made("300x200xf32")), HasSubstr("warps=32 "));
  EXPECT_THAT(error(made("262144xf32"), {}), HasSubstr("needs 256 registers a thread on 1024 threads"));
  EXPECT_THAT(error(made("8192xf32"), {.num_warps = 1}), HasSubstr("make the tile smaller or num_warps larger"));
}

TEST(ChooseExec, TheUsersChoiceWins) {
  CompileOptions o;
  o.num_warps = 2;
  o.max_registers = 64;
  EXPECT_THAT(exec_line(pointwise(2, 1024), o),
              HasSubstr("team=cta warps=2 programs_per_cta=1 cluster=1 max_registers=64"));
}

TEST(ChooseExec, RefusesMoreThreadsThanABlockHolds) {
  EXPECT_THAT(error(pointwise(1, 1024), {.num_warps = 64}),
              HasSubstr("num_warps 64 is 2048 threads, at most 1024 fit a block"));
  EXPECT_THAT(error(pointwise(1, 1024), {.num_warps = 3}), HasSubstr("num_warps is 3, must be 1, 2, 4, 8, 16 or 32"));
  EXPECT_THAT(error(pointwise(1, 1024), {.num_warps = -1}), HasSubstr("num_warps is -1"));
}

TEST(ChooseExec, RefusesTilesThatDoNotFitTheRegisters) {
  EXPECT_THAT(error(pointwise(1, 8192), {.num_warps = 1}),
              HasSubstr("tile<8192xf32> needs 256 registers a thread on 32 threads, at most 128"));
  EXPECT_THAT(error(pointwise(1, 262144), {}), HasSubstr("needs 256 registers a thread on 1024 threads"));
}

TEST(ChooseExec, RefusesClustersThatNoTargetTakes) {
  EXPECT_THAT(error(pointwise(1, 1024), {.cluster = 3}), HasSubstr("cluster is 3, must be 1, 2, 4 or 8"));
  EXPECT_THAT(error(pointwise(1, 1024), {.cluster = 16}), HasSubstr("cluster is 16, must be 1, 2, 4 or 8"));
  EXPECT_THAT(error(pointwise(1, 1024), {.cluster = 2}), HasSubstr("no error"));
}

TEST(ChooseExec, RefusesRegisterCapsThatCannotBe) {
  EXPECT_THAT(error(pointwise(1, 1024), {.max_registers = 8}), HasSubstr("max_registers is 8, must be 16 to 255"));
  EXPECT_THAT(error(pointwise(1, 1024), {.num_warps = 32, .max_registers = 128}),
              HasSubstr("128 registers on 1024 threads are 131072, a multiprocessor has 65536"));
}

}  // namespace
}  // namespace kiln::test

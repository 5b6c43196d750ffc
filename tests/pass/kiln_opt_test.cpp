// kiln_opt as a user calls it.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "tests/pass/pass_fixture.h"
#include "tests/support/build_tree.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

struct Result {
  int status = 0;
  std::string output;  // both streams
};

class KilnOpt : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("kiln-opt-" + std::to_string(::getpid()) + ".kir");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result run(const std::string& input, const std::string& arguments) {
    std::ofstream(path_) << input;
    const std::string command = (bin_dir() / "kiln_opt").string() + " " + path_.string() + " " + arguments + " 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    Result r;
    std::array<char, 4096> buffer;
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) r.output.append(buffer.data(), n);
    r.status = WEXITSTATUS(::pclose(pipe));
    return r;
  }
  std::filesystem::path path_;
};

const std::string kText = kernel("param : ptr<f32> access=readwrite align=16\n", R"(
  %0 = param index=0 : ptr<f32>
  %1 = arange start=0 end=64 : tile<64xindex>
  %2 = splat %0 : tile<64xptr<f32>>
  %3 = ptr_add %2, %1 : tile<64xptr<f32>>
  %4 = load %3 : tile<64xf32>
  %5 = relu %4 : tile<64xf32>
  %6 = relu %5 : tile<64xf32>
  store %3, %6
)");

TEST_F(KilnOpt, RunsThePassesNamed) {
  const Result r = run(kText, "--pass canonicalise,choose-exec --num-warps 4");
  EXPECT_EQ(r.status, 0);
  EXPECT_IR(r.output, "// CHECK: stage=canonical\n// CHECK: warps=4\n// CHECK: relu\n// CHECK-NOT: relu\n");
}

TEST_F(KilnOpt, RunsThePipelineThroughAPass) {
  const Result r = run(kText, "--until assign-layouts");
  EXPECT_EQ(r.status, 0);
  EXPECT_IR(r.output, "// CHECK: stage=laid\n// CHECK: layout #0\n");
}

TEST_F(KilnOpt, ContinuesFromTheStageOfItsInput) {
  const Result r = run(run(kText, "--until choose-exec").output, "--until assign-layouts");
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.output, run(kText, "--until assign-layouts").output);
}

TEST_F(KilnOpt, OutputIsAnInput) {
  const Result once = run(kText, "--until assign-layouts");
  EXPECT_EQ(run(once.output, "").output, once.output);
}

TEST_F(KilnOpt, VerifyAcceptsSilentlyAndRefusesWithTheReason) {
  EXPECT_EQ(run(kText, "--verify").output, "");
  std::string wrong = kText;
  wrong.replace(wrong.find("relu %4 : tile<64xf32>"), 22, "relu %4 : tile<32xf32>");
  const Result r = run(wrong, "--verify");
  EXPECT_EQ(r.status, 1);
  EXPECT_THAT(r.output, HasSubstr("types: relu gives (tile<64xf32>), its results are (tile<32xf32>)"));
}

TEST_F(KilnOpt, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(run(kText, "--pass fold").output,
              HasSubstr("kiln_opt: no pass is called 'fold'; known are choose-mma, stage-products, stage-results, expand-blocks"));
  EXPECT_THAT(run("kernel \"k\" stage=traced\n{\n  %0 = nothing\n}\n", "").output, HasSubstr(":3: error: "));
  EXPECT_THAT(run(kText, "--pass assign-layouts").output,
              HasSubstr("assign-layouts: takes stages canonical to laid, k is at traced"));
  EXPECT_THAT(run(kText, "--until choose-exec --target sm_1").output, HasSubstr("target sm_1 is not known"));
  EXPECT_THAT(run(kText, "--pass canonicalise --until choose-exec").output, HasSubstr("excludes"));
  EXPECT_EQ(run(kText, "--pass fold").status, 1);
}

TEST_F(KilnOpt, HelpListsEveryPass) {
  const std::string help = run(kText, "--help").output;
  for (const ir::PassInfo& p : ir::all_passes()) EXPECT_THAT(help, HasSubstr(p.flag));
}

}  // namespace
}  // namespace kiln::test

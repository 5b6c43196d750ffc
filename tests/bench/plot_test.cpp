// bench/peers/plot.py: which figures it compares, and what it leaves out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/build_tree.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Plot : public testing::Test {
 protected:
  void SetUp() override {
    if (!source_dir()) GTEST_SKIP() << "the source tree is not beside this build folder";
    if (run_shell("python3 --version").status != 0) GTEST_SKIP() << "python3 is not installed";
  }
  /// Draws these lines; what it says.
  ProcessResult draw(const std::string& lines) const {
    std::ofstream(folder_.path() / "run.jsonl") << lines;
    return run_shell(shell_quote((*source_dir() / "bench" / "peers" / "plot.py").string()) + " " +
                     shell_quote((folder_.path() / "run.jsonl").string()) + " --out " +
                     shell_quote(picture_path().string()) + " 2>&1");
  }
  std::string picture() const {
    std::ifstream in(picture_path());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path picture_path() const { return folder_.path() / "ratios.svg"; }

 private:
  TemporaryFolder folder_;
};

TEST_F(Plot, ComparesKilnWithTheBestPeerThatDoesTheSameWork) {
  const ProcessResult r = draw(R"({"case": "env", "gpu": "some"}
{"case": "linear_relu", "peer": "kiln", "shape": [64, 32, 16], "dtype": "bf16", "us": 8.0, "gbs": 3.0}
{"case": "linear_relu", "peer": "slow", "shape": [64, 32, 16], "dtype": "bf16", "us": 20.0}
{"case": "linear_relu", "peer": "quick", "shape": [64, 32, 16], "dtype": "bf16", "us": 10.0}
{"case": "linear_relu", "peer": "cublas_bare", "shape": [64, 32, 16], "dtype": "bf16", "us": 4.0}
{"case": "softmax", "peer": "kiln", "shape": [8, 24], "dtype": "bf16", "us": 4.0, "gbs": 96.0}
{"case": "softmax", "peer": "eager", "shape": [8, 24], "dtype": "bf16", "us": 3.0}
a line that is no figure
)");
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(r.output, "");
  EXPECT_THAT(picture(), AllOf(HasSubstr(">linear_relu, bf16<"), HasSubstr(">1.250<"), HasSubstr(">quick<"),
                               HasSubstr(">64 × 32 × 16<"), HasSubstr(">softmax, bf16<"), HasSubstr(">0.750<"),
                               HasSubstr("Kiln 4 µs, 96 GB/s"), Not(HasSubstr("bare"))));
}

TEST_F(Plot, SaysWhatCannotBeCompared) {
  const ProcessResult some = draw(R"({"case": "sum_all", "peer": "kiln", "shape": [8], "dtype": "f32", "us": 8.0}
{"case": "sum_all", "peer": "torch_bare", "shape": [8], "dtype": "f32", "us": 8.0}
{"case": "sum_all", "peer": "eager", "shape": [9], "dtype": "f32", "us": 8.0}
{"case": "sum_all", "peer": "kiln", "shape": [7], "dtype": "f32", "us": 8.0}
{"case": "sum_all", "peer": "eager", "shape": [7], "dtype": "f32", "us": 8.0}
)");
  EXPECT_EQ(some.status, 0);
  EXPECT_THAT(some.output,
              AllOf(HasSubstr("sum_all, f32 8: no figure of a peer"), HasSubstr("sum_all, f32 9: no figure of Kiln")));
  EXPECT_THAT(picture(), HasSubstr(">1.000<"));
  const ProcessResult none = draw("{}\n");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("has no shape with figures of both Kiln and a peer"));
}

}  // namespace
}  // namespace kiln::test

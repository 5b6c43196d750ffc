// The numbered examples after the first, run as a user runs them: each checks its result itself; here are the lines of
// its picture that a reader learns from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/device.h"
#include "tests/support/build_tree.h"
#include "tests/support/process.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

struct Shown {
  const char* program;
  std::vector<const char*> lines;  ///< parts of its output, on every device
};

const std::vector<Shown>& gallery() {
  static const std::vector<Shown> all{
      {"02_softmax",
       {"cat     3.0   0.881 ################     0.541 ##########           0.272 #####", "\nok: probabilities"}},
      {"03_log_softmax", {"      -200             -inf          -200.6927        -200.6927   <- lost\n", "\nok: log_"}},
      {"04_layernorm",
       {"four kernels            4         6.14            2.02",
        "lib::layernorm          1         3.02            1.00", "\nok: both plans"}},
      {"05_rmsnorm",
       {"x + 10     -1.3368   -0.7556    0.1162    0.4069    1.5693   |    0.7661    0.8618    1.0055    1.0534    "
        "1.2449",
        "\nok: x + 10"}},
      {"06_add_rmsnorm",
       {"add, then rmsnorm             2      1572864       6.00      49152",
        "lib::add_rmsnorm              1      1310720       5.00      40960", "\nok: the sum"}},
      {"07_cross_entropy",
       {"knows nothing      6.9078               -0.99900                0.00100\n",
        "sure, wrong       15.0003               -1.00000                0.99969\n",
        "ignored            0.0000                0.00000                0.00000\n", "\nok: losses"}},
      {"08_transpose",
       {"reads along rows      16384 = 1.00 x     131072 = 8.00 x ",
        "lib::transpose        16384 = 1.00 x      16384 = 1.00 x            2048               0\n",
        "\nok: all three"}},
      {"09_cumsum", {"  1.15 |    *                 *     ", "\nok: the walk"}},
      {"10_sum", {"  4000000         256.00", "\nok: the tree"}},
      {"11_dropout", {"   1  ########.####....###....#.##########.##..#.###..    70.49%", "\nok: the gradient"}},
      {"12_rope",
       {"query at 1000      10.094    9.908    9.076    7.440    7.141    5.981    5.557    4.315\n",
        "\nok: each column"}},
      {"13_embedding",
       {"?         99     0.00   0.00   0.00     0.00   0.00   0.00     0.00   0.00   0.00\n", "\nok: "}},
      {"14_swiglu", {"  3.00    2.8577       -1.4289           |                            *o ", "\nok: within"}},
      {"15_adam", {"    1   5.94e-01  #########################################################\n", "\nok: 0.972 x"}},
      {"16_linear",
       {"four kernels              4\n", "lib::linear               1\n", "\nok: both plans give the same bits"}},
  };
  return all;
}

class Gallery : public testing::TestWithParam<std::size_t> {
 protected:
  static void run_on(const std::string& device) {
    const Shown& shown = gallery()[GetParam()];
    const ProcessResult r =
        run_program({(bin_dir() / shown.program).string()}, {"KILN_DEVICE=" + device, "KILN_LOG=0"});
    EXPECT_EQ(r.status, 0);
    for (const char* line : shown.lines) EXPECT_THAT(r.output, HasSubstr(line));
  }
};

TEST_P(Gallery, ShowsItsPictureOnTheSimulator) { run_on("sim"); }

TEST_P(Gallery, ShowsItsPictureOnAGpu) {
  if (Device::cuda_count() == 0) GTEST_SKIP() << "no GPU";
  run_on("cuda:0");
}

INSTANTIATE_TEST_SUITE_P(Examples, Gallery, testing::Range(std::size_t(0), gallery().size()),
                         [](const auto& shown) { return std::string(gallery()[shown.param].program); });

TEST(GalleryPage, HasARowForEachProgramAndEachIsRun) {
  const auto root = source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  std::ifstream in(*root / "examples" / "README.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  std::size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*root / "examples")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".cpp") continue;
    ++programs;
    EXPECT_THAT(page, HasSubstr("| `" + name + "` | ")) << "examples/README.md has no row for " << name;
    const bool run = std::any_of(gallery().begin(), gallery().end(), [&](const Shown& s) { return s.program == name; });
    EXPECT_TRUE(run || name == "01_add_relu") << "no test runs " << name;
  }
  EXPECT_EQ(programs, gallery().size() + 1);
}

}  // namespace
}  // namespace kiln::test

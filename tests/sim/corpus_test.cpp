// Kernels compiled by Triton 3.6 for sm_80 and sm_90a, with their buffers before and after a run on an H200: integers
// and data movement must come out bit for bit, floats within the bound that corpus/README.md states. Read, run and
// compared by what kiln-sim is made of, and by kiln-sim itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "runtime/tools/sim_run.h"
#include "tests/sim/data_files.h"
#include "tests/support/build_tree.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using rt::tools::Case;
using rt::tools::Outcome;
using rt::tools::Result;

struct CorpusCase {
  std::string kernel, target;
  fs::path file() const { return data_folder() / "ptx-corpus" / kernel / (target + ".json"); }
  friend void PrintTo(const CorpusCase& c, std::ostream* out) { *out << c.kernel << " " << c.target; }
};
std::string case_name(const ::testing::TestParamInfo<CorpusCase>& info) {
  return info.param.kernel + "_" + info.param.target;
}

class Corpus : public ::testing::TestWithParam<CorpusCase> {};

TEST_P(Corpus, GivesTheBuffersOfTheGpu) {
  const Case c = rt::tools::read_case(GetParam().file());
  const Outcome o = run_case(c);
  EXPECT_EQ(o.error, "");
  for (const Finding& f : o.findings) ADD_FAILURE() << f.message;
  ASSERT_FALSE(o.results.empty());
  for (const Result& r : o.results) {
    ASSERT_TRUE(r.comparison) << r.argument->name;
    EXPECT_EQ(r.comparison->wrong, 0u) << r.argument->name << "[" << r.comparison->first_wrong << "]: got "
                                       << r.comparison->got << ", want " << r.comparison->want;
  }
}

TEST_P(Corpus, TheProgramReproducesIt) {
  const TemporaryFolder folder;
  const ProcessResult r = run_program(
      {(bin_dir() / "kiln-sim").string(), "--case", GetParam().file().string(), "--out", folder.path().string()});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, ::testing::HasSubstr("match: "));
  std::size_t buffers = 0;
  for (const auto& entry : fs::directory_iterator(GetParam().file().parent_path())) {
    if (entry.path().extension() != ".out") continue;
    ++buffers;
    EXPECT_EQ(fs::file_size(folder.path() / entry.path().filename()), entry.file_size());
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), static_cast<std::ptrdiff_t>(buffers));
}

std::vector<CorpusCase> cases() {
  std::vector<CorpusCase> out;
  for (const char* kernel :
       {"add_relu", "atomics", "cumsum", "histogram", "random", "softmax", "transpose", "while_collatz", "matmul_f16"})
    for (const char* target : {"sm_80", "sm_90"}) out.push_back({kernel, target});
  return out;
}
INSTANTIATE_TEST_SUITE_P(Triton, Corpus, ::testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace kiln::test

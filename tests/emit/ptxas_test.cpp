// NVIDIA's assembler accepts what is emitted, for every target, without a spill. Skipped where it is not installed.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/emit/emit_fixture.h"
#include "tests/emit/samples.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> ptxas() {
  std::vector<fs::path> folders{"/usr/local/cuda/bin"};
  if (const char* path = std::getenv("PATH"))
    for (std::string rest = path; !rest.empty();) {
      const auto colon = std::min(rest.find(':'), rest.size());
      folders.emplace_back(rest.substr(0, colon));
      rest.erase(0, colon + 1);
    }
  for (const fs::path& folder : folders)
    if (fs::exists(folder / "ptxas")) return folder / "ptxas";
  return {};
}

class Ptxas : public testing::Test {
 protected:
  void SetUp() override {
    tool_ = ptxas();
    if (!tool_) GTEST_SKIP() << "no ptxas in PATH or /usr/local/cuda/bin";
    std::string name = (fs::temp_directory_path() / "kiln-ptxas-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  /// What the assembler says, with -v; empty return code means accepted.
  std::string assemble(const std::string& ptx, const std::string& arch, int& code) const {
    const fs::path in = folder_ / "k.ptx", log = folder_ / "log";
    std::ofstream(in) << ptx;
    const std::string command = tool_->string() + " -v -arch=" + arch + " " + in.string() + " -o " +
                                (folder_ / "k.cubin").string() + " > " + log.string() + " 2>&1";
    code = std::system(command.c_str());
    std::ifstream file(log);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void expect_accepted(const ir::Function& f, const std::string& arch, const CompileOptions& options = {}) const {
    const std::string ptx = compile(f, target_named(arch), options).ptx;
    int code = 0;
    const std::string log = assemble(ptx, arch, code);
    EXPECT_EQ(code, 0) << f.name << " for " << arch << "\n" << log << ptx;
    EXPECT_THAT(log, testing::HasSubstr(" 0 bytes spill stores, 0 bytes spill loads")) << f.name << " for " << arch;
    EXPECT_THAT(log, testing::Not(testing::HasSubstr("warning"))) << f.name << " for " << arch;
  }

 private:
  std::optional<fs::path> tool_;
  fs::path folder_;
};

TEST_F(Ptxas, AcceptsEverySampleForOneTarget) {
  const std::vector<Sample> samples = all_samples();
  // Each sample on one target in turn: every target sees kernels of every group.
  const std::vector<std::string> targets = known_targets();
  for (std::size_t i = 0; i < samples.size(); ++i) expect_accepted(samples[i].function, targets[i % targets.size()]);
}

TEST_F(Ptxas, AcceptsVectorsAndTailsForEveryTarget) {
  for (const std::string& arch : known_targets())
    for (const char* n_facts : {"align=16", ""})
      expect_accepted(ir::parse(copy_kernel("bf16", 2048, "align=16", n_facts)), arch);
}

TEST_F(Ptxas, AcceptsClustersAndRegisterCaps) {
  CompileOptions options;
  options.max_registers = 32;
  expect_accepted(ir::parse(copy_kernel("f32", 1024, "align=16", "align=16")), "sm_80", options);
  for (Sample s : control_samples()) {
    if (s.function.stage != ir::Stage::Laid) continue;
    s.function.exec->team = ir::Team::Cluster;
    s.function.exec->cluster = 2;
    for (const char* arch : {"sm_90a", "sm_100a", "sm_120a"}) expect_accepted(s.function, arch);
  }
}

}  // namespace
}  // namespace kiln::test

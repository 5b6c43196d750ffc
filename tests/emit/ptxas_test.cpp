// NVIDIA's assembler accepts what is emitted, for every target, without a spill. Skipped where it is not installed.
#include "tests/support/ptxas.h"
#include "tests/emit/emit_fixture.h"
#include "tests/emit/samples.h"

namespace kiln::test {
namespace {

class Ptxas : public testing::Test {
 protected:
  void SetUp() override {
    tool_ = ptxas();
    if (!tool_) GTEST_SKIP() << "no ptxas in PATH or /usr/local/cuda/bin";
  }

  void expect_accepted(const ir::Function& f, const std::string& arch, const CompileOptions& options = {}) const {
    const std::string ptx = compile(f, target_named(arch), options).ptx;
    const Assembly a = assemble(*tool_, ptx, arch);
    EXPECT_TRUE(a.accepted) << f.name << " for " << arch << "\n" << a.log << ptx;
    EXPECT_THAT(a.log, testing::HasSubstr(" 0 bytes spill stores, 0 bytes spill loads")) << f.name << " for " << arch;
    EXPECT_THAT(a.log, testing::Not(testing::HasSubstr("warning"))) << f.name << " for " << arch;
  }

 private:
  std::optional<std::filesystem::path> tool_;
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

void replicate_over_two_blocks(ir::Function& f) {
  for (std::uint32_t v = 0; v < f.value_count(); ++v) {
    ir::Type t = f.type(ir::Value{v});
    if (!t.tile) continue;
    ir::LinearLayout l = f.layout(t.layout);
    l.add_bit(ir::Hw::Block, ir::LinearLayout::Coord(std::size_t(l.rank()), 0));
    t.layout = f.intern(l);
    f.set_type(ir::Value{v}, t);
  }
}

TEST_F(Ptxas, AcceptsClustersAndRegisterCaps) {
  CompileOptions options;
  options.max_registers = 32;
  expect_accepted(ir::parse(copy_kernel("f32", 1024, "align=16", "align=16")), "sm_80", options);
  for (Sample s : control_samples()) {
    if (s.function.stage != ir::Stage::Laid) continue;
    s.function.exec->team = ir::Team::Cluster;
    s.function.exec->cluster = 2;
    replicate_over_two_blocks(s.function);
    for (const char* arch : {"sm_90a", "sm_100a", "sm_120a"}) expect_accepted(s.function, arch);
  }
}

}  // namespace
}  // namespace kiln::test

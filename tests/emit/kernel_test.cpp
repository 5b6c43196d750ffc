// Everything of a kernel but its instructions: entry, parameters, directives, lines, image.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/pass/pass.h"
#include "backend/pipeline.h"
#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "tests/emit/emit_fixture.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kCopy = copy_kernel("f32", 1024, "align=16", "align=16");

TEST(Kernel, EntryAndParametersFollowTheSignature) {
  const rt::KernelImage image =
      image_of(kernel("param \"p\" : ptr<f32> access=readwrite align=16\n"
                      "param \"flag\" : i1 access=read\nparam \"h\" : f16 access=read\n"
                      "param \"b\" : i8 access=read\nparam \"d\" : f64 access=read\n"
                      "param \"n\" : index access=read align=16\nparam : index access=read one\n",
                      "  %0 = param index=0 : ptr<f32>\n  %1 = param index=6 : index\n"
                      "  %2 = cast %1 : f32\n  store %0, %2\n"));
  EXPECT_IR(image.ptx, R"(
    // CHECK: .visible .entry k(
    // CHECK-NEXT: .param .u64 .ptr .global .align 16 k_param_0,
    // CHECK-NEXT: .param .{{[bu]}}8 k_param_1,
    // CHECK-NEXT: .param {{.b16 k_param_2|.align 2 .b8 k_param_2.2.}},
    // CHECK-NEXT: .param .{{[bu]}}8 k_param_3,
    // CHECK-NEXT: .param .{{[bf]}}64 k_param_4,
    // CHECK-NEXT: .param .u64 k_param_5,
    // CHECK-NEXT: .param .u64 k_param_6
    // The parameter known to be 1 is compiled in.
    // CHECK-NOT: ld.param{{.*}}k_param_6
    // CHECK: st.global.b32 {{.*}}, 1065353216;
  )");
  std::vector<std::uint32_t> offsets;
  for (const rt::Arg& a : image.signature.args) offsets.push_back(a.offset);
  EXPECT_THAT(offsets, ElementsAre(0, 8, 10, 12, 16, 24, 32));
  EXPECT_EQ(image.signature.bytes, 40u);
  EXPECT_EQ(image.signature.args[5].align, 16u);
  EXPECT_TRUE(image.signature.args[6].is_one);
  EXPECT_EQ(image.signature.args[6].name, "argument 7 (index)");
}

TEST(Kernel, ReportNamesFactsAndBytes) {
  const rt::KernelImage image = image_of(kCopy);
  EXPECT_THAT(image.report.facts,
              ElementsAre("in is aligned to 16 bytes", "out is aligned to 16 bytes", "n is divisible by 16"));
  EXPECT_EQ(image.report.bytes_read_per_program, 4096);
  EXPECT_EQ(image.report.bytes_written_per_program, 4096);
  EXPECT_EQ(image.name, "k");
  EXPECT_EQ(image.target, "sm_90a");
  EXPECT_EQ(image.definition.str(), "k.cpp:10");
}

TEST(Kernel, LaunchBoundsAreDirectives) {
  CompileOptions options;
  options.num_warps = 4;
  options.max_registers = 64;
  const rt::KernelImage image = image_of(kCopy, "sm_90a", options);
  EXPECT_THAT(image.ptx, AllOf(HasSubstr(".reqntid 128"), Not(HasSubstr(".maxnreg")), Not(HasSubstr("cluster"))));
  EXPECT_EQ(image.recipe().block[0], 128u);
  EXPECT_EQ(image.candidates.size(), 1u);
  EXPECT_EQ(image.recipe().max_registers, 64u);
  EXPECT_THAT(rt::capped_ptx(image), HasSubstr(".reqntid 128\n.maxnreg 64\n{"));
}

TEST(Kernel, LaunchesMeetBeforeTheFirstAccess) {
  const rt::KernelImage image = image_of(kCopy);
  const std::size_t wait = image.ptx.find("griddepcontrol.wait");
  EXPECT_LT(image.ptx.find("griddepcontrol.launch_dependents"), wait);
  EXPECT_LT(wait, image.ptx.find("ld.global"));
  EXPECT_TRUE(image.recipe().pdl);
  const rt::KernelImage ampere = image_of(kCopy, "sm_80");
  EXPECT_THAT(ampere.ptx, Not(HasSubstr("griddepcontrol")));
  EXPECT_FALSE(ampere.recipe().pdl);
}

TEST(Kernel, LinesAreTheUsers) {
  std::string text = kCopy;
  text.replace(text.find("  store"), std::string::npos, "  store %15, %13, %10 loc(\"src/user.cpp\":77:5)\n}\n");
  EXPECT_IR(ptx_of(text), R"(
    // CHECK: .loc [[K:[0-9]+]] 10 3
    // CHECK: .loc [[U:[0-9]+]] 77 5
    // CHECK: st.global
    // CHECK-DAG: .file [[K]] "k.cpp"
    // CHECK-DAG: .file [[U]] "src/user.cpp"
  )");
  CompileOptions options;
  options.line_info = false;
  EXPECT_THAT(ptx_of(text, "sm_90a", options),
              AllOf(Not(HasSubstr(".loc")), Not(HasSubstr(".file")), Not(HasSubstr(".section"))));
}

TEST(Kernel, IsaIsWhatTheDriverTakes) {
  EXPECT_THAT(image_of(kCopy, "sm_90a", {}, 83).ptx, HasSubstr(".version 8.3"));
  EXPECT_THAT(image_of(kCopy, "sm_90a", {}, 99).ptx, HasSubstr(".version 9.0"));
  EXPECT_THAT(image_of(kCopy, "sm_90a").ptx, HasSubstr(".version 8.0"));
  for (const std::string& arch : known_targets()) EXPECT_THAT(ptx_of(kCopy, arch), HasSubstr(".target " + arch));
}

TEST(Kernel, TooOldADriverIsNamed) {
  try {
    target_named("sm_90a", 78);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("sm_90a"), HasSubstr("8.0"), HasSubstr("7.8")));
  }
}

TEST(Kernel, UnknownTargetListsTheKnownOnes) {
  try {
    target_named("sm_70");
    FAIL();
  } catch (const UserError& e) {
    for (const std::string& arch : known_targets()) EXPECT_THAT(e.what(), HasSubstr(arch));
  }
}

TEST(Kernel, EqualInputGivesEqualPtxInEveryThread) {
  std::string other;
  std::thread second([&] { other = ptx_of(kCopy); });
  const std::string here = ptx_of(kCopy);
  second.join();
  EXPECT_EQ(here, other);
  EXPECT_EQ(here, ptx_of(kCopy));
}

TEST(Kernel, AnyNameBecomesASymbol) {
  std::string text = kCopy;
  text.replace(text.find("\"k\""), 3, "\"2 fast: relu(x)\"");
  const rt::KernelImage image = image_of(text);
  EXPECT_EQ(image.name, "kernel_2_fast__relu_x_");
  EXPECT_THAT(image.ptx, HasSubstr(".entry " + image.name + "("));
}

/// Environment of one test, and a folder for its files.
class Artefacts : public testing::Test {
 protected:
  ~Artefacts() override {
    for (const char* knob : {"KILN_DUMP", "KILN_DUMP_DIR", "KILN_OVERRIDE"}) unsetenv(knob);
    env::reload();
  }
  void set(const char* knob, const std::string& value) {
    setenv(knob, value.c_str(), 1);
    env::reload();
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(Artefacts, LlvmIrAndPtxAreDumpedAfterThePasses) {
  set("KILN_DUMP_DIR", folder_.string());
  set("KILN_DUMP", "llvm,ptx");
  const std::string ptx = ptx_of(kCopy);
  const auto found = files();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].filename(), fmt::format("{:02}-llvm.ll", pipeline().size() + 1));
  EXPECT_EQ(found[1].filename(), fmt::format("{:02}-ptx.ptx", pipeline().size() + 2));
  std::ifstream file(found[1]);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), ptx);
}

TEST_F(Artefacts, PtxOfTheOverrideFolderReplacesTheCompilers) {
  set("KILN_DUMP_DIR", folder_.string());
  set("KILN_DUMP", "ptx");
  ptx_of(kCopy);
  ASSERT_EQ(files().size(), 1u);
  std::ofstream(files()[0]) << "// by hand\n";
  unsetenv("KILN_DUMP");
  set("KILN_OVERRIDE", folder_.string());
  EXPECT_EQ(ptx_of(kCopy), "// by hand\n");
}

TEST(Kernel, CompilerVersionNamesWhatGeneratesCode) {
  EXPECT_THAT(compiler_version(),
              AllOf(HasSubstr("kiln "), HasSubstr("llvm 22"), HasSubstr("assign-layouts"), HasSubstr("instcombine")));
}

TEST(Kernel, StatsHaveEveryStage) {
  CompileStats stats;
  compile(ir::parse(kCopy), target_named("sm_90a"), {}, &stats);
  std::vector<std::string> stages;
  for (const StageTime& t : stats.times) stages.push_back(t.stage);
  std::vector<std::string> wanted;
  for (ir::Pass p : pipeline()) wanted.emplace_back(ir::name(p));
  wanted.insert(wanted.end(), {"emit", "llvm", "ptx"});
  EXPECT_EQ(stages, wanted);
}

}  // namespace
}  // namespace kiln::test

// What happens around a pass: verification, dumps, stop, override, reproducer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend/pipeline.h"
#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kKernel = kernel("param : ptr<f32> access=readwrite align=16\n", R"(
  %0 = param index=0 : ptr<f32>
  %1 = arange start=0 end=64 : tile<64xindex>
  %2 = splat %0 : tile<64xptr<f32>>
  %3 = ptr_add %2, %1 : tile<64xptr<f32>>
  %4 = load %3 : tile<64xf32>
  %5 = relu %4 : tile<64xf32>
  store %3, %5
)");

/// A folder of its own for each test, and an environment put back at the end.
/// What a pass's result is called in a folder of dumps.
std::string file_of(std::string_view pass) {
  std::size_t number = 1;
  for (ir::Pass p : pipeline()) {
    if (name(p) == pass) break;
    ++number;
  }
  return fmt::format("{:02}-{}.kir", number, pass);
}

class Runner : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("kiln-runner-" + std::to_string(::getpid()) +
                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(dir_);
    set("KILN_DUMP_DIR", dir_.string());
    set("KILN_LOG", "0");
  }
  void TearDown() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
    env::reload();
    fs::remove_all(dir_);
  }
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
    env::reload();
  }

  ir::Function traced() const { return ir::parse(kKernel); }
  void run(ir::Function f, CompileStats* stats = nullptr) { run_pipeline(f, Target{}, CompileOptions{}, stats); }
  /// Runs `body` as a pass on the kernel and gives the error's text.
  std::string error_of(bool (*body)(ir::PassContext&, ir::Function&), int verify, ir::Stage to = ir::Stage::Traced) {
    ir::Function f = traced();
    const Target target;
    const CompileOptions options;
    ir::Artefacts artefacts(f, target, options);
    try {
      ir::PassRunner(target, options, nullptr, artefacts, verify)
          .run(ir::PassInfo{"bad-pass", "", ir::Stage::Traced, to, body}, f);
    } catch (const InternalError& e) {
      return e.what();
    }
    return "no error";
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (fs::exists(dir_))
      for (const auto& e : fs::recursive_directory_iterator(dir_))
        if (e.is_regular_file()) names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string folder() const { return fs::directory_iterator(dir_)->path().string(); }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  fs::path dir_;
  std::vector<std::string> set_;
};

TEST_F(Runner, PipelineEndsAtStageAllocated) {
  ir::Function f = traced();
  run_pipeline(f, Target{}, CompileOptions{}, nullptr);
  EXPECT_EQ(f.stage, ir::Stage::Allocated);
  EXPECT_TRUE(files().empty());
}

TEST_F(Runner, StatsNameEachPassInOrder) {
  CompileStats stats;
  run(traced(), &stats);
  ASSERT_EQ(stats.times.size(), pipeline().size());
  for (std::size_t i = 0; i < stats.times.size(); ++i) {
    EXPECT_EQ(stats.times[i].stage, name(pipeline()[i]));
    EXPECT_GT(stats.times[i].us, 0);
  }
}

TEST_F(Runner, DumpsEveryPassInOrderAndSaysWhatDidNotChange) {
  set("KILN_DUMP", "all");
  run(traced());
  std::vector<std::string> wanted{"00-traced.kir"};
  for (ir::Pass p : pipeline()) wanted.push_back(fmt::format("{:02}-{}.kir", wanted.size(), name(p)));
  EXPECT_EQ(files(), wanted);
  const auto laid =
      std::find_if(wanted.begin(), wanted.end(), [](const auto& f) { return f.ends_with("-assign-layouts.kir"); });
  EXPECT_THAT(folder(), testing::MatchesRegex(".*/k-[0-9a-f]{8}"));
  EXPECT_EQ(read(folder() + "/" + file_of("infer-facts")), "(unchanged)\n");
  EXPECT_THAT(read(folder() + "/" + *laid), HasSubstr("stage=laid"));
  EXPECT_EQ(print(ir::parse(read(folder() + "/00-traced.kir"))), print(traced()));
}

TEST_F(Runner, DumpsOnlyWhatIsNamed) {
  set("KILN_DUMP", "traced,choose-exec@k");
  run(traced());
  EXPECT_THAT(files(), ElementsAre("00-traced.kir", file_of("choose-exec")));
}

TEST_F(Runner, DumpsNoOtherKernel) {
  set("KILN_DUMP", "all@other");
  run(traced());
  EXPECT_TRUE(files().empty());
}

TEST_F(Runner, RefusesToDumpWhatDoesNotExist) {
  set("KILN_DUMP", "canonicalize");
  try {
    run(traced());
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(
        e.what(),
        HasSubstr("KILN_DUMP names 'canonicalize'; known are traced, choose-mma, stage-products, stage-results, expand-blocks"));
  }
}

TEST_F(Runner, StopsAfterAPassAndNamesTheFile) {
  set("KILN_STOP_AFTER", "choose-exec");
  try {
    run(traced());
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("stopped after choose-exec"));
    EXPECT_THAT(e.what(), HasSubstr(file_of("choose-exec")));
  }
  EXPECT_THAT(files(), ElementsAre(file_of("choose-exec")));
}

TEST_F(Runner, StopsOnlyAtTheKernelThatIsNamed) {
  set("KILN_STOP_AFTER", "choose-exec@other");
  run(traced());
  EXPECT_FALSE(fs::exists(dir_) && !fs::is_empty(dir_));
  set("KILN_STOP_AFTER", "choose-exec@" + traced().name);
  EXPECT_THROW(run(traced()), UserError);
  EXPECT_THAT(files(), ElementsAre(file_of("choose-exec")));
}

TEST_F(Runner, OverrideReplacesTheResultOfAPass) {
  set("KILN_DUMP", "canonicalise");
  run(traced());
  std::string text = read(folder() + "/" + file_of("canonicalise"));
  if (text == "(unchanged)\n") text = kKernel;
  text.replace(text.find("relu"), 4, "neg");
  std::ofstream(folder() + "/" + file_of("canonicalise")) << text;
  set("KILN_OVERRIDE", dir_.string());
  ir::Function f = traced();
  run_pipeline(f, Target{}, CompileOptions{}, nullptr);
  EXPECT_IR(print(f), "// CHECK: stage=allocated\n// CHECK: neg\n// CHECK-NOT: relu\n");
  EXPECT_THAT(read(folder() + "/" + file_of("canonicalise")), HasSubstr("neg"));
}

TEST_F(Runner, OverrideLeavesOtherKernelsAlone) {
  fs::create_directories(dir_ / "another-01234567");
  std::ofstream(dir_ / "another-01234567" / file_of("canonicalise")) << "kernel \"another\" stage=traced\n{\n}\n";
  set("KILN_OVERRIDE", dir_.string());
  ir::Function f = traced();
  f.name = "mine";
  run_pipeline(f, Target{}, CompileOptions{}, nullptr);
  EXPECT_IR(print(f), "// CHECK: kernel \"mine\"\n// CHECK: relu\n");
}

TEST_F(Runner, OverrideFolderThatIsNotThereIsAnError) {
  set("KILN_OVERRIDE", "/proc/nowhere");
  try {
    run(traced());
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "KILN_OVERRIDE: no folder '/proc/nowhere'");
  }
}

TEST_F(Runner, FaultNamesThePassAndAFileWithTheIrBeforeIt) {
  const std::string e = error_of(
      [](ir::PassContext&, ir::Function& f) -> bool {
        f.remove(f.region(f.body()).insts.back());
        throw InternalError("something broke");
      },
      1);
  EXPECT_THAT(e, HasSubstr("k: pass bad-pass failed: something broke"));
  const std::size_t at = e.find(dir_.string());
  ASSERT_NE(at, std::string::npos) << e;
  EXPECT_EQ(print(ir::parse(read(e.substr(at)))), print(traced()));
}

TEST_F(Runner, ReproducerThatCannotBeWrittenIsSaid) {
  set("KILN_DUMP_DIR", "/proc/nowhere");
  EXPECT_THAT(error_of([](ir::PassContext&, ir::Function&) -> bool { throw InternalError("x"); }, 1),
              HasSubstr("cannot write /proc/nowhere"));
}

TEST_F(Runner, VerifiesTheStageOfTheResult) {
  const auto nothing = [](ir::PassContext&, ir::Function&) { return false; };
  EXPECT_THAT(error_of(nothing, 1, ir::Stage::Laid), HasSubstr("exec: missing at stage laid"));
  EXPECT_EQ(error_of(nothing, 0, ir::Stage::Laid), "no error");
}

TEST_F(Runner, ChecksThatChangedIsTruthful) {
  const auto silent = [](ir::PassContext&, ir::Function& f) {
    f.name = "renamed";
    return false;
  };
  const auto boasting = [](ir::PassContext&, ir::Function&) { return true; };
  EXPECT_THAT(error_of(silent, 2), HasSubstr("bad-pass reports no change, which is not so"));
  EXPECT_THAT(error_of(boasting, 2), HasSubstr("bad-pass reports a change, which is not so"));
  EXPECT_EQ(error_of(silent, 1), "no error");
}

TEST_F(Runner, ComparesWhatTheInterpreterComputes) {
  const auto wrong = [](ir::PassContext&, ir::Function& f) {
    for (ir::InstId i : f.region(f.body()).insts)
      if (f.inst(i).op == ir::Op::Relu) f.inst(i).op = ir::Op::Neg;
    return true;
  };
  EXPECT_THAT(error_of(wrong, 3), HasSubstr("the interpreter's result changed: parameter 0 element"));
  EXPECT_EQ(error_of(wrong, 2), "no error");
}

TEST_F(Runner, RefusesAFunctionAtAnotherStage) {
  ir::Function f = traced();
  run_pipeline(f, Target{}, CompileOptions{}, nullptr);
  const Target target;
  const CompileOptions options;
  ir::Artefacts artefacts(f, target, options);
  ir::PassRunner runner(target, options, nullptr, artefacts, 1);
  try {
    runner.run(ir::Pass::choose_exec, f);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("choose-exec: takes stages traced to canonical, k is at allocated"));
  }
}

TEST(Passes, FlagsAreTheFunctionNames) {
  for (const ir::PassInfo& p : ir::all_passes()) {
    ASSERT_TRUE(ir::pass_named(p.flag).has_value());
    EXPECT_STREQ(name(*ir::pass_named(p.flag)), p.flag);
    EXPECT_LE(p.from, p.to);
  }
  EXPECT_FALSE(ir::pass_named("nothing").has_value());
}

TEST(Passes, EachStandsInThePipelineOnceAndStagesFollow) {
  ir::Stage stage = ir::Stage::Traced;
  std::set<ir::Pass> seen;
  for (ir::Pass p : pipeline()) {
    EXPECT_LE(info(p).from, stage) << name(p);
    EXPECT_GE(info(p).to, stage) << name(p);
    stage = info(p).to;
    EXPECT_TRUE(seen.insert(p).second) << name(p);
  }
  EXPECT_EQ(seen.size(), ir::all_passes().size());
}

}  // namespace
}  // namespace kiln::test

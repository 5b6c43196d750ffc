// Profiles: what is counted for kernels, lines and instructions, and the three forms in which it is shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/profile.h"
#include "tests/sim/data_files.h"
#include "tests/support/knob.h"
#include "tests/sim/ptx_fixture.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
namespace fs = std::filesystem;

std::string kernel_text(const std::string& body, const std::string& before = "", const std::string& target = "sm_80") {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n" + before +
         R"(.visible .entry k(.param .u64 a)
{
.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
.shared .align 16 .b8 tile[8192];
.local .align 16 .b8 slot[64];
ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; cvt.u64.u32 %rd2, %r1; mov.u32 %r2, tile;
)" + body +
         "\nret;\n}\n";
}

class Profiles : public ::testing::Test {
 protected:
  const Knob reads_of_nothing_{"KILN_SIM_CHECK", "races"};  // kernels that only count
  Device device_ = Device::simulator("sm_80");
  Buffer<std::uint32_t> a_{device_, 65536};

  void SetUp() override {
    a_.fill_bytes(0);
    device_.record_profile();
  }
  Profile::Kernel profiled(const std::string& ptx, const Shape& shape = {}) {
    device_.reset_counters();
    run(device_, ptx, "k", shape, Params().add(a_));
    const Profile p = device_.profile();
    EXPECT_EQ(p.kernels.size(), 1u);
    return p.kernels.at(0);
  }
  Counters counted(const std::string& body, const Shape& shape = {}) {
    return profiled(kernel_text(body), shape).counters;
  }
  InstClass class_of(const std::string& instruction) {
    const Profile::Kernel k = profiled(kernel_text(instruction));
    // Before it stand four, behind it one.
    std::vector<const Profile::Instruction*> all;
    for (const Profile::Line& l : k.lines)
      for (const Profile::Instruction& i : l.instructions) all.push_back(&i);
    for (const Profile::Instruction* i : all)
      if (instruction.starts_with(i->text)) return i->kind;
    ADD_FAILURE() << instruction << " is not in the profile";
    return InstClass::Other;
  }
};

TEST_F(Profiles, EveryInstructionHasAClass) {
  const std::vector<std::pair<std::string, InstClass>> cases{
      {"add.s32 %r3, %r1, 1;", InstClass::Integer},
      {"mad.lo.u32 %r3, %r1, 2, 3;", InstClass::Integer},
      {"setp.lt.s32 %p1, %r1, 5;", InstClass::Integer},
      {"shl.b32 %r3, %r1, 2;", InstClass::Integer},
      {"lop3.b32 %r3, %r1, %r1, %r1, 0xE8;", InstClass::Integer},
      {"fma.rn.f32 %f1, 0f3F800000, 0f3F800000, 0f3F800000;", InstClass::FloatMath},
      {"setp.lt.f32 %p1, 0f3F800000, 0f3F800000;", InstClass::FloatMath},
      {"add.rn.f16x2 %r3, %r1, %r1;", InstClass::FloatMath},
      {"div.rn.f32 %f1, 0f3F800000, 0f3F800000;", InstClass::FloatMath},
      {"add.f64 %fd1, 0d3FF0000000000000, 0d3FF0000000000000;", InstClass::DoubleMath},
      {"ex2.approx.f32 %f1, 0f3F800000;", InstClass::Special},
      {"rcp.approx.ftz.f32 %f1, 0f3F800000;", InstClass::Special},
      {"cvt.rn.f32.u32 %f1, %r1;", InstClass::Conversion},
      {"cvta.to.global.u64 %rd3, %rd1;", InstClass::Move},
      {"selp.b32 %r3, %r1, %r1, %p1;", InstClass::Move},
      {"bra END; END:", InstClass::Control},
      {"ld.global.b32 %r3, [%rd1];", InstClass::LoadGlobal},
      {"ld.shared.b32 %r3, [%r2];", InstClass::LoadShared},
      {"ld.local.b32 %r3, [slot];", InstClass::LoadLocal},
      {"ld.b32 %r3, [%rd1];", InstClass::LoadGeneric},
      {"st.global.b32 [%rd1], %r1;", InstClass::StoreGlobal},
      {"st.shared.b32 [%r2], 0;", InstClass::StoreShared},
      {"st.local.b32 [slot], %r1;", InstClass::StoreLocal},
      {"st.b32 [%rd1], %r1;", InstClass::StoreGeneric},
      {"red.global.add.u32 [%rd1], %r1;", InstClass::Atomic},
      {"atom.shared.add.u32 %r3, [%r2], %r1;", InstClass::Atomic},
      {"shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;", InstClass::Lanes},
      {"vote.sync.any.pred %p1, %p2, -1;", InstClass::Lanes},
      {"bar.warp.sync -1;", InstClass::Lanes},
      {"bar.sync 0;", InstClass::Barrier},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r3,%r4,%r5,%r6}, {%r7,%r8,%r9,%r10}, {%r11,%r12}, "
       "{%r13,%r14,%r15,%r16};",
       InstClass::Matrix},
      {"cp.async.ca.shared.global [%r2], [%rd1], 4;", InstClass::AsyncCopy},
      {"cp.async.wait_all;", InstClass::AsyncCopy},
      {"membar.gl;", InstClass::Other},
  };
  for (const auto& [instruction, kind] : cases)
    EXPECT_STREQ(kInstClassNames[static_cast<std::size_t>(class_of(instruction))],
                 kInstClassNames[static_cast<std::size_t>(kind)])
        << instruction;
}

TEST_F(Profiles, SumsAreThoseOfTheParts) {
  const Profile::Kernel k =
      profiled(kernel_text("shl.b64 %rd3, %rd2, 2; add.s64 %rd3, %rd1, %rd3; ld.global.b32 %r3, [%rd3]; "
                           "st.global.b32 [%rd3], %r3;"),
               {{3, 1, 1}, {64, 1, 1}});
  EXPECT_EQ(k.counters.instructions, 3u * 2 * 9);
  EXPECT_EQ(k.counters.launches, 1u);
  std::uint64_t instructions = 0, of_mix = 0;
  Counters sum;
  for (const Profile::Line& l : k.lines)
    for (const Profile::Instruction& i : l.instructions) {
      instructions += i.counters.instructions;
      sum.global_sectors_read += i.counters.global_sectors_read;
    }
  for (const std::uint64_t n : k.mix) of_mix += n;
  EXPECT_EQ(instructions, k.counters.instructions);
  EXPECT_EQ(of_mix, k.counters.instructions);
  EXPECT_EQ(sum.global_sectors_read, k.counters.global_sectors_read);
  EXPECT_EQ(k.mix[static_cast<std::size_t>(InstClass::LoadGlobal)], 6u);
  EXPECT_EQ(k.block, (std::array<std::uint32_t, 3>{64, 1, 1}));
}

TEST_F(Profiles, RequestsSectorsAndWhatIsTooMuch) {
  const auto strided = [&](int stride) {
    return counted("mul.wide.u32 %rd3, %r1, " + std::to_string(stride) +
                   "; add.s64 %rd3, %rd1, %rd3; ld.global.b32 %r3, [%rd3];");
  };
  const Counters dense = strided(4), spread = strided(32), one = strided(0);
  EXPECT_EQ(dense.global_requests_read, 1u);
  EXPECT_EQ(dense.global_sectors_read, 4u);
  EXPECT_EQ(dense.global_sectors_excess, 0u);
  EXPECT_DOUBLE_EQ(coalescing_read(dense), 1);
  EXPECT_EQ(spread.global_sectors_read, 32u);
  EXPECT_EQ(spread.global_sectors_excess, 28u);
  EXPECT_DOUBLE_EQ(coalescing_read(spread), 0.125);
  EXPECT_EQ(one.global_sectors_excess, 0u);
  EXPECT_DOUBLE_EQ(coalescing_read(one), 4);  // all lanes ask for one word
}

TEST_F(Profiles, AnAtomicReadsAndWrites) {
  const Counters c = counted("red.global.add.u32 [%rd1], 1;");
  EXPECT_EQ(c.global_requests_read, 1u);
  EXPECT_EQ(c.global_requests_written, 1u);
  EXPECT_EQ(c.global_footprint_read, 32u);
  EXPECT_EQ(c.global_footprint_written, 32u);
}

// Every block reads the same 128 bytes; each writes 128 of its own, twice.
TEST_F(Profiles, TheFootprintHasEachSectorOfALaunchOnce) {
  const std::string ptx = kernel_text(
      "shl.b64 %rd3, %rd2, 2; add.s64 %rd3, %rd1, %rd3; ld.global.b32 %r3, [%rd3];\n"
      "mov.u32 %r4, %ctaid.x; mul.wide.u32 %rd4, %r4, 128; add.s64 %rd3, %rd3, %rd4;\n"
      "st.global.b32 [%rd3+4096], %r3; st.global.b32 [%rd3+4096], %r1;");
  const Profile::Kernel k = profiled(ptx, {{40, 1, 1}, {32, 1, 1}});
  EXPECT_EQ(k.counters.global_sectors_read, 40u * 4);
  EXPECT_EQ(k.counters.global_footprint_read, 128u);
  EXPECT_EQ(k.counters.global_sectors_written, 2 * 40u * 4);
  EXPECT_EQ(k.counters.global_footprint_written, 40u * 128);
  run(device_, ptx, "k", {{40, 1, 1}, {32, 1, 1}}, Params().add(a_));
  EXPECT_EQ(device_.counters().global_footprint_read, 2 * 128u);  // launches add up
}

TEST_F(Profiles, TheFootprintHoldsManyPages) {
  // Each of 8192 threads writes a page of its own.
  Buffer<std::uint8_t> big(device_, std::size_t{8192} * 4096);
  const std::string ptx = kernel_text(
      "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r4, %r4, 1024, %r1; mul.wide.u32 %rd3, %r4, 4096; add.s64 %rd3, %rd1, %rd3; "
      "st.global.b32 [%rd3], %r1;");
  device_.reset_counters();
  run(device_, ptx, "k", {{8, 1, 1}, {1024, 1, 1}}, Params().add(big));
  EXPECT_EQ(device_.counters().global_footprint_written, 8192u * 32);
}

TEST_F(Profiles, LanesAndDivergence) {
  // 8 of 32 lanes take the branch and meet the others again at L2.
  const Profile::Kernel k =
      profiled(kernel_text("setp.ge.u32 %p1, %r1, 8; @%p1 bra L1;\nmov.u32 %r3, 1;\nL1: mov.u32 %r4, 2;\n"
                           "@!%p1 mov.u32 %r5, 3;"));
  EXPECT_EQ(k.counters.divergent_branches, 1u);
  for (const Profile::Line& l : k.lines)
    for (const Profile::Instruction& i : l.instructions) {
      const std::uint64_t active = i.text == "mov.u32 %r3, 1" ? 8 : 32;
      EXPECT_EQ(i.counters.active_lanes, active) << i.text;
      EXPECT_EQ(i.counters.executing_lanes, i.text == "@!%p1 mov.u32 %r5, 3" ? 8
                                            : i.text == "@%p1 bra L1"        ? 24
                                                                             : active)
          << i.text;
    }
  EXPECT_LT(average_active_lanes(k.counters), 32);
  EXPECT_EQ(counted("setp.ge.u32 %p1, %r1, 64; @%p1 bra L1;\nmov.u32 %r3, 1;\nL1:").divergent_branches, 0u);
  EXPECT_DOUBLE_EQ(average_active_lanes(counted("", {{1, 1, 1}, {24, 1, 1}})), 24);
}

// Lanes that come to an instruction apart, since one path may end before it, pass it once, together.
TEST_F(Profiles, AnInstructionThatWaitsForLanesIsCountedOnce) {
  const Profile::Kernel k = profiled(
      kernel_text("setp.ge.u32 %p1, %r1, 8; setp.ge.u32 %p2, %r1, 64;\n@%p1 bra L1;\nL0: bar.warp.sync -1; ret;\n"
                  "L1: @%p2 ret; bra L0;"));
  std::uint64_t times = 0, lanes = 0;
  for (const Profile::Line& l : k.lines)
    for (const Profile::Instruction& i : l.instructions)
      if (i.text == "bar.warp.sync -1") times = i.counters.instructions, lanes = i.counters.active_lanes;
  EXPECT_EQ(times, 1u);
  EXPECT_EQ(lanes, 32u);
}

TEST_F(Profiles, SharedLocalAsyncAndMatrixWork) {
  const Counters c = counted(R"(
shl.b32 %r3, %r1, 3; add.u32 %r3, %r2, %r3; st.shared.b32 [%r3], 0;
mov.u64 %rd5, slot; st.local.b32 [%rd5], %r1; ld.local.b32 %r4, [%rd5];
shl.b32 %r6, %r1, 4; add.u32 %r6, %r2, %r6; mul.wide.u32 %rd6, %r1, 16; add.s64 %rd6, %rd1, %rd6; bar.sync 0;
cp.async.cg.shared.global [%r6+4096], [%rd6], 16; cp.async.wait_all;
mov.u32 %r10, 0;
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r20,%r21,%r22,%r23}, {%r10,%r10,%r10,%r10}, {%r10,%r10}, {%r10,%r10,%r10,%r10};)");
  EXPECT_EQ(c.bank_conflicts, 1u);
  EXPECT_EQ(c.local_bytes, 2u * 4 * 32);
  EXPECT_EQ(c.async_copies, 32u);
  EXPECT_EQ(c.async_bytes, 512u);
  EXPECT_EQ(c.global_bytes_read, 512u);
  EXPECT_EQ(c.matrix_flop, 2u * 16 * 8 * 16);
  EXPECT_EQ(c.barriers, 1u);
  EXPECT_EQ(device_.profile().kernels[0].flop, (std::map<std::string, std::uint64_t>{{"bf16", 2u * 16 * 8 * 16}}));
}

TEST_F(Profiles, LinesAreThoseOfTheProgram) {
  const Profile::Kernel k =
      profiled(kernel_text("shl.b64 %rd3, %rd2, 2;\n.loc 1 12 3\nadd.s64 %rd3, %rd1, %rd3;\nld.global.b32 %r3, "
                           "[%rd3];\n.loc 1 9 1\nst.global.b32 [%rd3], %r3;\n.loc 1 12 9\nadd.s32 %r3, %r3, 1;",
                           ".file 1 \"/nowhere/user.cpp\"\n"));
  ASSERT_EQ(k.lines.size(), 3u);
  EXPECT_EQ(k.lines[0].file, "");
  EXPECT_EQ(k.lines[1].file, "/nowhere/user.cpp");
  EXPECT_EQ(k.lines[1].line, 9u);
  EXPECT_EQ(k.lines[1].counters.global_sectors_written, 4u);
  EXPECT_EQ(k.lines[2].line, 12u);
  EXPECT_EQ(k.lines[2].instructions.size(), 4u);  // the ret is there, too
  EXPECT_EQ(k.lines[2].counters.global_sectors_read, 4u);
}

// A function that is called twice is expanded twice; its instructions are shown once.
TEST_F(Profiles, ExpandedFunctionsAddUp) {
  const Profile::Kernel k = profiled(kernel_text("{ call.uni f, (); }\n{ call.uni f, (); }",
                                                 ".func f()\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, 7;\nret;\n}\n"));
  std::size_t found = 0;
  for (const Profile::Line& l : k.lines)
    for (const Profile::Instruction& i : l.instructions)
      if (i.text == "mov.u32 %r1, 7") found += i.counters.instructions == 2 ? 1 : 100;
  EXPECT_EQ(found, 1u);
}

TEST_F(Profiles, DoNotDependOnHostThreads) {
  const std::string ptx = kernel_text(
      "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r4, %r4, 64, %r1; mul.wide.u32 %rd3, %r4, 12; add.s64 %rd3, %rd1, %rd3; "
      "ld.global.b32 %r3, [%rd3]; st.global.b32 [%rd3], %r1;");
  std::vector<std::string> json;
  for (const char* threads : {"1", "3"}) {
    const Knob host_threads("KILN_SIM_THREADS", threads);
    profiled(ptx, {{64, 1, 1}, {64, 1, 1}});
    json.push_back(to_json(device_.profile()));
  }
  EXPECT_EQ(json[0], json[1]);
}

TEST_F(Profiles, NothingIsKeptUnlessAskedFor) {
  const Device quiet = Device::simulator("sm_80");
  Buffer<std::uint32_t> b(quiet, 4);
  run(quiet, kernel_text(""), "k", {}, Params().add(b));
  EXPECT_TRUE(quiet.profile().kernels.empty());
  EXPECT_EQ(quiet.counters().launches, 1u);
}

TEST_F(Profiles, JsonHasTheDocumentedKeys) {
  profiled(kernel_text(".loc 1 3 1\nst.global.b32 [%rd1], %r1;", ".file 1 \"user.cpp\"\n"));
  const auto j = nlohmann::json::parse(to_json(device_.profile()));
  EXPECT_EQ(j["schema"], "kiln-profile-1");
  const auto& k = j["kernels"][0];
  EXPECT_EQ(k["kernel"], "k");
  EXPECT_EQ(k["counters"]["global_sectors_written"], 1);
  EXPECT_FALSE(k["counters"].contains("bank_conflicts"));  // 0 is left out
  EXPECT_EQ(k["instructions_by_class"]["store global"], 1);
  EXPECT_EQ(k["lines"][1]["line"], 3);
  EXPECT_EQ(k["lines"][1]["instructions"][0]["class"], "store global");
  EXPECT_DOUBLE_EQ(k["ratios"]["coalescing_written"], 4.0);
}

class ProfileFiles : public Profiles {
 protected:
  fs::path folder_ = fs::temp_directory_path() / ("kiln-profile-" + std::to_string(::getpid()));
  void SetUp() override {
    Profiles::SetUp();
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string source_with_kernel() {
    const fs::path file = folder_ / "user.cpp";
    std::ofstream(file) << "// first\nint unrelated;\nstore(a, x < 3 && y > \"4\");\n";
    return kernel_text(".loc 1 3 1\nmul.wide.u32 %rd3, %r1, 64; add.s64 %rd3, %rd1, %rd3; st.global.b32 [%rd3], %r1;",
                       ".file 1 \"" + file.string() + "\"\n");
  }
};

TEST_F(ProfileFiles, TheTableQuotesTheLines) {
  profiled(source_with_kernel());
  const std::string t = to_table(device_.profile());
  EXPECT_THAT(t,
              AllOf(HasSubstr("kernel k on simulator (sm_80"), HasSubstr("user.cpp:3  store(a, x < 3 && y > \"4\");"),
                    HasSubstr("28 sectors more than the bytes need"), HasSubstr("store global 1")));
  EXPECT_THAT(to_table(device_.profile(), ProfileBy::Kernel), Not(HasSubstr("user.cpp")));
  EXPECT_THAT(to_table(device_.profile(), ProfileBy::Ptx), HasSubstr("st.global.b32 [%rd3], %r1"));
  EXPECT_THAT(to_table(device_.profile(), ProfileBy::Ptx, 2), HasSubstr("… 6 more rows"));
}

TEST_F(ProfileFiles, TheListingIsOneFileThatEscapesWhatItQuotes) {
  profiled(source_with_kernel());
  const std::string html = to_html(device_.profile());
  EXPECT_THAT(html, AllOf(HasSubstr("store(a, x &lt; 3 &amp;&amp; y &gt; &quot;4&quot;);"), HasSubstr("int unrelated;"),
                          HasSubstr("uncoalesced: 88 % of the sectors too many"), HasSubstr("data-excess=\"28\"")));
  for (const char* outside : {"http:", "https:", "src=", "<link", "@import", "url("})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST_F(ProfileFiles, WithoutTheSourceThePtxIsTheListing) {
  profiled(kernel_text(".loc 1 3 1\nst.global.b32 [%rd1], %r1;", ".file 1 \"/nowhere/user.cpp\"\n"));
  EXPECT_THAT(to_html(device_.profile()), AllOf(HasSubstr("none of the program's files is at hand"),
                                                HasSubstr("st.global.b32 [%rd1], %r1    // /nowhere/user.cpp:3")));
  profiled(kernel_text("st.global.b32 [%rd1], %r1;"));
  EXPECT_THAT(to_html(device_.profile()), HasSubstr("the PTX names no lines of a program"));
}

TEST_F(ProfileFiles, TheNameSaysTheForm) {
  profiled(kernel_text(""));
  const Profile p = device_.profile();
  write_profile(p, folder_ / "p.json");
  EXPECT_EQ(read_file(folder_ / "p.json"), to_json(p));
  write_profile(p, folder_ / "p.html");
  write_profile(p, folder_ / "p.txt");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 3);  // nothing temporary is left
  EXPECT_THAT([&] { write_profile(p, folder_ / "p.csv"); },
              ThrowsMessage<UserError>(HasSubstr("must end in .json, .html or .txt, not '.csv'")));
  EXPECT_THAT([&] { write_profile(p, folder_ / "no" / "p.txt"); },
              ThrowsMessage<UserError>(HasSubstr("cannot write it")));
}

}  // namespace
}  // namespace kiln::test

// The program kiln-sim: what it prints, writes and ends with.
#include <cmath>
#include <cstring>

#include "runtime/tools/sim_case.h"
#include "tests/sim/kiln_sim_fixture.h"

namespace kiln::test {
namespace {

using rt::tools::Bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(KilnSim, AMatchEndsWithZero) {
  const ProcessResult r = run({"--case", add_case().string(), "--print", "3"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("y  4 i32: equal"), HasSubstr("11 12 13 …"),
                              HasSubstr("match: 1 of 1 buffers match, no findings")));
}

TEST_F(KilnSim, AMismatchSaysWhereAndHowMany) {
  add_case();
  write("y.out", words({11, 99, 13, 98}));
  const ProcessResult r =
      run({"--case", (folder_.path() / "add.json").string(), "--out", (folder_.path() / "o").string()});
  EXPECT_EQ(r.status, 1) << r.output;
  EXPECT_THAT(r.output, HasSubstr("2 of 4 wrong, first [1]: got 12, want 99; largest error 87"));
  EXPECT_EQ(read_file(folder_.path() / "o" / "y.out"), words({11, 12, 13, 14}));  // written all the same
  EXPECT_EQ(read_file(folder_.path() / "o" / "x.out"), words({1, 2, 3, 4}));
}

TEST_F(KilnSim, AFindingIsShownAsACompilerDoes) {
  write("add.cpp", "// one\nint two;\n  y[i] = x[i] + n;\n");
  std::string ptx = kAdd;
  ptx.replace(ptx.find("add.cpp"), 7, (folder_.path() / "add.cpp").string());
  add_case([](nlohmann::json& j) { j["args"][3]["value"] = 5; });
  write("add.ptx", ptx);
  const ProcessResult r = run({"--case", (folder_.path() / "add.json").string()});
  EXPECT_EQ(r.status, 2) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("add.cpp:3: error: out-of-bounds global load of 4 bytes"),
                              HasSubstr("     3 |   y[i] = x[i] + n;\n"), HasSubstr("       |   ^~~~~~~~~~~~~~~~\n"),
                              HasSubstr("the instruction is 'ld.global.b32 %r4, [%rd1]'"),
                              HasSubstr("in kernel add, block (0, 0, 0), warp 0, lane 4, thread (4, 0, 0)"),
                              HasSubstr("findings: 0 of 1 buffers match, 1 finding")));
}

TEST_F(KilnSim, WithoutTheSourceThePtxIsQuoted) {
  std::string ptx = kAdd;
  ptx.replace(ptx.find("add.cpp"), 7, "nowhere/add.cpp");
  add_case([](nlohmann::json& j) { j["args"][3]["value"] = 5; });
  write("add.ptx", ptx);
  const ProcessResult r = run({"--case", (folder_.path() / "add.json").string()});
  EXPECT_EQ(r.status, 2) << r.output;
  EXPECT_THAT(r.output,
              AllOf(HasSubstr("nowhere/add.cpp:3: error: out-of-bounds"), HasSubstr("    13 |   ld.global.b32 %r4")));
}

TEST_F(KilnSim, JsonIsTheOnlyOutput) {
  const ProcessResult good = run({"--case", add_case().string(), "--json"});
  const auto j = nlohmann::json::parse(good.output);
  EXPECT_EQ(j["schema"], "kiln-sim-1");
  EXPECT_EQ(j["verdict"], "match");
  EXPECT_EQ(j["buffers"][1]["matches"], true);
  EXPECT_FALSE(j["buffers"][0].contains("matches"));  // nothing says what x must hold
  EXPECT_EQ(j["counters"]["global_bytes_read"], 16);
  const std::string program = (bin_dir() / "kiln-sim").string();
  add_case([](nlohmann::json& c) { c["args"][3]["value"] = 5; });
  const ProcessResult bad =
      run_shell(program + " --json --case " + (folder_.path() / "add.json").string() + " 2>/dev/null");
  EXPECT_EQ(bad.status, 2);
  const auto f = nlohmann::json::parse(bad.output)["findings"][0];
  EXPECT_THAT(f["what"].get<std::string>(), ::testing::StartsWith("out-of-bounds global load"));
  EXPECT_EQ(f["where"], "add.cpp:3");
  EXPECT_EQ(f["lane"], 4);
}

TEST_F(KilnSim, TakesThePtxAndTheLaunchFromTheCommandLine) {
  const fs::path ptx = write("k.ptx", kAdd);
  const fs::path args = write("args.json", R"([{"kind": "buffer", "name": "x", "dtype": "i32", "values": [5, 6, 7]},
     {"kind": "buffer", "name": "y", "dtype": "i32", "shape": [3], "fill": "none"},
     {"kind": "u32", "value": 4294967295}, {"kind": "i32", "value": 3}])");
  const ProcessResult r =
      run({"--ptx", ptx.string(), "--args", args.string(), "--block", "3", "--grid", "1,1", "--print", "9"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("4 5 6"), HasSubstr("nothing to compare with")));
  EXPECT_THAT(run({"--ptx", ptx.string(), "--list"}).output,
              HasSubstr("add(x (8 bytes), y (8 bytes), n (4 bytes), count (4 bytes))"));
}

TEST_F(KilnSim, ArgumentsOfEveryKind) {
  const fs::path ptx = write("k.ptx", R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u8 a, .param .u16 b, .param .f32 c, .param .f64 d, .param .align 4 .b8 e[12], .param .u64 null)
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 %fd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u8 %r1, [a]; st.global.b32 [%rd1], %r1;
  ld.param.u16 %r1, [b]; st.global.b32 [%rd1+4], %r1;
  ld.param.b32 %r1, [c]; st.global.b32 [%rd1+8], %r1;
  ld.param.f64 %fd1, [d]; cvt.rzi.s32.f64 %r1, %fd1; st.global.b32 [%rd1+12], %r1;
  ld.param.b32 %r1, [e+8]; st.global.b32 [%rd1+16], %r1;
  ld.param.u64 %rd2, [null]; cvt.u32.u64 %r1, %rd2; st.global.b32 [%rd1+20], %r1;
  ret;
}
)");
  const fs::path args = write("args.json", R"({"threads": 1, "args": [
     {"kind": "buffer", "name": "out", "dtype": "u32", "shape": [6], "fill": {"byte": 255}},
     {"kind": "i8", "value": -1}, {"kind": "bf16", "value": 1.0}, {"kind": "fp32", "value": "inf"}, {"kind": "f64", "value": -7.5},
     {"kind": "bytes", "values": [0,0,0,0, 0,0,0,0, 1,2,0,0]}, {"kind": "null"}]})");
  const ProcessResult r = run({"--ptx", ptx.string(), "--args", args.string(), "--print", "9"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("255 16256 2139095040 4294967289 513 0"));
}

/// Copies the box of 4×4 at (column, row) of `from` through shared memory to the same place of `to`.
constexpr const char* kBoxCopy = R"(.version 8.3
.target sm_90a
.address_size 64
.visible .entry box(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u32 column, .param .u32 row)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 128 .b8 tile[64]; .shared .align 8 .b8 bar[8];
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 ret;
  mov.b64 %rd1, from; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, to; cvta.param.u64 %rd2, %rd2;
  ld.param.u32 %r2, [column]; ld.param.u32 %r3, [row]; mov.u32 %r4, tile; mov.u32 %r5, bar;
  mbarrier.init.shared::cta.b64 [%r5], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r5], 64;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], [%rd1, {%r2, %r3}], [%r5];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0; @!%p2 bra W;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r2, %r3}], [%r4];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
  ret;
}
)";

TEST_F(KilnSim, TensorMapsAreOfBuffersByName) {
  const auto copied = [&](const std::string& maps, const std::string& at, std::vector<std::string> more = {}) {
    const fs::path json = write("box.json", R"({"threads": 32, "args": [)" + maps + R"(,
      {"kind": "u32", "value": )" + at + R"(}, {"kind": "u32", "value": 2},
      {"kind": "buffer", "name": "x", "dtype": "f32", "shape": [8, 8], "fill": {"iota": [0, 1]}, "passed": false},
      {"kind": "buffer", "name": "y", "dtype": "f32", "shape": [8, 8], "fill": 0, "passed": false}]})");
    write("box.ptx", kBoxCopy);
    more.insert(more.begin(), {"--case", json.string(), "--out", (folder_.path() / "out").string()});
    return run(more);
  };
  const auto element = [&](int row, int column) {
    float v;
    std::memcpy(&v, read_file(folder_.path() / "out" / "y.out").data() + 4 * (8 * row + column), 4);
    return v;
  };
  const std::string to = R"({"kind": "tensor_map", "of": "y", "box": [4, 4], "swizzle": "none"})";
  const ProcessResult r = copied(R"({"kind": "tensor_map", "of": "x", "box": [4, 4]},)" + to, "4");
  EXPECT_EQ(r.status, 0) << r.output;
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) {
      const bool inside = row >= 2 && row < 6 && column >= 4;
      EXPECT_EQ(element(row, column), inside ? static_cast<float>(8 * row + column) : 0) << row << ", " << column;
    }
  // A tensor of six columns, from its second row on; beyond its edge is NaN.
  EXPECT_EQ(copied(R"({"kind": "tensor_map", "of": "x", "offset": 32, "sizes": [6, 7], "strides": [32], "box": [4, 4],
      "steps": [1, 1], "fill": "nan", "promotion": 128, "floats": "as is"},)" +
                       to,
                   "4")
                .status,
            0);
  EXPECT_EQ(element(2, 4), 28);
  EXPECT_EQ(element(5, 5), 53);
  EXPECT_TRUE(std::isnan(element(2, 6)));

  const auto refused = [&](const std::string& map) {
    const ProcessResult bad = copied(map + "," + to, "0");
    EXPECT_EQ(bad.status, 3) << bad.output;
    return bad.output;
  };
  EXPECT_THAT(refused(R"({"kind": "tensor_map", "of": "z", "box": [4, 4]})"),
              HasSubstr("box.json: args[0].of is 'z', which is no buffer; there are x, y"));
  EXPECT_THAT(refused(R"({"kind": "tensor_map", "of": "x"})"), HasSubstr("args[0] has no 'box'"));
  EXPECT_THAT(refused(R"({"kind": "tensor_map", "of": "x", "box": [4]})"),
              HasSubstr("args[0].box has 1 numbers; must be 2"));
  EXPECT_THAT(refused(R"({"kind": "tensor_map", "of": "x", "box": [4, 4], "swizzle": 16})"),
              HasSubstr("args[0].swizzle is 16; must be one of none, 32, 64, 128"));
  EXPECT_THAT(refused(R"({"kind": "tensor_map", "of": "x", "box": [4, 4], "colour": 1})"),
              HasSubstr("args[0] has an unknown key 'colour'"));
  EXPECT_THAT(refused(R"({"kind": "tensor_map", "of": "x", "box": [4, 512]})"),
              AllOf(HasSubstr("box.json: args[0]: "), HasSubstr("512")));
}

TEST_F(KilnSim, TheScheduleDecidesWhenCopiesTakeEffect) {
  // The wait for the copy is missing: right only where copies take effect at once.
  const fs::path ptx = write("k.ptx", R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
  .reg .b32 %r<4>; .reg .b64 %rd<3>; .shared .align 16 .b8 tile[4];
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, tile; mov.u32 %r2, 7; st.shared.b32 [%r1], %r2;
  cp.async.ca.shared.global [%r1], [%rd1], 4; ld.shared.b32 %r3, [%r1]; st.global.b32 [%rd2], %r3;
  ret;
}
)");
  write("y.out", words({5}));
  const fs::path args = write("a.json", R"([{"kind": "buffer", "name": "x", "dtype": "i32", "values": [5]},
     {"kind": "buffer", "name": "y", "dtype": "i32", "shape": [1], "fill": 0}])");
  const auto with = [&](const std::string& schedule) {
    return run({"--ptx", ptx.string(), "--args", args.string(), "--check", "none", "--schedule", schedule});
  };
  EXPECT_EQ(with("early").status, 0);
  EXPECT_EQ(with("late").status, 1);
  EXPECT_THAT(with("late").output, HasSubstr("got 7, want 5"));
  EXPECT_LE(with("random:3").status, 1);
  EXPECT_THAT(with("random:3").output, with("random:3").output);
  EXPECT_EQ(with("soon").status, 3);
  EXPECT_THAT(with("soon").output, HasSubstr("soon"));
}

TEST_F(KilnSim, ChecksCanBeChosen) {
  const auto nobody_wrote = [](nlohmann::json& j) { j["args"][0].erase("file"), j["args"][0]["fill"] = "none"; };
  const auto with = [&](const std::string& checks) { return run_case(nobody_wrote, {"--check", checks}); };
  EXPECT_EQ(with("all").status, 2);
  EXPECT_EQ(with("races,uninit").status, 2);
  EXPECT_THAT(with("uninit").output, HasSubstr("error: uninitialised global load of 4 bytes"));
  EXPECT_EQ(with("races").status, 1);  // what it computes is wrong all the same
  EXPECT_EQ(with("none").status, 1);
  EXPECT_EQ(with("everything").status, 3);
  EXPECT_THAT(with("everything").output, HasSubstr("'everything'; the checks are races, uninit, registers"));
}

TEST_F(KilnSim, TheDebuggerReadsItsCommands) {
  const std::string commands = "printf 'b ptx:14\nc\np %%r3\nwhere\nc\n' | " + (bin_dir() / "kiln-sim").string();
  const ProcessResult r = run_shell(commands + " --debug --case " + add_case().string() + " 2>&1");
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("breakpoint 1"), HasSubstr("%r3 = 0"),
                              HasSubstr("add, block (0, 0, 0), warp 0"), HasSubstr("match: 1 of 1 buffers match")));
}

TEST_F(KilnSim, AnInterruptStopsTheKernelAtThePrompt) {
  write("k.ptx",
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<2>;\nmov.u32 "
        "%r1, 7;\nL: add.u32 %r0, %r0, 1; bra L;\n}\n");
  // The first stop is at the kernel's beginning; from then on an interrupt asks for another.
  const ProcessResult r =
      run_shell("cd " + folder_.path().string() + "; mkfifo in; " + (bin_dir() / "kiln-sim").string() +
                " --debug --ptx k.ptx < in > out 2>&1 & cd " + folder_.path().string() +
                "; p=$!; while ! [ -p in ]; do sleep 0.01; done; exec 3> in; while ! grep -q "
                "breakpoint out; do sleep 0.01; done; echo c >&3; kill -INT $p; echo 'p %r1' >&3; "
                "echo q >&3; wait $p; echo status $?; cat out");
  EXPECT_THAT(r.output, AllOf(HasSubstr("interrupted\nk, block (0, 0, 0), warp 0"), HasSubstr("ended in the debugger"),
                              HasSubstr("status 2")));
}

TEST_F(KilnSim, FillPatterns) {
  const auto before = [&](const std::string& dtype, const std::string& fill) {
    write("k.ptx", kAdd);
    const fs::path json = write("k.json", R"({"args": [{"kind": "buffer", "name": "b", "dtype": ")" + dtype +
                                              R"(", "shape": [2, 2], "fill": )" + fill + "}]}");
    return rt::tools::read_case(json).args[0].before;
  };
  EXPECT_EQ(before("u8", "7"), (Bytes{7, 7, 7, 7}));
  EXPECT_EQ(before("u8", R"({"iota": [250, 1]})"), (Bytes{250, 251, 252, 253}));
  EXPECT_EQ(before("f16", "1"), (Bytes{0, 0x3C, 0, 0x3C, 0, 0x3C, 0, 0x3C}));
  EXPECT_TRUE(before("f16", "\"none\"").empty());
  const Bytes random = before("u8", R"({"random": [10, 12], "seed": 3})");
  EXPECT_EQ(random, before("u8", R"({"random": [10, 12], "seed": 3})"));
  for (const std::uint8_t v : random) EXPECT_TRUE(v >= 10 && v <= 12);
  EXPECT_NE(before("f64", R"({"random": [0, 1], "seed": 3})"), before("f64", R"({"random": [0, 1], "seed": 4})"));
}

TEST_F(KilnSim, ProfilesAreWrittenAndPrinted) {
  const fs::path html = folder_.path() / "p.html", json = folder_.path() / "p.json";
  const ProcessResult r =
      run({"--case", add_case().string(), "--profile", html.string(), "--profile", json.string(), "--by", "ptx"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("st.global.b32 [%rd2], %r4"));
  EXPECT_EQ(nlohmann::json::parse(read_file(json))["kernels"][0]["kernel"], "add");
  EXPECT_THAT(read_file(html), HasSubstr("</html>"));
}

TEST_F(KilnSim, TheEnvironmentAsksForAProfileOfAnyProgram) {
  const fs::path json = folder_.path() / "all-%p.json";
  const ProcessResult r = run_program({(bin_dir() / "kiln-sim").string(), "--case", add_case().string()},
                                      {"KILN_SIM_PROFILE=" + json.string()});
  EXPECT_EQ(r.status, 0) << r.output;
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    if (entry.path().filename().string().starts_with("all-")) {
      ++found;
      EXPECT_THAT(entry.path().filename().string(), AllOf(Not(HasSubstr("%p")), Not(HasSubstr("tmp"))));
      EXPECT_EQ(nlohmann::json::parse(read_file(entry.path()))["kernels"].size(), 1u);
    }
  EXPECT_EQ(found, 1u);
}

TEST_F(KilnSim, StepsAreLimited) {
  const fs::path ptx =
      write("k.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nL: bra L;\n}\n");
  const ProcessResult r = run({"--ptx", ptx.string(), "--steps", "1000"});
  EXPECT_EQ(r.status, 2) << r.output;
  EXPECT_THAT(r.output, HasSubstr("1000"));
}

TEST_F(KilnSim, RunsFromAMovedBuildFolder) {
  const fs::path moved = folder_.path() / "moved";
  fs::create_directories(moved / "bin");
  fs::copy(lib_dir(), moved / "lib", fs::copy_options::recursive);
  fs::copy(bin_dir() / "kiln-sim", moved / "bin" / "kiln-sim");
  const ProcessResult r = run_program({(moved / "bin" / "kiln-sim").string(), "--case", add_case().string()});
  EXPECT_EQ(r.status, 0) << r.output;
}

}  // namespace
}  // namespace kiln::test

// kiln-sim as a process, with a case of four elements in a folder of its own.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/sim/data_files.h"
#include "tests/support/build_tree.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {

namespace fs = std::filesystem;

/// y[i] = x[i] + n for the i below `count`, by threads of one block.
constexpr const char* kAdd = R"(.version 8.0
.target sm_80
.address_size 64
.file 1 "add.cpp"
.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 count)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  .loc 1 2 1
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [count];
  mov.u32 %r3, %tid.x; setp.ge.u32 %p1, %r3, %r2; @%p1 ret;
  mul.wide.u32 %rd3, %r3, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
  .loc 1 3 3
  ld.global.b32 %r4, [%rd1]; add.s32 %r4, %r4, %r1; st.global.b32 [%rd2], %r4;
  ret;
}
)";

class KilnSim : public ::testing::Test {
 protected:
  TemporaryFolder folder_;

  fs::path write(const std::string& name, const std::string& contents) {
    std::ofstream(folder_.path() / name, std::ios::binary) << contents;
    return folder_.path() / name;
  }
  static std::string words(const std::vector<std::int32_t>& v) {
    return {reinterpret_cast<const char*>(v.data()), 4 * v.size()};
  }
  /// A case of four elements that matches, with `change` made to its JSON.
  fs::path add_case(const std::function<void(nlohmann::json&)>& change = [](nlohmann::json&) {}) {
    write("add.ptx", kAdd);
    write("x.in", words({1, 2, 3, 4}));
    write("y.in", words({0, 0, 0, 0}));
    write("y.out", words({11, 12, 13, 14}));
    nlohmann::json j = {{"entry", "add"},
                        {"threads", 32},
                        {"grid", {1, 1, 1}},
                        {"shared", 0},
                        {"args",
                         {{{"name", "x"}, {"kind", "buffer"}, {"dtype", "i32"}, {"shape", {4}}},
                          {{"name", "y"}, {"kind", "buffer"}, {"dtype", "i32"}, {"shape", {2, 2}}, {"written", true}},
                          {{"name", "n"}, {"kind", "i32"}, {"value", 10}},
                          {{"name", "count"}, {"kind", "u32"}, {"value", 4}}}}};
    change(j);
    return write("add.json", j.dump());
  }
  ProcessResult run(std::vector<std::string> argv) {
    argv.insert(argv.begin(), (bin_dir() / "kiln-sim").string());
    return run_program(argv);
  }
  ProcessResult run_case(const std::function<void(nlohmann::json&)>& change, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--case", add_case(change).string()});
    return run(more);
  }
};

}  // namespace kiln::test

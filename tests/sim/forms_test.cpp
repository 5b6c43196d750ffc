// What of the scalar instructions the simulator takes and what it refuses: forms/sm_90a.txt has one form a line, "- "
// before those that are refused. NVIDIA's assembler, where it is installed, takes all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/base/error.h"
#include "tests/sim/data_files.h"
#include "tests/sim/ptx_fixture.h"
#include "tests/support/ptxas.h"

namespace kiln::test {
namespace {

struct Line {
  std::string text;
  bool refused;
};

std::vector<Line> forms() {
  std::istringstream in(read_file(data_folder() / "forms" / "sm_90a.txt"));
  std::vector<Line> out;
  for (std::string line; std::getline(in, line);) {
    const bool refused = line.starts_with("- ");
    out.push_back({refused ? line.substr(2) : line, refused});
  }
  return out;
}

std::string kernel(const std::string& body) {
  return R"(.version 8.7
.target sm_90a
.address_size 64
.const .align 16 .b8 con[64];
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<9>; .reg .b16 %rs<20>; .reg .b32 %r<20>; .reg .b64 %rd<16>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
  .reg .b128 %rq<4>; .shared .align 16 .b8 sh[256]; .local .align 16 .b8 loc[64];
)" + body +
         "\n  ret;\n}\n";
}

TEST(Forms, AreTakenOrRefusedByName) {
  const Device device = Device::simulator("sm_90a");
  for (const Line& line : forms()) {
    std::string why;
    try {
      load(device, kernel(line.text), "k");
    } catch (const DeviceError& e) {
      why = e.what();
    }
    if (!line.refused) {
      EXPECT_EQ(why, "") << line.text;
      continue;
    }
    // The instruction and its line are named.
    EXPECT_THAT(why, ::testing::HasSubstr("unsupported instruction: ")) << line.text;
    EXPECT_THAT(why, ::testing::HasSubstr("(ptx line 9: ")) << line.text;
  }
}

TEST(Forms, ArePtx) {
  const auto tool = ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  std::string body;
  for (const Line& line : forms()) body += line.text + "\n";
  const Assembly a = assemble(*tool, kernel(body), "sm_90a");
  EXPECT_TRUE(a.accepted) << a.log;
}

}  // namespace
}  // namespace kiln::test

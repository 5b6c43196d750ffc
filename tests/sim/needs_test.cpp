// What an instruction needs of its module's target and version of PTX: what an assembler refuses there is refused by
// name, and what it takes is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "runtime/base/error.h"
#include "tests/sim/data_files.h"
#include "tests/sim/ptx_fixture.h"
#include "tests/support/process.h"
#include "tests/support/ptxas.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Module {
  std::string target, version;
};
// Those between which needs.def draws a line.
const std::vector<Module> kModules = {{"sm_80", "7.0"},  {"sm_80", "7.4"},  {"sm_80", "7.8"},   {"sm_80", "8.7"},
                                      {"sm_86", "8.7"},  {"sm_89", "8.0"},  {"sm_89", "8.7"},   {"sm_90", "7.8"},
                                      {"sm_90", "8.7"},  {"sm_90a", "8.0"}, {"sm_90a", "8.3"},  {"sm_90a", "8.7"},
                                      {"sm_100", "8.6"}, {"sm_100", "8.8"}, {"sm_100a", "8.8"}, {"sm_120a", "8.8"}};

std::vector<std::string> forms() {
  std::istringstream in(read_file(data_folder() / "forms" / "needs.txt"));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

constexpr std::size_t kFirstLine = 8;  // of a kernel's body
std::string kernel(const Module& m, const std::string& body) {
  const bool wide = m.version >= "8.3";
  return ".version " + m.version + "\n.target " + m.target +
         "\n.address_size 64\n.global .align 16 .b8 gv[64];\n.visible .entry k(.param .u64 p0)\n{\n"
         "  .reg .pred %p<9>; .reg .b16 %rs<20>; .reg .b32 %r<20>; .reg .b64 %rd<16>; .reg .f32 %f<9>; .reg .f64 "
         "%fd<9>;" +
         (wide ? " .reg .b128 %q<4>;" : "") + "\n" + body + "\n  ret;\n}\n";
}

/// Empty if the simulator takes it, else why not.
std::string refusal(const Device& device, const Module& m, const std::string& form) {
  try {
    load(device, kernel(m, form), "k");
  } catch (const DeviceError& e) {
    return e.what();
  }
  return {};
}

/// Indices of the forms that the assembler refuses.
std::set<std::size_t> refused_by(const std::filesystem::path& tool, const Module& m,
                                 const std::vector<std::string>& all) {
  std::set<std::size_t> out;
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].find("%q") != std::string::npos && m.version < "8.3") out.insert(i);  // no such registers yet
    else left.push_back(i);
  }
  while (!left.empty()) {
    std::string body;
    for (const std::size_t i : left) body += all[i] + "\n";
    const Assembly a = assemble(tool, kernel(m, body), m.target);
    if (a.accepted) break;
    std::set<std::size_t> lines;
    std::istringstream log(a.log);
    for (std::string line; std::getline(log, line);) {
      const std::size_t at = line.find(", line "), error = std::min(line.find("; error"), line.find("; fatal"));
      if (at != std::string::npos && error != std::string::npos)
        lines.insert(std::stoul(line.substr(at + 7)) - kFirstLine);
    }
    if (lines.empty()) {
      ADD_FAILURE() << m.target << " " << m.version << ": " << a.log;
      break;
    }
    std::vector<std::size_t> rest;
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (lines.contains(k)) out.insert(left[k]);
      else rest.push_back(left[k]);
    }
    left = std::move(rest);
  }
  return out;
}

TEST(Needs, AreThoseOfTheAssembler) {
  const auto tool = ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  const std::vector<std::string> all = forms();
  ASSERT_GT(all.size(), 300u);
  const Device device = Device::simulator("sm_120a"), hopper = Device::simulator("sm_90a"),
               blackwell = Device::simulator("sm_100a");
  for (const Module& m : kModules) {
    const std::set<std::size_t> refused = refused_by(*tool, m, all);
    const Device& on = m.target == "sm_90a" ? hopper : m.target == "sm_100a" ? blackwell : device;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string why = refusal(on, m, all[i]);
      EXPECT_EQ(why.empty(), !refused.contains(i)) << m.target << ", PTX " << m.version << ": " << all[i] << "\n"
                                                   << why;
    }
  }
}

TEST(Needs, AMessageNamesTheInstructionWhatItNeedsAndTheModule) {
  const Device device = Device::simulator("sm_90a");
  EXPECT_THAT(refusal(device, {"sm_80", "8.7"}, "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;"),
              AllOf(HasSubstr("needs sm_89 or later, the module is for sm_80"),
                    HasSubstr("(ptx line 8: cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2)")));
  EXPECT_THAT(refusal(device, {"sm_90", "8.7"}, "wgmma.fence.sync.aligned;"),
              HasSubstr("needs sm_90a, the module is for sm_90"));
  EXPECT_THAT(refusal(device, {"sm_90", "7.8"}, "elect.sync %r1|%p1, -1;"),
              HasSubstr("needs PTX 8.0 or later, the module is of 7.8"));
  EXPECT_THAT(refusal(device, {"sm_80", "8.7"}, "mov.u32 %r1, %clusterid.x;"),
              HasSubstr("%clusterid.x needs sm_90 or later, the module is for sm_80"));
}
TEST(Needs, ATargetNeedsAVersion) {
  EXPECT_THAT(refusal(Device::simulator("sm_90a"), {"sm_90", "7.7"}, ""),
              HasSubstr("sm_90 needs PTX 7.8 or later, the module is of 7.7"));
  EXPECT_EQ(refusal(Device::simulator("sm_90a"), {"sm_90", "7.8"}, ""), "");
}

}  // namespace
}  // namespace kiln::test

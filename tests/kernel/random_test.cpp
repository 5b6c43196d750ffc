// Random kernels: interpreter, simulators and GPUs must leave the same memory. `kiln fuzz` runs more of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "backend/ir/text.h"
#include "dsl/tools/fuzz/campaign.h"
#include "runtime/base/error.h"

namespace kiln::fuzz {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::vector<std::string> keys(const std::map<std::string, std::uint64_t>& m) {
  std::vector<std::string> out;
  for (const auto& [k, n] : m) out.push_back(k);
  return out;
}

TEST(Random, EveryMachineAgreesWithTheInterpreter) {
  Campaign c;
  c.count = 100000;
  c.seconds = 60;
  std::printf("programs from seed %llu on\n", static_cast<unsigned long long>(c.first));
  c.run();
  std::printf("%s\n", c.json().c_str());
  if (c.failure)
    FAIL() << "seed " << c.failure->program.seed << " on " << c.failure->device << "\n"
           << c.failure->difference << c.failure->program.text();
}

TEST(Random, ProgramsHaveEveryOpThatHasOneMeaning) {
  // Not those whose result is text, whose operands are PTX, or that other stages make.
  const std::vector<std::string> none{"convert", "opaque", "alloc", "barrier", "inline_ptx", "print", "assert"};
  Campaign c;
  std::map<std::string, std::uint64_t> ops;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const ir::Function f = random_program(seed, kSteps).function;
    walk(f, [&](ir::InstId i) { ++ops[ir::mnemonic(f.inst(i).op)]; });
  }
  std::vector<std::string> wanted;
  for (int k = 0; k < ir::kOpCount; ++k)
    if (const std::string m = ir::mnemonic(ir::Op(k)); std::find(none.begin(), none.end(), m) == none.end())
      wanted.push_back(m);
  EXPECT_THAT(keys(ops), IsSupersetOf(wanted));
}

TEST(Random, ASeedIsOneProgram) {
  EXPECT_EQ(random_program(7, kSteps).text(), random_program(7, kSteps).text());
  EXPECT_NE(random_program(7, kSteps).text(), random_program(8, kSteps).text());
}

TEST(Random, TextIsReadBack) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Program p = random_program(seed, kSteps);
    EXPECT_EQ(parse(p.text(), "text").text(), p.text());
  }
  EXPECT_THROW(parse("kernel", "text"), UserError);
}

class Planted : public ::testing::TestWithParam<const char*> {};
TEST_P(Planted, AWrongOpIsFoundAndMadeSmall) {
  Campaign c;
  c.planted = ir::op_named(GetParam());
  c.count = 300;
  c.run();
  ASSERT_TRUE(c.failure);
  int n = 0, planted = 0;
  walk(c.failure->program.function, [&](ir::InstId i) {
    ++n;
    planted += c.failure->program.function.inst(i).op == *c.planted;
  });
  EXPECT_GE(planted, 1);
  EXPECT_LE(n, 80) << c.failure->program.text();
  // It fails again when it is read back, and only because of the planted op.
  const Program again = parse(c.failure->program.text(), "text");
  EXPECT_NE(difference(Device::simulator(), again, c.planted), "");
  EXPECT_EQ(difference(Device::simulator(), again), "");
  EXPECT_THAT(c.json(), HasSubstr("\"differences\":1"));
}
INSTANTIATE_TEST_SUITE_P(Ops, Planted,
                         ::testing::Values("mul", "select", "for", "if", "cast", "exp", "store", "reduce", "cat"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace kiln::fuzz

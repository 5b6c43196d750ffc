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
  EXPECT_LE(c.refused, c.programs / 50) << "too few programs are compared";
}

TEST(Random, ProgramsHaveEveryOpThatHasOneMeaning) {
  // Not those whose result is text, whose operands are PTX, or that other stages make.
  const std::vector<std::string> none{"convert",  "opaque",     "alloc",  "barrier", "inline_ptx",  "print",
                                      "assert",   "name",       "block",  "fill",    "take",        "release",
                                      "ring_dot", "partitions", "settle", "fetch",   "store_block", "walk"};
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

/// Programs that once differed, made small.
constexpr const char* kFound[] = {
    // A store behind a while loop did not wait for those of its body.
    R"(// seed 20048
// programs 1 1 1
// warps 8
// arguments 464 1 300 500
kernel "random" stage=traced
param : ptr<f32> access=readwrite align=16
param : u8 access=read
param : index access=read
param : index access=read
{
  %0 = program_id axis=2 : index
  %1 = num_programs axis=1 : index
  %2 = program_id axis=1 : index
  %3 = mul %0, %1 : index
  %4 = add %3, %2 : index
  %5 = num_programs axis=0 : index
  %6 = program_id axis=0 : index
  %7 = mul %4, %5 : index
  %8 = add %7, %6 : index
  %9 = param index=0 : ptr<f32>
  %10 = arange start=0 end=32 : tile<32xindex>
  %11 = constant value=index(-2) : index
  %12 = splat %11 : tile<32xindex>
  %13 = mul %10, %12 : tile<32xindex>
  %14 = constant value=index(2944) : index
  %15 = constant value=index(8192) : index
  %16 = mul %8, %15 : index
  %17 = ptr_add %9, %16 : ptr<f32>
  %18 = ptr_add %17, %14 : ptr<f32>
  %19 = splat %18 : tile<32xptr<f32>>
  %20 = ptr_add %19, %13 : tile<32xptr<f32>>
  %21 = constant value=f32(9) : f32
  %22 = splat %21 : tile<32xf32>
  store cache=evict_first %20, %22
  %23 = constant value=u8(0) : u8
  %24 = while %23 : u8 {(%25 : u8)
    %26 = param index=1 : u8
    %27 = lt %25, %26 : i1
    yield %27
  } {(%28 : u8)
    %29 = arange start=38 end=538 : tile<500xindex>
    %30 = param index=2 : index
    %31 = splat %30 : tile<500xindex>
    %32 = add %29, %31 : tile<500xindex>
    %33 = param index=3 : index
    %34 = splat %33 : tile<500xindex>
    %35 = rem %32, %34 : tile<500xindex>
    %36 = constant value=index(8192) : index
    %37 = mul %8, %36 : index
    %38 = cast %35 : tile<500xi32>
    %39 = ptr_add %9, %37 : ptr<f32>
    %40 = splat %39 : tile<500xptr<f32>>
    %41 = ptr_add %40, %38 : tile<500xptr<f32>>
    %42 = constant value=f32(0) : f32
    %43 = splat %42 : tile<500xf32>
    store cache=no_allocate %41, %43
    %44 = constant value=u8(1) : u8
    %45 = add %28, %44 : u8
    yield %45
  }
  %46 = arange start=0 end=500 : tile<500xindex>
  %47 = constant value=index(8192) : index
  %48 = mul %8, %47 : index
  %49 = ptr_add %9, %48 : ptr<f32>
  %50 = splat %49 : tile<500xptr<f32>>
  %51 = ptr_add %50, %46 : tile<500xptr<f32>>
  %52 = constant value=f32(9) : f32
  %53 = splat %52 : tile<500xf32>
  store cache=streaming %51, %53
}
)"};

TEST(Random, WhatDifferedOnceAgrees) {
  for (const char* text : kFound)
    for (const Device& d : Device::all()) EXPECT_EQ(difference(d, parse(text, "text")), "") << d.name() << "\n" << text;
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

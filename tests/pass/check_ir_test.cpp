// The matcher behind every pass test: that it accepts what it should, and above all that it fails.
#include "tests/support/check_ir.h"

#include <gmock/gmock.h>

namespace kiln::test {
namespace {

using testing::HasSubstr;

const char* const kOutput = R"(
%0 = param 0
%1 = load %0
%2 = relu %1
%3 = relu   %1
store %0, %2
)";

std::string run(const std::string& checks) { return IrChecks(checks).match(kOutput); }

TEST(CheckIr, AcceptsLinesInOrder) { EXPECT_EQ(run("// CHECK: load %0\n// CHECK: store"), ""); }

TEST(CheckIr, RefusesLinesOutOfOrder) {
  EXPECT_THAT(run("// CHECK: store\n// CHECK: load %0"), HasSubstr("CHECK: load %0\nno match; searching from line 7"));
}

TEST(CheckIr, RefusesAMissingLine) { EXPECT_NE(run("// CHECK: exp"), ""); }

TEST(CheckIr, TakesLiteralTextLiterally) {
  EXPECT_NE(run("// CHECK: l..d"), "");
  EXPECT_EQ(IrChecks("// CHECK: a(b)[0]*+?{x}").match("a(b)[0]*+?{x}"), "");
}

TEST(CheckIr, SqueezesBlanks) { EXPECT_EQ(run("// CHECK: %3   =  relu %1"), ""); }

TEST(CheckIr, NextMeansTheNextLine) {
  EXPECT_EQ(run("// CHECK: load\n// CHECK-NEXT: %2 = relu"), "");
  EXPECT_NE(run("// CHECK: load\n// CHECK-NEXT: %3 = relu"), "");
  EXPECT_NE(run("// CHECK: store\n// CHECK-NEXT: relu"), "");
}

TEST(CheckIr, NotHoldsBetweenMatches) {
  EXPECT_EQ(run("// CHECK: param\n// CHECK-NOT: relu\n// CHECK: load\n// CHECK: relu"), "");
  EXPECT_NE(run("// CHECK: param\n// CHECK-NOT: load\n// CHECK: relu"), "");
}

TEST(CheckIr, NotHoldsToTheEnd) {
  EXPECT_EQ(run("// CHECK: store\n// CHECK-NOT: relu"), "");
  EXPECT_NE(run("// CHECK: load\n// CHECK-NOT: store"), "");
  EXPECT_NE(run("// CHECK-NOT: store"), "");
}

TEST(CheckIr, DagTakesAnyOrder) {
  EXPECT_EQ(run("// CHECK-DAG: store\n// CHECK-DAG: load"), "");
  EXPECT_NE(run("// CHECK-DAG: store\n// CHECK-DAG: exp"), "");
}

TEST(CheckIr, DagNeedsALineForEachPattern) {
  EXPECT_EQ(run("// CHECK-DAG: relu\n// CHECK-DAG: relu"), "");
  EXPECT_NE(run("// CHECK-DAG: relu\n// CHECK-DAG: relu\n// CHECK-DAG: relu"), "");
}

TEST(CheckIr, WhatFollowsADagRunIsBehindAllOfIt) {
  EXPECT_NE(run("// CHECK-DAG: store\n// CHECK-DAG: param\n// CHECK: relu"), "");
}

TEST(CheckIr, RemembersAndRecallsVariables) {
  EXPECT_EQ(run("// CHECK: [[X:%[0-9]+]] = load\n// CHECK: [[Y:%[0-9]+]] = relu [[X]]\n// CHECK: store %0, [[Y]]"), "");
  EXPECT_NE(run("// CHECK: [[X:%[0-9]+]] = load\n// CHECK: store %0, [[X]]"), "");
}

TEST(CheckIr, VariablesMayEndInABracket) { EXPECT_EQ(run("// CHECK: %[[X:[0-9]]] = load\n// CHECK: relu %[[X]]"), ""); }

TEST(CheckIr, CountsGroupsInsideRegexes) {
  EXPECT_EQ(run("// CHECK: {{(%)}}[[X:(1|2)]] = load\n// CHECK: relu %[[X]]"), "");
}

TEST(CheckIr, RefusesUnknownVariables) { EXPECT_THAT(run("// CHECK: relu [[NOBODY]]"), HasSubstr("unknown variable")); }

TEST(CheckIr, RefusesMalformedChecks) {
  EXPECT_THAT(run("// CHECK-NXT: load"), HasSubstr("malformed check"));
  EXPECT_THAT(run("// CHECK:"), HasSubstr("malformed check"));
  EXPECT_NE(run("// CHECK: {{(}}"), "");
}

TEST(CheckIr, RefusesATextWithoutChecks) { EXPECT_THAT(run("%0 = param 0"), HasSubstr("no CHECK line")); }

TEST(CheckIr, StripLeavesTheRest) {
  EXPECT_EQ(IrChecks::strip("kernel\n  // CHECK: x\n  // a remark\nend"), "kernel\n// a remark\nend\n");
}

}  // namespace
}  // namespace kiln::test

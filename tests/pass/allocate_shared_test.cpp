#include "runtime/base/error.h"
#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;

/// Scalars loaded before a loop need scratch of 8 bytes each.
std::string loads(int count, const std::string& more, const std::string& checks) {
  std::string body = "  %p = param index=0 : ptr<const f32>\n" + more;
  for (int i = 0; i < count; ++i) body += "  %s" + std::to_string(i) + " = load %p : f32\n";
  body += R"(
  %lo = constant value=index(0) : index
  %hi = constant value=index(3) : index
  %one = constant value=index(1) : index
  for %lo, %hi, %one {(%iv : index)
    yield
  }
)";
  return kernel("param : ptr<const f32> access=read\n", body + checks);
}

TEST(AllocateShared, NeighboursHavePlacesOfTheirOwn) {
  EXPECT_PASS(loads(3, "", R"(
// CHECK: stage=allocated
// CHECK: load %{{[0-9]+}} : f32
// CHECK: load scratch=16 %
// CHECK: load scratch=32 %
)"),
              choose_exec, assign_layouts, allocate_shared);
}

TEST(AllocateShared, WhatIsAllocatedComesFirstAndIsNotShared) {
  EXPECT_PASS(loads(1, "  %a = alloc count=5 : ptr<shared f64>\n  %b = alloc count=1000 : ptr<shared i8>\n", R"(
// CHECK: alloc count=5 : ptr<shared f64>
// CHECK: alloc count=1000 scratch=128 : ptr<shared i8>
// CHECK: load scratch=1152 %
)"),
              choose_exec, assign_layouts, allocate_shared);
}

TEST(AllocateShared, StraightLineScalarsNeedNone) {
  EXPECT_PASS(kernel("param : ptr<f32> access=readwrite\n", R"(
  %p = param index=0 : ptr<f32>
  %x = load %p : f32
  store %p, %x
// CHECK: stage=allocated
// CHECK-NOT: scratch
)"),
              choose_exec, assign_layouts, allocate_shared);
}

TEST(AllocateShared, MoreThanTheTargetHasIsAnErrorThatNamesTheUsers) {
  const std::string text = kernel("", R"(
  %a = alloc count=30000 : ptr<shared f32> loc("user.cpp":7:3)
  %b = alloc count=130000 : ptr<shared i8> loc("user.cpp":8:3)
)");
  try {
    after({choose_exec, assign_layouts, allocate_shared}, text);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("needs 250112 bytes of shared memory, sm_90a has 232448"),
                                         testing::HasSubstr("130000 bytes for alloc at user.cpp:8"),
                                         testing::HasSubstr("120000 bytes for alloc at user.cpp:7")));
  }
}

}  // namespace
}  // namespace kiln::test

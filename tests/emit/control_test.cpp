// for, while and if become branches that are the same in all threads.
#include "tests/emit/emit_fixture.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Control, LoopOffsetsStayScalarAndAccessesStayVectors) {
  EXPECT_PTX(R"(
    kernel "k" stage=laid
    exec team=cta warps=4 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0
    param "x" : ptr<const f32> access=read align=16
    param "y" : ptr<f32> access=write align=16
    param "n" : index access=read align=16
    layout #0 = [register=(1)(2) lane=(4)(8)(16)(32)(64) warp=(128)(256)] -> 512
    {
      %0 = param index=0 : ptr<const f32>
      %1 = param index=1 : ptr<f32>
      %2 = param index=2 : index
      %3 = arange start=0 end=512 : tile<512xindex, #0>
      %4 = constant value=index(0) : index
      %5 = constant value=index(512) : index
      %6 = constant value=f32(0) : f32
      %7 = splat %6 : tile<512xf32, #0>
      %8 = for %4, %2, %5, %7 : tile<512xf32, #0> {(%9 : index, %10 : tile<512xf32, #0>)
        %11 = splat %9 : tile<512xindex, #0>
        %12 = add %11, %3 : tile<512xindex, #0>
        %13 = splat %2 : tile<512xindex, #0>
        %14 = lt %12, %13 : tile<512xi1, #0>
        %15 = splat %0 : tile<512xptr<const f32>, #0>
        %16 = ptr_add %15, %12 : tile<512xptr<const f32>, #0>
        %17 = load %16, %14 : tile<512xf32, #0>
        %18 = add %10, %17 : tile<512xf32, #0>
        yield %18
      }
      %19 = splat %1 : tile<512xptr<f32>, #0>
      %20 = ptr_add %19, %3 : tile<512xptr<f32>, #0>
      store %20, %8
    }
    // CHECK: $L__BB0_{{[0-9]+}}:
    // CHECK: @%p{{[0-9]+}} ld.global.v4.b32
    // CHECK-NOT: ld.global
    // CHECK: add.rn.f32
    // CHECK: bra $L__BB0_
    // CHECK: st.global.v4.b32
  )");
}

TEST(Control, ALoadedConditionIsTheSameInAllThreads) {
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "flag" : ptr<const i32> access=read align=4
    param "y" : ptr<i32> access=write align=4
    {
      %0 = param index=0 : ptr<const i32>
      %1 = param index=1 : ptr<i32>
      %2 = load %0 : i32
      %3 = constant value=i32(0) : i32
      %4 = gt %2, %3 : i1
      if %4 {
        store %1, %2
        yield
      } {
        yield
      }
    }
    // CHECK: @[[OWNER:%p[0-9]+]] ld.global.b32
    // CHECK: @[[OWNER]] st.shared.b64
    // CHECK: bar.sync 0;
    // CHECK: ld.shared.b64
    // CHECK-NOT: bar.sync
    // CHECK: bra
  )");
}

TEST(Control, AConditionThatNothingWritesIsLoadedByEachThread) {
  const std::string ptx = ptx_of(R"(
    kernel "k" stage=traced
    param "flag" : ptr<const i32> access=read align=4 disjoint
    param "y" : ptr<i32> access=write align=4
    {
      %0 = param index=0 : ptr<const i32>
      %1 = param index=1 : ptr<i32>
      %p = program_id axis=0 : index
      %f = ptr_add %0, %p : ptr<const i32>
      %2 = load %f : i32
      %3 = constant value=i32(0) : i32
      %4 = gt %2, %3 : i1
      if %4 {
        store %1, %2
        yield
      } {
        yield
      }
    })");
  EXPECT_THAT(ptx, AllOf(HasSubstr("ld.global.b32"), Not(HasSubstr("shared")), Not(HasSubstr("bar.sync"))));
}

TEST(Control, StraightLineScalarsAreLoadedDirectly) {
  const std::string ptx = ptx_of(R"(
    kernel "k" stage=traced
    param "x" : ptr<const i32> access=read align=4
    param "y" : ptr<i32> access=write align=4
    {
      %0 = param index=0 : ptr<const i32>
      %1 = param index=1 : ptr<i32>
      %2 = load %0 : i32
      store %1, %2
    })");
  EXPECT_THAT(ptx, AllOf(HasSubstr("ld.global.b32"), Not(HasSubstr("shared"))));
}

}  // namespace
}  // namespace kiln::test

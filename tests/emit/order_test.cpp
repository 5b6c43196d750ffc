// Barriers: program order of memory operations between the threads of a program.
#include "tests/emit/emit_fixture.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// x and y are pointers, %i = arange(512), %px = x + i, %py = y + i.
std::string two_arrays(const std::string& body) {
  return R"(
    kernel "k" stage=traced
    param "x" : ptr<f32> access=readwrite align=16
    param "y" : ptr<f32> access=readwrite align=16
    {
      %0 = param index=0 : ptr<f32>
      %1 = param index=1 : ptr<f32>
      %2 = arange start=0 end=512 : tile<512xindex>
      %3 = splat %0 : tile<512xptr<f32>>
      %4 = splat %1 : tile<512xptr<f32>>
      %5 = ptr_add %3, %2 : tile<512xptr<f32>>
      %6 = ptr_add %4, %2 : tile<512xptr<f32>>
)" + body +
         "    }\n";
}

TEST(Order, InPlaceUpdateNeedsNoBarrier) {
  EXPECT_PTX(two_arrays(R"(
      %7 = load %5 : tile<512xf32>
      %8 = neg %7 : tile<512xf32>
      store %5, %8
      %9 = load %5 : tile<512xf32>
      %10 = exp %9 : tile<512xf32>
      store %5, %10
  )") + "// CHECK-NOT: bar.sync\n");
}

TEST(Order, ArraysThatMayOverlapSynchroniseOnlyWhereTheyDo) {
  EXPECT_PTX(two_arrays(R"(
      %7 = load %5 : tile<512xf32>
      store %6, %7
  )") + R"(
    // CHECK: ld.global
    // CHECK: setp.lt.u64
    // CHECK: setp.ne
    // CHECK: @%p{{[0-9]+}} bar.sync 0;
    // CHECK: st.global
    // CHECK-NOT: bar.sync
  )");
}

TEST(Order, ShiftedReadOfWhatWasWrittenWaits) {
  EXPECT_PTX(two_arrays(R"(
      %7 = load %6 : tile<512xf32>
      store %5, %7
      %8 = constant value=index(511) : index
      %9 = splat %8 : tile<512xindex>
      %10 = sub %9, %2 : tile<512xindex>
      %11 = ptr_add %3, %10 : tile<512xptr<f32>>
      %12 = load %11 : tile<512xf32>
      store %6, %12
  )") + R"(
    // CHECK: st.global
    // CHECK: bar.sync 0;
    // CHECK: ld.global
  )");
}

TEST(Order, SpansThatCannotMeetNeedNoBarrier) {
  EXPECT_PTX(two_arrays(R"(
      %7 = load %5 : tile<512xf32>
      %8 = constant value=index(512) : index
      %9 = splat %8 : tile<512xindex>
      %10 = add %9, %2 : tile<512xindex>
      %11 = ptr_add %3, %10 : tile<512xptr<f32>>
      store %11, %7
  )") + "// CHECK-NOT: bar.sync\n");
}

TEST(Order, LoadsAloneNeverWait) {
  const std::string ptx = ptx_of(two_arrays(R"(
      %7 = load %5 : tile<512xf32>
      %8 = load %6 : tile<512xf32>
      %9 = add %7, %8 : tile<512xf32>
      store %5, %9
  )"));
  const std::size_t second = ptx.rfind("ld.global");
  EXPECT_THAT(ptx.substr(0, second), Not(HasSubstr("bar.sync")));
}

TEST(Order, AddressesReadFromMemoryWaitAlways) {
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<f32> access=readwrite align=16
    param "at" : ptr<const index> access=read align=16
    {
      %0 = param index=0 : ptr<f32>
      %1 = param index=1 : ptr<const index>
      %2 = arange start=0 end=512 : tile<512xindex>
      %3 = splat %1 : tile<512xptr<const index>>
      %4 = ptr_add %3, %2 : tile<512xptr<const index>>
      %5 = load %4 : tile<512xindex>
      %6 = splat %0 : tile<512xptr<f32>>
      %7 = ptr_add %6, %5 : tile<512xptr<f32>>
      %8 = load %7 : tile<512xf32>
      store %7, %8
    }
    // CHECK: ld.global.b32
    // CHECK-NEXT: {{.*}}
    // CHECK: bar.sync 0;
    // CHECK: st.global.b32
  )");
}

TEST(Order, LoopsThatStoreOrderTheirIterations) {
  EXPECT_PTX(two_arrays(R"(
      %7 = constant value=index(0) : index
      %8 = constant value=index(10) : index
      %9 = constant value=index(1) : index
      for %7, %8, %9 {(%10 : index)
        %11 = load %5 : tile<512xf32>
        store %5, %11
        yield
      }
  )") + R"(
    // CHECK: st.global
    // CHECK: bar.sync 0;
    // CHECK: bra
  )");
}

TEST(Order, ClustersUseTheClusterBarrier) {
  EXPECT_PTX(R"(
    kernel "k" stage=laid
    exec team=cluster warps=4 programs_per_cta=1 cluster=2 max_registers=0 register_goal=0
    param "x" : ptr<f32> access=readwrite align=16
    param "y" : ptr<f32> access=readwrite align=16
    layout #0 = [register=(1)(2) lane=(4)(8)(16)(32)(64) warp=(128)(256) block=(512)] -> 1024
    {
      %0 = param index=0 : ptr<f32>
      %1 = param index=1 : ptr<f32>
      %2 = program_id axis=0 : index
      %3 = splat %2 : tile<1024xindex, #0>
      %4 = arange start=0 end=1024 : tile<1024xindex, #0>
      %5 = add %3, %4 : tile<1024xindex, #0>
      %6 = splat %0 : tile<1024xptr<f32>, #0>
      %7 = ptr_add %6, %5 : tile<1024xptr<f32>, #0>
      %8 = load %7 : tile<1024xf32, #0>
      %9 = splat %1 : tile<1024xptr<f32>, #0>
      %10 = ptr_add %9, %5 : tile<1024xptr<f32>, #0>
      store %10, %8
    }
    // CHECK: .reqnctapercluster 2
    // CHECK-DAG: %cluster_ctarank
    // CHECK-DAG: %clusterid.x
    // CHECK-NOT: bar.sync
    // CHECK: @[[P:%p[0-9]+]] barrier.cluster.arrive.aligned;
    // CHECK-NEXT: @[[P]] barrier.cluster.wait.aligned;
  )");
}

/// Tiles of 32x32 that are transposed, so that each transposition goes through shared memory.
std::string transposing(const std::string& body) {
  return R"(
    kernel "k" stage=laid
    exec team=cta warps=4 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0
    param "x" : ptr<i32> access=readwrite align=16
    layout #0 = [register=(4,0)(8,0)(16,0) lane=(0,1)(0,2)(0,4)(0,8)(0,16) warp=(1,0)(2,0)] -> 32x32
    layout #1 = [register=(0,4)(0,8)(0,16) lane=(1,0)(2,0)(4,0)(8,0)(16,0) warp=(0,1)(0,2)] -> 32x32
    {
      %0 = param index=0 : ptr<i32>
      %1 = program_id axis=0 : index
      %2 = cast %1 : i32
      %3 = splat %2 : tile<32x32xi32, #0>
      %lo = constant value=index(0) : index
      %hi = constant value=index(10) : index
      %one = constant value=index(1) : index
)" + body +
         "    }\n";
}

int barriers(const std::string& text) { return count(ptx_of(text), "bar.sync 0;"); }

TEST(Order, ExchangesWithPlacesOfTheirOwnDoNotWaitForEachOther) {
  // Two scratches of 4 KB: written, one barrier each, read.
  const std::string two = transposing(R"(
      %4 = convert %3 : tile<32x32xi32, #1>
      %5 = convert %4 : tile<32x32xi32, #0>
      %6 = convert %5 : tile<32x32xi32, #1>
  )");
  EXPECT_EQ(barriers(two), 3);
}

TEST(Order, AnExchangeInALoopWaitsForItsLastReaders) {
  const std::string text = transposing(R"(
      %4 = for %lo, %hi, %one, %3 : tile<32x32xi32, #0> {(%5 : index, %6 : tile<32x32xi32, #0>)
        %7 = convert %6 : tile<32x32xi32, #1>
        %8 = neg %7 : tile<32x32xi32, #1>
        %9 = convert %8 : tile<32x32xi32, #0>
        yield %9
      }
  )");
  // Each convert one between write and read; the first is read before the second's barrier, so none at the end.
  EXPECT_EQ(barriers(text), 2);
  const std::string one = transposing(R"(
      for %lo, %hi, %one {(%5 : index)
        %7 = convert %3 : tile<32x32xi32, #1>
        yield
      }
  )");
  EXPECT_EQ(barriers(one), 2);
}

TEST(Order, WhatABranchMayHaveReadIsWaitedForBehindIt) {
  // 16 KB each, so that both have one place.
  const std::string text = R"(
    kernel "k" stage=laid
    exec team=cta warps=4 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0
    param "n" : index access=read
    layout #0 = [register=(4,0)(8,0)(16,0)(32,0)(0,32) lane=(0,1)(0,2)(0,4)(0,8)(0,16) warp=(1,0)(2,0)] -> 64x64
    layout #1 = [register=(0,4)(0,8)(0,16)(0,32)(32,0) lane=(1,0)(2,0)(4,0)(8,0)(16,0) warp=(0,1)(0,2)] -> 64x64
    {
      %0 = param index=0 : index
      %1 = constant value=index(0) : index
      %2 = cast %0 : i32
      %3 = splat %2 : tile<64x64xi32, #0>
      %4 = eq %0, %1 : i1
      if %4 {
        %5 = convert %3 : tile<64x64xi32, #1>
        yield
      } {
        yield
      }
      %6 = convert %3 : tile<64x64xi32, #1>
    }
    // CHECK: st.shared
    // CHECK: bar.sync 0;
    // CHECK: ld.shared
    // CHECK: bar.sync 0;
    // CHECK: st.shared
    // CHECK: bar.sync 0;
    // CHECK: ld.shared
  )";
  EXPECT_PTX(text);
}

}  // namespace
}  // namespace kiln::test

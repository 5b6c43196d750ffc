// Width, predicates, addresses and cache operators of loads and stores.
#include <algorithm>

#include "tests/emit/emit_fixture.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Access, AlignedDivisibleStreamsAreOnePredicatedVectorEach) {
  const std::string ptx = ptx_of(copy_kernel("f32", 1024, "align=16", "align=16"));
  EXPECT_IR(ptx, R"(
    // CHECK: @[[P:%p[0-9]+]] ld.global.v4.b32 {
    // CHECK: @[[P]] st.global.v4.b32 [
  )");
  EXPECT_EQ(count(ptx, "ld.global"), 1) << ptx;
  EXPECT_EQ(count(ptx, "st.global"), 1) << ptx;
}

TEST(Access, VectorsAreSixteenBytesForEveryElementSize) {
  const auto vector = [](const char* dtype) { return ptx_of(copy_kernel(dtype, 4096, "align=16", "align=16")); };
  for (const char* dtype : {"i8", "u8", "i1", "f8e4m3", "f16", "bf16", "i16", "f32", "i32", "u32"})
    EXPECT_THAT(vector(dtype), AllOf(HasSubstr("ld.global.v4.b32"), HasSubstr("st.global.v4.b32"))) << dtype;
  for (const char* dtype : {"i64", "u64", "f64", "index"})
    EXPECT_THAT(vector(dtype), AllOf(HasSubstr("ld.global.v2.b64"), HasSubstr("st.global.v2.b64"))) << dtype;
}

TEST(Access, UnprovedAlignmentGivesElementAccesses) {
  const std::string ptx = ptx_of(copy_kernel("f32", 1024, "align=4", "align=16"));
  EXPECT_THAT(
      ptx, AllOf(HasSubstr("ld.global.b32"), HasSubstr("st.global.b32"), Not(HasSubstr(".v4")), Not(HasSubstr(".v2"))));
}

TEST(Access, ElementsOfOneByteAreLoadedAsBytes) {
  const std::string ptx = ptx_of(copy_kernel("i8", 1024, "", ""));
  EXPECT_THAT(ptx, AllOf(HasSubstr("ld.global.b8"), HasSubstr("st.global.b8"), Not(HasSubstr(".v4")),
                         Not(HasSubstr(".b32 {"))));
}

TEST(Access, UnprovedLengthGivesVectorsWithElementTails) {
  const std::string ptx = ptx_of(copy_kernel("f32", 1024, "align=16", ""));
  EXPECT_EQ(count(ptx, "ld.global.v4.b32"), 1) << ptx;
  EXPECT_EQ(count(ptx, "ld.global.b32"), 4) << ptx;
  EXPECT_EQ(count(ptx, "st.global.v4.b32"), 1) << ptx;
  EXPECT_EQ(count(ptx, "st.global.b32"), 4) << ptx;
  // No access without a predicate: a masked lane touches nothing.
  EXPECT_THAT(ptx, AllOf(Not(HasSubstr("\tld.global")), Not(HasSubstr("\tst.global"))));
}

TEST(Access, WholeTilesNeedNoPredicate) {
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<f32> access=readwrite align=16
    {
      %0 = param index=0 : ptr<f32>
      %1 = arange start=0 end=512 : tile<512xindex>
      %2 = splat %0 : tile<512xptr<f32>>
      %3 = ptr_add %2, %1 : tile<512xptr<f32>>
      %4 = load %3 : tile<512xf32>
      %5 = neg %4 : tile<512xf32>
      store %3, %5
    }
    // CHECK-NOT: @%p
    // CHECK: ld.global.v4.b32
    // CHECK-NOT: @%p
    // CHECK: st.global.v4.b32
    // CHECK-NOT: @%p
  )");
}

TEST(Access, MaskedLanesGiveOther) {
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<const f32> access=read align=16
    param "y" : ptr<f32> access=write align=16
    param "n" : index access=read align=16
    {
      %0 = param index=0 : ptr<const f32>
      %1 = param index=1 : ptr<f32>
      %2 = param index=2 : index
      %3 = arange start=0 end=512 : tile<512xindex>
      %4 = splat %2 : tile<512xindex>
      %5 = lt %3, %4 : tile<512xi1>
      %6 = splat %0 : tile<512xptr<const f32>>
      %7 = ptr_add %6, %3 : tile<512xptr<const f32>>
      %8 = constant value=f32(2.5) : f32
      %9 = splat %8 : tile<512xf32>
      %10 = load %7, %5, %9 : tile<512xf32>
      %11 = splat %1 : tile<512xptr<f32>>
      %12 = ptr_add %11, %3 : tile<512xptr<f32>>
      store %12, %10
    }
    // CHECK: mov.b32 [[R:%r[0-9]+]], 1075838976;
    // CHECK: @%p{{[0-9]+}} ld.global.v4.b32 {[[R]],
  )");
}

TEST(Access, ConstantOffsetsStandInTheAddress) {
  // Two vectors a thread: the second is a constant away from the first.
  CompileOptions options;
  options.num_warps = 4;
  EXPECT_IR(ptx_of(copy_kernel("f32", 1024, "align=16", "align=16"), "sm_90a", options), R"(
    // CHECK: ld.global.v4.b32 {{.*, \[}}[[A:%rd[0-9]+]]{{\]}};
    // CHECK: ld.global.v4.b32 {{.*, \[}}[[A]]+2048];
  )");
}

TEST(Access, ProgramOffsetsAreComputedInSixtyFourBits) {
  // program_id * BLOCK * 4 passes 2^32 from program 2^20 on.
  const std::string ptx = ptx_of(copy_kernel("f32", 1024, "align=16", "align=16"));
  EXPECT_IR(ptx, R"(
    // CHECK: mov.u32 [[PID:%r[0-9]+]], %ctaid.x;
    // CHECK: mul.wide.u32 %rd{{[0-9]+}}, [[PID]], 1024;
    // CHECK: mul.wide.u32 %rd{{[0-9]+}}, [[PID]], 4096;
  )");
  EXPECT_THAT(ptx, Not(HasSubstr("mul.lo.s32")));
}

TEST(Access, CacheOperatorsAreThoseOfTheAccess) {
  const std::string stream =
      ptx_of(copy_kernel("f32", 1024, "align=16", "align=16", " cache=no_allocate", " cache=streaming"));
  EXPECT_THAT(stream, AllOf(HasSubstr("ld.global.L1::no_allocate.v4.b32"), HasSubstr("st.global.cs.v4.b32")));
  const std::string first =
      ptx_of(copy_kernel("f32", 1024, "align=16", "align=16", " cache=evict_first", " cache=evict_first"));
  EXPECT_THAT(first,
              AllOf(HasSubstr("ld.global.L1::evict_first.v4.b32"), HasSubstr("st.global.L1::evict_first.v4.b32")));
}

TEST(Access, HintsThatTheIsaLacksAreLeftOut) {
  const std::string old =
      image_of(copy_kernel("f32", 1024, "align=16", "align=16", " cache=no_allocate"), "sm_80", {}, 70).ptx;
  EXPECT_THAT(old, AllOf(HasSubstr(".version 7.0"), HasSubstr("ld.global.v4.b32"), Not(HasSubstr("L1::"))));
}

TEST(Access, ReadOnlyCacheIsNeverUsed) {
  for (const char* arch : {"sm_80", "sm_90a", "sm_120a"})
    EXPECT_THAT(ptx_of(copy_kernel("f32", 1024, "align=16", "align=16"), arch), Not(HasSubstr(".nc")));
}

TEST(Access, ReplicatedElementsAreStoredByOneThread) {
  // 16 elements on at least 32 threads: the others hold copies.
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<i32> access=write align=4
    {
      %0 = param index=0 : ptr<i32>
      %1 = arange start=0 end=16 : tile<16xindex>
      %2 = splat %0 : tile<16xptr<i32>>
      %3 = ptr_add %2, %1 : tile<16xptr<i32>>
      %4 = cast %1 : tile<16xi32>
      store %3, %4
    }
    // CHECK: setp.eq.b32 [[P:%p[0-9]+]], %r{{[0-9]+}}, 0;
    // CHECK: @[[P]] st.global.b32
    // CHECK-NOT: st.global
  )");
}

TEST(Access, ScalarsAreStoredByThreadZero) {
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<f64> access=write align=8
    {
      %0 = param index=0 : ptr<f64>
      %1 = constant value=f64(1.5) : f64
      store %0, %1
    }
    // CHECK: mov.u32 [[T:%r[0-9]+]], %tid.x;
    // CHECK: setp.eq.b32 [[P:%p[0-9]+]], {{.*}}, 0;
    // CHECK: @[[P]] st.global.b64
    // CHECK-NOT: st.global
  )");
}

TEST(Access, PaddingOfOddExtentsIsNeverTouched) {
  // 3072 is padded to 4096: whole registers are dropped, and no predicate is left.
  const std::string whole = ptx_of(copy_kernel("f32", 3072, "align=16", "align=16"));
  EXPECT_EQ(count(whole, "ld.global.v4.b32") * 4 * 256, 3072) << whole;
  // 1000 is not: the last vectors are predicated even where n is not asked.
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<f32> access=write align=16
    {
      %0 = param index=0 : ptr<f32>
      %1 = arange start=0 end=1000 : tile<1000xindex>
      %2 = splat %0 : tile<1000xptr<f32>>
      %3 = ptr_add %2, %1 : tile<1000xptr<f32>>
      %4 = cast %1 : tile<1000xf32>
      store %3, %4
    }
    // CHECK: setp.lt.{{[su]}}32 [[P:%p[0-9]+]], %r{{[0-9]+}}, {{1000|250}};
    // CHECK: @[[P]] st.global.v4.b32
  )");
}

TEST(Access, RowsOfKnownWidthAreVectorsInTwoDimensions) {
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<const f32> access=read align=16
    param "y" : ptr<f32> access=write align=16
    param "stride" : index access=read align=16
    {
      %0 = param index=0 : ptr<const f32>
      %1 = param index=1 : ptr<f32>
      %2 = param index=2 : index
      %3 = arange start=0 end=16 : tile<16xindex>
      %4 = expand_dims axis=1 %3 : tile<16x1xindex>
      %5 = splat %2 : tile<16x1xindex>
      %6 = mul %4, %5 : tile<16x1xindex>
      %7 = broadcast %6 : tile<16x64xindex>
      %8 = arange start=0 end=64 : tile<64xindex>
      %9 = expand_dims axis=0 %8 : tile<1x64xindex>
      %10 = broadcast %9 : tile<16x64xindex>
      %11 = add %7, %10 : tile<16x64xindex>
      %12 = splat %0 : tile<16x64xptr<const f32>>
      %13 = ptr_add %12, %11 : tile<16x64xptr<const f32>>
      %14 = load %13 : tile<16x64xf32>
      %15 = splat %1 : tile<16x64xptr<f32>>
      %16 = ptr_add %15, %11 : tile<16x64xptr<f32>>
      store %16, %14
    }
    // CHECK: ld.global.v4.b32
    // CHECK-NOT: ld.global.b32
    // CHECK: st.global.v4.b32
    // CHECK-NOT: st.global.b32
  )");
}

// The ISA gives the offset of an address operand 32 bits; the rest goes to the register.
TEST(Access, OffsetsBeyond32BitsAreAdded) {
  EXPECT_PTX(R"(
    kernel "k" stage=traced
    param "x" : ptr<f32> access=readwrite align=16
    {
      %0 = param index=0 : ptr<f32>
      %1 = arange start=0 end=1024 : tile<1024xindex>
      %2 = constant value=index(5000000000) : index
      %3 = splat %2 : tile<1024xindex>
      %4 = add %1, %3 : tile<1024xindex>
      %5 = splat %0 : tile<1024xptr<f32>>
      %6 = ptr_add %5, %4 : tile<1024xptr<f32>>
      %7 = constant value=f32(1) : f32
      %8 = splat %7 : tile<1024xf32>
      store %6, %8
    }
    // CHECK-NOT: +20000000000]
    // CHECK: add.s64 [[A:%rd[0-9]+]], {{%rd[0-9]+}}, 21474836480;
    // CHECK: st.global.v4.b32 {{\[}}[[A]]+-1474836480],
  )");
}

}  // namespace
}  // namespace kiln::test

#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;

/// c[i] = a[i] for i < n on 512 elements; facts of the parameters are arguments.
std::string copy(const std::string& dtype, int align_a, int align_c, int align_n, const std::string& checks) {
  const auto param = [](const std::string& type, const std::string& access, int align) {
    return "param : " + type + " access=" + access + (align > 1 ? " align=" + std::to_string(align) : "") + "\n";
  };
  const std::string t = "tile<512x";
  return kernel(param("ptr<const " + dtype + ">", "read", align_a) + param("ptr<" + dtype + ">", "write", align_c) +
                    param("index", "read", align_n),
                R"(
  %0 = program_id axis=0 : index
  %1 = constant value=index(512) : index
  %2 = mul %0, %1 : index
  %3 = splat %2 : tile<512xindex>
  %4 = arange start=0 end=512 : tile<512xindex>
  %5 = add %3, %4 : tile<512xindex>
  %6 = param index=2 : index
  %7 = splat %6 : tile<512xindex>
  %8 = lt %5, %7 : tile<512xi1>
  %9 = param index=0 : ptr<const )" +
                    dtype + ">\n  %10 = splat %9 : " + t + "ptr<const " + dtype + ">>\n  %11 = ptr_add %10, %5 : " + t +
                    "ptr<const " + dtype + ">>\n  %12 = load %11, %8 : " + t + dtype +
                    ">\n  %13 = param index=1 : ptr<" + dtype + ">\n  %14 = splat %13 : " + t + "ptr<" + dtype +
                    ">>\n  %15 = ptr_add %14, %5 : " + t + "ptr<" + dtype + ">>\n  store %15, %12, %8\n" + checks);
}

TEST(AssignLayouts, HeadOfThePassFile) {
  EXPECT_PASS(copy("f32", 16, 16, 16, R"(
// CHECK: stage=laid
// CHECK: layout #0 = [register=(1)(2) lane=(4)(8)(16)(32)(64) warp=(128)(256)] -> 512
// CHECK-NOT: layout
// CHECK: arange start=0 end=512 : tile<512xindex, #0>
// CHECK: load {{.*}} : tile<512xf32, #0>
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, VectorsAre16BytesOfTheElementType) {
  EXPECT_PASS(copy("bf16", 16, 16, 16, "// CHECK: layout #0 = [register=(1)(2)(4) lane=(8)"), choose_exec,
              assign_layouts);
  EXPECT_PASS(copy("i8", 16, 16, 16, "// CHECK: layout #0 = [register=(1)(2)(4)(8) lane=(16)"), choose_exec,
              assign_layouts);
  EXPECT_PASS(copy("f64", 16, 16, 16, "// CHECK: layout #0 = [register=(1) lane=(2)"), choose_exec, assign_layouts);
}

TEST(AssignLayouts, AMaskOfAnyBoundDoesNotNarrowVectors) {
  EXPECT_PASS(copy("f32", 16, 16, 1, "// CHECK: layout #0 = [register=(1)(2) lane=(4)"), choose_exec, assign_layouts);
}

TEST(AssignLayouts, MisalignedAccessesAreScalarAndCoalesced) {
  EXPECT_PASS(copy("f32", 4, 16, 16, "// CHECK: layout #0 = [register=(128)(256) lane=(1)(2)(4)(8)(16) warp=(32)(64)"),
              choose_exec, assign_layouts);
  EXPECT_PASS(copy("f32", 16, 4, 16, "// CHECK: layout #0 = [register=(128)(256) lane=(1)"), choose_exec,
              assign_layouts);
  EXPECT_PASS(copy("f32", 8, 16, 16, "// CHECK: layout #0 = [register=(1)(256) lane=(2)"), choose_exec, assign_layouts);
}

TEST(AssignLayouts, TheWidestTypeBoundsTheCommonVector) {
  // f16 in, f32 out: four elements are 8 and 16 bytes; eight would be 32 contiguous bytes a thread.
  EXPECT_PASS(kernel("param : ptr<const f16> access=read align=16\nparam : ptr<f32> access=write align=16\n", R"(
  %0 = arange start=0 end=512 : tile<512xindex>
  %1 = param index=0 : ptr<const f16>
  %2 = splat %1 : tile<512xptr<const f16>>
  %3 = ptr_add %2, %0 : tile<512xptr<const f16>>
  %4 = load %3 : tile<512xf16>
  %5 = cast %4 : tile<512xf32>
  %6 = param index=1 : ptr<f32>
  %7 = splat %6 : tile<512xptr<f32>>
  %8 = ptr_add %7, %0 : tile<512xptr<f32>>
  store %8, %5
// CHECK: layout #0 = [register=(1)(2) lane=(4)
)"),
              choose_exec, assign_layouts);
}

/// c[i, j] = x[i, j] + bias[j], a rows x columns tile with row stride `stride`.
std::string bias_add(int rows, int columns, int stride, const std::string& more) {
  const std::string m = std::to_string(rows), n = std::to_string(columns);
  std::string body = R"(
  %j = arange start=0 end=N : tile<Nxindex>
  %i = arange start=0 end=M : tile<Mxindex>
  %s = constant value=index(S) : index
  %ss = splat %s : tile<Mxindex>
  %is = mul %i, %ss : tile<Mxindex>
  %i1 = expand_dims axis=1 %is : tile<Mx1xindex>
  %i2 = broadcast %i1 : tile<MxNxindex>
  %j1 = expand_dims axis=0 %j : tile<1xNxindex>
  %j2 = broadcast %j1 : tile<MxNxindex>
  %at = add %i2, %j2 : tile<MxNxindex>
  %x = param index=0 : ptr<f32>
  %xs = splat %x : tile<MxNxptr<f32>>
  %xp = ptr_add %xs, %at : tile<MxNxptr<f32>>
  %v = load %xp : tile<MxNxf32>
  %b = param index=1 : ptr<f32>
  %bs = splat %b : tile<Nxptr<f32>>
  %bp = ptr_add %bs, %j : tile<Nxptr<f32>>
  %bias = load %bp : tile<Nxf32>
  %b1 = expand_dims axis=0 %bias : tile<1xNxf32>
  %b2 = broadcast %b1 : tile<MxNxf32>
  %r = add %v, %b2 : tile<MxNxf32>
  store %xp, %r
)";
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{"M", m}, {"N", n}, {"(S)", "(" + std::to_string(stride) + ")"}})
    for (std::size_t at = body.find(key); at != std::string::npos; at = body.find(key, at + value.size()))
      body.replace(at, key.size(), value);
  return kernel("param : ptr<f32> access=readwrite align=16\nparam : ptr<f32> access=readwrite align=16\n",
                body + more);
}

TEST(AssignLayouts, WhatIsBroadcastHasASliceOfTheLayout) {
  EXPECT_PASS(bias_add(4, 64, 64, R"(
// CHECK-DAG: layout #[[FULL:[0-9]+]] = [register=(0,1)(0,2)(2,0) lane=(0,4)(0,8)(0,16)(0,32)(1,0)] -> 4x64
// CHECK-DAG: layout #[[ROW:[0-9]+]] = [register=(1)(2) lane=(4)(8)(16)(32)(0)] -> 64
// CHECK-DAG: layout #[[ROW1:[0-9]+]] = [register=(0,1)(0,2) lane=(0,4)(0,8)(0,16)(0,32)(0,0)] -> 1x64
// CHECK: load %{{[0-9]+}} : tile<4x64xf32, #[[FULL]]>
// CHECK: [[B:%[0-9]+]] = load %{{[0-9]+}} : tile<64xf32, #[[ROW]]>
// CHECK: [[E:%[0-9]+]] = expand_dims axis=0 [[B]] : tile<1x64xf32, #[[ROW1]]>
// CHECK: broadcast [[E]] : tile<4x64xf32, #[[FULL]]>
// CHECK-NOT: convert
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, OddRowStridesAreNotClaimedAligned) {
  EXPECT_PASS(bias_add(4, 64, 1185,
                       "// CHECK: layout #{{[0-9]+}} = [register={{.*}} lane=(0,1)(0,2)(0,4)(0,8)(0,16)] -> 4x64\n"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, PaddedExtentsGetPaddedLayouts) {
  EXPECT_PASS(bias_add(3, 24, 24, "// CHECK: -> 4x32\n// CHECK: load %{{[0-9]+}} : tile<3x24xf32, #"), choose_exec,
              assign_layouts);
}

TEST(AssignLayouts, ValuesNeededInTwoLayoutsAreComputedTwiceNextToEachOther) {
  // The bias is stored in its own layout as well as broadcast.
  EXPECT_PASS(bias_add(8, 64, 64, R"(
  store %bp, %bias
// CHECK: [[B:%[0-9]+]] = load [[P:%[0-9]+]] : tile<64xf32, #[[ONE:[0-9]+]]>
// CHECK-NEXT: [[C:%[0-9]+]] = load [[Q:%[0-9]+]] : tile<64xf32, #[[TWO:[0-9]+]]>
// CHECK: expand_dims axis=0 {{%[0-9]+}} : tile<1x64xf32
// CHECK: store
// CHECK: store
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, ColumnMajorAccessesRunAlongTheFirstAxis) {
  EXPECT_PASS(kernel("param : ptr<f32> access=readwrite align=16\n", R"(
  %i = arange start=0 end=64 : tile<64xindex>
  %i1 = expand_dims axis=1 %i : tile<64x1xindex>
  %i2 = broadcast %i1 : tile<64x8xindex>
  %j = arange start=0 end=8 : tile<8xindex>
  %s = constant value=index(64) : index
  %ss = splat %s : tile<8xindex>
  %js = mul %j, %ss : tile<8xindex>
  %j1 = expand_dims axis=0 %js : tile<1x8xindex>
  %j2 = broadcast %j1 : tile<64x8xindex>
  %at = add %i2, %j2 : tile<64x8xindex>
  %p = param index=0 : ptr<f32>
  %q = splat %p : tile<64x8xptr<f32>>
  %r = ptr_add %q, %at : tile<64x8xptr<f32>>
  %v = load %r : tile<64x8xf32>
  %w = neg %v : tile<64x8xf32>
  store %r, %w
// CHECK: layout #{{[0-9]+}} = [register=(1,0)(2,0) lane=(4,0)(8,0)(16,0)(32,0)(0,1) warp={{.*}}] -> 64x8
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, TilesSmallerThanTheirThreadsReplicate) {
  EXPECT_PASS(bias_add(1, 4, 4, "// CHECK: layout #{{[0-9]+}} = [lane=(0,1)(0,2)(0,0)(0,0)(0,0)] -> 1x4\n"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, FillOfBytesIsOneVectorAThread) {
  EXPECT_PASS(kernel("param : ptr<i8> access=write align=16\n", R"(
  %0 = param index=0 : ptr<i8>
  %1 = arange start=0 end=512 : tile<512xindex>
  %2 = splat %0 : tile<512xptr<i8>>
  %3 = ptr_add %2, %1 : tile<512xptr<i8>>
  %4 = constant value=i8(-7) : i8
  %5 = splat %4 : tile<512xi8>
  store %3, %5
// CHECK: layout #0 = [register=(1)(2)(4)(8) lane=(16)(32)(64)(128)(256)] -> 512
// CHECK: store
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, LoopCarriedTilesKeepOneLayout) {
  EXPECT_PASS(kernel("param : ptr<f32> access=readwrite align=16\n", R"(
  %p = param index=0 : ptr<f32>
  %i = arange start=0 end=512 : tile<512xindex>
  %q = splat %p : tile<512xptr<f32>>
  %r = ptr_add %q, %i : tile<512xptr<f32>>
  %x = load %r : tile<512xf32>
  %lo = constant value=index(0) : index
  %hi = constant value=index(3) : index
  %one = constant value=index(1) : index
  %sum = for %lo, %hi, %one, %x : tile<512xf32> {(%iv : index, %acc : tile<512xf32>)
    %c = num_programs axis=0 : index
    %zero = eq %iv, %c : i1
    %next = if %zero : tile<512xf32> {
      %n = neg %acc : tile<512xf32>
      yield %n
    } {
      %d = add %acc, %x : tile<512xf32>
      yield %d
    }
    yield %next
  }
  store %r, %sum
// CHECK: layout #0 = [register=(1)(2) lane=(4)
// CHECK-NOT: layout
// CHECK: for {{.*}} : tile<512xf32, #0> {(%{{[0-9]+}} : index, %{{[0-9]+}} : tile<512xf32, #0>)
// CHECK: if {{.*}} : tile<512xf32, #0>
// CHECK: neg {{.*}} : tile<512xf32, #0>
)"),
              canonicalise, choose_exec, assign_layouts);
}

TEST(AssignLayouts, WhileCarriesTilesInOneLayout) {
  EXPECT_PASS(kernel("param : ptr<f32> access=readwrite align=16\n", R"(
  %p = param index=0 : ptr<f32>
  %i = arange start=0 end=512 : tile<512xindex>
  %q = splat %p : tile<512xptr<f32>>
  %r = ptr_add %q, %i : tile<512xptr<f32>>
  %x = load %r : tile<512xf32>
  %k = constant value=i32(0) : i32
  %four = constant value=i32(4) : i32
  %one = constant value=i32(1) : i32
  %n, %y = while %k, %x : i32, tile<512xf32> {(%a : i32, %b : tile<512xf32>)
    %go = lt %a, %four : i1
    yield %go
  } {(%c : i32, %d : tile<512xf32>)
    %e = add %c, %one : i32
    %f = relu %d : tile<512xf32>
    yield %e, %f
  }
  store %r, %y
// CHECK: while {{.*}} : i32, tile<512xf32, #0>
// CHECK: relu {{.*}} : tile<512xf32, #0>
)"),
              canonicalise, choose_exec, assign_layouts);
}

TEST(AssignLayouts, ScalarsHaveNone) {
  EXPECT_PASS(kernel("param : ptr<f32> access=readwrite align=16\n", R"(
  %p = param index=0 : ptr<f32>
  %x = load %p : f32
  %y = relu %x : f32
  store %p, %y
// CHECK: stage=laid
// CHECK-NOT: layout #
)"),
              choose_exec, assign_layouts);
}

/// y[j, i] = x[i, j] of a 64x64 tile, `between` working on the loaded %v and giving %w.
std::string transposed_copy(const std::string& dtype, const std::string& between, const std::string& checks) {
  std::string body = R"(
  %i = arange start=0 end=64 : tile<64xindex>
  %n = constant value=index(16384) : index
  %ns = splat %n : tile<64xindex>
  %rows = mul %i, %ns : tile<64xindex>
  %i1 = expand_dims axis=1 %rows : tile<64x1xindex>
  %i2 = broadcast %i1 : tile<64x64xindex>
  %j1 = expand_dims axis=0 %i : tile<1x64xindex>
  %j2 = broadcast %j1 : tile<64x64xindex>
  %at = add %i2, %j2 : tile<64x64xindex>
  %x = param index=0 : ptr<T>
  %xs = splat %x : tile<64x64xptr<T>>
  %xp = ptr_add %xs, %at : tile<64x64xptr<T>>
  %y = param index=1 : ptr<T>
  %ys = splat %y : tile<64x64xptr<T>>
  %yp = ptr_add %ys, %at : tile<64x64xptr<T>>
  %v = load %xp : tile<64x64xT>
BETWEEN
  %t = permute order=[1,0] %w : tile<64x64xT>
  store %yp, %t
)";
  body.replace(body.find("BETWEEN"), 7, between);
  for (std::size_t at = body.find("xT>"); at != std::string::npos; at = body.find("xT>", at))
    body.replace(at + 1, 1, dtype);
  for (std::size_t at = body.find("<T>"); at != std::string::npos; at = body.find("<T>", at))
    body.replace(at + 1, 1, dtype);
  const std::string param = "param : ptr<" + dtype + "> access=readwrite align=16\n";
  return kernel(param + param, body + checks);
}

TEST(AssignLayouts, ATranspositionConvertsOnceInBlocksOfVectors) {
  EXPECT_PASS(transposed_copy("bf16", "  %w = neg %v : tile<64x64xbf16>", R"(
// CHECK: [register=(0,1)(0,2)(1,0)(2,0) lane=(0,4)(0,8)(0,16)(0,32)(4,0)
// CHECK: [[V:%[0-9]+]] = load
// CHECK-NOT: convert
// CHECK: [[W:%[0-9]+]] = neg [[V]]
// CHECK: [[T:%[0-9]+]] = permute order=[1,0] [[W]]
// CHECK: convert [[T]] : tile<64x64xbf16
// CHECK-NOT: convert
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, ConversionsStandWhereFewestBytesMove) {
  // The bytes are converted, not the words they are widened to.
  EXPECT_PASS(transposed_copy("f32", R"(
  %b = cast %v : tile<64x64xf8e4m3>
  %c = cast %b : tile<64x64xf16>
  %w = cast %c : tile<64x64xf32>)",
                              R"(
// CHECK: [[B:%[0-9]+]] = cast {{.*}} : tile<64x64xf8e4m3
// CHECK-NEXT: [[C:%[0-9]+]] = convert [[B]] : tile<64x64xf8e4m3
// CHECK-NEXT: cast [[C]] : tile<64x64xf16
// CHECK-NOT: convert
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, AReductionAndItsBroadcastBackNeedNoConversion) {
  EXPECT_PASS(bias_add(16, 256, 256, R"(
  %sum = reduce axis=1 %v : tile<16xf32> {(%a : f32, %c : f32)
    %s2 = add %a, %c : f32
    yield %s2
  }
  %sum1 = expand_dims axis=1 %sum : tile<16x1xf32>
  %sum2 = broadcast %sum1 : tile<16x256xf32>
  %d = sub %v, %sum2 : tile<16x256xf32>
  store %xp, %d
// CHECK: reduce axis=1
// CHECK-NOT: convert
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, ARowSumIsStoredFromWhereItStands) {
  EXPECT_PASS(bias_add(16, 256, 256, R"(
  %sum = reduce axis=1 %v : tile<16xf32> {(%a : f32, %c : f32)
    %s2 = add %a, %c : f32
    yield %s2
  }
  %bq = splat %b : tile<16xptr<f32>>
  %br = ptr_add %bq, %i : tile<16xptr<f32>>
  store %br, %sum
// CHECK: [[S:%[0-9]+]] = reduce axis=1
// CHECK-NOT: convert
// CHECK: store %{{[0-9]+}}, [[S]]
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, WhatALoopCarriesStandsWhereItsBodyWorks) {
  EXPECT_PASS(transposed_copy("f32", R"(
  %vt = permute order=[1,0] %v : tile<64x64xf32>
  %lo = constant value=index(0) : index
  %hi = constant value=index(3) : index
  %one = constant value=index(1) : index
  %w = for %lo, %hi, %one, %vt : tile<64x64xf32> {(%iv : index, %acc : tile<64x64xf32>)
    %u = load %xp : tile<64x64xf32>
    %next = add %acc, %u : tile<64x64xf32>
    yield %next
  })",
                              R"(
// CHECK: convert
// CHECK: for
// CHECK-NOT: convert
// CHECK: yield
)"),
              choose_exec, assign_layouts);
}

TEST(AssignLayouts, WhatALoopUsesIsConvertedOutsideOfIt) {
  EXPECT_PASS(transposed_copy("f32", R"(
  %vt = permute order=[1,0] %v : tile<64x64xf32>
  %zero = constant value=f32(0) : f32
  %acc0 = splat %zero : tile<64x64xf32>
  %lo = constant value=index(0) : index
  %hi = constant value=index(3) : index
  %one = constant value=index(1) : index
  %w = for %lo, %hi, %one, %acc0 : tile<64x64xf32> {(%iv : index, %acc : tile<64x64xf32>)
    %u = load %xp : tile<64x64xf32>
    %next = add %u, %vt : tile<64x64xf32>
    %more = add %next, %acc : tile<64x64xf32>
    yield %more
  })",
                              R"(
// CHECK: convert
// CHECK: for
// CHECK-NOT: convert
// CHECK: yield
// CHECK: convert
// CHECK: store
)"),
              choose_exec, assign_layouts);
}

}  // namespace
}  // namespace kiln::test

#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;

const std::string kParams =
    "param : ptr<f32> access=readwrite align=16\nparam : index access=read\nparam : f32 access=read\n";

/// `body` computes from %f : tile<64xf32>, %x : tile<64xindex>, %m : tile<64xi1>; stores and checks are its own.
std::string with_values(std::string body) {
  const std::string head = R"(
  %p = param index=0 : ptr<f32>
  %ps = splat %p : tile<64xptr<f32>>
  %x = arange start=0 end=64 : tile<64xindex>
  %at = ptr_add %ps, %x : tile<64xptr<f32>>
  %n = param index=1 : index
  %ns = splat %n : tile<64xindex>
  %m = lt %x, %ns : tile<64xi1>
  %f = load %at : tile<64xf32>
)";
  return kernel(kParams, head + body);
}

TEST(Canonicalise, HeadOfThePassFile) {
  EXPECT_PASS(R"(
kernel "k" stage=traced
param : ptr<f32> access=write
param : index access=read
{
  %0 = param index=0 : ptr<f32>
  %1 = param index=1 : index
  %2 = splat %1 : tile<64xindex>
  %3 = constant value=index(64) : index
  %4 = splat %3 : tile<64xindex>
  %5 = mul %2, %4 : tile<64xindex>
  %6 = arange start=0 end=64 : tile<64xindex>
  %7 = add %5, %6 : tile<64xindex>
  %8 = add %6, %5 : tile<64xindex>
  %9 = splat %0 : tile<64xptr<f32>>
  %10 = ptr_add %9, %7 : tile<64xptr<f32>>
  %11 = cast %8 : tile<64xf32>
  store %10, %11
}
// CHECK: [[N:%[0-9]+]] = param index=1
// CHECK: [[C:%[0-9]+]] = constant value=index(64)
// CHECK: [[S:%[0-9]+]] = mul [[N]], [[C]] : index
// CHECK-NEXT: [[T:%[0-9]+]] = splat [[S]]
// CHECK-NEXT: [[A:%[0-9]+]] = arange
// CHECK-NEXT: [[SUM:%[0-9]+]] = add [[T]], [[A]]
// CHECK-NOT: add
// CHECK: ptr_add %{{[0-9]+}}, [[SUM]]
// CHECK: cast [[SUM]]
)",
              canonicalise);
}

TEST(Canonicalise, LeavesACanonicalKernelAlone) {
  const std::string once = after({canonicalise}, with_values("store %at, %f, %m\n"));
  EXPECT_EQ(after({canonicalise}, once), once);
}

TEST(Canonicalise, RemovesWhatNothingUsesLoadsIncluded) {
  EXPECT_PASS(with_values(R"(
  %a = exp %f : tile<64xf32>
  %b = load %at, %m : tile<64xf32>
  store %at, %f
// CHECK: load
// CHECK-NOT: load
// CHECK-NOT: exp
// CHECK-NOT: lt
)"),
              canonicalise);
}

TEST(Canonicalise, MergesEqualPureOpsButNotLoads) {
  EXPECT_PASS(with_values(R"(
  %a = exp %f : tile<64xf32>
  %b = exp %f : tile<64xf32>
  %g = load %at : tile<64xf32>
  %c = add %a, %b : tile<64xf32>
  %d = add %c, %g : tile<64xf32>
  store %at, %d
// CHECK: load
// CHECK: [[E:%[0-9]+]] = exp
// CHECK-NOT: exp
// CHECK: load
// CHECK: add [[E]], [[E]]
)"),
              canonicalise);
}

TEST(Canonicalise, KeepsOpsApartThatDifferInAnAttribute) {
  EXPECT_PASS(with_values(R"(
  %a = exp %f : tile<64xf32>
  %b = exp fast=1 %f : tile<64xf32>
  %c = sub %a, %b : tile<64xf32>
  store %at, %c
// CHECK: exp %
// CHECK: exp fast=1 %
)"),
              canonicalise);
}

TEST(Canonicalise, DoesNotCommuteSubtraction) {
  EXPECT_PASS(with_values(R"(
  %e = exp %f : tile<64xf32>
  %a = sub %f, %e : tile<64xf32>
  %b = sub %e, %f : tile<64xf32>
  %c = mul %a, %b : tile<64xf32>
  store %at, %c
// CHECK: sub
// CHECK: sub
)"),
              canonicalise);
}

TEST(Canonicalise, ComputesSplatsOnceAsScalars) {
  EXPECT_PASS(with_values(R"(
  %s = param index=2 : f32
  %ss = splat %s : tile<64xf32>
  %e = exp %ss : tile<64xf32>
  %t = mul %e, %ss : tile<64xf32>
  %c = add %f, %t : tile<64xf32>
  store %at, %c
// CHECK: [[E:%[0-9]+]] = exp %{{[0-9]+}} : f32
// CHECK: [[T:%[0-9]+]] = mul [[E]], %{{[0-9]+}} : f32
// CHECK: splat [[T]] : tile<64xf32>
)"),
              canonicalise);
}

TEST(Canonicalise, ExactIdentitiesDisappear) {
  for (const char* body :
       {"%r = neg %f : tile<64xf32>\n%s = neg %r : tile<64xf32>\n",
        "%r = min %f, %f : tile<64xf32>\n%s = max %r, %r : tile<64xf32>\n",
        "%o = constant value=f32(1) : f32\n%os = splat %o : tile<64xf32>\n%s = mul %os, %f : tile<64xf32>\n",
        "%z = constant value=f32(-0) : f32\n%zs = splat %z : tile<64xf32>\n%s = add %f, %zs : tile<64xf32>\n",
        "%d = cast %f : tile<64xf64>\n%s = cast %d : tile<64xf32>\n",
        "%nm = not %m : tile<64xi1>\n%mm = not %nm : tile<64xi1>\n%s = select %mm, %f, %f : tile<64xf32>\n"})
    EXPECT_IR(after({canonicalise}, with_values(std::string(body) + "store %at, %s\n")),
              "// CHECK: [[F:%[0-9]+]] = load\n// CHECK-NEXT: store %{{[0-9]+}}, [[F]]\n")
        << body;
}

TEST(Canonicalise, KeepsWhatIsNotExact) {
  // x + 0.0 turns -0 into +0; f32 -> bf16 -> f32 rounds; x * 0 may be NaN; x - x may be NaN; saturation changes
  // infinity.
  for (const char* body :
       {"%z = constant value=f32(0) : f32\n%zs = splat %z : tile<64xf32>\n%s = add %f, %zs : tile<64xf32>\n",
        "%h = cast %f : tile<64xbf16>\n%s = cast %h : tile<64xf32>\n",
        "%z = constant value=f32(0) : f32\n%zs = splat %z : tile<64xf32>\n%s = mul %f, %zs : tile<64xf32>\n",
        "%s = sub %f, %f : tile<64xf32>\n", "%d = cast %f : tile<64xf64>\n%s = cast saturate=1 %d : tile<64xf32>\n"})
    EXPECT_IR(after({canonicalise}, with_values(std::string(body) + "store %at, %s\n")),
              "// CHECK: [[F:%[0-9]+]] = load\n// CHECK: [[S:%[0-9]+]] = {{add|cast [^:]*: tile<64xf32>|mul|sub}}\n// "
              "CHECK: store %{{[0-9]+}}, [[S]]\n")
        << body;
}

TEST(Canonicalise, NeverFormsFma) {
  EXPECT_PASS(with_values(R"(
  %a = mul %f, %f : tile<64xf32>
  %b = add %a, %f : tile<64xf32>
  store %at, %b
// CHECK-NOT: fma
// CHECK: mul
// CHECK-NEXT: add
)"),
              canonicalise);
}

TEST(Canonicalise, IntegerIdentitiesFoldToConstants) {
  EXPECT_PASS(with_values(R"(
  %d = sub %x, %x : tile<64xindex>
  %le = le %x, %x : tile<64xi1>
  %lef = cast %le : tile<64xf32>
  %df = cast %d : tile<64xf32>
  %s = add %lef, %df : tile<64xf32>
  store %at, %s
// CHECK: constant value=f32(1)
// CHECK-NOT: = sub
// CHECK-NOT: = le
// CHECK: store
)"),
              canonicalise);
}

TEST(Canonicalise, DropsMasksThatAreTrue) {
  EXPECT_PASS(with_values(R"(
  %t = constant value=i1(1) : i1
  %ts = splat %t : tile<64xi1>
  %g = load %at, %ts, %f : tile<64xf32>
  store %at, %g, %ts
// CHECK: [[G:%[0-9]+]] = load [[P:%[0-9]+]] :
// CHECK-NEXT: store [[P]], [[G]]
// CHECK-NEXT: }
)"),
              canonicalise);
}

TEST(Canonicalise, AccessesMaskedOffEverywhereDisappear) {
  EXPECT_PASS(with_values(R"(
  %t = constant value=i1(0) : i1
  %ts = splat %t : tile<64xi1>
  %g = load %at, %ts : tile<64xf32>
  %h = load %at, %ts, %f : tile<64xf32>
  %s = div %g, %h : tile<64xf32>
  store %at, %s
  store %at, %f, %ts
// CHECK: [[F:%[0-9]+]] = load
// CHECK-NOT: load
// CHECK: [[Z:%[0-9]+]] = constant value=f32(0)
// CHECK: [[ZS:%[0-9]+]] = splat [[Z]]
// CHECK: div [[ZS]], [[F]]
// CHECK: store
// CHECK-NOT: store
)"),
              canonicalise);
}

TEST(Canonicalise, ReshapedSplatsAreSplats) {
  EXPECT_PASS(with_values(R"(
  %s = param index=2 : f32
  %ss = splat %s : tile<8xf32>
  %e = expand_dims axis=1 %ss : tile<8x1xf32>
  %b = broadcast %e : tile<8x8xf32>
  %q = splat %p : tile<8x8xptr<f32>>
  store %q, %b
// CHECK: splat %{{[0-9]+}} : tile<8x8xf32>
// CHECK-NOT: broadcast
)"),
              canonicalise);
}

}  // namespace
}  // namespace kiln::test

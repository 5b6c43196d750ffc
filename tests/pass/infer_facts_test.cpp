#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;

TEST(InferFacts, HeadOfThePassFile) {
  EXPECT_PASS(R"(
kernel "k" stage=traced
param : ptr<f32> access=write
param : index access=read one
{
  %0 = param index=0 : ptr<f32>
  %1 = param index=1 : index
  %2 = arange start=0 end=128 : tile<128xindex>
  %3 = constant value=index(256) : index
  %4 = splat %3 : tile<128xindex>
  %5 = lt %2, %4 : tile<128xi1>
  %6 = splat %1 : tile<128xindex>
  %7 = mul %2, %6 : tile<128xindex>
  %8 = splat %0 : tile<128xptr<f32>>
  %9 = ptr_add %8, %7 : tile<128xptr<f32>>
  %10 = cast %7 : tile<128xf32>
  store %9, %10, %5
}
// CHECK: [[ONE:%[0-9]+]] = constant value=index(1)
// CHECK: [[I:%[0-9]+]] = arange
// CHECK: [[T:%[0-9]+]] = constant value=i1(1)
// CHECK: [[MASK:%[0-9]+]] = splat [[T]] : tile<128xi1>
// CHECK: mul [[I]]
// CHECK: store %{{[0-9]+}}, %{{[0-9]+}}, [[MASK]]
)",
              infer_facts);
}

TEST(InferFacts, WithCanonicaliseMaskAndMultiplicationGo) {
  EXPECT_PASS(R"(
kernel "k" stage=traced
param : ptr<f32> access=write
param : index access=read one
{
  %0 = param index=0 : ptr<f32>
  %1 = param index=1 : index
  %2 = arange start=0 end=128 : tile<128xindex>
  %3 = constant value=index(127) : index
  %4 = splat %3 : tile<128xindex>
  %5 = le %2, %4 : tile<128xi1>
  %6 = splat %1 : tile<128xindex>
  %7 = mul %2, %6 : tile<128xindex>
  %8 = splat %0 : tile<128xptr<f32>>
  %9 = ptr_add %8, %7 : tile<128xptr<f32>>
  %10 = cast %7 : tile<128xf32>
  store %9, %10, %5
}
// CHECK: [[I:%[0-9]+]] = arange
// CHECK-NOT: mul
// CHECK: [[P:%[0-9]+]] = ptr_add %{{[0-9]+}}, [[I]]
// CHECK: [[V:%[0-9]+]] = cast [[I]]
// CHECK: store [[P]], [[V]]
// CHECK-NEXT: }
)",
              infer_facts, canonicalise);
}

TEST(InferFacts, KeepsMasksThatMayBeFalse) {
  const std::string text = kernel("param : ptr<f32> access=write\nparam : index access=read\n", R"(
  %0 = param index=0 : ptr<f32>
  %1 = param index=1 : index
  %2 = arange start=0 end=128 : tile<128xindex>
  %3 = splat %1 : tile<128xindex>
  %4 = lt %2, %3 : tile<128xi1>
  %5 = splat %0 : tile<128xptr<f32>>
  %6 = ptr_add %5, %2 : tile<128xptr<f32>>
  %7 = cast %2 : tile<128xf32>
  store %6, %7, %4
)");
  EXPECT_EQ(after({infer_facts}, text), after({}, text));
}

TEST(InferFacts, WrappingArithmeticIsNotDecided) {
  // 100 + 100 in i8 is -56, so the comparison with 0 must not be folded from the mathematical sum.
  EXPECT_PASS(kernel("param : ptr<i8> access=readwrite\n", R"(
  %0 = param index=0 : ptr<i8>
  %1 = arange start=100 end=116 : tile<16xindex>
  %2 = cast %1 : tile<16xi8>
  %3 = add %2, %2 : tile<16xi8>
  %4 = constant value=i8(0) : i8
  %5 = splat %4 : tile<16xi8>
  %6 = gt %3, %5 : tile<16xi1>
  %7 = cast %6 : tile<16xi8>
  %8 = splat %0 : tile<16xptr<i8>>
  %9 = ptr_add %8, %1 : tile<16xptr<i8>>
  store %9, %7
// CHECK: [[M:%[0-9]+]] = gt
// CHECK: cast [[M]]
)"),
              infer_facts);
}

}  // namespace
}  // namespace kiln::test

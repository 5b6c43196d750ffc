// What canonicalise knows of the ops that rearrange tiles.
#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;

/// `body` computes from %x : tile<6x4xi32> and %y of that type; it defines %r, which is stored.
std::string stored(const std::string& body, const std::string& shape, const std::string& checks) {
  const std::string p = "tile<" + shape + "xptr<i32>>";
  const std::string head = R"(
  %p = param index=0 : ptr<i32>
  %at = arange start=0 end=24 : tile<24xindex>
  %ps = splat %p : tile<24xptr<i32>>
  %pa = ptr_add %ps, %at : tile<24xptr<i32>>
  %flat = load %pa : tile<24xi32>
  %x = reshape %flat : tile<6x4xi32>
  %y = mul %x, %x : tile<6x4xi32>
  %base = splat %p : )" + p +
                           "\n";
  return kernel("param : ptr<i32> access=readwrite align=16\n", head + body + "  store %base, %r\n") + checks;
}

TEST(ShapeRules, ReshapesOfReshapesAreOne) {
  EXPECT_PASS(stored(R"(
  %a = reshape %y : tile<2x12xi32>
  %b = expand_dims axis=0 %a : tile<1x2x12xi32>
  %r = reshape %b : tile<3x8xi32>
)",
                     "3x8", R"(
// CHECK: [[Y:%[0-9]+]] = mul
// CHECK: [[R:%[0-9]+]] = reshape [[Y]] : tile<3x8xi32>
// CHECK-NOT: expand_dims
// CHECK: store %{{[0-9]+}}, [[R]]
)"),
              canonicalise);
}

TEST(ShapeRules, ThereAndBackIsNothing) {
  EXPECT_PASS(stored(R"(
  %a = permute order=[1,0] %y : tile<4x6xi32>
  %b = flip axis=1 %a : tile<4x6xi32>
  %c = flip axis=1 %b : tile<4x6xi32>
  %d = permute order=[1,0] %c : tile<6x4xi32>
  %e = join %d, %x : tile<6x4x2xi32>
  %f, %g = split %e : tile<6x4xi32>, tile<6x4xi32>
  %h = cat axis=0 %f, %g : tile<12x4xi32>
  %r = slice axis=0 start=0 end=6 %h : tile<6x4xi32>
)",
                     "6x4", R"(
// CHECK: [[Y:%[0-9]+]] = mul
// CHECK-NOT: permute
// CHECK-NOT: flip
// CHECK-NOT: split
// CHECK-NOT: cat
// CHECK: store %{{[0-9]+}}, [[Y]]
)"),
              canonicalise);
}

TEST(ShapeRules, PermutesAndSlicesCompose) {
  EXPECT_PASS(stored(R"(
  %a = reshape %y : tile<2x3x4xi32>
  %b = permute order=[2,0,1] %a : tile<4x2x3xi32>
  %c = permute order=[0,2,1] %b : tile<4x3x2xi32>
  %d = slice axis=0 start=1 end=4 %c : tile<3x3x2xi32>
  %r = slice axis=0 start=1 end=2 %d : tile<1x3x2xi32>
)",
                     "1x3x2", R"(
// CHECK: [[A:%[0-9]+]] = reshape %{{[0-9]+}} : tile<2x3x4xi32>
// CHECK: [[C:%[0-9]+]] = permute order=[2,1,0] [[A]]
// CHECK: [[R:%[0-9]+]] = slice axis=0 start=2 end=3 [[C]] : tile<1x3x2xi32>
// CHECK: store %{{[0-9]+}}, [[R]]
)"),
              canonicalise);
}

TEST(ShapeRules, SlicesOfACatTakeFromItsSecondPart) {
  EXPECT_PASS(stored(R"(
  %a = cat axis=1 %x, %y : tile<6x8xi32>
  %r = slice axis=1 start=5 end=7 %a : tile<6x2xi32>
)",
                     "6x2", R"(
// CHECK: [[Y:%[0-9]+]] = mul
// CHECK: [[R:%[0-9]+]] = slice axis=1 start=1 end=3 [[Y]] : tile<6x2xi32>
// CHECK: store %{{[0-9]+}}, [[R]]
)"),
              canonicalise);
}

// A slice across both parts, flips along different axes and unequal permutes stay.
TEST(ShapeRules, OtherPairsStay) {
  const std::string kept = after({canonicalise}, stored(R"(
  %a = cat axis=1 %x, %y : tile<6x8xi32>
  %b = slice axis=1 start=2 end=6 %a : tile<6x4xi32>
  %c = flip axis=0 %b : tile<6x4xi32>
  %d = flip axis=1 %c : tile<6x4xi32>
  %e = slice axis=0 start=1 end=5 %d : tile<4x4xi32>
  %r = slice axis=1 start=1 end=2 %e : tile<4x1xi32>
)",
                                                        "4x1", ""));
  for (const char* op : {"cat axis=1", "slice axis=1 start=2 end=6", "flip axis=0", "flip axis=1",
                         "slice axis=0 start=1 end=5", "slice axis=1 start=1 end=2"})
    EXPECT_THAT(kept, testing::HasSubstr(op));
}

TEST(ShapeRules, SplatsStaySplats) {
  EXPECT_PASS(stored(R"(
  %one = program_id axis=0 : index
  %narrow = cast %one : i32
  %s = splat %narrow : tile<6x4xi32>
  %a = permute order=[1,0] %s : tile<4x6xi32>
  %b = cat axis=0 %a, %a : tile<8x6xi32>
  %c = slice axis=1 start=1 end=4 %b : tile<8x3xi32>
  %d = flip axis=0 %c : tile<8x3xi32>
  %e = reshape %d : tile<12x2xi32>
  %f, %g = split %e : tile<12xi32>, tile<12xi32>
  %r = join %f, %g : tile<12x2xi32>
)",
                     "12x2", R"(
// CHECK: [[V:%[0-9]+]] = cast %{{[0-9]+}} : i32
// CHECK: [[R:%[0-9]+]] = splat [[V]] : tile<12x2xi32>
// CHECK: store %{{[0-9]+}}, [[R]]
)"),
              canonicalise);
}

}  // namespace
}  // namespace kiln::test

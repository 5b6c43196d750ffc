#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;

/// A kernel at stage canonical: a row of `n` elements on 4 warps, its elements in %5; `body` uses them and leaves %y.
std::string row(int n, const std::string& dtype, const std::string& body) {
  std::string text = R"(kernel "k" stage=canonical
exec team=cta warps=4 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0
param : ptr<const D> access=read align=16
param : ptr<f32> access=write align=16
{
  %0 = param index=0 : ptr<const D>
  %1 = param index=1 : ptr<f32>
  %2 = arange start=0 end=N : tile<Nxindex>
  %3 = splat %0 : tile<Nxptr<const D>>
  %4 = ptr_add %3, %2 : tile<Nxptr<const D>>
  %5 = load %4 : tile<NxD>
)" + body + R"(
  %p = splat %1 : tile<Nxptr<f32>>
  %q = ptr_add %p, %2 : tile<Nxptr<f32>>
  store %q, %y
}
)";
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"<Nx", "<" + std::to_string(n) + "x"},
                                 {"=N ", "=" + std::to_string(n) + " "},
                                 {"const D>", "const " + dtype + ">"},
                                 {"xD>", "x" + dtype + ">"}})
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

const char* const kCentred = R"(
  %6 = cast %5 : tile<Nxf32>
  %7 = reduce axis=0 %6 : f32 {(%a : f32, %b : f32)
    %c = max %a, %b : f32
    yield %c
  }
  %8 = splat %7 : tile<Nxf32>
  %9 = sub %6, %8 : tile<Nxf32>
  %10 = mul %9, %9 : tile<Nxf32>
  %11 = reduce axis=0 %10 : f32 {(%d : f32, %e : f32)
    %f = max %d, %e : f32
    yield %f
  }
  %12 = splat %11 : tile<Nxf32>
  %y = mul %9, %12 : tile<Nxf32>
)";

TEST(Rematerialise, CastsAndDifferencesAreComputedAgainBehindReductions) {
  const std::string out = after({rematerialise}, row(4096, "bf16", kCentred));
  EXPECT_IR(out, R"(
// CHECK: [[X:%[0-9]+]] = load
// CHECK: [[WIDE:%[0-9]+]] = cast [[X]]
// CHECK: [[M:%[0-9]+]] = reduce axis=0 [[WIDE]]
// CHECK: [[X2:%[0-9]+]] = opaque [[X]]
// CHECK: [[WIDE2:%[0-9]+]] = cast [[X2]]
// CHECK: [[D:%[0-9]+]] = sub [[WIDE2]]
// CHECK: [[SQ:%[0-9]+]] = mul [[D]], [[D]]
// CHECK: reduce axis=0 [[SQ]]
// CHECK: [[X3:%[0-9]+]] = opaque
// CHECK: [[WIDE3:%[0-9]+]] = cast [[X3]]
// CHECK: [[D2:%[0-9]+]] = sub [[WIDE3]]
// CHECK: mul [[D2]]
)");
}

TEST(Rematerialise, LeavesRowsThatAreWideAlreadyOrShort) {
  for (const std::string& text :
       {row(1024, "bf16", kCentred),
        row(4096, "f32", std::string(kCentred).replace(std::string(kCentred).find("cast"), 4, "neg "))})
    EXPECT_EQ(after({rematerialise}, text).find("opaque"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test

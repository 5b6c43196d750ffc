// A transposition written as load, permute, store: wide accesses on both sides and one barrier.
#include "runtime/base/error.h"
#include "tests/emit/emit_fixture.h"
#include "tests/support/ptxas.h"

namespace kiln::test {
namespace {

/// y[c, r] = x[r, c] of 16384x16384 elements, in square tiles.
std::string transposition(const std::string& dtype, int tile) {
  std::string body = R"(
    %r0 = program_id axis=1 : index
    %c0 = program_id axis=0 : index
    %size = constant value=index(SIZE) : index
    %r1 = mul %r0, %size : index
    %c1 = mul %c0, %size : index
    %i = arange start=0 end=SIZE : tile<SIZExindex>
    %pitch = constant value=index(16384) : index
    %pitches = splat %pitch : tile<SIZExindex>
    %down = mul %i, %pitches : tile<SIZExindex>
    %down1 = expand_dims axis=1 %down : tile<SIZEx1xindex>
    %down2 = broadcast %down1 : tile<SIZExSIZExindex>
    %right1 = expand_dims axis=0 %i : tile<1xSIZExindex>
    %right2 = broadcast %right1 : tile<SIZExSIZExindex>
    %at = add %down2, %right2 : tile<SIZExSIZExindex>
    %rp = mul %r1, %pitch : index
    %from = add %rp, %c1 : index
    %cp = mul %c1, %pitch : index
    %to = add %cp, %r1 : index
    %x = param index=0 : ptr<const T>
    %y = param index=1 : ptr<T>
    %x1 = ptr_add %x, %from : ptr<const T>
    %y1 = ptr_add %y, %to : ptr<T>
    %x2 = splat %x1 : tile<SIZExSIZExptr<const T>>
    %y2 = splat %y1 : tile<SIZExSIZExptr<T>>
    %x3 = ptr_add %x2, %at : tile<SIZExSIZExptr<const T>>
    %y3 = ptr_add %y2, %at : tile<SIZExSIZExptr<T>>
    %v = load %x3 : tile<SIZExSIZExT>
    %t = permute order=[1,0] %v : tile<SIZExSIZExT>
    store %y3, %t
  )";
  const auto replace = [&](const std::string& what, const std::string& by) {
    for (std::size_t at = body.find(what); at != std::string::npos; at = body.find(what, at + by.size()))
      body.replace(at, what.size(), by);
  };
  replace("SIZE", std::to_string(tile));
  replace("xT>", "x" + dtype + ">");
  replace(" T>", " " + dtype + ">");
  replace("<T>", "<" + dtype + ">");
  return kernel("param \"x\" : ptr<const " + dtype + "> access=read align=16\nparam \"y\" : ptr<" + dtype +
                    "> access=write align=16\n",
                body);
}

void expect_wide(const rt::KernelImage& image, int vectors) {
  for (const char* access : {"ld.global", "st.global", "ld.shared", "st.shared"}) {
    EXPECT_EQ(count(image.ptx, access), vectors) << access;
    EXPECT_EQ(count(image.ptx, std::string(access) + ".v4.b32"), vectors) << access;
  }
  EXPECT_EQ(count(image.ptx, "bar.sync"), 1);
}

TEST(Transpose, MovesSixteenBytesEverywhereAndWaitsOnce) {
  const rt::KernelImage two_bytes = image_of(transposition("bf16", 128));
  expect_wide(two_bytes, 8);
  EXPECT_EQ(two_bytes.recipe().smem_bytes, 32768u);
  EXPECT_EQ(two_bytes.recipe().block[0], 256u);
  expect_wide(image_of(transposition("f32", 64)), 4);
}

TEST(Transpose, MoreSharedMemoryThanTheTargetHasIsRefused) {
  try {
    image_of(transposition("f64", 256));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("k: needs 524288 bytes of shared memory, sm_90a has 232448; most of it: "
                                             "524288 bytes for convert at"));
  }
}

TEST(Transpose, FitsItsRegisters) {
  const auto tool = ptxas();
  if (!tool) GTEST_SKIP() << "no ptxas here";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Assembly a = assemble(*tool, image_of(transposition("bf16", 128), arch).ptx, arch);
    EXPECT_TRUE(a.accepted) << a.log;
    EXPECT_THAT(a.log, testing::HasSubstr(" 0 bytes spill stores, 0 bytes spill loads"));
  }
}

}  // namespace
}  // namespace kiln::test

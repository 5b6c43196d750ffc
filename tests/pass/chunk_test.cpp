#include "tests/pass/pass_fixture.h"

namespace kiln::test {
namespace {

using enum ir::Pass;
using testing::HasSubstr;
using testing::Not;

/// y = x · weight / sum(x) along a row of n elements of bf16, at stage traced.
std::string row(int n, const std::string& fact) {
  const std::string tile = "tile<" + std::to_string(n) + "x";
  return kernel("param \"x\" : ptr<const bf16> access=read align=16\nparam \"w\" : ptr<const bf16> access=read align=16" +
                    fact + "\nparam \"y\" : ptr<bf16> access=readwrite align=16\n",
                "%x = param index=0 : ptr<const bf16>\n%w = param index=1 : ptr<const bf16>\n%y = param index=2 : ptr<bf16>\n"
                "%i = arange start=0 end=" + std::to_string(n) + " : " + tile + "index>\n"
                "%xs = splat %x : " + tile + "ptr<const bf16>>\n%xp = ptr_add %xs, %i : " + tile + "ptr<const bf16>>\n"
                "%v = load %xp : " + tile + "bf16>\n%f = cast %v : " + tile + "f32>\n"
                "%s = reduce axis=0 %f : f32 {(%a : f32, %b : f32)\n%c = add %a, %b : f32\nyield %c\n}\n"
                "%ws = splat %w : " + tile + "ptr<const bf16>>\n%wp = ptr_add %ws, %i : " + tile + "ptr<const bf16>>\n"
                "%wv = load %wp : " + tile + "bf16>\n%wf = cast %wv : " + tile + "f32>\n"
                "%m = mul %f, %wf : " + tile + "f32>\n%st = splat %s : " + tile + "f32>\n"
                "%d = div %m, %st : " + tile + "f32>\n%r = cast %d : " + tile + "bf16>\n"
                "%ys = splat %y : " + tile + "ptr<bf16>>\n%yp = ptr_add %ys, %i : " + tile + "ptr<bf16>>\n"
                "store %yp, %r\n");
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Chunk, EndOfARowGoesOneVectorAThreadAtATime) {
  const std::string text = after({choose_exec, chunk}, row(4096, " disjoint"), {.num_warps = 4});
  EXPECT_EQ(count(text, "store %"), 4u) << text;  // of 128 threads x 8 elements
  EXPECT_EQ(count(text, "= load"), 5u) << text;
  EXPECT_THAT(text, HasSubstr("arange start=3072 end=4096 : tile<1024xindex>"));
  EXPECT_THAT(text, HasSubstr("slice axis=0 start=1024 end=2048"));
  EXPECT_EQ(count(text, "opaque"), 4u) << "the row is taken as it was loaded, and widened again: " << text;
  EXPECT_THAT(text, Not(HasSubstr("opaque %9 : tile<1024xf32>")));
}

TEST(Chunk, LastPieceOfAnOddRowIsShorter) {
  const std::string text = after({choose_exec, chunk}, row(2500, " disjoint"), {.num_warps = 4});
  EXPECT_EQ(count(text, "store %"), 3u) << text;
  EXPECT_THAT(text, HasSubstr("tile<452xbf16>"));
}

TEST(Chunk, RowsThatWouldChangeTheirThreadsStayWholeInAClusterAndWhereTheyAreWide) {
  const auto stores = [](int n, const char* align, const CompileOptions& options) {
    std::string text = row(n, " disjoint");
    const std::string aligned = "access=readwrite align=16";
    text.replace(text.find(aligned), aligned.size(), std::string("access=readwrite align=") + align);
    return count(after({choose_exec, chunk}, text, options), "store %");
  };
  EXPECT_EQ(stores(4096, "16", {.num_warps = 4, .cluster = 2}), 2u);
  EXPECT_EQ(stores(4096, "2", {.num_warps = 4, .cluster = 2}), 1u);
  EXPECT_EQ(stores(4096, "2", {.num_warps = 4}), 4u);
  EXPECT_EQ(stores(65536, "16", {.num_warps = 32}), 8u);
  EXPECT_EQ(stores(65536, "2", {.num_warps = 32}), 1u) << "128 KB or more of 227 are no two rows";
}

TEST(Chunk, LoadsDoNotPassStoresThatMayOverlap) {
  EXPECT_EQ(count(after({choose_exec, chunk}, row(4096, ""), {.num_warps = 4}), "store %"), 1u);
}

TEST(Chunk, RowOfOneVectorAThreadStaysWhole) {
  EXPECT_EQ(count(after({choose_exec, chunk}, row(1024, " disjoint"), {.num_warps = 4}), "store %"), 1u);
}

}  // namespace
}  // namespace kiln::test

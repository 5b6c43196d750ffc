// Signatures of functions, and which of their parameters a tensor map may take.
#include "backend/ir/signature.h"

#include <gtest/gtest.h>

#include "backend/ir/text.h"

namespace kiln::ir {
namespace {

const std::string kMatrix = R"ir(kernel "k" stage=traced
param "x" : ptr<const bf16> access=read align=16 disjoint
param "x.size(0)" : index access=read extent
param "x.size(1)" : index access=read align=8 extent
param "x.stride(0)" : index access=read align=8 extent
param : index access=read one extent
{
}
)ir";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string obstacle(const std::string& text) {
  return tensor_map_obstacle(parse(text), rt::view_map(0, DType::bf16, {1, 0}));
}

TEST(Signature, HasAnArgumentForEachParameter) {
  const rt::ArgSig sig = signature(parse(kMatrix));
  ASSERT_EQ(sig.args.size(), 5u);
  EXPECT_EQ(sig.bytes, 40u);
  EXPECT_EQ(sig.args[0].kind, rt::ArgKind::Pointer);
  EXPECT_EQ(sig.args[0].align, 16u);
  EXPECT_TRUE(sig.args[0].disjoint);
  EXPECT_EQ(sig.args[0].name, "x");
  EXPECT_EQ(sig.args[3].align, 8u);
  EXPECT_TRUE(sig.args[4].is_one);
  EXPECT_EQ(sig.args[4].name, "argument 5 (index)");
}

TEST(Signature, TensorMapsNeedFactsAboutEveryExtent) {
  EXPECT_EQ(obstacle(kMatrix), "");
  EXPECT_EQ(obstacle(changed(kMatrix, "align=16", "align=4")), "x: not known to be a multiple of 16 bytes");
  EXPECT_EQ(
      obstacle(changed(kMatrix, "stride(0)\" : index access=read align=8", "stride(0)\" : index access=read align=4")),
      "x.stride(0): not known to be a multiple of 16 bytes");
  EXPECT_EQ(obstacle(changed(kMatrix, "size(0)\" : index access=read extent", "size(0)\" : index access=read")),
            "x.size(0): not known to be 1 to 2^31 - 1");
  EXPECT_EQ(obstacle(changed(kMatrix, "align=8 extent\nparam :", "align=8\nparam :")),
            "x.stride(0): not known to be 1 to 2^31 - 1");
  EXPECT_EQ(obstacle(changed(kMatrix, "one extent", "extent")), "argument 5 (index): not known to be 1");
}

}  // namespace
}  // namespace kiln::ir

#include "bench/figure.h"

#include <gtest/gtest.h>

namespace kiln::bench {
namespace {

TEST(Figure, LeavesOutOfItsJsonWhatDoesNotApply) {
  EXPECT_EQ(to_json({.what = {"add_relu", {100}, "f32"}, .us = 1.2344, .gbs = 0.97}),
            R"({"case":"add_relu","peer":"kiln","shape":[100],"dtype":"f32","us":1.234,"gbs":1.0})");
  EXPECT_EQ(to_json({.what = {"matmul", {8, 8, 8}, "bf16"}, .us = 2, .gbs = 3, .tflops = 689.25}),
            R"({"case":"matmul","peer":"kiln","shape":[8,8,8],"dtype":"bf16","us":2.0,"gbs":3.0,"tflops":689.3})");
  EXPECT_EQ(to_json({.what = {"compile_latency", {}, ""}, .peer = "kiln add_relu first", .ms = 12.5, .state = "cold"}),
            R"({"case":"compile_latency","peer":"kiln add_relu first","state":"cold","ms":12.5})");
}

TEST(Case, IsTheSameAfterJson) {
  for (const Case& c : {Case{"add_relu", {100}, "f32"}, Case{"softmax", {8, 1024}, "bf16"}, Case{"graph_node", {}, ""}})
    EXPECT_EQ(parse_case(to_json(c)), c);
}

TEST(Figure, NamesEveryPartForAReader) {
  const std::string text = to_text({.what = {"add_relu", {8, 16}, "f32"}, .us = 2, .gbs = 3});
  for (const char* part : {"add_relu", "[8, 16]", "f32", "kiln", "2.000 us", "3.0 GB/s"})
    EXPECT_NE(text.find(part), text.npos) << text;
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

}  // namespace
}  // namespace kiln::bench

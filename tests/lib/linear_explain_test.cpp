// What linear says of itself: blocks and why, the bound, the kernels with what they take and by what they work.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/lib/products.h"

namespace kiln::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

lib::LinearExplanation explained(const Device& d, std::int64_t M, std::int64_t N, std::int64_t K,
                                 const lib::LinearOptions& options = {}) {
  const auto at = [](std::uint64_t n) { return device_ptr<bf16>(n << 40); };  // nothing is read there
  return lib::linear<bf16>({at(1), {M, K}}, {at(2), {N, K}}, options)
      .then(lib::epilogue::relu)
      .explain(d, {at(3), {M, N}});
}

TEST(LinearExplain, AWarpgroupKernelSaysWhatItTakes) {
  const auto e = explained(Device::simulator("sm_90a"), 4096, 4096, 4096);
  SCOPED_TRACE(e.text());
  EXPECT_EQ(e.plan, "128x256x64 num_warps=8");
  EXPECT_THAT(e.why, HasSubstr("the least waves and steps by the library's table: 512 programs, 3.88 for each of 132"));
  EXPECT_EQ(e.flop, 2.0 * 4096 * 4096 * 4096);
  EXPECT_EQ(e.bytes, 3.0 * 4096 * 4096 * 2);
  EXPECT_THAT(e.bound, HasSubstr("bound by the matrix units"));
  ASSERT_EQ(e.kernels.size(), 1u);
  const Explanation& k = e.kernels[0];
  EXPECT_EQ(k.kernel, "linear");
  EXPECT_EQ(k.threads, 384u);
  EXPECT_EQ(k.blocks_per_sm, 1u);
  EXPECT_GT(k.shared_bytes, 128u << 10);
  EXPECT_LE(k.shared_bytes, k.most_shared_bytes);
  EXPECT_LE(k.registers, 168u);
  EXPECT_THAT(k.multiplies, Contains(HasSubstr("wgmma m64n256k16")));
  EXPECT_THAT(k.moves, Contains(HasSubstr("copies of tensor maps")));
  EXPECT_THAT(k.moves, Contains(HasSubstr("setmaxnreg")));
  EXPECT_THAT(e.text(), HasSubstr("multiplies by  wgmma m64n256k16"));
}

template <class X, class Y>
lib::LinearExplanation explained_types(const lib::LinearOptions& options, std::array<std::int64_t, 2> w_strides) {
  const auto at = [](std::uint64_t n) { return n << 40; };  // nothing is read there
  return lib::linear<X>({device_ptr<X>(at(1)), {8192, 8192}}, {device_ptr<X>(at(2)), {8192, 8192}, w_strides}, options)
      .template explain<Y>(Device::simulator("sm_90a"), {device_ptr<Y>(at(3)), {8192, 8192}});
}

TEST(LinearExplain, OtherTypesOfWarpgroupsToo) {
  constexpr std::array<std::int64_t, 2> kRows{8192, 1}, kColumns{1, 8192};
  const auto multiplies = [](const lib::LinearExplanation& e) { return e.kernels.at(0).multiplies; };
  const auto f8 = explained_types<f8e4m3, bf16>({}, kRows), fast = explained_types<f8e4m3, bf16>({.promote = 0}, kRows),
             tf32 = explained_types<float, float>({.precision = Precision::tf32}, kRows);
  EXPECT_EQ(f8.plan, "128x256x128 num_warps=8");
  EXPECT_THAT(multiplies(f8), Contains(HasSubstr("wgmma m64n128k32 f32.e4m3.e4m3")));
  EXPECT_THAT(multiplies(fast), Contains(HasSubstr("wgmma m64n256k32 f32.e4m3.e4m3")));
  EXPECT_EQ(tf32.plan, "128x256x32 num_warps=8");
  EXPECT_THAT(multiplies(tf32), Contains(HasSubstr("wgmma m64n256k8 f32.tf32.tf32")));
  EXPECT_THAT(tf32.bound, HasSubstr("345 TFLOP/s"));
  EXPECT_THAT(multiplies(explained_types<std::int8_t, std::int32_t>({}, kRows)),
              Contains(HasSubstr("wgmma m64n256k32 s32.s8.s8")));
  // Exact f32 stays so, and what does not lie along k has no such unit.
  EXPECT_THAT(multiplies(explained_types<float, float>({}, kRows)), Not(Contains(HasSubstr("tf32"))));
  EXPECT_THAT(multiplies(explained_types<float, float>({.precision = Precision::tf32}, kColumns)),
              Contains(HasSubstr("mma.sync m16n8k8")));
}

TEST(LinearExplain, OtherTargetsAndOtherReasons) {
  const auto e = explained(Device::simulator("sm_80"), 4096, 4096, 4096, {.blocks = {64, 64, 32}, .num_warps = 4});
  SCOPED_TRACE(e.text());
  EXPECT_EQ(e.plan, "64x64x32 num_warps=4");
  EXPECT_THAT(e.why, HasSubstr("the options name these blocks"));
  EXPECT_THAT(e.bound, HasSubstr("1365.3 FLOP a byte; the rates of this device are not known"));
  EXPECT_THAT(e.kernels.at(0).multiplies, Contains(HasSubstr("mma.sync m16n8k16")));
  EXPECT_THAT(e.kernels.at(0).multiplies, Not(Contains(HasSubstr("wgmma"))));
}

TEST(LinearExplain, FewRowsAreBoundByMemory) {
  const auto e = explained(Device::simulator("sm_90a"), 1, 8192, 8192);
  EXPECT_THAT(e.bound, HasSubstr("bound by memory: 31.4"));
}

TEST(LinearExplain, PiecesAreTwoKernels) {
  const auto e = explained(Device::simulator("sm_90a"), 64, 64, 8192, {.splits = 4});
  ASSERT_EQ(e.kernels.size(), 2u);
  EXPECT_EQ(e.kernels[0].kernel, "linear_pieces");
  EXPECT_EQ(e.kernels[1].kernel, "linear_merge");
}

TEST(Explain, JsonHasTheSame) {
  const auto k = kernel("copied", [](In<float> x, Out<float> y) { store(y + arange(1024), load(x + arange(1024))); });
  const Device d = Device::simulator("sm_86");
  const Buffer<float> x(d, 1024);
  Buffer<float> y(d, 1024);
  const Explanation e = explain(k.image(d, x, y), d);
  const auto j = nlohmann::json::parse(e.json());
  EXPECT_EQ(j["kernel"], "copied");
  EXPECT_EQ(j["threads"], e.threads);
  EXPECT_EQ(j["blocks_per_sm"], e.blocks_per_sm);
  EXPECT_EQ(j["most_warps_per_sm"], 48);
  EXPECT_THAT(j["moves"].get<std::vector<std::string>>(), Contains("ld.global by vectors of 4"));
  EXPECT_THAT(e.multiplies, IsEmpty());
  EXPECT_THAT(e.text(), HasSubstr("copied for sm_86 ("));
  EXPECT_THAT(e.text(), HasSubstr("linear_explain_test.cpp:"));
}

}  // namespace
}  // namespace kiln::test

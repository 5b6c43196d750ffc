// No chain of the library spills: what the driver's assembler says of the kernels of large products, whose sums alone
// take 128 registers a thread.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/lib/products.h"
#include "tests/support/knob.h"
#include "tests/support/ptxas.h"
#include "tests/support/temporary_folder.h"

namespace kiln::test {
namespace {

namespace ep = lib::epilogue;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kM = 8192, kN = 8192, kK = 8192;
/// A number that each program needs once may go to memory: the assembler then fills all registers with what it
/// interleaves behind the loop.
constexpr int kFewBytes = 8;

/// What the assembler says in its log.
int spilled_bytes(const std::string& log) {
  static const std::regex words("([0-9]+) bytes spill stores");
  int n = 0;
  for (std::sregex_iterator i(log.begin(), log.end(), words), end; i != end; ++i) n += std::stoi((*i)[1]);
  return n;
}

/// An array that nothing reads.
template <class T>
TypedPtr<T> at(std::uint64_t n, std::size_t elements = kM * kN) {
  return device_ptr<T>(n << 40, elements);
}

/// Compiles the product, and assembles what came out.
/// Where a product is compiled for, and what shows that it went the way that is meant.
struct Way {
  std::filesystem::path tool;
  std::string target, unit;
};
const char* const kUnits[][2] = {{"sm_90a", "wgmma"}, {"sm_80", "mma.sync"}};

template <class Y, class L>
void expect_no_spills(const std::string& what, const Way& way, const L& product, std::int64_t columns = kN) {
  SCOPED_TRACE(what);
  const TemporaryFolder folder;
  const Knob ptx("KILN_DUMP", "ptx"), where("KILN_DUMP_DIR", folder.path().string().c_str());
  product.template explain<Y>(Device::simulator(way.target), {at<Y>(3), {kM, columns}});
  int kernels = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (file.path().extension() != ".ptx") continue;
    std::ifstream in(file.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const Assembly a = assemble(way.tool, text, way.target);
    ++kernels;
    EXPECT_TRUE(a.accepted) << a.log;
    EXPECT_THAT(text, HasSubstr(way.unit));
    EXPECT_THAT(a.log, HasSubstr("bytes spill stores"));
    EXPECT_LE(spilled_bytes(a.log), kFewBytes) << a.log;
    for (const char* trouble : {"C75", "C76", "warning"}) EXPECT_THAT(a.log, Not(HasSubstr(trouble)));
  }
  EXPECT_EQ(kernels, 1);
}

template <class X, class Y>
void expect_no_spills(const std::string& types, const lib::LinearOptions& options, std::size_t unit = 0) {
  const auto tool = ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  const Way way{*tool, kUnits[unit][0], kUnits[unit][1]};
  const auto product = lib::linear<X>({at<X>(1), {kM, kK}}, {at<X>(2), {kN, kK}}, options);
  const auto bias = ep::bias<bf16>({at<bf16>(4, kN), {kN}});
  const auto expect = [&](const char* chain, const auto& p) { expect_no_spills<Y>(types + " " + chain, way, p); };
  expect("bare", product);
  expect("bias, relu", product.then(bias).then(ep::relu));
  expect("bias, gelu", product.then(bias).then(ep::gelu));
  expect("silu", product.then(ep::silu));
  expect("gelu_tanh", product.then(ep::scale(lib::number(0.5f))).then(ep::gelu_tanh));
  expect("residual", product.then(ep::residual<bf16>({at<bf16>(5), {kM, kN}})));
  expect("residual in place", product.then(ep::residual<Y>({at<Y>(3), {kM, kN}})));
  expect("scales", product.then(ep::scale(lib::per_row<float>({at<float>(6, kM), {kM}})))
                       .then(ep::scale(lib::per_column<float>({at<float>(7, kN), {kN}}))));
  expect("dropout", product.then(ep::dropout(0.1, 7)));
  expect_no_spills<Y>(types + " swiglu", way, product.then(ep::swiglu), kN / 2);
  expect_no_spills<f8e4m3>(types + " cast_amax", way,
                           product.then(ep::cast_amax<f8e4m3>(at<float>(8, 1), at<float>(9, 1))));
}

TEST(LinearSpills, Bf16) { expect_no_spills<bf16, bf16>("bf16", {}); }
TEST(LinearSpills, Bf16IntoF32) { expect_no_spills<bf16, float>("bf16 into f32", {}); }
TEST(LinearSpills, Bf16WithoutWarpgroups) { expect_no_spills<bf16, bf16>("bf16 for sm_80", {}, 1); }
TEST(LinearSpills, F8) { expect_no_spills<f8e4m3, bf16>("f8", {}); }
TEST(LinearSpills, F8WithoutParts) { expect_no_spills<f8e4m3, bf16>("f8 without parts", {.promote = 0}); }
TEST(LinearSpills, Tf32) { expect_no_spills<float, float>("tf32", {.precision = Precision::tf32}); }

}  // namespace
}  // namespace kiln::test

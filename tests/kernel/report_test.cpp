// print and device_assert: the same text on every device, in one order, after the host has waited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::error_of;
using kiln::test::EveryDevice;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Collects what kernels print.
class Reports : public EveryDevice {
 protected:
  void SetUp() override {
    device().on_print([this](const std::string& line) { lines.push_back(line); });
  }
  void TearDown() override { device().on_print({}); }
  std::vector<std::string> lines;
};
KILN_ON_EVERY_DEVICE(Reports);

constinit auto scale = kernel("scale", [](In<float> x, Out<float> y, Int n, Const<int> B) {
  Tile i = arange(B), mask = i < n;
  Tile v = load(x + program_id(0) * B + i, mask);
  print("x[{}] = {}", program_id(0) * B + i, v);
  store(y + program_id(0) * B + i, v * 2, mask);
});
TEST_P(Reports, PrintEachElementInOrderOfProgramAndElement) {
  Stream s(device());
  auto x = buffer_of<float>(device(), {0.5f, -2.f, 1e20f, 0.1f, 3.f, 7.f});
  Buffer<float> y(device(), 6);
  scale.launch(s, 2, x, y, 3, 3);
  s.synchronize();
  EXPECT_THAT(lines, ElementsAre("scale (0, 0, 0) [0]: x[0] = 0.5", "scale (0, 0, 0) [1]: x[1] = -2",
                                 "scale (0, 0, 0) [2]: x[2] = 1e+20", "scale (1, 0, 0) [0]: x[3] = 0.1",
                                 "scale (1, 0, 0) [1]: x[4] = 3", "scale (1, 0, 0) [2]: x[5] = 7"));
}

constinit auto every_type = kernel("every_type", [](In<float> x, Int n) {
  Scalar v = load(x);
  print("no value {{}}");
  print("{} {} {} {} {}", v > 0, v.cast<std::int8_t>(), v.cast<std::uint8_t>(), v.cast<std::int64_t>(), n);
  print("{} {} {} {} {}", v.cast<f16>(), v.cast<bf16>(), v.cast<double>(), v.cast<f8e4m3>(), v.cast<f8e5m2>());
  print("{} {}", load(x + 1), load(x + 2));
});
TEST_P(Reports, PrintScalarsOfEveryTypeOnce) {
  Stream s(device());
  auto x = buffer_of<float>(device(), {-3.3f, -std::nanf(""), -std::numeric_limits<float>::infinity()});
  every_type.with({.num_warps = 4}).launch(s, 1, x, std::int64_t(-7000000000));
  s.synchronize();
  EXPECT_THAT(lines, ElementsAre("every_type (0, 0, 0): no value {}", "every_type (0, 0, 0): false -3 0 -3 -7000000000",
                                 "every_type (0, 0, 0): -3.3007812 -3.296875 -3.299999952316284 -3.25 -3.5",
                                 "every_type (0, 0, 0): nan -inf"));
}

constinit auto grid_2d = kernel("grid_2d", [](Const<int> R, Const<int> C) {
  print("{}", expand(arange(R), 1) * 10 + arange(C));
  print("{}", program_id(0) * 100 + program_id(1) * 10 + program_id(2));
});
TEST_P(Reports, NameCoordinatesAndWholePrograms) {
  Stream s(device());
  grid_2d.launch(s, {1, 1, 2}, 2, 3);
  s.synchronize();
  ASSERT_EQ(lines.size(), 14u);
  EXPECT_EQ(lines[4], "grid_2d (0, 0, 0) [1, 1]: 11");
  EXPECT_EQ(lines[6], "grid_2d (0, 0, 0): 0");
  EXPECT_EQ(lines[13], "grid_2d (0, 0, 1): 1");
}

TEST_P(Reports, ComeOnceAndInOrderOfLaunches) {
  Stream s(device());
  auto x = buffer_of<float>(device(), {1.f}), y = buffer_of<float>(device(), {0.f});
  scale.launch(s, 1, x, y, 1, 1);
  scale.launch(s, 1, y, x, 1, 1);
  s.synchronize();
  EXPECT_THAT(lines, ElementsAre("scale (0, 0, 0) [0]: x[0] = 1", "scale (0, 0, 0) [0]: x[0] = 2"));
  s.synchronize();
  device().synchronize();
  EXPECT_EQ(lines.size(), 2u);
}

TEST_P(Reports, ComeWithADownload) {
  Stream s(device());
  auto x = buffer_of<float>(device(), {1.f}), y = buffer_of<float>(device(), {0.f});
  scale.launch(s, 1, x, y, 1, 1);
  EXPECT_EQ(y.to_vector()[0], 2.f);
  EXPECT_EQ(lines.size(), 1u);
}

TEST_P(Reports, OfAGraphComeAtEveryReplay) {
  Stream s(device());
  auto x = buffer_of<float>(device(), {1.f}), y = buffer_of<float>(device(), {0.f});
  scale.preload(device(), x, y, 1, 1);
  const Graph g = Graph::capture(s, [&] { scale.launch(s, 1, x, y, 1, 1); });
  EXPECT_TRUE(lines.empty());
  for (std::size_t replay = 1; replay <= 2; ++replay) {
    g.replay(s);
    s.synchronize();
    EXPECT_EQ(lines.size(), replay);
  }
}

constinit auto flood = kernel("flood", [](Const<int> B) { print("{}", arange(B)); });
TEST_P(Reports, BeyondTheBufferAreCounted) {
  Stream s(device());
  // 5 words a record: 26214 of 40960 fit 2^17.
  flood.with({.num_warps = 8}).launch(s, 10, 4096);
  s.synchronize();
  ASSERT_EQ(lines.size(), 26214u + 1);
  EXPECT_EQ(lines.back(), "flood: 14746 more reports found no room in a buffer of 131072 words");
  lines.clear();
  flood.with({.num_warps = 8}).launch(s, 1, 4);
  s.synchronize();
  EXPECT_EQ(lines.size(), 4u);
}

// --- asserts ---------------------------------------------------------------------------------------------------------

constexpr int kAssertLine = __LINE__ + 3;
constinit auto checked = kernel("checked", [](In<std::int32_t> at, In<float> table, Out<float> y, Int n, Const<int> B) {
  Tile i = program_id(0) * B + arange(B), t = load(at + i);
  device_assert(t < n, "index beyond the table", t != 99);
  store(y + i, load(table + t, t < n), true);
});
TEST_P(Reports, AFailedAssertIsAnErrorThatNamesLineProgramAndElement) {
  Stream s(device());
  auto at = buffer_of<std::int32_t>(device(), {0, 1, 2, 3, 1, 5, 99, 4});
  auto table = buffer_of<float>(device(), {10.f, 20.f, 30.f, 40.f});
  Buffer<float> y(device(), 8);
  checked.launch(s, 2, at, table, y, 4, 4);
  const std::string what = error_of<DeviceError>([&] { s.synchronize(); });
  EXPECT_THAT(what, AllOf(HasSubstr("report_test.cpp:" + std::to_string(kAssertLine) + ": error: "),
                          HasSubstr("checked: assertion failed in program (1, 0, 0) [1]: index beyond the table"),
                          HasSubstr("; 2 assertions failed in all")));
  // The kernel went on, and the device is as good as before.
  EXPECT_EQ(y.to_vector(), (std::vector<float>{10, 20, 30, 40, 20, 0, 0, 0}));
  s.synchronize();
}

TEST_P(Reports, AssertsThatHoldSayNothing) {
  Stream s(device());
  auto at = buffer_of<std::int32_t>(device(), {0, 1, 99, 3});
  auto table = buffer_of<float>(device(), {10.f, 20.f, 30.f, 40.f});
  Buffer<float> y(device(), 4);
  checked.launch(s, 1, at, table, y, 4, 4);
  s.synchronize();
  EXPECT_TRUE(lines.empty());
}

constinit auto told = kernel("told", [](Int n) {
  print("n = {}", n);
  device_assert(n > 0, "n must be positive");
  print("after");
});
TEST_P(Reports, PrintsComeBeforeTheErrorOfAnAssert) {
  Stream s(device());
  told.with({.num_warps = 2}).launch(s, 1, -1);
  EXPECT_THAT(error_of<DeviceError>([&] { device().synchronize(); }),
              AllOf(HasSubstr("told: assertion failed in program (0, 0, 0): n must be positive"),
                    testing::Not(HasSubstr("in all"))));
  EXPECT_THAT(lines, ElementsAre("told (0, 0, 0): n = -1", "told (0, 0, 0): after"));
}

constinit auto flood_then_fail = kernel("flood_then_fail", [](Const<int> B, Int n) {
  print("{}", arange(B));
  device_assert(n > 0, "never seen");
});
TEST_P(Reports, AFailureIsKnownEvenWhenTheBufferIsFull) {
  Stream s(device());
  flood_then_fail.with({.num_warps = 32}).launch(s, 1, 32768, 0);
  EXPECT_THAT(error_of<DeviceError>([&] { s.synchronize(); }),
              AnyOf(HasSubstr("1 assertions failed; the report buffer had no room"),
                    HasSubstr("assertion failed in program (0, 0, 0)")));
}

// --- errors and cost -------------------------------------------------------------------------------------------------

template <class F>
std::string refused(F f) {
  auto k = kernel("refused", f);
  return error_of<UserError>([&] { (void)k.trace(device_ptr<float>(64)); });
}

TEST(ReportErrors, NameTheFormat) {
  EXPECT_THAT(refused([](Out<float>) { print("{} {}", 1); }),
              HasSubstr("print: the format \"{} {}\" has 2 places for 1 values"));
  EXPECT_THAT(refused([](Out<float>) { print("{x}", 1); }),
              HasSubstr("print: in the format only {}, {{ and }} may stand"));
  EXPECT_THAT(refused([](Out<float> p) { print("{}", p); }),
              HasSubstr("print: a pointer has no value to print: ptr<f32>"));
  EXPECT_THAT(refused([](Out<float>) { print("{} {}", arange(3), arange(4)); }),
              HasSubstr("print: shapes do not broadcast"));
  EXPECT_THAT(refused([](Out<float>) { device_assert(arange(3), "x"); }),
              HasSubstr("device_assert: condition must be i1"));
}

TEST(ReportCost, OnlyKernelsThatReportTakeABuffer) {
  const Device d = Device::simulator();
  const auto quiet = kernel("quiet", [](Out<float> p) { store(p, 1.f); });
  const auto loud = kernel("loud", [](Out<float> p) {
    store(p, 1.f);
    print("p");
  });
  Buffer<float> p(d, 1);
  EXPECT_TRUE(quiet.image(d, p).recipe().hidden.empty());
  EXPECT_EQ(loud.image(d, p).recipe().hidden, std::vector{rt::HiddenParam::ReportBuffer});
  EXPECT_EQ(loud.image(d, p).sites.size(), 1u);
}

}  // namespace

// Views: loads and stores by coordinates, clipped at the edges of the array.
#include <gtest/gtest.h>

#include "dsl/kiln.h"
#include "tests/support/devices.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

std::vector<float> iota(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(i);
  return v;
}

TEST(LangView, ElementsOfViewsSubviewsSlicesAndTransposes) {
  auto k = kernel("elements", [](View<const float, 2> x, View<float, 1> o, Int r, Const<int> C) {
    o.put({0}, x.at({r, C}));
    o.put({1}, x.trans().at({C, r}));
    o.put({2}, x.slice(1).at({2}));
    o.put({3}, x.slice<1>(2).at({1}));
    o.put({r + 3}, x.sub({1, 1}, {1, 2}).at({0, 1}));
    o.put({5}, x.sub({1, 1}, {1, 2}).size(1).cast(f32));
    o.put({6}, 9);
  });
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, iota(6)), o = buffer_of(d, std::vector<float>(8, -1));
    k.launch(Stream(d), 1, {x, {2, 3}}, {o, {8}}, 1, 2);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{5, 5, 5, 5, 5, 2, 9, -1}));
  });
}

TEST(LangView, OutsideReadsThePaddingAndWritesNothing) {
  auto k = kernel("shift", [](View<const float, 2> x, View<float, 2> o, Int dr, Int dc) {
    o.store({0, 0}, x.load({dr, dc}, {2, 4}, 100));
  });
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, iota(6)), o = buffer_of(d, std::vector<float>(6, -1));
    k.launch(Stream(d), 1, {x, {2, 3}}, {o, {2, 3}}, 1, 1);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{4, 5, 100, 100, 100, 100}));
    k.launch(Stream(d), 1, {x, {2, 3}}, {o, {2, 3}}, -1, -2);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{100, 100, 100, 100, 100, 0}));
  });
}

TEST(LangView, BlocksHavePositiveExtents) {
  auto k = kernel("block", [](View<const float, 2> x) { (void)x.load({0, 0}, {0, 4}); });
  const int line = __LINE__ - 1;
  expect_user_error([&] { (void)k.trace({device_ptr<float>(256), {2, 3}}); },
                    "view: a block's extents are positive, shape is [0,4]", __FILE__, line);
}

TEST(LangView, PaddingIsZeroByDefaultAndMayBeAVariable) {
  auto k = kernel("pad", [](View<const float, 1> x, View<float, 1> o, Float p) {
    o.store({0}, x.load({1}, {2}));
    o.store({2}, x.load({1}, {2}, p));
  });
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, iota(2)), o(d, 4);
    k.launch(Stream(d), 1, {x, {2}}, {o, {4}}, 7.5f);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{1, 0, 1, 7.5f}));
  });
}

TEST(LangView, StridesMayTransposeOrRepeat) {
  auto copy = kernel("copy", [](View<const float, 2> x, View<float, 2> o) { o.store({0, 0}, x.load({0, 0}, {3, 2})); });
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, iota(6)), o(d, 6);
    copy.launch(Stream(d), 1, {x, {3, 2}, {1, 3}}, {o, {3, 2}});
    EXPECT_EQ(o.to_vector(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
    copy.launch(Stream(d), 1, {x, {3, 2}, {0, 1}}, {o, {3, 2}});
    EXPECT_EQ(o.to_vector(), (std::vector<float>{0, 1, 0, 1, 0, 1}));
  });
}

// clang-format off: each expectation takes its own line
TEST(LangView, ViewBeyondItsBufferIsRefusedAtTheLaunch) {
  auto k = kernel("fill", [](View<float, 2> o) { o.store({0, 0}, zeros(f32, {2, 2})); }).names("o");
  const Device d = interpreter();
  Buffer<float> o(d, 6);
  expect_user_error([&] { k.launch(Stream(d), 1, {o, {2, 4}}); }, "fill: argument 1 (o): sizes [2, 4] with strides [4, 1] reach beyond the buffer's 6 elements", __FILE__, __LINE__);
  expect_user_error([&] { k.launch(Stream(d), 1, {o, {-2, 4}}); }, "must not be negative", __FILE__, __LINE__);
  expect_user_error([&] { k.launch(Stream(d), 1, {o, {2, 3}, {-3, 1}}); }, "sizes [2, 3] with strides [-3, 1] reach beyond the buffer's 6 elements", __FILE__, __LINE__);
}

TEST(LangView, RawPointerWithItsSizeIsCheckedAgainstIt) {
  auto k = kernel("fill", [](View<float, 2> o) { o.store({0, 0}, zeros(f32, {2, 2})); }).names("o");
  const Device d = interpreter();
  Buffer<float> o(d, 8);
  expect_user_error([&] { k.launch(Stream(d), 1, {device_ptr<float>(o.ptr(), 6), {2, 4}}); }, "fill: argument 1 (o): sizes [2, 4] with strides [4, 1] reach beyond the pointer's 6 elements", __FILE__, __LINE__);
  expect_user_error([&] { k.launch(Stream(d), 1, {device_ptr<float>(o.ptr() + 12, 5), {2, 2}, {-3, 1}}); }, "sizes [2, 2] with strides [-3, 1] reach beyond the pointer's 5 elements", __FILE__, __LINE__);
  k.launch(Stream(d), 1, {device_ptr<float>(o.ptr(), 6), {2, 2}});
}

TEST(LangView, RawPointerWithoutASizeIsCheckedAgainstItsAllocation) {
  auto k = kernel("fill", [](View<float, 2> o) { o.store({0, 0}, zeros(f32, {2, 2})); }).names("o");
  on_each_device([&](const Device& d) {
    Buffer<float> o(d, 8);
    const Stream s(d);
    expect_user_error([&] { k.launch(s, 1, {device_ptr<float>(o.ptr()), {2, 1 << 28}}); }, "fill: argument 1 (o): 2147483648 bytes at address", __FILE__, __LINE__);
    expect_user_error([&] { k.launch(s, 1, {device_ptr<float>(o.ptr()), {2, 1 << 28}}); }, "its allocation ends after", __FILE__, __LINE__);
    expect_user_error([&] { k.launch(s, 1, {device_ptr<float>(o.ptr() + 8), {2, 2}, {-3, 1}}); }, "12 bytes before address", __FILE__, __LINE__);
    expect_user_error([&] { k.launch(s, 1, {device_ptr<float>(o.ptr() + 8), {2, 2}, {-3, 1}}); }, "its allocation begins 8 before it", __FILE__, __LINE__);
    expect_user_error([&] { k.launch(s, 1, {device_ptr<float>(o.ptr()), {1ll << 40, 2}, {1ll << 40, 1}}); }, "18446744073709551615 bytes at address", __FILE__, __LINE__);
    expect_user_error([&] { k.launch(s, 1, {device_ptr<float>(o.ptr(), 1 << 28), {2, 2}}); }, "1073741824 bytes at address", __FILE__, __LINE__);
    s.synchronize();
  });
}

TEST(LangView, FactsAreMultiplesOfSixteenBytesAndWhatATensorMapTakes) {
  auto k = kernel("facts", [](View<bf16, 2> x) { (void)x.size(0); });
  const auto facts = [&](std::array<std::int64_t, 2> n, std::array<std::int64_t, 2> s) {
    std::string text = k.trace({device_ptr<bf16>(256), n, s}).text(false), out;
    for (auto at = text.find(": index access=read"); at != text.npos; at = text.find(": index access=read", at + 1))
      out += text.substr(at + 19, text.find('\n', at) - at - 19) + ";";
    return out;
  };
  EXPECT_EQ(facts({5, 1000}, {1000, 1}), " extent; align=8 extent; align=8 extent; one extent;");
  EXPECT_EQ(facts({64, 3}, {1, 64}), " align=16 extent; extent; one extent; align=16 extent;");
  EXPECT_EQ(facts({0, 3}, {-4, 1}), " align=16; extent;; one extent;");
}

TEST(LangView, RawPointerMayBeReadBackwards) {
  auto k = kernel("reverse", [](View<const float, 1> x, View<float, 1> o) { o.store({0}, x.load({0}, {8})); });
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, iota(6)), o(d, 6);
    k.launch(Stream(d), 1, {device_ptr<float>(x.ptr() + 20), {6}, {-1}}, {o, {6}});
    EXPECT_EQ(o.to_vector(), (std::vector<float>{5, 4, 3, 2, 1, 0}));
  });
}

TEST(LangView, StoreOfAnotherRankNamesBoth) {
  auto k = kernel("rank", [](View<float, 2> o) { o.store({0, 0}, zeros(f32, {2})); });
  const Device d = interpreter();
  Buffer<float> o(d, 6);
  expect_user_error([&] { (void)k.trace({o, {2, 3}}); }, "store to a view of 2 dimensions: value is tile<2xf32>", __FILE__, __LINE__ - 3);
}
// clang-format on

}  // namespace
}  // namespace kiln::test

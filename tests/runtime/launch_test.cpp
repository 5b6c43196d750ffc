// ArgPack and the checks of launch(), on the fake driver.
#include "runtime/launch.h"

#include <cstring>

#include "runtime/base/error.h"
#include "tests/runtime/cuda_fixture.h"

namespace kiln::rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::uint64_t> key_of(const ArgPack& p) { return {p.key_words(), p.key_words() + p.key_size()}; }

template <class F>
std::vector<std::uint64_t> key_with(F&& fill) {
  ArgPack p;
  fill(p);
  return key_of(p);
}

TEST(ArgPack, FactsOfAPointerAreItsAlignmentClass) {
  const auto align = [](DType d, DevicePtr address) {
    ArgPack p;
    p.pointer(d, Access::Read, address, 0, nullptr);
    return p.arg(0).align;
  };
  EXPECT_EQ(align(f32, 0x1000), 16u);
  EXPECT_EQ(align(f32, 0x1008), 4u);  // only the two classes: fewer specialisations
  EXPECT_EQ(align(f32, 0x1004), 4u);
  EXPECT_EQ(align(DType::i8, 0x1001), 1u);
  EXPECT_EQ(align(f64, 0x1008), 8u);
}

TEST(ArgPack, FactsOfAnIndexAreOneAndSixteen) {
  const auto fact = [](std::int64_t v) {
    ArgPack p;
    p.index(v);
    return std::pair(p.arg(0).is_one, p.arg(0).align);
  };
  EXPECT_EQ(fact(1), std::pair(true, 1u));
  EXPECT_EQ(fact(0), std::pair(false, 16u));
  EXPECT_EQ(fact(16), std::pair(false, 16u));
  EXPECT_EQ(fact(-32), std::pair(false, 16u));
  EXPECT_EQ(fact(17), std::pair(false, 1u));
  EXPECT_EQ(fact(-1), std::pair(false, 1u));
}

TEST(ArgPack, FactsOfAnExtentAreDivisorsOfSixteenBytesAndTheRangeOfAMap) {
  const auto fact = [](DType d, std::int64_t v) {
    ArgPack p;
    p.extent(d, v);
    EXPECT_EQ(p.arg(0).is_one, v == 1);
    EXPECT_EQ(p.arg(0).dtype, DType::index);
    return std::pair(p.arg(0).align, p.is_extent(0));
  };
  EXPECT_EQ(fact(DType::bf16, 1000), std::pair(8u, true));
  EXPECT_EQ(fact(DType::bf16, 1004), std::pair(1u, true));
  EXPECT_EQ(fact(DType::bf16, 1008), std::pair(16u, true));
  EXPECT_EQ(fact(f32, 1004), std::pair(4u, true));
  EXPECT_EQ(fact(f64, 1002), std::pair(2u, true));
  EXPECT_EQ(fact(DType::u8, 1000), std::pair(1u, true));
  EXPECT_EQ(fact(f32, 1), std::pair(1u, true));
  EXPECT_EQ(fact(f32, 0), std::pair(16u, false));
  EXPECT_EQ(fact(f32, -4), std::pair(4u, false));
  EXPECT_EQ(fact(f32, (std::int64_t{1} << 31) - 16), std::pair(16u, true));
  EXPECT_EQ(fact(f32, (std::int64_t{1} << 31) - 1), std::pair(1u, true));
  EXPECT_EQ(fact(f32, std::int64_t{1} << 31), std::pair(16u, false));
  EXPECT_EQ(fact(f32, (std::int64_t{1} << 32) + 4), std::pair(4u, false));
  EXPECT_NE(key_with([](ArgPack& p) { p.extent(f32, 16); }), key_with([](ArgPack& p) { p.extent(f32, 0); }));
  EXPECT_EQ(key_with([](ArgPack& p) { p.extent(f32, 16); }), key_with([](ArgPack& p) { p.extent(f32, 32); }));
}

TEST(ArgPack, PointersAreDisjointUnlessTheyMayOverlapAndOneIsWritten) {
  struct P {
    Access access;
    DevicePtr address;
    std::size_t bytes;
  };
  const auto disjoint = [](const std::vector<P>& pointers) {
    ArgPack pack;
    pack.index(3);  // key words of other arguments stand between
    for (const P& p : pointers) {
      pack.pointer(f32, p.access, p.address, p.bytes, nullptr);
      pack.key(7);
    }
    std::vector<bool> facts;
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      facts.push_back(pack.arg(i + 1).disjoint);
      EXPECT_EQ(ArgPack::arg_of_key(pack.key_words()[1 + 2 * i]).disjoint, facts.back());
    }
    return facts;
  };
  using enum Access;
  using Facts = std::vector<bool>;
  EXPECT_EQ(disjoint({{Read, 0x1000, 64}, {Write, 0x1040, 64}}), Facts({true, true}));    // side by side
  EXPECT_EQ(disjoint({{Read, 0x1000, 64}, {Write, 0x103c, 64}}), Facts({false, false}));  // by one element
  EXPECT_EQ(disjoint({{Write, 0x1000, 64}, {Read, 0x1000, 64}}), Facts({false, false}));
  EXPECT_EQ(disjoint({{Read, 0x1000, 64}, {Read, 0x1000, 64}}), Facts({true, true}));
  EXPECT_EQ(disjoint({{Read, 0x1000, 0}, {Write, 0x8000, 64}}), Facts({false, false}));  // of unknown extent
  EXPECT_EQ(disjoint({{Read, 0x1000, 64}, {ReadWrite, 0x1000, 64}, {Read, 0x2000, 64}}), Facts({false, false, true}));
  constexpr std::size_t kEndless = ~std::size_t(0);  // no sum of an address and an extent may wrap
  EXPECT_EQ(disjoint({{Read, 0x1000, kEndless}, {Write, 0x8000, 64}}), Facts({false, false}));
  EXPECT_EQ(disjoint({{Read, 0x1000, 64}, {Write, 0x800, kEndless}}), Facts({false, false}));
  EXPECT_EQ(disjoint({{Read, 0x1000, kEndless}, {Write, 0x800, 0x800}}), Facts({true, true}));
}

TEST(ArgPack, KeyDiffersWhereCodeMayDifferAndOnlyThere) {
  const auto pointer = [](DType d, Access a, DevicePtr address, std::size_t bytes = 0) {
    return key_with([&](ArgPack& p) { p.pointer(d, a, address, bytes, nullptr); });
  };
  const auto base = pointer(f32, Access::Read, 0x1000);
  EXPECT_EQ(base, pointer(f32, Access::Read, 0x2000, 64));  // never keyed on addresses
  EXPECT_NE(base, pointer(f32, Access::Read, 0x1004));
  EXPECT_NE(base, pointer(f32, Access::Write, 0x1000));
  EXPECT_NE(base, pointer(i32, Access::Read, 0x1000));
  const auto index = [](std::int64_t v) { return key_with([&](ArgPack& p) { p.index(v); }); };
  EXPECT_EQ(index(33), index(1025));
  EXPECT_NE(index(33), index(1));
  EXPECT_NE(index(33), index(32));
  const float one = 1, two = 2;
  EXPECT_EQ(key_with([&](ArgPack& p) { p.scalar(f32, &one); }), key_with([&](ArgPack& p) { p.scalar(f32, &two); }));
  EXPECT_NE(key_with([&](ArgPack& p) { p.key(1); }), key_with([&](ArgPack& p) { p.key(2); }));
}

TEST(ArgPack, FactsReadBackFromKeyWords) {
  ArgPack p;
  p.pointer(DType::bf16, Access::ReadWrite, 0x1002, 0, nullptr);
  p.key(99);
  p.index(1);
  ASSERT_EQ(p.size(), 2u);
  const Arg pointer = ArgPack::arg_of_key(p.key_words()[0]), index = ArgPack::arg_of_key(p.key_words()[2]);
  EXPECT_EQ(pointer.kind, ArgKind::Pointer);
  EXPECT_EQ(pointer.dtype, DType::bf16);
  EXPECT_EQ(pointer.access, Access::ReadWrite);
  EXPECT_EQ(pointer.align, 2u);
  EXPECT_EQ(index.dtype, DType::index);
  EXPECT_TRUE(index.is_one);
  EXPECT_TRUE(p.arg(1).is_one);
}

TEST(ArgPack, TooManyArgumentsAreAnError) {
  ArgPack p;
  for (std::size_t i = 0; i < ArgPack::kMaxArgs; ++i) p.index(2);
  EXPECT_THAT(thrown<UserError>([&] { p.index(2); }),
              AllOf(HasSubstr("argument 129"), HasSubstr("takes 128 in 4096 bytes")));
  ArgPack q;
  for (std::size_t i = 0; i < ArgPack::kMaxKeyWords; ++i) q.key(i);
  EXPECT_THAT(thrown<UserError>([&] { q.key(0); }), HasSubstr("256"));
}

class Checks : public OnFakeCuda {
 protected:
  Checks() : device_(open()), stream_(device_), a_(device_, 64), c_(device_, 64) {}

  /// The message of a launch of `image` (add_image() by default) with arguments packed by `fill`; "" if it went
  /// through.
  template <class F>
  std::string launched(F&& fill, Grid grid = {1}, const KernelImage& image = add_image()) {
    ArgPack pack;
    fill(pack);
    const auto kernel = device_.load(image);
    try {
      launch(*kernel, stream_, grid, pack, SourceLoc("main.cpp", 12));
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }
  void pack_good(ArgPack& p, std::int64_t n = 64) const {
    p.pointer(f32, Access::Read, a_.ptr(), a_.bytes(), &device_);
    p.pointer(f32, Access::Write, c_.ptr(), c_.bytes(), &device_);
    p.index(n);
  }
  auto good(std::int64_t n = 64) const {
    return [this, n](ArgPack& p) { pack_good(p, n); };
  }
  /// Good arguments but for the first, a pointer.
  auto first(DevicePtr address, std::size_t bytes, const Device* owner, DType dtype = f32) const {
    return [=, this](ArgPack& p) {
      p.pointer(dtype, Access::Read, address, bytes, owner);
      p.pointer(f32, Access::Write, c_.ptr(), c_.bytes(), &device_);
      p.index(64);
    };
  }

  Device device_;
  Stream stream_;
  Buffer<float> a_, c_;
};

TEST_F(Checks, GoodArgumentsPass) { EXPECT_EQ(launched(good()), ""); }

TEST_F(Checks, NullPointerIsNamed) {
  EXPECT_EQ(launched(first(0, 0, &device_)), "main.cpp:12: error: add: argument 1 (a): null pointer");
}

TEST_F(Checks, PointerOfAnotherDeviceIsNamedWithBothDevices) {
  const Device other = open(1);
  Buffer<float> b(other, 64);
  const std::string expected =
      "main.cpp:12: error: add: argument 1 (a): memory of Fake GPU B (cuda:1), but the launch is on Fake GPU A "
      "(cuda:0)";
  EXPECT_EQ(launched(first(b.ptr(), b.bytes(), &other)), expected);
  EXPECT_EQ(launched(first(b.ptr(), 0, nullptr)), expected);  // a raw address: the driver knows whose it is
}

TEST_F(Checks, RawAddressIsLookedUpAndOwnedOnesAreNot) {
  std::uint64_t from = fake_->call_count;
  EXPECT_EQ(launched(first(a_.ptr(), 0, nullptr)), "");
  EXPECT_TRUE(called_since("cuPointerGetAttributes", from));
  from = fake_->call_count;
  EXPECT_EQ(launched(good()), "");
  EXPECT_FALSE(called_since("cuPointerGetAttributes", from));
}

TEST_F(Checks, HostAddressIsRefused) {
  alignas(16) float host[4] = {};
  EXPECT_THAT(launched(first(reinterpret_cast<DevicePtr>(host), 0, nullptr)),
              AllOf(HasSubstr("argument 1 (a): address 0x"), HasSubstr("is not memory of Fake GPU A (cuda:0)")));
}

TEST_F(Checks, ExtentBeyondTheAllocationIsRefused) {
  EXPECT_EQ(launched(first(a_.ptr() + 64, 192, nullptr)), "");
  EXPECT_THAT(launched(first(a_.ptr() + 64, 193, nullptr)),
              AllOf(HasSubstr("193 bytes at address"), HasSubstr("ends after 192")));
}

TEST_F(Checks, AddressBelowElementAlignmentIsRefused) {
  EXPECT_THAT(launched(first(a_.ptr() + 2, 0, &device_)), HasSubstr("is not aligned to its elements, f32 of 4 bytes"));
  EXPECT_EQ(launched(first(a_.ptr() + 4, 0, &device_)), "");
}

TEST_F(Checks, WrongCountIsRefused) {
  EXPECT_EQ(launched([&](ArgPack& p) { p.index(1); }), "main.cpp:12: error: add: expected 3 arguments, got 1");
}

TEST_F(Checks, WrongTypeIsRefused) {
  EXPECT_EQ(launched(first(a_.ptr(), 0, &device_, DType::f16)),
            "main.cpp:12: error: add: argument 1 (a): expected pointer to f32, got pointer to f16");
  const std::int32_t n = 3;
  EXPECT_EQ(launched([&](ArgPack& p) {
              p.pointer(f32, Access::Read, a_.ptr(), 0, &device_);
              p.pointer(f32, Access::Write, c_.ptr(), 0, &device_);
              p.scalar(i32, &n);
            }),
            "main.cpp:12: error: add: argument 3 (n): expected index, got i32");
  EXPECT_THAT(launched([&](ArgPack& p) {
                p.index(1);
                p.index(1);
                p.index(1);
              }),
              HasSubstr("argument 1 (a): expected pointer to f32, got index"));
}

TEST_F(Checks, SpecialisedImageIsNeverLaunchedWithWeakerFacts) {
  KernelImage image = add_image();
  image.signature.args[0].align = 16;
  EXPECT_EQ(launched(good(), {1}, image), "");
  EXPECT_THAT(launched(first(a_.ptr() + 8, 0, &device_), {1}, image), HasSubstr("argument 1 (a): address 0x"));
  EXPECT_THAT(launched(first(a_.ptr() + 8, 0, &device_), {1}, image),
              HasSubstr("this image is compiled for addresses aligned to 16 bytes"));
  image = add_image();
  image.signature.args[2].align = 16;
  EXPECT_EQ(launched(good(32), {1}, image), "");
  EXPECT_THAT(launched(good(33), {1}, image),
              HasSubstr("argument 3 (n): value is 33, this image is compiled for multiples of 16"));
  image = add_image();
  image.signature.args[2].is_one = true;
  EXPECT_EQ(launched(good(1), {1}, image), "");
  EXPECT_THAT(launched(good(2), {1}, image), HasSubstr("value is 2, this image is compiled for 1"));
}

TEST_F(Checks, GridLimitsAreTheHardwares) {
  EXPECT_EQ(launched(good(), {0x7fffffff, 65535, 65535}), "");
  EXPECT_EQ(fake_->last.grid[0], 0x7fffffffu);
  EXPECT_EQ(launched(good(), {0x80000000}),
            "main.cpp:12: error: add: grid [2147483648, 1, 1]: 2147483648 blocks along x, "
            "at most 2147483647 are possible");
  EXPECT_THAT(launched(good(), {1, 65536}), HasSubstr("65536 blocks along y, at most 65535"));
  EXPECT_THAT(launched(good(), {1, 1, 65536}), HasSubstr("65536 blocks along z, at most 65535"));
}

TEST_F(Checks, NegativeGridIsRefusedEvenBesideAZero) {
  EXPECT_EQ(launched(good(), {-3}), "main.cpp:12: error: add: grid [-3, 1, 1]: x is -3, must not be negative");
  EXPECT_THAT(launched(good(), {0, -1}), HasSubstr("y is -1"));
}

TEST_F(Checks, EmptyGridLaunchesNothingAndLooksAtNothing) {
  const std::uint64_t launches = fake_->last.count;
  for (const Grid grid : {Grid{0}, Grid{5, 0}, Grid{5, 5, 0}, Grid{0x80000000, 0}})
    EXPECT_EQ(launched([](ArgPack& p) { p.pointer(f32, Access::Read, 0, 0, nullptr); }, grid), "");
  EXPECT_EQ(fake_->last.count, launches);
}

TEST_F(Checks, CeilDivRuleDividesAlongX) {
  KernelImage image = add_image();
  image.candidates[0].grid = GridRule::CeilDiv;
  image.candidates[0].programs_per_cta = 4;
  for (const auto& [programs, blocks] : {std::pair(1, 1), {4, 1}, {5, 2}, {8, 2}}) {
    EXPECT_EQ(launched(good(), {programs, 3}, image), "");
    EXPECT_EQ(fake_->last.grid[0], unsigned(blocks)) << programs;
    EXPECT_EQ(fake_->last.grid[1], 3u);
  }
  EXPECT_EQ(launched(good(), {4ll * 0x7fffffff}, image), "");  // more programs than blocks are possible
  EXPECT_NE(launched(good(), {4ll * 0x7fffffff + 1}, image), "");
}

TEST_F(Checks, PersistentRuleLaunchesWhatIsResident) {
  KernelImage image = add_image();
  image.candidates[0].grid = GridRule::Persistent;
  EXPECT_EQ(launched(good(), {10, 3}, image), "");
  EXPECT_EQ(fake_->last.grid[0], 30u);
  EXPECT_EQ(launched(good(), {1 << 30, 1 << 30, 1 << 30}, image), "");
  EXPECT_EQ(fake_->last.grid[0], 264u);  // 2 a multiprocessor, 132 of them
  image.candidates[0].cluster = {2, 1, 1};
  EXPECT_EQ(launched(good(), {1000}, image), "");
  EXPECT_EQ(fake_->last.grid[0], 120u);  // 60 clusters of 2
}

TEST_F(Checks, UserGridIsAppendedWhereTheRecipeAsks) {
  KernelImage image = add_image();
  image.candidates[0].hidden = {HiddenParam::UserGrid};
  EXPECT_EQ(launched(good(), {7, 5, 3}, image), "");
  ASSERT_EQ(fake_->last.param_bytes, 48u);
  const std::int64_t expected[3] = {7, 5, 3};
  EXPECT_EQ(std::memcmp(fake_->last.params.data() + 24, expected, sizeof expected), 0);
}

}  // namespace
}  // namespace kiln::rt

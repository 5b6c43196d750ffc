// What operators and functions give: promotion, broadcasting, memory, selection, conversions.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "dsl/lang/promote.h"
#include "tests/lang/run_kernel.h"
#include "tests/support/expect_error.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

TEST(LangOps, NumbersTakeTheOtherSidesType) {
  auto k = kernel("types", [](Int n, Float f, Int32 i, Val<f16> h, Val<bf16> b, Double d, Val<std::uint8_t> u) {
    EXPECT_EQ((n + 1).dtype(), DType::index);
    EXPECT_EQ((1 + f).dtype(), DType::f32);
    EXPECT_EQ((f + 0.1).dtype(), DType::f32);
    EXPECT_EQ((h * 0.5).dtype(), DType::f16);
    EXPECT_EQ((i * 0.5).dtype(), DType::f32);
    EXPECT_EQ((i + n).dtype(), DType::index);
    EXPECT_EQ((h + b).dtype(), DType::f32);
    EXPECT_EQ((f + d).dtype(), DType::f64);
    EXPECT_EQ((u + i).dtype(), DType::i32);
    EXPECT_EQ((n < 3).dtype(), DType::i1);
    EXPECT_EQ(Scalar(3).dtype(), DType::i32);
    EXPECT_EQ(Scalar(3000000000u).dtype(), DType::i64);
    EXPECT_EQ(Scalar(0.5).dtype(), DType::f32);
    EXPECT_EQ(Scalar(true).dtype(), DType::i1);
  });
  (void)k.trace(1, 1.f, 1, f16(1), bf16(1), 1.0, 1);
}

TEST(LangOps, ShapesBroadcastFromTheRight) {
  auto k = kernel("shapes", [](Out<float> o, Const<int> M) {
    Tile row = arange(4), col = expand(arange(M), 1);
    EXPECT_EQ((row + col).shape(), Shape({3, 4}));
    EXPECT_EQ((row + zeros(DType::index, {2, 3, 4})).shape(), Shape({2, 3, 4}));
    EXPECT_EQ(expand(row, -1).shape(), Shape({4, 1}));
    EXPECT_EQ(expand(row, 0).shape(), Shape({1, 4}));
    EXPECT_EQ((col + 1).extent(0), 3);
    EXPECT_EQ(col.extent(-1), 1);
    EXPECT_EQ(col.rank(), 2);
    EXPECT_EQ(broadcast_to(row, {3, 4}).shape(), Shape({3, 4}));
    store(o + col * 4 + row, (col * 10 + row).cast(f32));
  });
  on_each_device([&](const Device& d) {
    Buffer<float> o(d, 12);
    k.launch(Stream(d), 1, o, 3);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}));
  });
}

TEST(LangOps, ExtentsAreAnyCppIntegers) {
  const auto k = kernel("extents", [](View<float, 2> o, Const<int> B, Const<std::int64_t> WIDE) {
    const Tile t = zeros(f32, {3});
    const std::size_t two = 2;
    const Tile x = full(f32, {t.extent(0), B, WIDE}, 1.f) + full(f32, {two, 1u}, 2.f);
    EXPECT_EQ(x.shape(), Shape({3, 2, 5}));
    EXPECT_EQ(reshape(x, {x.extent(2), -1}).shape(), Shape({5, 6}));
    o.store({0, 0}, o.load({0, 0}, {t.extent(0), B}) + 3.f);
  });
  on_each_device([&](const Device& d) {
    Buffer<float> o = buffer_of(d, std::vector<float>(8, 1.f));
    k.launch(Stream(d), 1, {o, {4, 2}}, 2, 5);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{4, 4, 4, 4, 4, 4, 1, 1}));
  });
}

TEST(LangOps, IntegerOperators) {
  expect_output({3, 1, -3, -1, 6, 2, 7, 5, 14, 1, -8}, 7, [](Out<float> o, Int n) {
    const Scalar x[] = {n / 2, n % 2, -n / 2, -n % 2, n & 6, n & 10, n | 3, n ^ 2, n << 1, n >> 2, ~n};
    int at = 0;
    for (const Scalar& v : x) store(o + at++, v.cast(f32));
  });
}

TEST(LangOps, DivisionByZeroGivesZero) {
  expect_output({0, 0}, 0, [](Out<float> o, Int n) {
    store(o, (Scalar(5) / n).cast(f32));
    store(o + 1, (5 % n).cast(f32));
  });
}

TEST(LangOps, CompoundAssignment) {
  expect_output({12, 5, 2, 1, 1, 4, 3, 6, 7, 5}, 7, [](Out<float> o, Int n) {
    std::array<Scalar, 10> x;
    x.fill(n);
    x[0] += 5, x[1] -= 2, x[2] /= 3, x[3] %= 2, x[4] &= 1, x[5] ^= 3, x[6] >>= 1, x[7] <<= 1, x[8] |= 4, x[9] *= 5;
    x[7] -= 8, x[9] /= 7;
    for (int i = 0; i < 10; ++i) store(o + i, x[std::size_t(i)].cast(f32));
  });
}

TEST(LangOps, ComparisonsAndLogic) {
  expect_output({1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1}, 3, [](Out<float> o, Int n) {
    const Scalar x[] = {n<4, n <= 2, n> 2, n >= 3,    n == 4,         n != 4, 0 <= n && n < 4,
                        n < 1 || n > 2,    !(n == 3), true && n == 3, 3 == n};
    int at = 0;
    for (const Scalar& v : x) store(o + at++, v.cast(f32));
  });
  expect_output({0, 1, 1, 0}, 3, [](Out<float> o, Int n) {
    Tile i = arange(4), m = i >= 1 && i < n;
    store(o + i, m.cast(f32));
    store(o + i, (!(!m || i == 7)).cast(f32));
  });
}

TEST(LangOps, MaskedLoadGivesOtherEvenWhenItIsZero) {
  auto k = kernel("masked", [](In<float> x, Out<float> o) {
    Tile i = arange(4), m = i < 2;
    store(o + i, load(x + i, m));
    store(o + 4 + i, load(x + i, m, 0));
    store(o + 8 + i, load(x + i, m, 7));
    store(o + 12 + i, load(x + i, m, i.cast(f32)));
    store(o + 16, load(x, false, -1.f));
    store(o + 17, load(x + 3, true));
  });
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, std::vector<float>{1, 2, 3, 4}), o(d, 18);
    k.launch(Stream(d), 1, x, o);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{1, 2, 0, 0, 1, 2, 0, 0, 1, 2, 7, 7, 1, 2, 2, 3, -1, 4}));
  });
}

TEST(LangOps, MaskedStoreLeavesTheRest) {
  expect_output({-1, 5, 5, -1, 9, 9, -1}, 3, [](Out<float> o, Int n) {
    Tile i = arange(4);
    store(o + i, 5.f, i > 0 && i < n);
    store(o + 4 + arange(2), 9.f);
    store(o + 6, 3.f, n > 5);
  });
}

TEST(LangOps, StoresNegativeBytes) {
  auto k = kernel("fill", [](Out<std::int8_t> o) { store(o + arange(64), -7); });
  on_each_device([&](const Device& d) {
    Buffer<std::int8_t> o(d, 64);
    k.launch(Stream(d), 1, o);
    EXPECT_EQ(o.to_vector(), std::vector<std::int8_t>(64, -7));
  });
}

TEST(LangOps, SelectOnTilesAndScalars) {
  expect_output({0, 1, 7, 7, 5, 2, 2}, 2, [](Out<float> o, Int n) {
    Tile i = arange(4);
    store(o + i, select(i < n, i.cast(f32), 7));
    store(o + 4, select(n > 1, 5, 6).cast(f32));
    store(o + 5 + arange(2), select(n > 1, full(f32, {2}, 2), 3));
  });
}

TEST(LangOps, CastsAndBitcasts) {
  expect_output({-2, 255, 0, 1, 448, 1}, 2, [](Out<float> o, Int n) {
    Scalar x = n.cast(f32) * -1.3f;
    store(o, x.cast(i32).cast(f32));
    store(o + 1, (n - 3).cast(u8).cast(f32));
    store(o + 2, (n - 2).cast(i1).cast(f32));
    store(o + 3, (Scalar(1.f).bitcast(u32) == 0x3f800000u).cast(f32));
    store(o + 4, Scalar(1e6f).cast_sat<f8e4m3>().cast(f32));
    store(o + 5, (x.cast<bf16>().cast(f32) != x).cast(f32));
  });
}

TEST(LangOps, HelpersForIntegers) {
  EXPECT_EQ(cdiv(10, 4), 3);
  EXPECT_EQ(cdiv(std::size_t(8), Const(4)), 2);
  EXPECT_EQ(cdiv(0, 4), 0);
  expect_output({3, 2, 1, 4, 9, 5}, 9, [](Out<float> o, Int n) {
    store(o, cdiv(n, 4).cast(f32));
    store(o + 1, cdiv(10, n).cast(f32));
    store(o + 2, cdiv(n.cast(i32) * 0 + 2147483647, 2147483647).cast(f32));
    store(o + 3, minimum(n, 4).cast(f32));
    store(o + 4, maximum(4, n).cast(f32));
    store(o + 5, abs(4 - n).cast(f32));
  });
}

TEST(LangOps, IndexArithmeticNeverWraps) {
  auto k = kernel("far", [](Out<float> o, Int n) {
    Tile i = (program_id(0) + (1ll << 31)) * 4 + arange(4);  // around 2^33
    store(o + (i - (1ll << 33)), 1.f, i < n);
  });
  on_each_device([&](const Device& d) {
    Buffer<float> o = buffer_of(d, std::vector<float>(8, 0));
    k.launch(Stream(d), 2, o, (1ll << 33) + 7);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 0}));
  });
}

TEST(LangOps, ProgramsKnowTheirPlace) {
  auto k = kernel("place", [](Out<float> o) {
    Scalar x = program_id(0), y = program_id(1), z = program_id(2);
    Scalar at = x + num_programs(0) * (y + num_programs(1) * z);
    store(o + at, (x + 10 * y + 100 * z).cast(f32));
  });
  on_each_device([&](const Device& d) {
    Buffer<float> o(d, 12);
    k.launch(Stream(d), {2, 3, 2}, o);
    EXPECT_EQ(o.to_vector(), (std::vector<float>{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}));
  });
}

TEST(LangOps, NanStaysInMinimumMaximumAndRelu) {
  auto k = kernel("nan", [](In<float> x, Out<float> o) {
    Tile v = load(x + arange(4));
    store(o + arange(4), minimum(v, 1.f));
    store(o + 4 + arange(4), maximum(1.f, v));
    store(o + 8 + arange(4), relu(v));
  });
  on_each_device([&](const Device& d) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Buffer<float> x = buffer_of(d, std::vector<float>{nan, -0.f, 2, -2}), o(d, 12);
    k.launch(Stream(d), 1, x, o);
    const std::vector<float> r = o.to_vector();
    for (int i : {0, 4, 8}) EXPECT_TRUE(std::isnan(r[std::size_t(i)])) << i;
    EXPECT_FALSE(std::signbit(r[9])) << "relu(-0) is +0";
    EXPECT_EQ(r[3], -2.f);
    EXPECT_EQ(r[6], 2.f);
  });
}

// Every Float and Math row of the op table is a function of tiles and scalars, every row that may be fast one of
// kiln::fast.
#define KILN_CALL_1(name) (void)name(t), (void)name(s);
#define KILN_CALL_2(name) \
  (void)name(t, 2), (void)name(2, t), (void)name(t, s), (void)name(s, t), (void)name(s, 2), (void)name(2, s);
#define KILN_CALL_3(name)                                                                                  \
  (void)name(t, 2, s), (void)name(s, t, 2), (void)name(2, s, t), (void)name(s, 1, 2), (void)name(1, s, 2), \
      (void)name(1, 2, s);
#define KILN_ROW_Float(name, arity) KILN_CALL_##arity(name)
#define KILN_ROW_Math(name, arity) KILN_CALL_##arity(name)
#define KILN_ROW_Num(name, arity)
#define KILN_ROW_Int(name, arity)
#define KILN_ROW_Bits(name, arity)
#define KILN_ROW_Cmp(name, arity)
#define KILN_FAST_Exact(name, arity)
#define KILN_FAST_ExactOrFast(name, arity) KILN_CALL_##arity(fast::name)
#define KILN_FAST_Ulp(n) KILN_FAST_ExactOrFast
#define KILN_FAST_Rel(n) KILN_FAST_ExactOrFast
#define KILN_EW(Enum, mnemonic, arity, rule, exactness, ...) \
  KILN_ROW_##rule(mnemonic, arity) KILN_FAST_##exactness(mnemonic, arity)
TEST(LangMath, EveryRowIsAFunction) {
  auto k = kernel("rows", [](Float s) {
    Tile t = full(f32, {4}, s);
#include "backend/ir/ops.def"
  });
  const std::string text = k.trace(1.f).text(false);
  EXPECT_THAT(text, HasSubstr("gelu_tanh"));
  EXPECT_THAT(text, HasSubstr("fma"));
  for (const char* form : {"exp fast=1", "sqrt fast=1", "div fast=1", "= sqrt %"}) EXPECT_THAT(text, HasSubstr(form));
}

TEST(LangMath, FastDivisionIsOfFloats) {
  const int line = __LINE__ + 1;
  auto k = kernel("halves", [](Int n) { (void)fast::div(n, 2); });
  expect_user_error([&] { (void)k.trace(1); }, "div: has a fast form for f16, bf16, f32, f64, not for index", __FILE__,
                    line);
}

// The approximations' bounds are tests/op's; here that both reach the machine, by operands where they are exact.
TEST(LangMath, FastSqrtAndDivisionCompute) {
  auto k = kernel("fast", [](In<float> x, Out<float> o, In<double> dx, Out<double> d) {
    Tile i = arange(4), v = load(x + i), w = load(dx + i);
    store(o + i, fast::sqrt(v));
    store(o + 4 + i, fast::div(v, 4));
    store(d + i, fast::div(fast::sqrt(w), 3));
  });
  on_each_device([&](const Device& device) {
    Buffer<float> x = buffer_of(device, std::vector<float>{0, 1, 4, 64}), o(device, 8);
    Buffer<double> dx = buffer_of(device, std::vector<double>{1, 2, 3, 5}), d(device, 4);
    k.launch(Stream(device), 1, x, o, dx, d);
    const std::vector<float> r = o.to_vector(), want{0, 1, 2, 8, 0, 0.25, 1, 16};
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(r[i], want[i], want[i] * 0x1.8p-22f) << i;
    const std::vector<double> exact{1 / 3.0, std::sqrt(2) / 3, std::sqrt(3) / 3, std::sqrt(5) / 3};
    EXPECT_EQ(d.to_vector(), exact);  // f64 has no approximation
  });
}

TEST(LangMath, PowOfIntegersPowers) {
  auto k = kernel("pow", [](In<float> x, In<float> y, Out<float> o) {
    Tile i = arange(3);
    store(o + i, pow(load(x + i), load(y + i)));
  });
  on_each_device([&](const Device& d) {
    Buffer<float> x = buffer_of(d, std::vector<float>{3, 3, 3}), y = buffer_of(d, std::vector<float>{0, -1, -2}),
                  o(d, 3);
    k.launch(Stream(d), 1, x, y, o);
    const std::vector<float> r = o.to_vector();
    EXPECT_FLOAT_EQ(r[0], 1);
    EXPECT_FLOAT_EQ(r[1], 1.f / 3);
    EXPECT_FLOAT_EQ(r[2], 1.f / 9);
  });
}

}  // namespace
}  // namespace kiln::test

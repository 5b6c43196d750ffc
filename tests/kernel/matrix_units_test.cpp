// Products on tensor cores: every type and pair of types, precision, extents that are no multiple of a block, operands
// in either direction, batches, chains, on the targets that have different instructions. Sums are compared with f64
// within the bound that the language states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/kernel/operands.h"
#include "tests/support/expect_error.h"
#include "tests/support/ptxas.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::numbers;
using kiln::test::real;
using kiln::test::EveryDevice;
using ::testing::HasSubstr;
using ::testing::Not;

struct Extents {
  int m, n, k;
};
std::ostream& operator<<(std::ostream& o, Extents e) { return o << e.m << "x" << e.n << "x" << e.k; }

/// Every device there is, and simulators of the targets that have other units.
const std::vector<Device>& targets() {
  static const std::vector<Device> all = [] {
    std::vector<Device> list = kiln::test::devices();
    for (const char* arch : {"sm_80", "sm_89"}) list.push_back(Device::simulator(arch));
    return list;
  }();
  return all;
}

/// c + a b in f64, and the sum of magnitudes that bounds are relative to.
struct Sums {
  std::vector<double> value, magnitude;
};
template <class A, class B, class C>
Sums sums_of(const std::vector<A>& a, const std::vector<B>& b, const std::vector<C>& c, Extents e, int batches = 1) {
  Sums s;
  for (int z = 0; z < batches; ++z)
    for (int i = 0; i < e.m; ++i)
      for (int j = 0; j < e.n; ++j) {
        const double start = real(c[std::size_t((z * e.m + i) * e.n + j)]);
        s.value.push_back(start);
        s.magnitude.push_back(std::abs(start));
        for (int k = 0; k < e.k; ++k) {
          const double p =
              real(a[std::size_t((z * e.m + i) * e.k + k)]) * real(b[std::size_t((z * e.k + k) * e.n + j)]);
          s.value.back() += p;
          s.magnitude.back() += std::abs(p);
        }
      }
  return s;
}

template <class C>
void expect_within(const std::vector<C>& got, const Sums& want, double relative, const std::string& what) {
  for (std::size_t i = 0; i < want.value.size(); ++i)
    ASSERT_NEAR(real(got[i]), want.value[i], relative * want.magnitude[i]) << what << " element " << i;
}

/// Pointers to a tile whose strides are given.
template <class P>
Tile at(const P& base, int rows, int columns, int row_stride, int column_stride) {
  return base + (expand(arange(rows), 1) * row_stride + arange(columns) * column_stride);
}

struct Way {
  bool a_columns = false, b_columns = false;  ///< stored column by column
  Precision precision = Precision::exact;
  int promote = 0;
};

template <class A, class B, class C>
constinit auto product = kernel("product", [](In<A> a, In<B> b, In<C> c, Out<C> o, Const<int> M, Const<int> N,
                                              Const<int> K, Tune<Way> way) {
  const int m = M, n = N, k = K;
  Tile x = load(way.a_columns ? at(a, m, k, 1, m) : at(a, m, k, k, 1));
  Tile y = load(way.b_columns ? at(b, k, n, 1, k) : at(b, k, n, n, 1));
  store(at(o, m, n, n, 1), dot(x, y, load(at(c, m, n, n, 1)), {way.precision, way.promote}));
});

template <class T>
std::vector<T> transposed(const std::vector<T>& x, int rows, int columns) {
  std::vector<T> out;
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i) out.push_back(x[std::size_t(i * columns + j)]);
  return out;
}

template <class A, class B, class C>
void expect_product(const Device& d, Extents e, double relative, Way way = {}, int warps = 4) {
  const auto a = numbers<A>(std::size_t(e.m * e.k), 1);
  const auto b = numbers<B>(std::size_t(e.k * e.n), 2);
  const auto c = numbers<C>(std::size_t(e.m * e.n), 3);
  Buffer<A> x = buffer_of(d, way.a_columns ? transposed(a, e.m, e.k) : a);
  Buffer<B> y = buffer_of(d, way.b_columns ? transposed(b, e.k, e.n) : b);
  Buffer<C> z = buffer_of(d, c), out(d, c.size());
  const Stream s(d);
  product<A, B, C>.with({.num_warps = warps}).launch(s, 1, x, y, z, out, e.m, e.n, e.k, way);
  s.synchronize();
  std::ostringstream what;
  what << d.name() << " " << e << " on " << warps << " warps, columns " << way.a_columns << way.b_columns;
  expect_within(out.to_vector(), sums_of(a, b, c, e), relative, what.str());
}

constexpr Extents kExtents[] = {{1, 1, 1},   {2, 7, 3},    {16, 8, 16},   {17, 9, 15},   {64, 64, 64},
                                {63, 65, 7}, {8, 200, 12}, {50, 36, 100}, {33, 24, 100}, {128, 16, 40}};
/// f32 sums: the order is the hardware's, which also cuts low bits while it adds.
double bound(int k) { return (k + 1) * 0x1p-22; }

template <class A, class B, class C>
void expect_products(double extra = 0) {
  for (const Device& d : targets())
    for (Extents e : kExtents) expect_product<A, B, C>(d, e, (std::is_integral_v<C> ? 0 : bound(e.k)) + extra);
}

TEST(MatrixUnits, Bf16) { expect_products<bf16, bf16, float>(); }
TEST(MatrixUnits, F16) { expect_products<f16, f16, float>(); }
TEST(MatrixUnits, F16WithBf16) { expect_products<f16, bf16, float>(); }
TEST(MatrixUnits, DoublePrecision) {
  for (const Device& d : targets())
    for (Extents e : kExtents) expect_product<double, double, double>(d, e, (e.k + 1) * 0x1p-52);
}
TEST(MatrixUnits, BytesOfEitherSign) {
  expect_products<std::int8_t, std::int8_t, std::int32_t>();
  expect_products<std::uint8_t, std::int8_t, std::int32_t>();
  expect_products<std::int8_t, std::uint8_t, std::int32_t>();
  expect_products<std::uint8_t, std::uint8_t, std::int32_t>();
}
// Half of f32's bits and more while products are added.
TEST(MatrixUnits, EightBitFloats) {
  expect_products<f8e4m3, f8e4m3, float>(0x1p-12);
  expect_products<f8e4m3, f8e5m2, float>(0x1p-12);
  expect_products<f8e5m2, f8e4m3, float>(0x1p-12);
  expect_products<f8e5m2, f8e5m2, float>(0x1p-12);
}
TEST(MatrixUnits, EightBitFloatsWithWiderOnes) {
  expect_products<f8e4m3, bf16, float>();
  expect_products<f16, f8e5m2, float>();
}

TEST(MatrixUnits, SinglePrecisionAsNamed) {
  for (const Device& d : targets())
    for (Extents e : kExtents) {
      using enum Precision;
      expect_product<float, float, float>(d, e, bound(e.k) + 0x1p-10, {false, false, tf32});
      expect_product<float, float, float>(d, e, bound(3 * e.k) + 0x1p-20, {false, false, tf32x3});
      expect_product<float, float, float>(d, e, bound(3 * e.k) + 0x1p-15, {false, false, bf16x3});
    }
}

TEST(MatrixUnits, OperandsOfEitherDirection) {
  for (const Device& d : targets())
    for (int direction = 0; direction < 4; ++direction)
      for (Extents e : {Extents{64, 64, 32}, {40, 24, 48}, {64, 8, 16}, {8, 64, 16}, {5, 3, 2}}) {
        const Way way{direction % 2 == 1, direction > 1, Precision::tf32};
        expect_product<bf16, bf16, float>(d, e, bound(e.k), way);
        expect_product<std::int8_t, std::int8_t, std::int32_t>(d, e, 0, way);
        expect_product<float, float, float>(d, e, bound(e.k) + 0x1p-10, way);
        expect_product<double, double, double>(d, e, (e.k + 1) * 0x1p-52, way);
      }
}

TEST(MatrixUnits, AnyNumberOfWarps) {
  for (const Device& d : targets())
    for (int warps : {1, 2, 8, 16})
      for (Extents e : {Extents{64, 32, 32}, {16, 8, 16}, {1, 60, 24}, {40, 24, 24}}) {
        expect_product<bf16, bf16, float>(d, e, bound(e.k), {}, warps);
        expect_product<double, double, double>(d, e, (e.k + 1) * 0x1p-52, {}, warps);
      }
}

// More of k than shared memory takes at a time, and more than is unrolled.
TEST(MatrixUnits, DeepProducts) {
  for (const Device& d : targets())
    for (Extents e : {Extents{16, 16, 1000}, {32, 16, 512}, {32, 8, 300}})
      expect_product<bf16, bf16, float>(d, e, bound(e.k));
}

TEST(MatrixUnits, SumsArePromoted) {
  for (const Device& d : targets()) {
    expect_product<f8e4m3, f8e4m3, float>(d, {32, 16, 256}, 0x1p-12, {.promote = 32});
    expect_product<f8e4m3, f8e4m3, float>(d, {32, 16, 200}, 0x1p-12, {.promote = 128});
    expect_product<bf16, bf16, float>(d, {32, 16, 96}, bound(96), {.promote = 64});
  }
}

// --- what must hold --------------------------------------------------------------------------------------------------

constinit auto ones = kernel("ones", [](Out<float> o) {
  store(at(o, 128, 256, 256, 1), dot(zeros(DType::bf16, {128, 64}) + 1, zeros(DType::bf16, {64, 256}) + 1));
});

TEST(MatrixUnits, AllOnes) {
  for (const Device& d : targets()) {
    Buffer<float> o(d, 128 * 256);
    const Stream s(d);
    ones.launch(s, 1, o);
    s.synchronize();
    for (float x : o.to_vector()) ASSERT_EQ(x, 64) << d.name();
  }
}

constinit auto chained = kernel("chained", [](In<bf16> a, In<bf16> b, In<bf16> c, Out<float> o, Int trips) {
  Tile x = load(at(a, 32, 16, 16, 1)), y = load(at(b, 16, 24, 24, 1)), z = load(at(c, 24, 40, 40, 1));
  Tile sum = zeros(DType::f32, {32, 40});
  for (auto i : range(0, trips)) {
    Tile p = dot(x, y);
    if_(i > 0, [&] { p = p * 2.f; });
    sum = dot(p.cast(DType::bf16), z, sum);
  }
  store(at(o, 32, 40, 40, 1), sum);
});

// The result of one product is an operand of the next, in a loop of any number of trips, with a branch between.
TEST(MatrixUnits, ChainsInLoops) {
  const auto a = numbers<bf16>(32 * 16, 1), b = numbers<bf16>(16 * 24, 2), c = numbers<bf16>(24 * 40, 3);
  const Sums inner = sums_of(a, b, std::vector<float>(32 * 24, 0.f), {32, 24, 16});
  for (const Device& d : targets())
    for (int trips : {0, 1, 3}) {
      std::vector<double> p(32 * 24, 0.0);
      for (int i = 0; i < trips; ++i)
        for (std::size_t k = 0; k < p.size(); ++k) p[k] += inner.value[k] * (i > 0 ? 2 : 1);
      Sums want = sums_of(p, c, std::vector<float>(32 * 40, 0.f), {32, 40, 24});
      const Sums scale = sums_of(inner.magnitude, c, std::vector<float>(32 * 40, 0.f), {32, 40, 24});
      want.magnitude = scale.magnitude;
      Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b), z = buffer_of(d, c);
      Buffer<float> o(d, 32 * 40);
      const Stream s(d);
      chained.launch(s, 1, x, y, z, o, trips);
      s.synchronize();
      expect_within(o.to_vector(), want, 6 * 0x1p-8, d.name() + " " + std::to_string(trips) + " trips");
    }
}

constinit auto batched = kernel("batched", [](In<f16> a, In<f16> b, Out<float> o) {
  const auto of = [](auto base, int rows, int columns) {
    Tile r = expand(arange(rows), 1) * columns + arange(columns);
    return base + (expand(expand(arange(3), 1), 2) * (rows * columns) + r);
  };
  store(of(o, 20, 12), dot(load(of(a, 20, 28)), load(of(b, 28, 12))));
});

TEST(MatrixUnits, Batches) {
  const auto a = numbers<f16>(3 * 20 * 28, 1), b = numbers<f16>(3 * 28 * 12, 2);
  const Sums want = sums_of(a, b, std::vector<float>(3 * 20 * 12, 0.f), {20, 12, 28}, 3);
  for (const Device& d : targets()) {
    Buffer<f16> x = buffer_of(d, a), y = buffer_of(d, b);
    Buffer<float> o(d, 3 * 20 * 12);
    const Stream s(d);
    for (int warps : {1, 4, 8}) {
      batched.with({.num_warps = warps}).launch(s, 1, x, y, o);
      s.synchronize();
      expect_within(o.to_vector(), want, bound(28), d.name());
    }
  }
}

constinit auto ragged = kernel("ragged", [](In<bf16> a, In<bf16> b, Out<float> o, Int K) {
  Tile k = arange(64);
  Tile x = load(a + (expand(arange(16), 1) * 64 + k), k < K);
  Tile y = load(b + (expand(k, 1) * 16 + arange(16)), expand(k, 1) < K);
  store(at(o, 16, 16, 16, 1), dot(x, y));
});

// Memory beyond the bound holds NaN.
TEST(MatrixUnits, WhatIsMaskedOffTakesNoPart) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Device& d : targets())
    for (int K : {1, 17, 63}) {
      std::vector<bf16> a(16 * 64, bf16(nan)), b(64 * 16, bf16(nan));
      for (int i = 0; i < 16; ++i)
        for (int k = 0; k < K; ++k) a[std::size_t(i * 64 + k)] = b[std::size_t(k * 16 + i)] = bf16(1.f);
      Buffer<bf16> x = buffer_of(d, a), y = buffer_of(d, b);
      Buffer<float> o(d, 256);
      const Stream s(d);
      ragged.launch(s, 1, x, y, o, K);
      s.synchronize();
      for (float v : o.to_vector()) ASSERT_EQ(v, K) << d.name();
    }
}

// --- which instruction -----------------------------------------------------------------------------------------------

template <class A, class B, class C>
std::string ptx_of(const char* arch, Precision precision = Precision::exact) {
  const Device d = Device::simulator(arch);
  Buffer<A> a(d, 64 * 64);
  Buffer<B> b(d, 64 * 64);
  Buffer<C> c(d, 64 * 64), o(d, 64 * 64);
  return product<A, B, C>.image(d, a, b, c, o, 64, 64, 64, Way{.precision = precision}).ptx;
}

TEST(MatrixUnits, TheBestOfEachTarget) {
  EXPECT_THAT((ptx_of<bf16, bf16, float>("sm_80")), HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
  EXPECT_THAT((ptx_of<f16, f8e5m2, float>("sm_80")), HasSubstr("m16n8k16.row.col.f32.f16.f16.f32"));
  EXPECT_THAT((ptx_of<f8e4m3, f8e5m2, float>("sm_80")), HasSubstr("m16n8k16.row.col.f32.f16.f16.f32"));
  EXPECT_THAT((ptx_of<std::uint8_t, std::int8_t, std::int32_t>("sm_80")), HasSubstr("m16n8k32.row.col.s32.u8.s8.s32"));
  EXPECT_THAT((ptx_of<double, double, double>("sm_80")), HasSubstr("m8n8k4.row.col.f64.f64.f64.f64"));
  EXPECT_THAT((ptx_of<float, float, float>("sm_80", Precision::tf32)), HasSubstr("m16n8k8.row.col.f32.tf32.tf32.f32"));
  for (const char* arch : {"sm_80", "sm_89", "sm_90a"})  // exact unless asked otherwise
    EXPECT_THAT((ptx_of<float, float, float>(arch)), Not(HasSubstr("mma"))) << arch;
  EXPECT_THAT((ptx_of<double, double, double>("sm_89")), Not(HasSubstr("mma")));
}

TEST(MatrixUnits, TheAssemblerTakesThem) {
  const auto tool = kiln::test::ptxas();
  if (!tool) GTEST_SKIP() << "ptxas is not installed";
  for (const char* arch : {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"})
    for (const std::string& ptx :
         {ptx_of<bf16, bf16, float>(arch), ptx_of<f8e4m3, f8e5m2, float>(arch), ptx_of<double, double, double>(arch),
          ptx_of<std::int8_t, std::int8_t, std::int32_t>(arch), ptx_of<float, float, float>(arch, Precision::tf32x3)}) {
      const kiln::test::Assembly a = kiln::test::assemble(*tool, ptx, arch);
      EXPECT_TRUE(a.accepted) << arch << ": " << a.log << ptx;
    }
}

TEST(MatrixUnits, ReadSharedMemoryWithoutConflicts) {
  for (const char* arch : {"sm_80", "sm_90a"})
    for (int direction = 0; direction < 4; ++direction) {
      const Device d = Device::simulator(arch);
      Buffer<bf16> a(d, 128 * 64), b(d, 64 * 128);
      Buffer<float> o(d, 128 * 128);
      a.fill_bytes(0);
      b.fill_bytes(0);
      o.fill_bytes(0);
      const Stream s(d);
      product<bf16, bf16, float>.launch(s, 1, a, b, o, o, 128, 128, 64, Way{direction % 2 == 1, direction > 1});
      s.synchronize();
      EXPECT_EQ(d.counters().bank_conflicts, 0u) << arch << " " << direction;
    }
}

// --- errors ----------------------------------------------------------------------------------------------------------

TEST(MatrixUnits, PromotionIsAMultipleOf32) {
  const Device d = Device::simulator("sm_90a");
  Buffer<float> a(d, 64);
  const std::string what = kiln::test::error_of<UserError>(
      [&] { (void)product<float, float, float>.image(d, a, a, a, a, 8, 8, 8, Way{.promote = 48}); });
  EXPECT_THAT(what, HasSubstr("dot: promote is 48, must be a multiple of 32, or 0"));
}

}  // namespace

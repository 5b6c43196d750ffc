// Faults that other tile compilers shipped, as programs that must be right here. docs/pitfalls.md lists them all by
// number and says which tests hold each; those that no other test of a feature covers stand here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dsl/kiln.h"
#include "tests/kernel/every_device.h"
#include "tests/support/expect_error.h"

namespace {
using namespace kiln;
using kiln::test::buffer_of;
using kiln::test::EveryDevice;

class Pitfalls : public EveryDevice {};
KILN_ON_EVERY_DEVICE(Pitfalls);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// A4: the loop over K has a number of trips that is known at the launch only, 0 and 1 among them.
constinit auto product = kernel("product", [](In<float> a, In<float> b, Out<float> c, Int depth, Const<int> BK) {
  Tile m = expand(arange(8), 1), n = arange(8), k = arange(BK), acc = full(f32, {8, 8}, 7.f);
  for (auto at : range(0, depth, BK))
    acc = dot(load(a + m * depth + (at + k), at + k < depth),
              load(b + expand(at + k, 1) * 8 + n, expand(at + k, 1) < depth), acc);
  store(c + m * 8 + n, acc);
});
TEST_P(Pitfalls, A4LoopsOverKOfNoAndOneTrip) {
  const Stream s(device());
  for (int depth : {0, 1, 15, 16, 17, 48}) {
    std::vector<float> ha(std::size_t(8 * depth) + 1), hb(ha.size());
    for (std::size_t i = 0; i < ha.size(); ++i) ha[i] = float(i % 7) - 3, hb[i] = float(i % 5) - 2;
    auto a = buffer_of(device(), ha), b = buffer_of(device(), hb);
    Buffer<float> c(device(), 64);
    product.launch(s, 1, a, b, c, depth, 16);
    s.synchronize();
    const auto got = c.to_vector();
    for (int m = 0; m < 8; ++m)
      for (int n = 0; n < 8; ++n) {
        float want = 7;
        for (int k = 0; k < depth; ++k) want += ha[std::size_t(m * depth + k)] * hb[std::size_t(k * 8 + n)];
        ASSERT_EQ(got[std::size_t(m * 8 + n)], want) << depth << " " << m << " " << n;
      }
  }
}

// A10: NaN in either operand stays, in narrow floats too, and a clamp keeps it.
constinit auto larger =
    kernel("larger", [](In<f16> x, In<f16> y, Out<f16> max_of, Out<f16> min_of, Out<f16> clamped, Const<int> N) {
      Tile i = arange(N), a = load(x + i), b = load(y + i);
      store(max_of + i, maximum(a, b));
      store(min_of + i, minimum(a, b));
      store(clamped + i, minimum(maximum(a, -1), 1));
    });
TEST_P(Pitfalls, A10MaximumAndClampKeepNaNOfEitherOperand) {
  const Stream s(device());
  const int n = 99;
  std::vector<f16> hx(n, f16(kNaN)), hy(n, f16(0.f));
  hx[0] = f16(-3.f);
  for (std::size_t i = 0; i < n; i += 3) hy[i] = f16(kNaN);
  hx[1] = f16(2.f), hx[2] = f16(-0.5f);
  auto x = buffer_of(device(), hx), y = buffer_of(device(), hy);
  Buffer<f16> max_of(device(), n), min_of(device(), n), clamped(device(), n);
  larger.launch(s, 1, x, y, max_of, min_of, clamped, n);
  s.synchronize();
  for (std::size_t i = 0; i < n; ++i) {
    const float a = float(hx[i]), b = float(hy[i]);
    const bool nan = std::isnan(a) || std::isnan(b);
    EXPECT_TRUE(same(float(max_of.to_vector()[i]), nan ? kNaN : std::max(a, b))) << i;
    EXPECT_TRUE(same(float(min_of.to_vector()[i]), nan ? kNaN : std::min(a, b))) << i;
    EXPECT_TRUE(same(float(clamped.to_vector()[i]), std::isnan(a) ? kNaN : std::clamp(a, -1.f, 1.f))) << i;
  }
}

// A14, A15, A16: casts to narrow floats keep infinities and NaN, round once, and saturate only by name.
constinit auto narrowed = kernel("narrowed", [](In<float> x, Out<float> e5m2, Out<float> from_f16, Out<float> saturated,
                                                Out<float> e4m3, Out<float> brain, Const<int> N) {
  Tile i = arange(N), v = load(x + i);
  store(e5m2 + i, v.cast<f8e5m2>().cast(f32));
  store(from_f16 + i, v.cast<f16>().cast<f8e5m2>().cast(f32));
  store(saturated + i, v.cast_sat<f8e5m2>().cast(f32));
  store(e4m3 + i, v.cast<f8e4m3>().cast(f32));
  store(brain + i, v.cast<bf16>().cast(f32));
});
TEST_P(Pitfalls, A14A15A16CastsToNarrowFloats) {
  const Stream s(device());
  const float odd_nan = std::bit_cast<float>(0x7f800001u), negative_nan = std::bit_cast<float>(0xff800001u);
  const std::vector<float> hx{kInf, -kInf, 65504.f, odd_nan, negative_nan, kNaN, 1.0625001f, 1.0625f, -1.0625001f};
  const int n = int(hx.size());
  auto x = buffer_of(device(), hx);
  Buffer<float> e5m2(device(), hx.size()), from_f16(device(), hx.size()), saturated(device(), hx.size()),
      e4m3(device(), hx.size()), brain(device(), hx.size());
  narrowed.launch(s, 1, x, e5m2, from_f16, saturated, e4m3, brain, n);
  s.synchronize();
  const auto expect = [&](const char* what, const Buffer<float>& out, const std::vector<float>& want) {
    const auto got = out.to_vector();
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(same(got[i], want[i])) << what << " of " << hx[i] << ": " << got[i] << ", not " << want[i];
  };
  expect("e5m2", e5m2, {kInf, -kInf, kInf, kNaN, kNaN, kNaN, 1, 1, -1});
  expect("e5m2 from f16", from_f16, {kInf, -kInf, kInf, kNaN, kNaN, kNaN, 1, 1, -1});
  expect("saturated e5m2", saturated, {57344, -57344, 57344, kNaN, kNaN, kNaN, 1, 1, -1});
  expect("e4m3", e4m3, {kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, 1.125f, 1, -1.125f});
  expect("bf16", brain, {kInf, -kInf, 65536, kNaN, kNaN, kNaN, 1.0625f, 1.0625f, -1.0625f});
}

// A20: what is stored in each chunk of a looped reduction does not depend on the chunk.
constinit auto chunks = kernel("chunks", [](In<float> x, In<float> bias, Out<float> out, Out<float> sums, Int width) {
  Tile r = expand(arange(16), 1), c = arange(16), total = zeros(f32, {16, 16}), b = expand(load(bias + arange(16)), 1);
  for (auto at : range(0, width, 16)) {
    total += load(x + r * width + (at + c));
    store(out + r * width + (at + c), broadcast_to(b, {16, 16}));
  }
  store(sums + arange(16), sum(total, 1));
});
TEST_P(Pitfalls, A20EveryChunkOfALoopedReductionIsStored) {
  const Stream s(device());
  std::vector<float> hx(16 * 64), hb(16);
  for (std::size_t i = 0; i < hx.size(); ++i) hx[i] = float(i % 11) - 5;
  for (std::size_t i = 0; i < hb.size(); ++i) hb[i] = float(i) + 0.5f;
  auto x = buffer_of(device(), hx), bias = buffer_of(device(), hb);
  Buffer<float> out = buffer_of(device(), std::vector<float>(hx.size(), -1)), sums(device(), 16);
  chunks.launch(s, 1, x, bias, out, sums, 64);
  s.synchronize();
  for (std::size_t r = 0; r < 16; ++r) {
    float total = 0;
    for (std::size_t c = 0; c < 64; ++c) {
      total += hx[r * 64 + c];
      ASSERT_EQ(out.to_vector()[r * 64 + c], hb[r]) << r << " " << c;
    }
    EXPECT_EQ(sums.to_vector()[r], total) << r;
  }
}

// A21: an f32 value for an f16 maximum is never reinterpreted: like a store, it is refused until it is cast.
constinit auto f16_peak = kernel(
    "f16_peak", [](InOut<f16> m, In<float> x, Const<int> N) { atomic_max(m, max(load(x + arange(N))).cast<f16>()); });
TEST_P(Pitfalls, A21AtomicsOfAnotherDtypeAreConvertedByTheUser) {
  const Stream s(device());
  auto m = buffer_of(device(), std::vector<f16>{f16(-2.f)});
  auto x = buffer_of(device(), std::vector<float>{1.0001f, 3.1415927f, -8.f});
  f16_peak.launch(s, 1, m, x, 3);
  s.synchronize();
  EXPECT_EQ(float(m.to_vector()[0]), float(f16(3.1415927f)));
  const auto mixed = kernel("mixed", [](InOut<f16> h, In<float> v) { atomic_max(h, load(v)); });
  EXPECT_THAT(kiln::test::error_of<UserError>([&] { mixed.launch(s, 1, m, x); }),
              testing::HasSubstr("atomic_max: value is f32, pointer is ptr<f16>; cast first"));
}

// A40: steps survive unrolling, whole and in part, and bounds that the step does not meet.
constinit auto steps = kernel("steps", [](Out<std::int64_t> out, Const<int> HI, Const<int> STEP, Const<int> UNROLL) {
  Scalar count = 0, last = Scalar(-1).cast(DType::index), at = out + 2;
  const auto body = [&](const Index& i) {
    count += 1;
    last = i;
    store(at, i.cast(i64));
    at += 1;
  };
  if (UNROLL == 0)
    for (auto i : range(0, HI, STEP).unroll()) body(i);
  else
    for (auto i : range(0, HI, STEP).unroll(UNROLL)) body(i);
  store(out, count.cast(i64));
  store(out + 1, last.cast(i64));
});
TEST_P(Pitfalls, A40UnrolledLoopsKeepTheirStep) {
  const Stream s(device());
  for (int hi : {16, 17, 3, 0})
    for (int step : {4, 3, 1})
      for (int unroll : {0, 1, 2, 3, 4, 7}) {
        auto out = buffer_of(device(), std::vector<std::int64_t>(20, -7));
        steps.launch(s, 1, out, hi, step, unroll);
        s.synchronize();
        std::vector<std::int64_t> want(20, -7);
        want[0] = 0, want[1] = -1;
        for (int i = 0; i < hi; i += step) want[std::size_t(2 + want[0]++)] = want[1] = i;
        EXPECT_EQ(out.to_vector(), want) << hi << " " << step << " " << unroll;
      }
}

// A41: elements cross threads inside a branch that only some trips take; each write comes before the reads and after
// those of the trip before.
constinit auto turned = kernel("turned", [](In<float> x, Out<float> out, Int trips, Const<int> N) {
  Tile i = arange(N);
  Scalar mine = shared<float>(N);
  for (auto k : range(trips)) {
    Tile v = load(x + k * N + i);
    if_(max(v) > 0.f, [&] {
      store(mine + (N - 1 - i), v);
      store(out + k * N + i, load(mine + i) + flip(v, 0));
    });
  }
});
TEST_P(Pitfalls, A41ExchangesStayInTheirBranch) {
  const Stream s(device());
  const int n = 256, trips = 6;
  std::vector<float> hx(std::size_t(n * trips));
  for (int k = 0; k < trips; ++k)
    for (int i = 0; i < n; ++i) hx[std::size_t(k * n + i)] = k % 3 == 1 ? -1.f : float(k * n + i + 1);
  for (int warps : {1, 4}) {
    auto x = buffer_of(device(), hx);
    auto out = buffer_of(device(), std::vector<float>(hx.size(), -5));
    turned.with({.num_warps = warps}).launch(s, 1, x, out, trips, n);
    s.synchronize();
    for (int k = 0; k < trips; ++k)
      for (int i = 0; i < n; ++i)
        ASSERT_EQ(out.to_vector()[std::size_t(k * n + i)], k % 3 == 1 ? -5 : 2 * hx[std::size_t(k * n + n - 1 - i)])
            << warps << " " << k << " " << i;
  }
}

}  // namespace

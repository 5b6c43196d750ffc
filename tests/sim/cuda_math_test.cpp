// Arithmetic as nvcc compiles it: packed halves, wide integers and functions of the device library, against C++.
#include "tests/sim/cuda_test.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/base/float16.h"

namespace kiln::test {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

class CudaMath : public CudaTest {};

template <class T>
double real(T v) {
  return static_cast<double>(static_cast<float>(v));
}
/// What T rounds `v` to, and NaN to its own.
template <class T>
double rounded_to(double v) {
  return real(T(static_cast<float>(v)));
}
/// Each function's result of both halves of both operands, beside what the kernel left: exact but for one rounding.
template <class T>
void expect_packed(const Device& d, const std::string& ptx, const std::string& kernel,
                   const std::vector<std::function<double(double, double)>>& functions, std::size_t results) {
  constexpr std::size_t kN = 64;
  const auto a = random_values<float>(2 * kN, -2, 2), b = random_values<float>(2 * kN, -2, 2, 2);
  std::vector<T> x, y;
  for (std::size_t i = 0; i < 2 * kN; ++i) x.push_back(T(a[i])), y.push_back(T(b[i]));
  const auto dx = buffer_of(d, x), dy = buffer_of(d, y), out = empty_buffer<T>(d, 2 * kN * results);
  call(d, ptx, kernel, {{2, 1, 1}, {32, 1, 1}}, dx, dy, out, static_cast<int>(kN));
  const auto got = out.to_vector();
  for (std::size_t i = 0; i < 2 * kN; ++i)
    for (std::size_t k = 0; k < functions.size(); ++k) {
      const double want = rounded_to<T>(functions[k](real(x[i]), real(y[i])));
      ASSERT_EQ(real(got[(i / 2 * results + k) * 2 + i % 2]), want)
          << kernel << " result " << k << " of " << real(x[i]) << ", " << real(y[i]);
    }
}

TEST_P(CudaMath, PacksHalves) {
  on_each_device([&](const Device& d) {
    const auto clamped = [](double v) { return std::clamp(v, 0.0, 1.0); };
    expect_packed<f16>(
        d, ptx("half_math"), "half2_ops",
        {[](double a, double b) { return a * b + rounded_to<f16>(a + b); },
         [](double a, double b) { return std::max(0.0, a * b - b); }, [](double a, double b) { return std::max(a, b); },
         [](double a, double b) { return std::min(std::fabs(a), b); },
         [&](double a, double b) { return clamped(a * b); }, [&](double a, double b) { return clamped(a - b); },
         [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
        8);
  });
}

TEST_P(CudaMath, PacksHalvesOfBf16) {
  on_each_device([&](const Device& d) {
    expect_packed<bf16>(d, ptx("half_math"), "bf162_ops",
                        {[](double a, double b) { return a * b + a; }, [](double a, double b) { return a + b; },
                         [](double a, double b) { return std::max(a, b); }, [](double a, double b) { return -a * b; },
                         [](double a, double b) { return a < b ? 1.0 : 0.0; }},
                        6);
  });
}

TEST_P(CudaMath, ApproximatesFunctionsOfHalves) {
  on_each_device([&](const Device& d) {
    const auto a = random_values<float>(128, 0.1f, 4);
    std::vector<f16> x;
    for (float v : a) x.push_back(f16(v));
    const auto in = buffer_of(d, x), out = empty_buffer<f16>(d, 640);
    call(d, ptx("half_math"), "half2_functions", {{2, 1, 1}, {32, 1, 1}}, in, out, 64);
    const auto got = out.to_vector();
    for (std::size_t i = 0; i < 128; ++i) {
      const double v = real(x[i]);
      const double want[5] = {std::exp(v), std::sqrt(v), 1 / v, std::log2(v), std::tanh(v)};
      for (std::size_t k = 0; k < 5; ++k)
        EXPECT_NEAR(real(got[(i / 2 * 5 + k) * 2 + i % 2]), want[k], 2e-3 * std::fabs(want[k]) + 5e-4);
    }
  });
}

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UWide;

TEST_P(CudaMath, ComputesWithWideIntegers) {
  on_each_device([&](const Device& d) {
    auto x = random_values<U64>(64, 0, ~U64{0});
    x[2] = x[5] = ~U64{0};
    const auto in = buffer_of(d, x), out = empty_buffer<U64>(d, 320);
    call(d, ptx("wide"), "wide", {{1, 1, 1}, {32, 1, 1}}, in, out, 32);
    const auto got = out.to_vector();
    for (std::size_t i = 0; i < 32; ++i) {
      const U64 a = x[2 * i], b = x[2 * i + 1];
      const UWide wa = static_cast<UWide>(a) << 64 | b, wb = static_cast<UWide>(b) << 64 | ~a, sum = wa + wb,
                  product = wa * wb;
      U64 reversed = 0;
      for (int k = 0; k < 64; ++k) reversed |= (a >> k & 1) << (63 - k);
      const std::int64_t signed_a = static_cast<std::int64_t>(a), signed_b = static_cast<std::int64_t>(b);
      const std::vector<U64> want = {static_cast<U64>(sum >> 64),
                                     static_cast<U64>(sum),
                                     static_cast<U64>(product >> 64),
                                     static_cast<U64>(product),
                                     static_cast<U64>(static_cast<UWide>(a) * b >> 64),
                                     a / b,
                                     static_cast<U64>(signed_a % (static_cast<std::int64_t>(b >> 40) + 1)),
                                     static_cast<U64>(std::popcount(a)) << 32 | static_cast<U64>(std::countl_zero(b)),
                                     reversed,
                                     static_cast<U64>(static_cast<Wide>(signed_a) * signed_b >> 64)};
      for (std::size_t k = 0; k < want.size(); ++k) EXPECT_EQ(got[i * 10 + k], want[k]) << i << " " << k;
    }
  });
}

TEST_P(CudaMath, CarriesThroughFourWords) {
  on_each_device([&](const Device& d) {
    auto x = random_values<U32>(128, 0, 0xFFFFFFFF), y = random_values<U32>(128, 0, 0xFFFFFFFF, 2);
    for (std::size_t i = 0; i < 3; ++i) x[i] = 0xFFFFFFFF, y[i] = i == 0;
    const auto dx = buffer_of(d, x), dy = buffer_of(d, y), out = empty_buffer<U32>(d, 128);
    call(d, ptx("wide"), "add_128", {}, dx, dy, out);
    const auto got = out.to_vector();
    for (std::size_t t = 0; t < 32; ++t) {
      U64 carry = 0;
      for (std::size_t i = 4 * t; i < 4 * t + 4; ++i) {
        carry += U64{x[i]} + y[i];
        EXPECT_EQ(got[i], static_cast<U32>(carry));
        carry >>= 32;
      }
    }
  });
}

TEST_P(CudaMath, FunctionsOfTheMathLibrary) {
  on_each_device([&](const Device& d) {
    const auto x = random_values<float>(200, -8, 8);
    const auto in = buffer_of(d, x), out = empty_buffer<float>(d, 200 * 12);
    call(d, ptx("functions_of_math"), "single", {{4, 1, 1}, {64, 1, 1}}, in, out, 200);
    std::vector<double> want;
    for (float f : x) {
      const double v = f, cos_at = static_cast<double>(f * 1e6f), a = std::fabs(v);
      for (double w : {std::sin(v), std::cos(cos_at), std::exp(v), std::log(a + 1e-3f), std::pow(a, 1.7f), std::erf(v),
                       std::tanh(v), std::cbrt(v), std::lgamma(a + 0.5), std::fmod(v, 0.37f), v / 3 + std::sqrt(a),
                       std::round(v) + std::trunc(v) * std::floor(v) - std::ceil(v) + std::rint(v)})
        want.push_back(w);
    }
    expect_near(out.to_vector(), want, 2e-6, 2e-6);
  });
}

TEST_P(CudaMath, DoublePrecisionFunctions) {
  on_each_device([&](const Device& d) {
    const auto x = random_values<double>(100, -8, 8);
    const auto in = buffer_of(d, x), out = empty_buffer<double>(d, 800);
    call(d, ptx("functions_of_math"), "twofold", {{4, 1, 1}, {32, 1, 1}}, in, out, 100);
    const auto got = out.to_vector();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], a = std::fabs(v);
      const double want[8] = {std::sin(v), std::exp(v),  std::log(a + 1e-3),     std::pow(a, 0.3),
                              v / 7,       std::sqrt(a), 1 / std::sqrt(a + 0.1), std::hypot(v, 2) + std::atan2(v, 3)};
      for (std::size_t k = 0; k < 8; ++k)
        EXPECT_NEAR(got[i * 8 + k], want[k], 1e-14 * std::max(1.0, std::fabs(want[k])));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Nvcc, CudaMath, ::testing::Values(kSm80, kSm90a), origin_name);

}  // namespace
}  // namespace kiln::test

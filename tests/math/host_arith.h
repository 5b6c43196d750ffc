// The arithmetic of backend/llvm/math/arith.h on host floats. Its approximations are the correctly rounded values moved
// by `bias` times the largest error that the PTX ISA manual states for the instruction (bias in [-1, 1]).
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln::test {

struct HostArith {
  using F = float;
  using I = std::int32_t;
  using L = std::int64_t;
  using B = bool;
  double bias = 0;
  bool approximated = false;  ///< an approximation was used

  F add(F a, F b) { return a + b; }
  F sub(F a, F b) { return a - b; }
  F mul(F a, F b) { return a * b; }
  F fma(F a, F b, F c) { return std::fma(a, b, c); }
  F neg(F a) { return -a; }
  F abs(F a) { return std::fabs(a); }
  F trunc(F a) { return std::trunc(a); }
  F min(F a, F b) { return a != a ? a : b != b ? b : (a < b ? a : b); }
  F max(F a, F b) { return a != a ? a : b != b ? b : (a > b ? a : b); }

  I bits(F a) { return std::bit_cast<I>(a); }
  F from_bits(I a) { return std::bit_cast<F>(a); }
  F to_float(I a) { return static_cast<F>(a); }
  static std::uint32_t u(I a) { return static_cast<std::uint32_t>(a); }
  I iadd(I a, I b) { return static_cast<I>(u(a) + u(b)); }
  I isub(I a, I b) { return static_cast<I>(u(a) - u(b)); }
  I imul(I a, I b) { return static_cast<I>(u(a) * u(b)); }
  I iand(I a, I b) { return a & b; }
  I ior(I a, I b) { return a | b; }
  I ixor(I a, I b) { return a ^ b; }
  I shl(I a, int n) { return static_cast<I>(u(a) << n); }
  I shr(I a, int n) { return static_cast<I>(u(a) >> n); }
  I sar(I a, int n) { return a >> n; }

  static std::uint64_t u(L a) { return static_cast<std::uint64_t>(a); }
  L umul(I a, I b) { return static_cast<L>(std::uint64_t{u(a)} * u(b)); }
  L join(I hi, I lo) { return static_cast<L>((std::uint64_t{u(hi)} << 32) | u(lo)); }
  I high(L a) { return static_cast<I>(u(a) >> 32); }
  L ladd(L a, L b) { return static_cast<L>(u(a) + u(b)); }
  L lshl(L a, I n) { return static_cast<L>(u(a) << n); }
  L lshr(L a, I n) { return static_cast<L>(u(a) >> n); }
  F scaled(L a, double k) { return static_cast<F>(static_cast<double>(a) * k); }

  B lt(F a, F b) { return a < b; }
  B gt(F a, F b) { return a > b; }
  B eq(F a, F b) { return a == b; }
  B ne(F a, F b) { return a != b; }
  B ilt(I a, I b) { return a < b; }
  B ieq(I a, I b) { return a == b; }
  B both(B a, B b) { return a && b; }
  B either(B a, B b) { return a || b; }
  B nope(B a) { return !a; }
  F sel(B c, F a, F b) { return c ? a : b; }
  I isel(B c, I a, I b) { return c ? a : b; }
  template <class T, class E>
  auto branch(B c, T then, E other) {
    return c ? then() : other();
  }

  // Approximations. ulp and absolute errors: PTX ISA 9.0, the instructions' own sections.
  F ex2(F x) { return ulps(std::exp2(double{x}), 2); }
  F ex2_ftz(F x) { return flush(ulps(std::exp2(double{flush(x)}), 2)); }
  F lg2_ftz(F x) {
    double v = std::log2(double{flush(x)});
    return std::fabs(v) < 1 ? absolute(v, 0x1p-22) : ulps(v, 2);
  }
  F rcp_ftz(F x) { return flush(ulps(1.0 / double{flush(x)}, 1)); }
  F rsqrt_approx(F x) { return relative(1.0 / std::sqrt(double{x}), 0x1.2p-23); }
  F rsqrt_ftz(F x) { return relative(1.0 / std::sqrt(double{flush(x)}), 0x1.2p-23); }
  F sqrt_ftz(F x) { return relative(std::sqrt(double{flush(x)}), 0x1p-23); }
  F div_full_ftz(F x, F y) { return flush(within(double{flush(x)} / double{flush(y)}, 2)); }
  F sin_approx(F x) { return absolute(std::sin(double{x}), 0x1.7p-21); }
  F cos_approx(F x) { return absolute(std::cos(double{x}), 0x1.7p-21); }
  F tanh_approx(F x) { return relative(std::tanh(double{x}), 0x1p-11); }

 private:
  static F flush(F x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.f, x) : x; }
  F absolute(double v, double e) {
    approximated = true;
    return v == 0 ? static_cast<F>(v) : static_cast<F>(v + bias * e);
  }
  F relative(double v, double e) {
    approximated = true;
    return static_cast<F>(v * (1 + bias * e));
  }
  /// The float farthest from v, in the bias's direction, that is within n ulp of it.
  F within(double v, int n) {
    approximated = true;
    if (v == 0 || !std::isfinite(v)) return static_cast<F>(v);
    int e = 0;
    std::frexp(v, &e);
    const double limit = std::ldexp(std::fabs(bias) * n, std::clamp(e, -125, 128) - 24);
    F r = static_cast<F>(v + std::copysign(limit, v * bias));
    if (bias != 0 && std::fabs(r - v) > limit) r = std::nextafter(r, static_cast<F>(v));
    return r;
  }
  /// v rounded and moved by bias·n of its neighbours; zero, infinity, NaN and one stay, and nothing moves past zero.
  F ulps(double v, int n) {
    approximated = true;
    F r = static_cast<F>(v);
    if (r == 0 || r == 1 || !std::isfinite(r)) return r;
    I magnitude = bits(r) & 0x7fffffff;
    I moved = std::clamp<I>(magnitude + static_cast<I>(std::lround(bias * n)), 0, 0x7f800000);
    return from_bits(moved | (bits(r) ^ magnitude));
  }
};

}  // namespace kiln::test

#include "tests/op/accuracy.h"

#include <algorithm>
#include <cmath>

#include "tests/op/values.h"

namespace kiln::test {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

double logistic(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
/// x times a factor that vanishes at -inf.
double gated(double x, double factor) { return x == -HUGE_VAL ? -0.0 : x * factor; }

double units(ir::Accuracy a, double x, double want) {
  double ulp = ulp_of(DType::f32, want);
  if (a.bound == ir::Bound::Ulp) return a.n * ulp;
  return a.n * 0x1p-23 * std::max({std::fabs(x), std::fabs(want), 0x1p-126});
}

/// A denormal counts as zero in the approximations, whether it comes in or goes out; what they make of one is not
/// bounded.
constexpr double kFlushed = 0x1p-126;

bool flushed(double v) { return std::fabs(v) < kFlushed && v != 0; }

std::optional<double> fast_tolerance(ir::Op op, double x, double y, double want) {
  using ir::Op;
  double ulp = ulp_of(DType::f32, want);
  bool flushed_in = flushed(x) || flushed(y);
  switch (op) {
    case Op::Div: return flushed_in ? std::nullopt : std::optional(2 * ulp + kFlushed);
    case Op::Sqrt:
    case Op::Rsqrt: return flushed_in ? std::nullopt : std::optional(3 * ulp);
    case Op::Exp: return (3 + 1.25 * std::min(std::fabs(x), 128.0)) * ulp + kFlushed;
    case Op::Exp2: return 4 * ulp + kFlushed;
    case Op::Log:
    case Op::Log2: return flushed_in ? std::nullopt : std::optional(5 * ulp + 0x1p-21);
    case Op::Sin:
    case Op::Cos: return std::fabs(x) <= kTwoPi || !std::isfinite(x) ? std::optional(0x1p-20) : std::nullopt;
    case Op::Tanh: return 0x1p-11 * std::fabs(want) + ulp + kFlushed;
    case Op::Sigmoid:
    case Op::Silu:
    case Op::GeluTanh: return units({ir::Bound::Rel, 2}, x, want) + kFlushed;
    default: return units(ir::info(op).accuracy, x, want);
  }
}

}  // namespace

double reference(ir::Op op, double x, double y) {
  using ir::Op;
  switch (op) {
    case Op::Div: return x / y;
    case Op::Sqrt: return std::sqrt(x);
    case Op::Rsqrt: return 1 / std::sqrt(x);
    case Op::Exp: return std::exp(x);
    case Op::Exp2: return std::exp2(x);
    case Op::Log: return std::log(x);
    case Op::Log2: return std::log2(x);
    case Op::Sin: return std::sin(x);
    case Op::Cos: return std::cos(x);
    case Op::Tanh: return std::tanh(x);
    case Op::Erf: return std::erf(x);
    case Op::Pow: return std::pow(x, y);
    case Op::Sigmoid: return logistic(x);
    case Op::Silu: return gated(x, logistic(x));
    case Op::Gelu: return gated(x, 0.5 * std::erfc(-x * std::sqrt(0.5)));
    case Op::GeluTanh: return gated(x, logistic(2 * std::sqrt(4 / kTwoPi) * (x + 0.044715 * x * x * x)));
    default: return std::nan("");
  }
}

std::optional<double> tolerance(ir::Op op, bool fast, DType d, double x, double y, double want) {
  if (fast && d == DType::f64) return 0;  // the hardware has no approximation: the exact form
  if (!std::isfinite(want)) return fast && (flushed(x) || flushed(y)) ? std::nullopt : std::optional(0.0);
  std::optional<double> single = fast ? fast_tolerance(op, x, y, want) : units(ir::info(op).accuracy, x, want);
  if (!single || d == DType::f32) return single;
  double rounding = 0.51 * ulp_of(d, want);
  // A bound relative to |x| does not shrink with the result; an ulp of f32 vanishes in one of 16 bits.
  bool relative = ir::info(op).accuracy.bound == ir::Bound::Rel;
  return fast || relative ? rounding + *single : rounding;
}

bool near_enough(DType d, double got, double want, double tolerance) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(want)) return got == want;
  double limit = largest(d) + ulp_of(d, largest(d)), distance;  // where the next value would be
  if (std::isinf(got)) distance = limit - std::copysign(std::min(std::fabs(want), limit), want * got);
  else distance = std::fabs(got - (std::fabs(want) > limit ? std::copysign(limit, want) : want));
  if (got == 0 && want == 0 && std::signbit(got) != std::signbit(want)) return false;
  return distance <= tolerance;
}

}  // namespace kiln::test

// The math functions under test, one row each: name, domain of the sweep, bound, f64 reference, what runs.
#pragma once
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backend/llvm/math/fast.h"
#include "backend/llvm/math/pow.h"
#include "backend/llvm/math/trig.h"
#include "tests/math/host_arith.h"

namespace kiln::test {

/// Errors are measured against the reference before it is rounded. Ulp: in units of the last place of the result. Rel:
/// in units of 2^-23·max(|x|, |result|, 2^-126). Abs: absolute.
enum class Metric { Ulp, Rel, Abs };

struct MathFunction {
  std::string name;
  Metric metric;
  double bound;
  double low, high;  ///< finite inputs outside are not swept; special values are kept
  double (*reference)(double);
  void (*run)(HostArith&, const float* x, float* y, int n);
};

/// The accurate forms of one argument.
const std::vector<MathFunction>& accurate_functions();
/// The fast forms.
const std::vector<MathFunction>& fast_functions();
/// What f16 and bf16 use, before the rounding to 16 bits; all but gelu, whose small results below -3 lose digits to the
/// cancellation in 1 + erf: its bound is that of f32 with one more rounding.
const std::vector<MathFunction>& narrow_functions();

/// Error of `got` in the units of `f`; 0 where both are NaN or the same infinity, 1e30 where they disagree on that.
double error_of(const MathFunction& f, float x, float got);

struct Worst {
  double error = 0;
  float at = 0;
  bool approximated = false;  ///< whether the hardware model matters
};
/// Largest error over every stride-th float, from `first`, and over special values.
Worst sweep(const MathFunction& f, std::uint64_t stride, double bias, std::uint32_t first = 0);

}  // namespace kiln::test

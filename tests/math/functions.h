// The math functions under test, one row each: name, domain of the sweep, bound, f64 reference, what runs. A sweep runs
// them under the hardware models of host_arith.h: with exact approximations and, where a function uses one, with the
// worst in either direction.
#pragma once
#include <cmath>
#include <functional>
#include <string>
#include <utility>
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

/// A function of two arguments: pow, and division's fast form.
struct PairFunction {
  std::string name;
  Metric metric;
  double bound;
  double (*reference)(double, double);
  void (*run)(HostArith&, const float* x, const float* y, float* out, int n);
  /// The i-th pair of a sequence that covers the plane of arguments evenly, most where results are finite.
  std::pair<float, float> (*pair)(std::uint64_t i);
  bool (*promised)(double x, double y, double want);  ///< whether the bound holds there
};
const std::vector<PairFunction>& pair_functions();

/// Error of `got` in units of `metric`; 0 where both are NaN or the same infinity, 1e30 where they disagree on that.
double error_of(Metric metric, double x, double want, float got);

struct Worst {
  double error = 0;
  float x = 0, y = 0;  ///< where
  double bias = 0;     ///< under which hardware model
};
/// Which inputs, by number: floats by their bits, pairs by their place in the sequence. At most 2^32.
struct Inputs {
  std::uint64_t first = 0, end = std::uint64_t{1} << 32, stride = 1;
};
/// Largest error over these inputs and over all special values (all pairs of them).
Worst sweep(const MathFunction&, const Inputs&);
Worst sweep(const PairFunction&, const Inputs&);

}  // namespace kiln::test

#include "runtime/tools/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kiln::rt::tools {
namespace {

double rms(DType t, const Bytes& b, std::size_t n) {
  double squares = 0;
  std::size_t finite = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (const double v = element(t, b, i); std::isfinite(v)) squares += v * v, ++finite;
  return finite ? std::sqrt(squares / static_cast<double>(finite)) : 0;
}

double distance(double a, double b) {
  if ((std::isnan(a) && std::isnan(b)) || a == b) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

}  // namespace

double tolerance(DType t) {
  switch (t) {
    case DType::f64: return 1e-12;
    case DType::f32: return 1e-5;
    case DType::f16:
    case DType::bf16: return 1e-2;
    case DType::f8e4m3: return 0.125;
    case DType::f8e5m2: return 0.25;
    default: return 0;
  }
}

Comparison compare(DType t, const Bytes& got, const Bytes& want) {
  Comparison c;
  const auto size = static_cast<std::size_t>(bytes(t));
  c.elements = want.size() / size;
  const double bound = tolerance(t);
  c.allowed = bound == 0 ? 0 : bound * rms(t, want, c.elements);
  for (std::size_t i = 0; i < c.elements; ++i) {
    if (std::memcmp(got.data() + i * size, want.data() + i * size, size) == 0) continue;
    const double g = element(t, got, i), w = element(t, want, i), error = distance(g, w);
    c.largest_error = std::max(c.largest_error, error);
    // An infinity is met by itself alone, however large the allowance around it.
    const bool right = is_float(t) && (error == 0 || (std::isfinite(w) && error <= bound * std::fabs(w) + c.allowed));
    if (right) continue;
    if (c.wrong++ == 0) c.first_wrong = i, c.got = element_text(t, got, i), c.want = element_text(t, want, i);
  }
  return c;
}

}  // namespace kiln::rt::tools

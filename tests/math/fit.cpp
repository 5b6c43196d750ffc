// kiln_math_fit: the polynomial coefficients of backend/llvm/math, found anew. Prints one line a polynomial.
//
// Lawson's algorithm: weighted least squares on Chebyshev points in long double, the weights multiplied by the error
// until the largest weighted error is as small as it gets. Then the first coefficient is rounded to f32, its term is
// taken out of the target, and the rest is fitted again, so that later coefficients make up for the rounding of earlier
// ones. Of "erf far", which is ill-conditioned, the last digits depend on the host's rounding.
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

namespace {

using Real = long double;
using Function = std::function<Real(Real)>;
using Matrix = std::vector<std::vector<Real>>;

constexpr int kPoints = 2000, kRounds = 60;

struct Target {
  const char* name;
  Function f, weight;  ///< minimise max |weight·(polynomial - f)|
  std::vector<int> powers;
  Real low, high;
};

/// Solves the normal equations of rows·c ≈ y with weights w by elimination with row exchange.
std::vector<Real> least_squares(const Matrix& rows, const std::vector<Real>& y, const std::vector<Real>& w) {
  std::size_t n = rows[0].size();
  Matrix m(n, std::vector<Real>(n + 1, 0));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) m[i][j] += w[r] * rows[r][i] * rows[r][j];
      m[i][n] += w[r] * rows[r][i] * y[r];
    }
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t k = i + 1; k < n; ++k)
      if (std::fabs(m[k][i]) > std::fabs(m[pivot][i])) pivot = k;
    std::swap(m[i], m[pivot]);
    for (std::size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      Real factor = m[k][i] / m[i][i];
      for (std::size_t j = i; j <= n; ++j) m[k][j] -= factor * m[i][j];
    }
  }
  std::vector<Real> c(n);
  for (std::size_t i = 0; i < n; ++i) c[i] = m[i][n] / m[i][i];
  return c;
}

/// Coefficients of `powers` and the largest weighted error.
std::pair<std::vector<Real>, Real> minimax(const Target& t, const Function& f, const std::vector<int>& powers) {
  Matrix rows(kPoints, std::vector<Real>(powers.size()));
  std::vector<Real> y(kPoints), w(kPoints, 1), c;
  for (int r = 0; r < kPoints; ++r) {
    Real x = (t.low + t.high) / 2 + (t.high - t.low) / 2 * std::cos(3.14159265358979323846L * (r + 0.5L) / kPoints);
    for (std::size_t j = 0; j < powers.size(); ++j)
      rows[r][j] = t.weight(x) * std::pow(x, static_cast<Real>(powers[j]));
    y[r] = t.weight(x) * f(x);
  }
  Real worst = 0;
  for (int round = 0; round < kRounds; ++round) {
    c = least_squares(rows, y, w);
    Real sum = 0;
    worst = 0;
    for (int r = 0; r < kPoints; ++r) {
      Real e = -y[r];
      for (std::size_t j = 0; j < powers.size(); ++j) e += c[j] * rows[r][j];
      worst = std::max(worst, std::fabs(e));
      w[r] *= std::fabs(e) + 1e-30L;
      sum += w[r];
    }
    for (Real& v : w) v *= kPoints / sum;
  }
  return {c, worst};
}

void fit(const Target& t) {
  Function f = t.f;
  std::vector<int> powers = t.powers;
  std::printf("%s: error 2^%.1Lf,", t.name, std::log2(minimax(t, f, powers).second));
  while (!powers.empty()) {
    auto c = static_cast<float>(minimax(t, f, powers).first[0]);
    std::printf(" %a", static_cast<double>(c));
    f = [f, c, power = powers[0]](Real x) { return f(x) - c * std::pow(x, static_cast<Real>(power)); };
    powers.erase(powers.begin());
  }
  std::printf("\n");
}

/// Weight for an error relative to f; finite at zeros of f.
Function relative(Function f) {
  return [f = std::move(f)](Real x) { return 1 / std::max(std::fabs(f(x)), 1e-6L); };
}

}  // namespace

int main() {
  const Real ln2 = std::log(2.0L), log2e = 1 / ln2;
  auto log1p = [](Real x) { return std::log1p(x); };
  auto log2_1p = [=](Real x) { return std::log1p(x) * log2e; };
  const Target targets[] = {
      {"exp",
       [](Real x) { return std::exp(x) - 1 - x; },
       [](Real x) { return std::exp(-x); },
       {2, 3, 4, 5, 6},
       -0.5005L * ln2,
       0.5005L * ln2},
      {"exp2",
       [](Real x) { return std::exp2(x) - 1; },
       [](Real x) { return std::exp2(-x); },
       {1, 2, 3, 4, 5, 6, 7},
       -0.5005L,
       0.5005L},
      {"log",
       [](Real x) { return std::log1p(x) - x + x * x / 2; },
       relative(log1p),
       {3, 4, 5, 6, 7, 8, 9, 10},
       -1.0L / 3,
       1.0L / 3},
      {"log2",
       [=](Real x) { return log2_1p(x) - x * log2e; },
       relative(log2_1p),
       {2, 3, 4, 5, 6, 7, 8, 9, 10},
       -1.0L / 3,
       1.0L / 3},
      // log2(1+f) in s = 2f/(2+f), without the first two terms of its series
      {"pow",
       [=](Real s) { return log2e * (2 * std::atanh(s / 2) - s - s * s * s / 12); },
       relative([=](Real s) { return s * log2e; }),
       {5, 7, 9, 11},
       -0.3433L,
       0.3433L},
      {"tanh",
       [](Real x) { return std::tanh(x) - x; },
       relative([](Real x) { return std::tanh(x); }),
       {3, 5, 7, 9, 11},
       -0.6L,
       0.6L},
      {"sin",
       [](Real x) { return std::sin(x) - x; },
       relative([](Real x) { return std::sin(x); }),
       {3, 5, 7, 9},
       -0.786L,
       0.786L},
      {"cos",
       [](Real x) { return std::cos(x) - 1 + x * x / 2; },
       [](Real x) { return 1 / std::cos(x); },
       {4, 6, 8},
       -0.786L,
       0.786L},
      {"erf near 0",
       [](Real x) { return std::erf(x) - x; },
       relative([](Real x) { return std::erf(x); }),
       {1, 3, 5, 7, 9, 11, 13},
       -0.93L,
       0.93L},
      // erf = 1 - e^-Q: an error of Q counts by what it changes in erf
      {"erf far",
       [](Real x) { return -std::log(std::erfc(x)); },
       [](Real x) { return std::erfc(x) / std::erf(x); },
       {0, 1, 2, 3, 4, 5, 6, 7, 8},
       0.92L,
       4.0L},
  };
  for (const Target& t : targets) fit(t);
}

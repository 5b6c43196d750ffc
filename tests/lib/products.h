// What the tests of linear share: operands with NaN around them, and exact products.
#pragma once
#include <algorithm>
#include <cstring>

#include "dsl/lib/epilogue.h"
#include "dsl/lib/linear.h"
#include "dsl/lib/reductions.h"
#include "tests/lib/rows.h"

namespace kiln::test {

struct Extents {
  std::int64_t m, n, k;
};
inline std::ostream& operator<<(std::ostream& o, const Extents& e) { return o << e.m << "x" << e.n << "x" << e.k; }

/// `x` as a number of T, in double.
template <class T>
double rounded(double x) {
  if constexpr (std::same_as<T, double>) return x;
  else if constexpr (std::integral<T>) return double(T(x));
  else return double(float(T(float(x))));
}
template <class T>
double as_double(const T& x) {
  if constexpr (std::is_arithmetic_v<T>) return double(x);
  else return double(float(x));
}
/// Distance of neighbouring numbers of Y at `x`.
template <class Y>
double step(double x) {
  if constexpr (std::same_as<Y, double>) return std::ldexp(1.0, std::ilogb(x == 0 ? 1e-300 : x) - 52);
  else if constexpr (std::integral<Y>) return 0;
  else return ulp<Y>(x);
}

/// A matrix of T in memory that is NaN (integers: 77) between and around its rows.
template <class T>
class Operand {
 public:
  Operand(const Device& d, std::int64_t rows, std::int64_t cols, const std::vector<double>& values,
          std::int64_t gap = 0, std::int64_t offset = 0, bool by_columns = false)
      : size_{rows, cols},
        stride_{by_columns ? 1 : cols + gap, by_columns ? rows + gap : 1},
        offset_(offset),
        memory_(d, std::size_t(offset + (by_columns ? cols * (rows + gap) : rows * (cols + gap)) + 64)) {
    std::vector<T> all(memory_.size(), outside());
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) all[place(r, c)] = from(values.at(std::size_t(r * cols + c)));
    memory_.upload(all);
  }
  /// Nothing yet: written by a kernel.
  Operand(const Device& d, std::int64_t rows, std::int64_t cols, std::int64_t gap = 0, std::int64_t offset = 0)
      : Operand(d, rows, cols, std::vector<double>(std::size_t(rows * cols), 77), gap, offset) {}

  operator lib::Matrix<T>() { return {address(), size_, stride_}; }
  operator lib::Matrix<const T>() const { return {address(), size_, stride_}; }
  std::vector<T> elements() const {
    const std::vector<T> all = memory_.to_vector();
    std::vector<T> v;
    for (std::int64_t r = 0; r < size_[0]; ++r)
      for (std::int64_t c = 0; c < size_[1]; ++c) v.push_back(all[place(r, c)]);
    return v;
  }
  std::vector<double> values() const {
    std::vector<double> v;
    for (const T& x : elements()) v.push_back(as_double(x));
    return v;
  }
  void expect_rest_untouched() const {
    std::vector<T> all = memory_.to_vector();
    for (std::int64_t r = 0; r < size_[0]; ++r)
      for (std::int64_t c = 0; c < size_[1]; ++c) all[place(r, c)] = outside();
    const T want = outside();
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(std::memcmp(&all[i], &want, sizeof(T)), 0) << "element " << i << " of the memory was written";
  }

 private:
  static T from(double x) {
    if constexpr (std::is_arithmetic_v<T>) return T(x);
    else return T(float(x));
  }
  static T outside() {
    if constexpr (std::integral<T>) return T(77);
    else return from(kNaN);
  }
  std::size_t place(std::int64_t r, std::int64_t c) const {
    return std::size_t(offset_ + r * stride_[0] + c * stride_[1]);
  }
  TypedPtr<T> address() const {
    return device_ptr<T>(memory_.ptr() + std::size_t(offset_) * sizeof(T), memory_.size() - std::size_t(offset_));
  }
  std::array<std::int64_t, 2> size_, stride_;
  std::int64_t offset_;
  Buffer<T> memory_;
};

/// Whole numbers for integers, fractions for floats, all of them numbers of T.
template <class T>
std::vector<double> elements_of(std::int64_t n, std::uint32_t seed) {
  std::vector<double> v(static_cast<std::size_t>(n));
  std::uint32_t state = seed * 2654435761u + 1;
  for (double& x : v) {
    state = state * 1664525u + 1013904223u;
    const double u = double(state >> 8) * 0x1p-23 - 1;
    x = std::integral<T> ? std::floor((std::signed_integral<T> ? u : std::abs(u)) * 100) : rounded<T>(u * 2);
  }
  return v;
}

/// x wᵀ and |x| |w|ᵀ, in double.
struct Products {
  std::vector<double> sum, size;
};
inline Products products(const Extents& e, const std::vector<double>& x, const std::vector<double>& w) {
  Products p{std::vector<double>(std::size_t(e.m * e.n)), std::vector<double>(std::size_t(e.m * e.n))};
  for (std::int64_t i = 0; i < e.m; ++i)
    for (std::int64_t j = 0; j < e.n; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < e.k; ++k) {
        const double t = x[std::size_t(i * e.k + k)] * w[std::size_t(j * e.k + k)];
        sum += t, size += std::abs(t);
      }
      p.sum[std::size_t(i * e.n + j)] = sum, p.size[std::size_t(i * e.n + j)] = size;
    }
  return p;
}

/// What a sum of K products may be off by, relative to Σ |x| |w|, as dsl/lib/linear.h and dsl/lang/dot.h have it.
template <class X, class W>
double sum_bound(std::int64_t k) {
  constexpr bool kPairs = sizeof(X) == 1 && sizeof(W) == 1;
  if (std::integral<X> && std::integral<W>) return 0;
  if (std::same_as<X, double> || std::same_as<W, double>) return double(k + 2) * 0x1p-52;
  return kPairs ? double(std::min<std::int64_t>(k, 128)) * 0x1p-13 : double(k + 2) * 0x1p-22;
}

}  // namespace kiln::test

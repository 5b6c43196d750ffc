// What the tests of row functions share: matrices with anything between and around their rows, inputs, and how far a
// result is from the exact one.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dsl/kiln.h"
#include "dsl/lib/lib.h"
#include "tests/support/devices.h"

namespace kiln::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Rows of `cols` elements, `gap` elements between them, the first one `offset` elements behind an aligned address.
struct Shape {
  std::int64_t rows = 0, cols = 0, gap = 0, offset = 0;
};

/// A matrix of T on a device, in memory that is 77 between and around the rows.
template <class T>
class Rows {
 public:
  /// `values`: rows * cols numbers, each rounded to T; none leaves 77 everywhere.
  Rows(const Device& device, Shape s, const std::vector<double>& values = {})
      : shape_(s), memory_(device, std::size_t(s.offset + s.rows * (s.cols + s.gap) + 8)) {
    std::vector<T> all(memory_.size(), T(77.f));
    for (std::size_t i = 0; i < values.size(); ++i) all[place(i)] = T(float(values[i]));
    memory_.upload(all);
  }
  operator lib::Matrix<T>() { return {address(), {shape_.rows, shape_.cols}, {pitch(), 1}}; }
  operator lib::Matrix<const T>() const { return {address(), {shape_.rows, shape_.cols}, {pitch(), 1}}; }

  std::vector<double> values() const {
    const std::vector<T> all = memory_.to_vector();
    std::vector<double> v(std::size_t(shape_.rows * shape_.cols));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = double(float(all[place(i)]));
    return v;
  }
  /// Nothing outside the rows was written.
  void expect_rest_untouched() const {
    std::vector<T> all = memory_.to_vector();
    for (std::size_t i = 0; i < std::size_t(shape_.rows * shape_.cols); ++i) all[place(i)] = T(77.f);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(float(all[i]), 77.f) << "element " << i << " of the memory";
  }

 private:
  std::int64_t pitch() const { return shape_.cols + shape_.gap; }
  std::size_t place(std::size_t i) const {
    const auto cols = std::size_t(shape_.cols);
    return std::size_t(shape_.offset) + i / cols * std::size_t(pitch()) + i % cols;
  }
  TypedPtr<T> address() const {
    const auto offset = std::size_t(shape_.offset);
    return device_ptr<T>(memory_.ptr() + offset * sizeof(T), memory_.size() - offset);
  }
  Shape shape_;
  Buffer<T> memory_;
};

/// A vector of T: weights and biases.
template <class T>
class Weights {
 public:
  Weights(const Device& device, const std::vector<double>& values) : memory_(device, values.size()) {
    std::vector<T> v;
    for (double x : values) v.push_back(T(float(x)));
    memory_.upload(v);
  }
  operator lib::Vector<const T>() const { return {memory_, {std::int64_t(memory_.size())}}; }

 private:
  Buffer<T> memory_;
};

/// `n` numbers of T between -reach and reach around `centre`, the same for the same seed.
template <class T>
std::vector<double> numbers(std::size_t n, std::uint32_t seed, double reach = 4, double centre = 0) {
  std::vector<double> v(n);
  std::uint32_t state = seed * 2654435761u + 1;
  for (double& x : v) {
    state = state * 1664525u + 1013904223u;
    x = double(float(T(float(centre + reach * (double(state >> 8) * 0x1p-23 - 1)))));
  }
  return v;
}

/// `x`, or an infinity where it rounds to one in T.
template <class T>
double in_range(double x) {
  const double limit = sizeof(T) == 4 ? 0x1.ffffffp127 : std::same_as<T, f16> ? 65520 : 0x1.ffp127;
  return std::abs(x) >= limit ? std::copysign(kInf, x) : x;
}

/// Distance of neighbouring numbers of T at `x`; for |x| beyond T's largest number, that of the largest.
template <class T>
double ulp(double x) {
  const int digits = sizeof(T) == 4 ? 24 : std::same_as<T, f16> ? 11 : 8;
  const int least = std::same_as<T, f16> ? -14 : -126, most = std::same_as<T, f16> ? 15 : 127;
  int e = least;
  if (x != 0) e = std::clamp(std::ilogb(x), least, most);
  return std::ldexp(1.0, e - digits + 1);
}

/// What roundings of f32 add to the error of a sum of `cols` terms, relative to their sizes: nothing to speak of in
/// compiled code, which follows a tree of a few dozen levels; the interpreter adds one after the other.
inline double sum_error(const Device& device, std::int64_t cols) {
  return device.kind() == DeviceKind::Interpreter ? 0x1p-24 * double(cols) : 0;
}

/// Each number of `got` is within allowed(i) of the exact `want`; NaN and infinities are where `want` has them.
template <class F>
void expect_within(const std::vector<double>& got, const std::vector<double>& want, F allowed) {
  ASSERT_EQ(got.size(), want.size());
  int shown = 0;
  for (std::size_t i = 0; i < got.size() && shown < 3; ++i) {
    const bool finite = std::isfinite(want[i]);
    const bool good = finite                ? std::abs(got[i] - want[i]) <= allowed(i)
                      : std::isnan(want[i]) ? std::isnan(got[i])
                                            : got[i] == want[i];
    if (good) continue;
    ++shown;
    ADD_FAILURE() << "element " << i << " is " << got[i] << ", must be " << want[i]
                  << (finite ? " up to " + std::to_string(allowed(i) / std::abs(want[i])) + " of it" : "");
  }
}

}  // namespace kiln::test

// Operands of products for tests of kernels: numbers, and matrices with gaps between their lines.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "runtime/base/dtype.h"

namespace kiln::test {

/// Numbers all over the range of an 8-bit integer; floats within 2.1.
template <class T>
std::vector<T> numbers(std::size_t n, unsigned seed) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) {
    const int x = int((i + seed) * 2654435761u >> 12 & 0xff) - 128;
    if constexpr (std::is_integral_v<T>) v[i] = T(x);
    else v[i] = T(float(x) / 61);
  }
  return v;
}
template <class T>
double real(T x) {
  if constexpr (std::is_arithmetic_v<T>) return double(x);
  else return double(float(x));
}

/// Small whole numbers, so that sums are exact in any order.
inline std::vector<bf16> whole_numbers(std::size_t n, unsigned seed) {
  std::vector<bf16> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = bf16(float(int((i + seed) * 2654435761u >> 13 & 7) - 4));
  return v;
}

/// A matrix in memory: rows or columns follow each other `pitch` elements apart; what lies between is NaN or large.
template <class T>
struct Stored {
  std::vector<T> memory;
  std::int64_t rows, columns, pitch;
  bool by_columns;
  std::array<std::int64_t, 2> strides() const {
    return by_columns ? std::array<std::int64_t, 2>{1, pitch} : std::array<std::int64_t, 2>{pitch, 1};
  }
};
template <class T>
Stored<T> stored(const std::vector<T>& x, std::int64_t rows, std::int64_t columns, bool by_columns) {
  const std::int64_t line = by_columns ? rows : columns, lines = by_columns ? columns : rows;
  const std::int64_t pitch = (line + 15) / 16 * 16 + 16;
  T rest;
  if constexpr (std::is_integral_v<T>) rest = T(99);
  else rest = T(std::numeric_limits<float>::quiet_NaN());
  Stored<T> s{std::vector<T>(std::size_t(lines * pitch), rest), rows, columns, pitch, by_columns};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      s.memory[std::size_t(by_columns ? j * pitch + i : i * pitch + j)] = x[std::size_t(i * columns + j)];
  return s;
}

}  // namespace kiln::test

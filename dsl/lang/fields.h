// Taking an aggregate apart: field_count<S> and each_field(s, f), for Tune<S>. Up to 16 fields, without macros or
// registration: the count is found by trying braces of growing length, the fields by a structured binding of that
// length.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace kiln::detail {

inline constexpr int kMaxFields = 16;

struct AnyField {
  template <class T>
  operator T() const;
};
template <class S, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { S{(void(I), AnyField{})...}; };
}
/// The largest number of initialisers S takes; kMaxFields + 1 if it takes more than kMaxFields.
template <class S, int N = kMaxFields + 1>
constexpr int field_count() {
  if constexpr (N == 0 || takes<S>(std::make_index_sequence<std::size_t(N)>{})) return N;
  else return field_count<S, N - 1>();
}

/// The key word of a constant: its bits, widened. Floats by their bits: 0.25 and 0.75 are different keys.
template <class T>
constexpr std::uint64_t key_word(T v) {
  if constexpr (std::floating_point<T>) return std::bit_cast<std::uint64_t>(double(v));
  else if constexpr (std::is_enum_v<T>) return std::uint64_t(std::underlying_type_t<T>(v));
  else {
    static_assert(std::integral<T>,
                  "kiln: the fields of Tune<S> must be integers, bools, enums or floating-point numbers");
    return std::uint64_t(v);
  }
}

/// f(field) for each field of `s` in order.
template <class S, class F>
constexpr void each_field(const S& s, F f) {
  static_assert(std::is_aggregate_v<S>, "kiln: Tune<S> needs an aggregate S");
  constexpr int n = field_count<S>();
  static_assert(n >= 1 && n <= kMaxFields, "kiln: Tune<S> needs an aggregate of 1 to 16 fields");
  auto all = [&](const auto&... field) { (f(field), ...); };
  if constexpr (n == 1) {
    auto& [a] = s;
    all(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = s;
    all(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = s;
    all(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = s;
    all(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = s;
    all(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, g] = s;
    all(a, b, c, d, e, g);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, g, h] = s;
    all(a, b, c, d, e, g, h);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, g, h, i] = s;
    all(a, b, c, d, e, g, h, i);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, g, h, i, j] = s;
    all(a, b, c, d, e, g, h, i, j);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, g, h, i, j, k] = s;
    all(a, b, c, d, e, g, h, i, j, k);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, g, h, i, j, k, l] = s;
    all(a, b, c, d, e, g, h, i, j, k, l);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m] = s;
    all(a, b, c, d, e, g, h, i, j, k, l, m);
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o] = s;
    all(a, b, c, d, e, g, h, i, j, k, l, m, o);
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p] = s;
    all(a, b, c, d, e, g, h, i, j, k, l, m, o, p);
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p, q] = s;
    all(a, b, c, d, e, g, h, i, j, k, l, m, o, p, q);
  } else {
    auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, r] = s;
    all(a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, r);
  }
}

}  // namespace kiln::detail

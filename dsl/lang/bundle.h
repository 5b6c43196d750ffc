// Bundle: what lambdas of the language may return: a Scalar or Tile, or a pair, tuple or array of them. Turned into
// value numbers before the scope of the lambda closes, because the handles themselves die in it.
#pragma once
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "dsl/lang/tile.h"

namespace kiln::detail {

/// Appends the number of the handle's value, which must be set.
void give_value(const Handle&, std::vector<ValueId>& out);

template <class T>
struct Bundle {
  static_assert(always_false<T>,
                "kiln: a branch of if_ and a combine lambda may return a Scalar, a Tile, or a std::pair, std::tuple or "
                "std::array of them");
  using type = T;
};

template <class H>
requires(std::same_as<H, Tile> || std::derived_from<H, Scalar>) struct Bundle<H> {
  /// Parameters of a kernel and induction variables are copied as plain Scalars.
  using type = std::conditional_t<std::same_as<H, Tile>, Tile, Scalar>;
  static void give(const H& h, std::vector<ValueId>& out) { give_value(h, out); }
  static type take(const ValueId*& v) { return type(Made{*v++}); }
};

template <class A, class B>
struct Bundle<std::pair<A, B>> {
  using type = std::pair<typename Bundle<A>::type, typename Bundle<B>::type>;
  static void give(const std::pair<A, B>& p, std::vector<ValueId>& out) {
    Bundle<A>::give(p.first, out);
    Bundle<B>::give(p.second, out);
  }
  static type take(const ValueId*& v) { return type{Bundle<A>::take(v), Bundle<B>::take(v)}; }
};

template <class... H>
struct Bundle<std::tuple<H...>> {
  using type = std::tuple<typename Bundle<H>::type...>;
  static void give(const std::tuple<H...>& p, std::vector<ValueId>& out) {
    std::apply([&](const auto&... h) { (Bundle<std::decay_t<decltype(h)>>::give(h, out), ...); }, p);
  }
  static type take(const ValueId*& v) { return type{Bundle<H>::take(v)...}; }
};

template <class H, std::size_t N>
struct Bundle<std::array<H, N>> {
  using type = std::array<typename Bundle<H>::type, N>;
  static void give(const std::array<H, N>& a, std::vector<ValueId>& out) {
    for (const H& h : a) Bundle<H>::give(h, out);
  }
  static type take(const ValueId*& v) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return type{((void)I, Bundle<H>::take(v))...};
    }(std::make_index_sequence<N>{});
  }
};

/// Calls a combine lambda of N Scalars on values and appends what it returns: the body that Tracer::combine takes.
///   const auto body = [&](const std::vector<ValueId>& x, std::vector<ValueId>& out) { combine_values<2>(f, x, out); };
template <std::size_t N, class F>
void combine_values(const F& f, const std::vector<ValueId>& params, std::vector<ValueId>& out) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    static_assert(std::invocable<const F&, decltype((void)I, Scalar())...>,
                  "kiln: a combine lambda takes two Scalars for each tile: the accumulated ones, then the next");
    using R = std::decay_t<std::invoke_result_t<const F&, decltype((void)I, Scalar())...>>;
    Bundle<R>::give(f(Scalar(Made{params[I]})...), out);
  }(std::make_index_sequence<N>{});
}

}  // namespace kiln::detail

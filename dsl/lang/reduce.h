// Reductions and scans of tiles.
//
//   Tile m = max(x, 1);                      // along an axis, which disappears; max(x, 1, true) keeps it with extent 1
//   Scalar s = sum(x);                       // over all elements
//   Tile y = exp(x - max(x, 1, true));       // what was kept broadcasts
//   auto [v, i] = reduce(std::tuple{x, where}, 0, [](Scalar v, Scalar i, Scalar w, Scalar j) {
//     Scalar left = v >= w;
//     return std::pair{select(left, v, w), select(left, i, j)};
//   });
//   Tile c = cumsum(x, 0);
//   Tile p = exclusive_scan(x, 0, 1, [](Scalar a, Scalar b) { return a * b; });
//
// Order. The combining function must be associative; it need not be commutative, since operands keep their order: the
// left one comes before the right one along the axis. Floating-point sums are not associative: the tree that is
// followed is a function of the operation, dtype, extent and of how the compiler spreads the tile over threads, so that
// one kernel gives the same bits at each launch. docs/semantics.md has the details.
//
// `axis` counts from the last one if it is negative. Errors: UserError at the caller's line for an axis the tile does
// not have, dtypes an operation does not take, and a tile of one axis reduced along it without keeping it: the result
// is a Scalar, write sum(x).
#pragma once
#include "dsl/lang/bundle.h"
#include "dsl/lang/function_ref.h"

namespace kiln {

namespace detail {
/// A combining lambda: from 2n scalars, the left and the right elements, to n.
using Combining = FunctionRef<void(const std::vector<ValueId>&, std::vector<ValueId>&)>;
inline constexpr int kAllAxes = 1 << 20;

std::vector<ValueId> reduce(const std::vector<const Handle*>& x, int axis, bool keep_dims, Combining, SourceLoc);
std::vector<ValueId> scan(const std::vector<const Handle*>& x, int axis, const std::vector<Operand>* init, bool reverse,
                          Combining, SourceLoc);

/// Calls f with the scalars and gives what it returns.
template <std::size_t N, class F>
void call_combining(F& f, const std::vector<ValueId>& scalars, std::vector<ValueId>& out) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto result = f(Scalar(Made{scalars[I]})...);
    Bundle<std::decay_t<decltype(result)>>::give(result, out);
  }
  (std::make_index_sequence<N>{});
}
template <std::size_t N, class F>
auto combining(F& f) {
  return
      [&f](const std::vector<ValueId>& scalars, std::vector<ValueId>& out) { call_combining<2 * N>(f, scalars, out); };
}
template <class H, std::size_t>
using Each = H;
template <class H, class Numbers>
struct ResultsOf;
template <class H, std::size_t... I>
struct ResultsOf<H, std::index_sequence<I...>> {
  using type = std::tuple<Each<H, I>...>;
};
/// A tuple of N handles.
template <class H, std::size_t N>
using Results = typename ResultsOf<H, std::make_index_sequence<N>>::type;
template <class H, std::size_t N>
Results<H, N> take(const std::vector<ValueId>& values) {
  const ValueId* at = values.data();
  return Bundle<Results<H, N>>::take(at);
}
}  // namespace detail

// --- with any combining function -------------------------------------------------------------------------------------

/// The elements along `axis` combined by f(Scalar left, Scalar right) → Scalar, of x's dtype throughout. f is traced
/// once; it may use scalar arithmetic, select, casts and Scalars of the outside. UserError for anything else in it, and
/// for a result of another dtype.
template <class F>
[[nodiscard]] Tile reduce(const Tile& x, int axis, F&& f, bool keep_dims = false, RawLoc l = RawLoc::current()) {
  return Tile(detail::Made{detail::reduce({&x}, axis, keep_dims, detail::combining<1>(f), l)[0]});
}
/// Over all elements, in row-major order.
template <class F>
requires(!std::is_arithmetic_v<std::decay_t<F>>) [[nodiscard]] Scalar
    reduce(const Tile& x, F&& f, RawLoc l = RawLoc::current()) {
  return Scalar(detail::Made{detail::reduce({&x}, detail::kAllAxes, false, detail::combining<1>(f), l)[0]});
}
/// Several tiles of one shape at once: f(left of each…, right of each…) → std::pair, std::tuple or std::array of as
/// many Scalars.
template <class... T, class F>
[[nodiscard]] auto reduce(const std::tuple<T...>& x, int axis, F&& f, bool keep_dims = false,
                          RawLoc l = RawLoc::current()) {
  return detail::take<Tile, sizeof...(T)>(std::apply(
      [&](const auto&... tile) {
        return detail::reduce({&tile...}, axis, keep_dims, detail::combining<sizeof...(T)>(f), l);
      },
      x));
}
template <class... T, class F>
requires(!std::is_arithmetic_v<std::decay_t<F>>)
    [[nodiscard]] auto reduce(const std::tuple<T...>& x, F&& f, RawLoc l = RawLoc::current()) {
  return detail::take<Scalar, sizeof...(T)>(std::apply(
      [&](const auto&... tile) {
        return detail::reduce({&tile...}, detail::kAllAxes, false, detail::combining<sizeof...(T)>(f), l);
      },
      x));
}

/// Element i along `axis` is the combination of elements 0 to i; from the last to the first if `reverse`, where element
/// i is f(f(f(last, …), i + 1), i).
template <class F>
[[nodiscard]] Tile scan(const Tile& x, int axis, F&& f, bool reverse = false, RawLoc l = RawLoc::current()) {
  return Tile(detail::Made{detail::scan({&x}, axis, nullptr, reverse, detail::combining<1>(f), l)[0]});
}
template <class... T, class F>
[[nodiscard]] auto scan(const std::tuple<T...>& x, int axis, F&& f, bool reverse = false,
                        RawLoc l = RawLoc::current()) {
  return detail::take<Tile, sizeof...(T)>(std::apply(
      [&](const auto&... tile) {
        return detail::scan({&tile...}, axis, nullptr, reverse, detail::combining<sizeof...(T)>(f), l);
      },
      x));
}
/// Element i is `init` combined with elements 0 to i - 1: the first is `init`, the last element takes no part.
template <class F>
[[nodiscard]] Tile exclusive_scan(const Tile& x, int axis, SArg init, F&& f, bool reverse = false,
                                  RawLoc l = RawLoc::current()) {
  const std::vector<detail::Operand> first{init};
  return Tile(detail::Made{detail::scan({&x}, axis, &first, reverse, detail::combining<1>(f), l)[0]});
}

// --- by name ---------------------------------------------------------------------------------------------------------
// Sums and products of f16 and bf16 are computed in f32 and rounded once, at the end; all other dtypes are computed in
// their own, integers wrapping. Another accuracy is asked for by a cast: sum(x.cast(i64)), sum(x.cast(f64)).

#define KILN_DECLARE_REDUCTION(name)                                      \
  [[nodiscard]] Scalar name(const Tile& x, RawLoc l = RawLoc::current()); \
  [[nodiscard]] Tile name(const Tile& x, int axis, bool keep_dims = false, RawLoc l = RawLoc::current());
KILN_DECLARE_REDUCTION(sum)
KILN_DECLARE_REDUCTION(prod)
/// Largest / smallest element: NaN if any is NaN; -0 < +0.
KILN_DECLARE_REDUCTION(max)
KILN_DECLARE_REDUCTION(min)
/// Sum / extent; floating dtypes.
KILN_DECLARE_REDUCTION(mean)
/// log(Σ e^x) without overflow; f16, bf16, f32. A row of -inf gives -inf; +inf and NaN win.
KILN_DECLARE_REDUCTION(logsumexp)
/// Of i1: whether any / every element is true.
KILN_DECLARE_REDUCTION(any)
KILN_DECLARE_REDUCTION(all)
/// index: position of the largest / smallest element along the axis (over all elements: in row-major order), the lowest
/// of equal ones; -0 and +0 are equal. NaN counts as largest and as smallest: the first NaN's position.
KILN_DECLARE_REDUCTION(argmax)
KILN_DECLARE_REDUCTION(argmin)
#undef KILN_DECLARE_REDUCTION

#define KILN_REDUCES_ONLY(name)                                                                                        \
  template <std::derived_from<Handle> A, class B>                                                                      \
  requires std::derived_from<B, Handle> || std::floating_point<B> Tile name(const A&, const B&) {                      \
    static_assert(detail::always_false<A>,                                                                             \
                  "kiln: max and min reduce a tile, along the axis given; of two operands the larger and the smaller " \
                  "are maximum(a, b) and minimum(a, b)");                                                              \
    return {};                                                                                                         \
  }
KILN_REDUCES_ONLY(max)
KILN_REDUCES_ONLY(min)
#undef KILN_REDUCES_ONLY

/// Running sum / product along `axis`, elements 0 to i; from the last to the first if `reverse`.
[[nodiscard]] Tile cumsum(const Tile& x, int axis, bool reverse = false, RawLoc l = RawLoc::current());
[[nodiscard]] Tile cumprod(const Tile& x, int axis, bool reverse = false, RawLoc l = RawLoc::current());

}  // namespace kiln

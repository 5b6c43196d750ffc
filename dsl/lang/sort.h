// Sorting, the k largest, counting.
#pragma once
#include <tuple>
#include <utility>

#include "dsl/lang/tile.h"

namespace kiln {

namespace detail {
void sort(const Handle* const* tiles, Made* sorted, std::size_t count, int axis, bool descending, SourceLoc at);
}  // namespace detail

/// x in ascending (or descending) order along `axis`; -1 is the last. Any dtype but pointers, any extent.
/// The order is stable: equal elements, -0 and +0 among them, keep theirs. NaN is last in both directions. false <
/// true. Example: `sort(load(x + arange(100)))`.
[[nodiscard]] Tile sort(const Tile& x, int axis = -1, bool descending = false, RawLoc l = RawLoc::current());

/// Several tiles of one shape in the order of the first.
/// Example: `auto [key, value] = sort(std::tuple{k, v})`.
template <std::same_as<Tile>... T>
[[nodiscard]] std::tuple<T...> sort(const std::tuple<T...>& tiles, int axis = -1, bool descending = false,
                                    RawLoc l = RawLoc::current()) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const Handle* in[] = {&std::get<I>(tiles)...};
    detail::Made out[sizeof...(T)];
    detail::sort(in, out, sizeof...(T), axis, descending, l);
    return std::tuple<T...>{Tile(out[I])...};
  }
  (std::index_sequence_for<T...>{});
}

/// For each position along `axis`, which position of x stands there when x is sorted (index).
[[nodiscard]] Tile argsort(const Tile& x, int axis = -1, bool descending = false, RawLoc l = RawLoc::current());

/// The k largest elements along `axis`, largest first, and their positions (index); the extent of the axis becomes k.
/// Of equal elements the lowest position is first. NaN counts as smaller than everything.
/// Errors: UserError if k is not in 1 to the extent.
/// Example: `auto [best, where] = topk(scores, 5)`.
[[nodiscard]] std::pair<Tile, Tile> topk(const Tile& x, int k, int axis = -1, RawLoc l = RawLoc::current());

/// i32[bins]: how often each of 0 to bins-1 is among the integers x (of any shape), where mask (i1, broadcast to x's
/// shape) is true. Other values are not counted.
/// Errors: UserError for x that is no integer; when it is compiled, if `bins` counters do not fit shared memory.
/// Example: `histogram(load(x + i, i < n), 256, i < n)`.
[[nodiscard]] Tile histogram(const Tile& x, int bins, RawLoc l = RawLoc::current());
[[nodiscard]] Tile histogram(const Tile& x, int bins, Arg mask, RawLoc l = RawLoc::current());

}  // namespace kiln

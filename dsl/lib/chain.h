// Chains of functions over tiles: what linear does to its results before they are stored, and to x before it is
// multiplied.
//
// A stage is a function of tiles (a lambda, a function object, a plain function) with the extra tensors that it takes
// (extra.h). It is called while the kernel is traced, once for each tile, so a chain of any length is part of the one
// kernel. Stages are C++ types: a chain that does not fit together does not compile. Captures must be values; they are
// part of the kernel's key, so that each value is compiled once, like a Const.
#pragma once
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "dsl/lib/extra.h"

namespace kiln::lib {
namespace chain {

template <class R>
inline constexpr int kTiles = -1;  // not what a stage may return
template <>
inline constexpr int kTiles<Tile> = 1;
template <class A, class B>
inline constexpr int kTiles<std::pair<A, B>> = kTiles<A> == 1 && kTiles<B> == 1 ? 2 : -1;
template <class... T>
inline constexpr int kTiles<std::tuple<T...>> = ((kTiles<T> == 1) && ...) ? int(sizeof...(T)) : -1;
template <std::size_t N>
inline constexpr int kTiles<std::array<Tile, N>> = int(N);

/// One stage on the host: the function and its extra tensors.
template <class F, class... E>
struct Stage {
  F f;
  std::tuple<E...> extras;
};
/// What a stage says beside its call: kFold, how many columns it makes one of; kName, for messages.
template <class F>
constexpr int fold_of() {
  if constexpr (requires { F::kFold; }) return F::kFold;
  else return 1;
}
template <class F>
constexpr const char* name_of() {
  if constexpr (requires { F::kName; }) return F::kName;
  else return nullptr;
}

/// What a stage gets of an extra tensor.
template <class E>
using Given = decltype(std::declval<const typename E::Traced&>().at(std::declval<const Place&>()));
template <std::size_t>
using OneTile = const Tile&;
/// What calling a stage with `In` tiles returns: with its place, or without.
template <class F, class Indices, class... E>
struct CallOf;
template <class F, std::size_t... I, class... E>
struct CallOf<F, std::index_sequence<I...>, E...> {
  static constexpr bool with_place = std::is_invocable_v<const F&, const Place&, OneTile<I>..., Given<E>...>;
  static constexpr bool without = std::is_invocable_v<const F&, OneTile<I>..., Given<E>...>;
  static auto result() {
    if constexpr (with_place)
      return std::type_identity<std::invoke_result_t<const F&, const Place&, OneTile<I>..., Given<E>...>>{};
    else return std::type_identity<std::invoke_result_t<const F&, OneTile<I>..., Given<E>...>>{};
  }
};

/// Whether every capture of a stage is a value whose bytes may be a key.
template <class F>
constexpr bool captures_bytes() {
  if constexpr (std::is_pointer_v<F>) return std::is_function_v<std::remove_pointer_t<F>>;
  else return std::is_trivially_copyable_v<F> && kiln::detail::captures_values<F>();
}

/// Tiles that come out of a stage that `In` tiles go into; everything that can be wrong with it is found here.
template <int In, class F, class... E>
constexpr int stage_tiles() {
  using Call = CallOf<F, std::make_index_sequence<std::size_t(In)>, E...>;
  static_assert(
      captures_bytes<F>(),
      "kiln: a function of then must not capture by reference or capture a pointer, and what it captures must be "
      "trivially copyable: capture numbers by value, pass tensors behind it");
  static_assert(
      Call::with_place || Call::without,
      "kiln: a function of then takes the tiles of the stage before it (one, of the first), then a Tile for each "
      "tensor passed behind it; before them a const Place& if it asks where it is; it must not be mutable");
  if constexpr (Call::with_place || Call::without) {
    using R = std::remove_cvref_t<typename decltype(Call::result())::type>;
    static_assert(std::is_void_v<R> || kTiles<R> >= 1,
                  "kiln: a function of then returns a Tile, or a pair, tuple or array of Tiles");
    if constexpr (std::is_void_v<R>) return In;
    else return kTiles<R>;
  } else {
    return 1;
  }
}

/// All stages, on the host. Results: tiles that come out, of one that goes in.
template <int Results, class... S>
struct Chain {
  static constexpr int kResults = Results;
  std::tuple<S...> stages;
  SourceLoc at;  ///< the call that began it, for errors found while tracing
};
/// The chain with one more stage.
template <int Results, class... S, class F, class... E>
auto append(const Chain<Results, S...>& c, const F& f, const E&... extras) {
  return Chain<stage_tiles<Results, F, E...>(), S..., Stage<F, E...>>{
      std::tuple_cat(c.stages, std::tuple(Stage<F, E...>{f, {extras...}})), c.at};
}

template <class S>
inline constexpr int kFoldOfStage = 1;
template <class F, class... E>
inline constexpr int kFoldOfStage<Stage<F, E...>> = fold_of<F>();
template <class S>
inline constexpr bool kCrowdedStage = false;
template <class F, class... E>
inline constexpr bool kCrowdedStage<Stage<F, E...>> = requires {
  F::kCrowded;
};
/// Whether a stage needs many registers beside the tiles.
template <class C>
inline constexpr bool kCrowded = false;
template <int R, class... S>
inline constexpr bool kCrowded<Chain<R, S...>> = (false || ... || kCrowdedStage<S>);
/// Columns of the chain's input that become one of its results.
template <class C>
inline constexpr int kFolds = 1;
template <int R, class... S>
inline constexpr int kFolds<Chain<R, S...>> = (1 * ... * kFoldOfStage<S>);

// --- traced ----------------------------------------------------------------------------------------------------------

template <class S>
struct TracedStage;
template <class F, class... E>
struct TracedStage<Stage<F, E...>> {
  F f;
  std::tuple<typename E::Traced...> extras;

  template <class... T>
  auto operator()(const Place& p, const std::tuple<T...>& tiles) const {
    using Call = CallOf<F, std::index_sequence_for<T...>, E...>;
    const auto given = std::apply([&](const auto&... e) { return std::tuple<Given<E>...>{e.at(p)...}; }, extras);
    const auto args = std::tuple_cat(tiles, given);
    const auto call = [&](const auto&... a) {
      if constexpr (Call::with_place) return f(p, a...);
      else return f(a...);
    };
    using R = std::remove_cvref_t<typename decltype(Call::result())::type>;
    if constexpr (std::is_void_v<R>) return std::apply(call, args), tiles;
    else if constexpr (std::same_as<R, Tile>) return std::tuple<Tile>(std::apply(call, args));
    else return std::tuple_cat(std::apply(call, args));
  }
};
/// UserError where a stage's result is not a tile of the place's extents.
void check_result(SourceLoc, const Place&, const Tile&, int stage);

/// A chain as a kernel's parameter.
template <class C>
struct Traced;
template <int R, class... S>
struct Traced<Chain<R, S...>> {
  std::tuple<TracedStage<S>...> stages;
  SourceLoc at;

  /// Runs all stages on one tile that stands at `p`, which becomes the place of the results.
  std::array<Tile, std::size_t(R)> operator()(Place& p, const Tile& x) const { return run<0>(p, std::tuple<Tile>(x)); }

 private:
  template <std::size_t I, class... T>
  std::array<Tile, std::size_t(R)> run(Place& p, const std::tuple<T...>& tiles) const {
    if constexpr (I == sizeof...(S)) {
      return std::apply([](const auto&... t) { return std::array<Tile, std::size_t(R)>{t...}; }, tiles);
    } else {
      const auto next = std::get<I>(stages)(p, tiles);
      constexpr int fold = fold_of<decltype(std::get<I>(stages).f)>();
      if constexpr (fold > 1) {
        p.width /= fold;
        p.column = p.column_tile * p.width;
        p.cols = p.cols / fold;
      }
      std::apply([&](const auto&... t) { (check_result(at, p, t, int(I) + 1), ...); }, next);
      return run<I + 1>(p, next);
    }
  }
};

/// Appends the bytes of a stage's captures to the key.
template <class F>
void bind_captures(const F& f, kiln::detail::Binder& b) {
  if constexpr (!std::is_empty_v<F>) {
    F copy = f;
#if defined(__GNUC__) && !defined(__clang__)
    __builtin_clear_padding(&copy);  // what it holds is not part of the value
#endif
    std::array<std::uint64_t, (sizeof(F) + 7) / 8> words{};
    std::memcpy(words.data(), &copy, sizeof(F));
    for (std::uint64_t w : words) b.pack.key(w);
  }
}

/// What the result of a launch looks like to the extra tensors of its chain.
struct Extents {
  std::int64_t rows, cols, groups;
};

/// visit(extra, fits) for each extra tensor of each stage, in order; `fits` says what it must fit.
template <int R, class... S, class V>
void each_extra(Chain<R, S...>& c, const char* function, SourceLoc at, Extents x, const V& visit) {
  int number = 0;
  const auto stage = [&]<class F, class... E>(Stage<F, E...>& s) {
    Fits fits{function, at, name_of<F>(), ++number, 0, x.rows, x.cols, x.groups};
    std::apply([&](E&... e) { ((++fits.argument, visit(e, fits)), ...); }, s.extras);
    check_fold(function, at, fold_of<F>(), x.cols);
    x.cols /= fold_of<F>();
  };
  std::apply([&](S&... s) { (stage(s), ...); }, c.stages);
}

}  // namespace chain
}  // namespace kiln::lib

namespace kiln {

/// A chain is one parameter: its captures are in the key, its extra tensors are passed.
template <int R, class... S>
struct Param<lib::chain::Traced<lib::chain::Chain<R, S...>>> {
  using Host = lib::chain::Chain<R, S...>;
  using Kernel = lib::chain::Traced<Host>;

  static void bind(const Host& h, detail::Binder& b) {
    std::apply([&](const S&... s) { (bind_stage(s, b), ...); }, h.stages);
  }
  static Kernel make(const Host& h, detail::Maker& m) {
    return std::apply(
        [&](const S&... s) {
          return Kernel{std::tuple<lib::chain::TracedStage<S>...>{make_stage(s, m)...}, h.at};
        },
        h.stages);
  }

 private:
  template <class F, class... E>
  static void bind_stage(const lib::chain::Stage<F, E...>& s, detail::Binder& b) {
    lib::chain::bind_captures(s.f, b);
    std::apply([&](const E&... e) { (Param<typename E::Traced::Parameter>::bind(e.host, b), ...); }, s.extras);
  }
  template <class F, class... E>
  static lib::chain::TracedStage<lib::chain::Stage<F, E...>> make_stage(const lib::chain::Stage<F, E...>& s,
                                                                        detail::Maker& m) {
    return {s.f, std::apply(
                     [&](const E&... e) {
                       return std::tuple<typename E::Traced...>{
                           typename E::Traced{Param<typename E::Traced::Parameter>::make(e.host, m)}...};
                     },
                     s.extras)};
  }
};

}  // namespace kiln

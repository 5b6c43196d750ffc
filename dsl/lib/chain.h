// Chains of functions over tiles: what linear does to its results before they are stored, and to x before it is
// multiplied.
//
// A stage is a function of tiles (a lambda, a function object, a plain function) with the extra tensors that it takes.
// It is called while the kernel is traced, once for each tile, so a chain of any length is part of the one kernel.
// Stages are C++ types: a chain that does not fit together does not compile. Captures must be values; they are part of
// the kernel's key, so that each value is compiled once, like a Const.
//
// Extra tensors, each with what a stage gets of it for a tile [height, width]:
//   per_column<T>({b, {cols}})             [1, width]        a value a column, as a bias has
//   per_row<T>({s, {rows}})                [height, 1]       a value a row, as the scales of quantised rows are
//   per_element<T>({r, {rows, cols}})      [height, width]   a matrix as large as the result
//   per_tensor<T>(buffer)                  [1, 1]            one element in device memory
//   number(0.5f)                           [1, 1]            a number that the host passes; not in the key
#pragma once
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// Where the tile stands that a stage is called for: one block of a matrix [rows, cols]. A stage whose first parameter
/// is a `const Place&` gets it before the tiles.
struct Place {
  Scalar row;                          ///< of the tile's first element
  Scalar column_tile;                  ///< tiles to the left of this one
  Scalar rows, cols;                   ///< extents of the whole matrix
  std::int64_t height = 0, width = 0;  ///< extents of the tile

  Scalar col() const { return column_tile * width; }
  /// index[height, 1] and index[1, width].
  Tile row_numbers() const { return expand(row + arange(height), 1); }
  Tile column_numbers() const { return expand(col() + arange(width), 0); }
  /// i1[height, width]: the elements that the matrix has.
  Tile inside() const { return row_numbers() < rows && column_numbers() < cols; }
};

namespace chain {

/// What an extra tensor must fit: extents of the matrix that its chain works on, and who says so.
struct Fits {
  const char* function;
  SourceLoc at;
  const char* stage;  ///< its name, or null
  int number, argument;
  std::int64_t rows, cols;
};
void check_fold(const char* function, SourceLoc, int fold, std::int64_t cols);
void check_length(const Fits&, std::int64_t size, std::int64_t expected, const char* of);
void check_matrix(const Fits&, std::int64_t rows, std::int64_t cols);

// The traced side of each kind: made of its parameter, `at` is what a stage gets.
template <class T>
struct PerColumn {
  using Parameter = View<const T, 1>;
  Parameter x;
  Tile at(const Place& p) const { return expand(x.load({p.col()}, {p.width}), 0); }
  static void check(const Fits& f, const Vector<const T>& v) { check_length(f, v.size[0], f.cols, "columns"); }
};
template <class T>
struct PerRow {
  using Parameter = View<const T, 1>;
  Parameter x;
  Tile at(const Place& p) const { return expand(x.load({p.row}, {p.height}), 1); }
  static void check(const Fits& f, const Vector<const T>& v) { check_length(f, v.size[0], f.rows, "rows"); }
};
template <class T>
struct PerElement {
  using Parameter = View<const T, 2>;
  Parameter x;
  Tile at(const Place& p) const { return x.load({p.row, p.col()}, {p.height, p.width}); }
  static void check(const Fits& f, const Matrix<const T>& m) { check_matrix(f, m.size[0], m.size[1]); }
};
template <class T>
struct PerTensor {
  using Parameter = In<T>;
  Parameter x;
  Tile at(const Place&) const { return broadcast_to(load(x), {1, 1}); }
  static void check(const Fits&, const typename Param<Parameter>::Host&) {}
};
template <class T>
struct Number {
  using Parameter = Val<T>;
  Parameter x;
  Tile at(const Place&) const { return broadcast_to(x, {1, 1}); }
  static void check(const Fits&, const typename Param<Parameter>::Host&) {}
};

/// The host's side of an extra tensor of one of these kinds.
template <class Kind>
struct Extra {
  using Traced = Kind;
  typename Param<typename Kind::Parameter>::Host host;
};
template <class E>
inline constexpr bool is_extra = false;
template <class Kind>
inline constexpr bool is_extra<Extra<Kind>> = true;

}  // namespace chain

template <Element T>
chain::Extra<chain::PerColumn<T>> per_column(Vector<const T> x) {
  return {x};
}
template <Element T>
chain::Extra<chain::PerRow<T>> per_row(Vector<const T> x) {
  return {x};
}
template <Element T>
chain::Extra<chain::PerElement<T>> per_element(Matrix<const T> x) {
  return {x};
}
template <Element T>
chain::Extra<chain::PerTensor<T>> per_tensor(typename Param<In<T>>::Host x) {
  return {x};
}
template <Element T>
chain::Extra<chain::Number<T>> number(T x) {
  return {x};
}

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

/// Checks every extra tensor against the result [rows, cols] of the matrix that the chain begins with.
template <int R, class... S>
void check(const Chain<R, S...>& c, const char* function, SourceLoc at, std::int64_t rows, std::int64_t cols) {
  int number = 0;
  const auto stage = [&]<class F, class... E>(const Stage<F, E...>& s) {
    ++number;
    constexpr const char* name = name_of<F>();
    int argument = 0;
    std::apply(
        [&](const E&... e) {
          (E::Traced::check({function, at, name, number, ++argument, rows, cols}, e.host), ...);
        },
        s.extras);
    check_fold(function, at, fold_of<F>(), cols);
    cols /= fold_of<F>();
  };
  std::apply([&](const S&... s) { (stage(s), ...); }, c.stages);
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

// The kernels of linear: a loop over k, two loads through views, a dot; then the chain and a store.
#pragma once
#include <optional>

#include "dsl/lang/control.h"
#include "dsl/lang/dot.h"
#include "dsl/lang/reduce.h"
#include "dsl/lib/chain.h"
#include "dsl/lib/linear_plan.h"

namespace kiln::lib {

/// Stands for weights of 4 bits, -8 to 7 in two's complement, two a byte: columns 2i and 2i + 1 are the low and the
/// high half of byte i of a row.
struct Int4 {};

namespace chain {

/// What weights of W are in memory, and how many are in one element of it.
template <class W>
using Stored = std::conditional_t<std::same_as<W, Int4>, std::uint8_t, W>;
template <class W>
inline constexpr int kPacked = std::same_as<W, Int4> ? 2 : 1;

template <class T>
concept Multiplied = std::same_as<T, Int4> ||
    (Element<T> && !std::same_as<T, bool> && (!std::integral<T> || sizeof(T) <= 4));

/// The dtype that products of X and W are summed in.
template <class X, class W>
constexpr DType accumulator() {
  if constexpr (std::same_as<X, double> || std::same_as<W, double>) return f64;
  else return std::integral<X> && (std::integral<W> || std::same_as<W, Int4>) ? i32 : f32;
}
template <class X, class W>
using Sum = std::conditional_t<accumulator<X, W>() == i32, std::int32_t,
                               std::conditional_t<accumulator<X, W>() == f64, double, float>>;
/// What linear writes where the caller names no type.
template <class X, class W>
using Result = std::conditional_t<std::integral<X> || sizeof(X) == 1, Sum<X, W>, X>;

/// What a kernel is specialised for: the blocks, and how operands lie in memory.
struct Blocks {
  int BM, BN, BK;
  bool weights_first, x_columns, w_columns;  ///< columns: contiguous along them, and passed with them as rows
  Precision precision;                       ///< of f32 beside f32
  int promote;                               ///< of 8-bit floats in pairs, as DotOptions has it
  int k_group, w_group;                      ///< steps of k, and rows of w, that share a scale
};

// --- operands --------------------------------------------------------------------------------------------------------

template <class T, int N>
View<T, N> oriented(const View<T, N>& x, bool columns) {
  return columns ? x.trans() : x;
}

inline Tile unpacked(const Tile& bytes) {
  Tile both = bytes.bitcast(i8);
  return reshape(join((both << 4) >> 4, both >> 4), {bytes.extent(0), bytes.extent(1) * 2});
}
/// Weights as what they are multiplied with: integers and 8-bit floats beside wider floats become those, exactly.
inline Tile beside(const Tile& w, const Tile& x) {
  const DType a = x.dtype(), b = w.dtype();
  const bool convert = is_float(a) && (!is_float(b) || (bits(b) == 8 && bits(a) == 16));
  return convert ? w.cast(a) : w;
}

/// Which product of several this is: the index into x, and into w, of scales.
struct Group {
  Scalar x = 0, w = 0;
};
/// Scales of parts of a sum: x's [groups, M, K / group] and w's [groups, N / rows, K / group], each if it is there.
template <bool HasX, bool HasW>
struct PartScales {
  static constexpr bool kAny = HasX || HasW;
  std::optional<View<const float, 3>> x, w;

  /// [BM, 1] · [1, BN] of the part of k that begins at `k`.
  Tile at(const Group& group, const Scalar& m, const Scalar& n, const Scalar& k, const Blocks& t) const {
    Scalar part = k / t.k_group;
    Tile rows = full(f32, {1, 1}, 1.f), cols = rows;
    if constexpr (HasX) rows = reshape(x->load({group.x, m, part}, {1, t.BM, 1}), {t.BM, 1});
    if constexpr (HasW) {
      const View<const float, 2> mine = w->slice(group.w);
      Tile at_row = (n + arange(t.BN)) / t.w_group;
      cols = expand(load(mine.pointer() + (at_row * mine.stride(0) + part * mine.stride(1)), at_row < mine.size(0)), 0);
    }
    return rows * cols;
  }
};

/// The sum over k in [from, to) of the block at (m, n).
template <class X, class W, class Before, class Scales>
Tile product(const View<const X, 2>& x, const View<const Stored<W>, 2>& w, const Traced<Before>& before,
             const Scales& scales, const Group& group, const Scalar& m, const Scalar& n, const Scalar& from,
             const Scalar& to, const Blocks& t) {
  constexpr int kPack = kPacked<W>;
  constexpr DType sum = accumulator<X, W>();
  const DotOptions how{t.precision, t.promote};
  Tile acc = t.weights_first ? zeros(sum, {t.BN, t.BM}) : zeros(sum, {t.BM, t.BN});
  for (auto at : range(kPack == 1 ? from : from / kPack, kPack == 1 ? to : cdiv(to, kPack), t.BK / kPack)) {
    Scalar k = at;
    if constexpr (kPack > 1) k = at * kPack;
    Tile a = x.load({m, k}, {t.BM, t.BK});
    if constexpr (std::tuple_size_v < decltype(before.stages) >> 0) {
      Place p{m, k, k / t.BK, x.size(0), x.size(1), Scalar(0), t.BM, t.BK};
      Tile changed = before(p, a)[0];
      a = select(p.column_numbers() < x.size(1), changed, 0);  // what a stage makes of the padding must not count
    }
    Tile b = w.load({n, at}, {t.BN, t.BK / kPack});
    if constexpr (kPack > 1) b = unpacked(b);
    b = beside(b, a);
    if constexpr (Scales::kAny) {
      Tile part = t.weights_first ? trans(dot(b, trans(a), how)) : dot(a, trans(b), how);
      part = part.cast(f32) * scales.at(group, m, n, k, t);
      acc = acc + (t.weights_first ? trans(part) : part);
    } else {
      acc = t.weights_first ? dot(b, trans(a), acc, how) : dot(a, trans(b), acc, how);
    }
  }
  return t.weights_first ? trans(acc) : acc;
}

// --- results ---------------------------------------------------------------------------------------------------------

/// The results of one launch, as a kernel's parameter: arrays of N dimensions.
template <int N, class... Y>
struct Results {
  std::tuple<View<Y, N>...> y;

  /// Stores one tile a result at its place.
  template <std::size_t R>
  void store(const Place& p, const std::array<Tile, R>& tiles) const {
    store_all(p, tiles, std::index_sequence_for<Y...>{});
  }

 private:
  template <std::size_t R, std::size_t... I>
  void store_all(const Place& p, const std::array<Tile, R>& tiles, std::index_sequence<I...>) const {
    (p.part(std::get<I>(y)).store({p.row, p.column}, tiles[I].template cast<Y>()), ...);
  }
};

// --- programs --------------------------------------------------------------------------------------------------------

template <class X, class W, class Before, class Scales, class Then, class Y>
void plain_program(View<const X, 2> x_stored, View<const Stored<W>, 2> w_stored, Traced<Before> before, Scales scales,
                   Traced<Then> then, Y y, Tune<Blocks> t) {
  const auto x = oriented(x_stored, t.x_columns);
  const auto w = oriented(w_stored, t.w_columns);
  Scalar m = program_id(0) * t.BM, n = program_id(1) * t.BN;
  Tile acc = product<X, W>(x, w, before, scales, {}, m, n, Scalar(0), x.size(1), t);
  Place p{m, n, program_id(1), x.size(0), w.size(0), Scalar(0), t.BM, t.BN};
  y.store(p, then(p, acc));
}
template <class... T>
constinit auto plain_kernel = kernel("linear", plain_program<T...>).names("x w before scales then y blocks");

/// One of several products of the same extents; w may be one for all, with a stride of 0.
template <class X, class W, class Before, class Scales, class Then, class Y>
void batched_program(View<const X, 3> x_stored, View<const Stored<W>, 3> w_stored, Traced<Before> before, Scales scales,
                     Traced<Then> then, Y y, Tune<Blocks> t) {
  Scalar group = program_id(2);
  const auto x = oriented(x_stored, t.x_columns).slice(group);
  const auto w = oriented(w_stored, t.w_columns).slice(group);
  Scalar m = program_id(0) * t.BM, n = program_id(1) * t.BN;
  Tile acc = product<X, W>(x, w, before, scales, {group, group}, m, n, Scalar(0), x.size(1), t);
  Place p{m, n, program_id(1), x.size(0), w.size(0), group, t.BM, t.BN};
  y.store(p, then(p, acc));
}
template <class... T>
constinit auto batched_kernel =
    kernel("linear_batched", batched_program<T...>).names("x w before scales then y blocks");

/// Rows [offsets[g], offsets[g + 1]) of x with w[g]. A group takes whole tiles: the program counts tiles of the groups
/// before it.
template <class X, class W, class Before, class Scales, class Then, class Y>
void grouped_program(View<const X, 2> x_stored, View<const Stored<W>, 3> w_stored, View<const std::int32_t, 1> offsets,
                     Traced<Before> before, Scales scales, Traced<Then> then, Y y, Tune<Blocks> t, Const<int> GROUPS) {
  const auto x = oriented(x_stored, t.x_columns);
  Scalar groups = offsets.size(0) - 1, mine = program_id(0);
  Tile g = arange(GROUPS), begin = offsets.load({0}, {GROUPS}), end = offsets.load({1}, {GROUPS});
  Tile tiles = select(g < groups, cdiv(maximum(end - begin, 0), t.BM), 0);
  Tile before_end = cumsum(tiles, 0);
  Scalar group = sum((before_end <= mine).cast(i32)).cast(DType::index);
  return_if(group >= groups);
  Scalar first = sum(select(g < group, tiles, 0));
  Scalar m = offsets.at({group}) + (mine - first) * t.BM, n = program_id(1) * t.BN;
  const auto w = oriented(w_stored, t.w_columns).slice(group);
  Tile acc = product<X, W>(x, w, before, scales, {Scalar(0), group}, m, n, Scalar(0), x.size(1), t);
  Place p{m, n, program_id(1), offsets.at({group + 1}).cast(DType::index), w.size(0), group, t.BM, t.BN, true};
  y.store(p, then(p, acc));
}
template <class... T>
constinit auto grouped_kernel =
    kernel("linear_grouped", grouped_program<T...>).names("x w offsets before scales then y blocks groups");

/// A piece of k, summed into the workspace [pieces, M, N].
template <class X, class W, class Before, class Scales>
void piece_program(View<const X, 2> x_stored, View<const Stored<W>, 2> w_stored, Traced<Before> before, Scales scales,
                   View<Sum<X, W>, 3> pieces, Int piece, Tune<Blocks> t) {
  const auto x = oriented(x_stored, t.x_columns);
  const auto w = oriented(w_stored, t.w_columns);
  Scalar m = program_id(0) * t.BM, n = program_id(1) * t.BN, from = program_id(2) * piece;
  Tile acc = product<X, W>(x, w, before, scales, {}, m, n, from, minimum(from + piece, x.size(1)), t);
  pieces.slice(program_id(2)).store({m, n}, acc);
}
template <class... T>
constinit auto piece_kernel =
    kernel("linear_pieces", piece_program<T...>).names("x w before scales pieces piece blocks");

/// The pieces added in their order, then the chain.
template <class S, class Then, class Y>
void merge_program(View<const S, 3> pieces, Traced<Then> then, Y y, Tune<Blocks> t) {
  Scalar m = program_id(0) * t.BM, n = program_id(1) * t.BN;
  Tile acc = zeros(dtype_of<S>, {t.BM, t.BN});
  for (auto i : range(pieces.size(0))) acc = acc + pieces.slice(i).load({m, n}, {t.BM, t.BN});
  Place p{m, n, program_id(1), pieces.size(1), pieces.size(2), Scalar(0), t.BM, t.BN};
  y.store(p, then(p, acc));
}
template <class... T>
constinit auto merge_kernel = kernel("linear_merge", merge_program<T...>).names("pieces then y blocks");

}  // namespace chain
}  // namespace kiln::lib

namespace kiln {

template <int N, class... Y>
struct Param<lib::chain::Results<N, Y...>> {
  struct Host {
    std::tuple<typename Param<View<Y, N>>::Host...> y;
  };
  using Kernel = lib::chain::Results<N, Y...>;
  static void bind(const Host& h, detail::Binder& b) {
    std::apply([&](const auto&... y) { (Param<View<Y, N>>::bind(y, b), ...); }, h.y);
  }
  static Kernel make(const Host& h, detail::Maker& m) {
    return std::apply(
        [&](const auto&... y) { return Kernel{std::tuple<View<Y, N>...>{Param<View<Y, N>>::make(y, m)...}}; }, h.y);
  }
};

template <bool HasX, bool HasW>
struct Param<lib::chain::PartScales<HasX, HasW>> {
  using Scales = Param<View<const float, 3>>;
  struct Host {
    std::optional<typename Scales::Host> x, w;
  };
  static void bind(const Host& h, detail::Binder& b) {
    if constexpr (HasX) Scales::bind(*h.x, b);
    if constexpr (HasW) Scales::bind(*h.w, b);
  }
  static lib::chain::PartScales<HasX, HasW> make(const Host& h, detail::Maker& m) {
    lib::chain::PartScales<HasX, HasW> s;
    if constexpr (HasX) s.x.emplace(Scales::make(*h.x, m));
    if constexpr (HasW) s.w.emplace(Scales::make(*h.w, m));
    return s;
  }
};

}  // namespace kiln

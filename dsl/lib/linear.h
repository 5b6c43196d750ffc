// Products of matrices with what comes after them in the same kernel.
//
//   lib::linear<bf16>({x, {M, K}}, {w, {N, K}})
//       .then(lib::epilogue::bias<bf16>({b, {N}}))
//       .then(lib::epilogue::relu)
//       .then([](Tile acc, Tile r) { return acc * 2 + r; }, lib::per_element<bf16>({r, {M, N}}))
//       .run(stream, {y, {M, N}});
//
// The kernel is the plain one of the language: a loop over k, two loads through views, a dot, the chain, a store.
#pragma once
#include "dsl/lang/arrange.h"
#include "dsl/lang/control.h"
#include "dsl/lang/dot.h"
#include "dsl/lib/chain.h"
#include "dsl/lib/linear_plan.h"

namespace kiln::lib {

namespace chain {

/// The dtype that products of X and W are summed in, as dot chooses it.
template <class X, class W>
constexpr DType accumulator() {
  if constexpr (std::integral<X>) return i32;
  else return std::same_as<X, double> || std::same_as<W, double> ? f64 : f32;
}
/// What linear writes where the caller names no type.
template <class X>
using Result = std::conditional_t<std::integral<X>, std::int32_t, std::conditional_t<sizeof(X) == 1, float, X>>;

/// The results of one launch, as a kernel's parameter.
template <class... Y>
struct Results {
  std::tuple<View<Y, 2>...> y;

  /// Stores one tile a result at its place.
  template <std::size_t N>
  void store(const Place& p, const std::array<Tile, N>& tiles) const {
    store_all(p, tiles, std::index_sequence_for<Y...>{});
  }

 private:
  template <std::size_t N, std::size_t... I>
  void store_all(const Place& p, const std::array<Tile, N>& tiles, std::index_sequence<I...>) const {
    (std::get<I>(y).store({p.row, p.col()}, tiles[I].template cast<Y>()), ...);
  }
};

/// x with the strides of its rows and columns as the blocks say.
template <class T>
View<T, 2> oriented(const View<T, 2>& x, bool columns) {
  return columns ? x.trans() : x;
}

template <class X, class W, class Then, class Y>
void linear_program(View<const X, 2> x_stored, View<const W, 2> w_stored, Traced<Then> then, Y y,
                    Tune<LinearBlocks> t) {
  const View<const X, 2> x = oriented(x_stored, t.x_columns);
  const View<const W, 2> w = oriented(w_stored, t.w_columns);
  Scalar m = program_id(0) * t.BM, n = program_id(1) * t.BN;
  constexpr DType sum = accumulator<X, W>();
  Tile acc = t.weights_first ? zeros(sum, {t.BN, t.BM}) : zeros(sum, {t.BM, t.BN});
  for (auto k : range(0, x.size(1), t.BK)) {
    Tile a = x.load({m, k}, {t.BM, t.BK}), b = w.load({n, k}, {t.BN, t.BK});
    acc = t.weights_first ? dot(b, trans(a), acc) : dot(a, trans(b), acc);
  }
  Place p{m, program_id(1), x.size(0), w.size(0), t.BM, t.BN};
  y.store(p, then(p, t.weights_first ? trans(acc) : acc));
}
template <class X, class W, class Then, class Y>
constinit auto linear_kernel = kernel("linear", linear_program<X, W, Then, Y>).names("x w then y blocks");

/// A matrix whose columns are contiguous, as the matrix of its columns.
template <class T>
bool lie_by_columns(Matrix<T>& m) {
  if (m.stride[0] != 1 || m.stride[1] == 1) return false;
  std::swap(m.stride[0], m.stride[1]);
  std::swap(m.size[0], m.size[1]);
  return true;
}

}  // namespace chain

/// How linear is to work.
struct LinearOptions {
  bool batch_invariant = false;  ///< the bits of a row do not depend on how many rows there are
  LinearBlocks blocks = {};      ///< 0: as the table says
};

/// A product and the chain behind it, not launched yet: see linear().
template <class X, class W, class Then>
class Linear {
 public:
  Linear(const Matrix<const X>& x, const Matrix<const W>& w, const LinearOptions& o, const Then& then)
      : x_(x), w_(w), options_(o), then_(then) {}

  /// One more stage: `f` is called with the tiles so far [BM, BN] (one, of the accumulator's dtype, at first) and a
  /// tile for each extra tensor (chain.h), and returns a tile of the same extents; a pair, tuple or array of them makes
  /// that many results, which the next stage takes all. It must not capture by reference.
  template <class F, class... E>
  auto then(const F& f, const E&... extras) const {
    static_assert((chain::is_extra<E> && ...),
                  "kiln: what follows the function in then are extra tensors: per_column<T>(…), per_row<T>(…), "
                  "per_element<T>(…), per_tensor<T>(…), number(…)");
    return with_chain(chain::append(then_, f, extras...));
  }
  /// A stage that is ready-made (epilogue.h).
  template <class F, class... E>
  auto then(const chain::Stage<F, E...>& s) const {
    return with_chain(std::apply([&](const E&... e) { return chain::append(then_, s.f, e...); }, s.extras));
  }

  /// Launches the kernel; y: [M, N] of any type, one for each result of the chain. Without a type it is x's, of
  /// one-byte elements the accumulator's. Errors: UserError, see linear().
  void run(On on, Matrix<chain::Result<X>> y) const { launch<chain::Result<X>>(on, {y}); }
  template <Element... Y>
  requires(sizeof...(Y) > 0) void run(On on, Matrix<Y>... y) const { launch<Y...>(on, {y...}); }

 private:
  template <class C>
  Linear<X, W, C> with_chain(const C& c) const {
    return {x_, w_, options_, c};
  }

  template <class... Y>
  void launch(const On& on, const typename Param<chain::Results<Y...>>::Host& y) const {
    static_assert(int(sizeof...(Y)) == Then::kResults,
                  "kiln: run takes one matrix for each result of the chain: name their types, as in run<bf16, float>");
    using namespace chain;
    const std::int64_t rows = x_.size[0], cols = w_.size[0];
    check_product("linear", on.at, x_.size, w_.size);
    chain::check(then_, "linear", on.at, rows, cols);
    std::apply([&](const Matrix<Y>&... one) { (check_result<Y>(on.at, one), ...); }, y.y);
    if (rows == 0 || cols == 0) return;
    LinearPlan plan = linear_plan({rows, cols, x_.size[1], dtype_of<X>, dtype_of<W>, on.stream.device().target()},
                                  options_.batch_invariant);
    LinearBlocks& t = plan.blocks;
    if (options_.blocks.BM) t = options_.blocks;
    Matrix<const X> x = x_;
    Matrix<const W> w = w_;
    t.x_columns = lie_by_columns<const X>(x);
    t.w_columns = lie_by_columns<const W>(w);
    linear_kernel<X, W, Then, Results<Y...>>.with({.num_warps = plan.num_warps}).launch(on, {cdiv(rows, t.BM), cdiv(cols, t.BN)}, x, w, then_, y, t);
  }
  template <class Y>
  void check_result(SourceLoc at, const Matrix<Y>& y) const {
    chain::check_written("linear", at, y.size, x_.size[0], w_.size[0] / chain::kFolds<Then>);
    chain::refuse_overlap("linear", at, chain::reach<Y>("y", y), chain::reach<const X>("x", x_));
    chain::refuse_overlap("linear", at, chain::reach<Y>("y", y), chain::reach<const W>("w", w_));
  }

  Matrix<const X> x_;
  Matrix<const W> w_;
  LinearOptions options_;
  Then then_;
};

/// y = x · wᵀ, and whatever follows in `.then(…)`, as one kernel, launched by `.run(stream, y)`.
template <Element X, Element W = X>
Linear<X, W, chain::Chain<1>> linear(Matrix<const X> x, Matrix<const W> w, const LinearOptions& o = {},
                                     RawLoc at = RawLoc::current()) {
  return {x, w, o, chain::Chain<1>{{}, at}};
}

}  // namespace kiln::lib

namespace kiln {

template <class... Y>
struct Param<lib::chain::Results<Y...>> {
  struct Host {
    std::tuple<typename Param<View<Y, 2>>::Host...> y;
  };
  using Kernel = lib::chain::Results<Y...>;
  static void bind(const Host& h, detail::Binder& b) {
    std::apply([&](const auto&... y) { (Param<View<Y, 2>>::bind(y, b), ...); }, h.y);
  }
  static Kernel make(const Host& h, detail::Maker& m) {
    return std::apply(
        [&](const auto&... y) { return Kernel{std::tuple<View<Y, 2>...>{Param<View<Y, 2>>::make(y, m)...}}; }, h.y);
  }
};

}  // namespace kiln

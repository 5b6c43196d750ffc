// Reductions of a whole result by rows or columns, as stages of a chain.
//
// Each program reduces its tile and writes one value a row (a column) to a workspace [extent, tiles]; a second kernel
// combines these in the order of the tiles, so that the bits do not depend on who comes first.
#pragma once
#include "dsl/lang/math.h"
#include "dsl/lang/reduce.h"
#include "dsl/lib/chain.h"

namespace kiln::lib {

/// What is made of the elements of a row or column, in f32.
enum class Reduction { sum, sum_squares, max, abs_max };

namespace chain {

/// The first step of a reduction, of single elements, and what combines them.
Tile reduced_element(Reduction, const Tile&);
inline bool takes_largest(Reduction r) { return r == Reduction::max || r == Reduction::abs_max; }
float neutral(Reduction);
/// out[i] = the parts [i, 0], [i, 1], … combined.
void combine_parts(const On&, const Matrix<const float>& parts, const Vector<float>& out, Reduction);

template <bool Rows>
struct Parts {
  using Parameter = View<float, 2>;
  Parameter x;  // [extent, tiles]
  View<float, 2> at(const Place&) const { return x; }
};
template <bool Rows>
struct ReducedTo {
  using Traced = Parts<Rows>;
  Matrix<float> host;
  Vector<float> out;
  Reduction reduction;

  std::int64_t extent(const Fits& f) const { return Rows ? f.rows : f.cols; }
  void check(const Fits& f) const { check_length(f, out.size[0], extent(f), Rows ? "rows" : "columns"); }
  template <class Memory>
  void declare(Memory& m, const Fits& f, bool) const {
    m.writes(reach(f.stage, out));
  }
  std::int64_t place(DevicePtr base, const Fits& f, const Grid& g) {
    const std::int64_t tiles = Rows ? g.y : g.x, n = extent(f) * tiles;
    host = Matrix<float>(device_ptr<float>(base, std::size_t(n)), {extent(f), tiles}, {1, extent(f)});
    return n * std::int64_t(sizeof(float));
  }
  void finish(const On& on, const Fits&) const {
    Matrix<const float> parts(TypedPtr<float>{}, host.size, host.stride);
    parts.data = host.data;
    combine_parts(on, parts, out, reduction);
  }
};

template <bool Rows>
struct Reduce {
  static constexpr const char* kName = Rows ? "row_reduce" : "column_reduce";
  Reduction reduction;
  void operator()(const Place& p, const Tile& t, const View<float, 2>& parts) const {
    Tile v = select(p.inside(), reduced_element(reduction, t), neutral(reduction));
    constexpr int kAxis = Rows ? 1 : 0;
    Tile one = expand(takes_largest(reduction) ? max(v, kAxis) : sum(v, kAxis), 1);
    if (Rows) parts.store({p.row, p.column_tile}, one);
    else parts.store({p.column, program_id(0)}, one);
  }
};

template <bool Rows>
Stage<Reduce<Rows>, ReducedTo<Rows>> reduce_stage(Reduction r, const Vector<float>& out) {
  return {{r}, {ReducedTo<Rows>{Matrix<float>(TypedPtr<float>{}, {0, 0}), out, r}}};
}

}  // namespace chain

namespace epilogue {

/// Writes the reduction of each row of the tiles so far to out [rows], of each column to out [cols]; the tiles go on as
/// they are. Numerics: f32, of NaN the result is NaN. Needs a workspace of a float for each tile a row (column) has,
/// and a second, small kernel. Example: linear<bf16>(x, w).then(epilogue::row_reduce(Reduction::sum_squares, {out,
/// {M}})).
inline auto row_reduce(Reduction r, Vector<float> out) { return chain::reduce_stage<true>(r, out); }
inline auto column_reduce(Reduction r, Vector<float> out) { return chain::reduce_stage<false>(r, out); }

}  // namespace epilogue
}  // namespace kiln::lib

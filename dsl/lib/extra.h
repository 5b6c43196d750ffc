// Extra tensors: what the stages of a chain (chain.h) take beside the tile that they work on.
//
// Each is made of a parameter of the kernel, and gives a stage a tile that broadcasts against its own, [height, width]:
//   per_column<T>({b, {cols}})                 [1, width]        a value a column, as a bias has
//   per_row<T>({s, {rows}})                    [height, 1]       a value a row, as the scales of quantised rows are
//   per_element<T>({r, {rows, cols}})          [height, width]   a matrix as large as the result
//   per_tensor<T>(buffer)                      [1, 1]            one element in device memory
//   number(0.5f)                               [1, 1]            a number that the host passes; not in the key
//   per_group_column<T>({b, {groups, cols}})   [1, width]        of products in batches or groups: a row for each
//   per_group<T>({s, {groups}})                [1, 1]            and a number for each
#pragma once
#include "dsl/lang/arrange.h"
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// Where the tile stands that a stage is called for: one block of a matrix [rows, cols]. A stage whose first parameter
/// is a `const Place&` gets it before the tiles.
struct Place {
  Scalar row, column;                  ///< of the tile's first element
  Scalar column_tile;                  ///< tiles to the left of this one
  Scalar rows, cols;                   ///< extents of the matrix; of products in groups, `rows` is where the group ends
  Scalar group;                        ///< of products in batches or groups, which one; 0 otherwise
  std::int64_t height = 0, width = 0;  ///< extents of the tile
  bool ends_early = false;             ///< whether `rows` may be less than what arrays have

  /// index[height, 1] and index[1, width].
  Tile row_numbers() const { return expand(row + arange(height), 1); }
  Tile column_numbers() const { return expand(column + arange(width), 0); }
  /// i1[height, width]: the elements that the matrix has.
  Tile inside() const { return row_numbers() < rows && column_numbers() < cols; }

  /// An array of results as this place may write it: the group's part.
  template <class T>
  View<T, 2> part(const View<T, 2>& y) const {
    return ends_early ? y.sub({0, 0}, {rows, y.size(1)}) : y;
  }
  template <class T>
  View<T, 2> part(const View<T, 3>& y) const {
    return y.slice(group);
  }
};

namespace chain {

/// What an extra tensor must fit: extents of the matrix that its chain works on, and who says so.
struct Fits {
  const char* function;
  SourceLoc at;
  const char* stage;  ///< its name, or null
  int number, argument;
  std::int64_t rows, cols, groups;
};
void check_fold(const char* function, SourceLoc, int fold, std::int64_t cols);
void check_length(const Fits&, std::int64_t size, std::int64_t expected, const char* of);
void check_probability(const char* function, SourceLoc, double p);
void check_matrix(const Fits&, std::int64_t rows, std::int64_t cols, std::int64_t expected_rows);

/// What an array touches in memory, for checks of overlap.
struct Reach {
  const char* name = "";
  DevicePtr address = 0;
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;  ///< in elements; of more dimensions: see reach()
  std::int64_t element_bytes = 0;
  bool operator==(const Reach& o) const {
    return address == o.address && rows == o.rows && cols == o.cols && row_stride == o.row_stride &&
           col_stride == o.col_stride && element_bytes == o.element_bytes;
  }
};
template <class T, int N>
Reach reach(const char* name, const kiln::detail::ViewArg<T, N>& v) {
  constexpr auto bytes = std::int64_t(sizeof(T));
  if constexpr (N == 1) return {name, v.data.address, 1, v.size[0], 0, v.stride[0], bytes};
  else if constexpr (N == 2) return {name, v.data.address, v.size[0], v.size[1], v.stride[0], v.stride[1], bytes};
  else {
    // One row as long as everything that it spans: enough to find any overlap.
    std::int64_t last = 0, elements = 1;
    for (std::size_t d = 0; d < N; ++d) last += (v.size[d] - 1) * v.stride[d], elements *= v.size[d];
    return {name, v.data.address, elements == 0 ? 0 : 1, last + 1, 0, 1, bytes};
  }
}
/// Whether an element of one may be one of the other's. Exact for ranges that are apart and for parts of the same rows.
bool may_overlap(const Reach&, const Reach&);
/// UserError where `written` may overlap `read`; `in_place`: the very same elements may.
void refuse_overlap(const char* function, SourceLoc, const Reach& written, const Reach& read, bool in_place = false);

// The traced side of each kind: made of its parameter, `at` is what a stage gets. `check` looks at the host's argument.
template <class T>
struct PerColumn {
  using Parameter = View<const T, 1>;
  Parameter x;
  Tile at(const Place& p) const { return expand(x.load({p.column}, {p.width}), 0); }
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
  Tile at(const Place& p) const { return x.load({p.row, p.column}, {p.height, p.width}); }
  static void check(const Fits& f, const Matrix<const T>& m) { check_matrix(f, m.size[0], m.size[1], f.rows); }
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
/// The same as a Scalar.
template <class T>
struct HostScalar {
  using Parameter = Val<T>;
  Parameter x;
  Scalar at(const Place&) const { return x; }
  static void check(const Fits&, const typename Param<Parameter>::Host&) {}
};
template <class T>
struct PerGroupColumn {
  using Parameter = View<const T, 2>;
  Parameter x;
  Tile at(const Place& p) const { return x.load({p.group, p.column}, {1, p.width}); }
  static void check(const Fits& f, const Matrix<const T>& m) { check_matrix(f, m.size[0], m.size[1], f.groups); }
};
template <class T>
struct PerGroup {
  using Parameter = View<const T, 1>;
  Parameter x;
  Tile at(const Place& p) const { return broadcast_to(x.at({p.group}), {1, 1}); }
  static void check(const Fits& f, const Vector<const T>& v) { check_length(f, v.size[0], f.groups, "groups"); }
};

/// Something that a stage writes, instead of a tile: the part of an array that belongs to the place.
template <class T>
struct Written {
  static constexpr bool kOneMatrix = true;  ///< of results that are one matrix, not of batches
  using Parameter = View<T, 2>;
  Parameter y;
  View<T, 2> at(const Place& p) const { return p.part(y); }
  static void check(const Fits& f, const Matrix<T>& m) { check_matrix(f, m.size[0], m.size[1], f.rows); }
};
/// One element in device memory that all programs combine into.
template <class T>
struct Shared {
  using Parameter = InOut<T>;
  Parameter y;
  Scalar at(const Place&) const { return y; }
  static void check(const Fits&, const typename Param<Parameter>::Host&) {}
};

/// The host's side of an extra tensor of one of these kinds.
template <class Kind>
struct Extra {
  using Traced = Kind;
  typename Param<typename Kind::Parameter>::Host host;

  void check(const Fits& f) const { Kind::check(f, host); }
  /// Tells `memory` what is read or written; `in_place`: whether a result may be the same elements.
  template <class Memory>
  void declare(Memory& memory, const Fits& f, bool in_place) const {
    if constexpr (requires { host.stride; }) {
      const Reach r = reach(f.stage ? f.stage : "a tensor of the chain", host);
      if constexpr (requires { Kind::kOneMatrix; }) memory.writes(r);
      else memory.reads(r, in_place);
    }
  }
};
template <class E>
concept IsExtra = requires {
  typename E::Traced::Parameter;
};
template <class E>
concept NeedsOneMatrix = requires {
  E::Traced::kOneMatrix;
};
/// One that a workspace belongs to (reductions.h).
template <class E>
concept HasWorkspace = requires {
  &E::finish;
};

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
template <Element T>
chain::Extra<chain::PerGroupColumn<T>> per_group_column(Matrix<const T> x) {
  return {x};
}
template <Element T>
chain::Extra<chain::PerGroup<T>> per_group(Vector<const T> x) {
  return {x};
}

}  // namespace kiln::lib

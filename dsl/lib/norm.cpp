#include "dsl/lib/norm.h"

#include "dsl/lang/control.h"
#include "dsl/lib/chunk.h"

namespace kiln::lib {
namespace {

/// What a row's elements are taken less of before their mean and variance: its first one, since distances from it are
/// exact where a large mean would swallow them. Elements of 16 bits cannot lie so close together that they need it.
template <class T>
Scalar origin_of(const Scalar& row) {
  if constexpr (sizeof(T) < 4) return Scalar(0.f);
  else return load(row);
}
template <class T>
Tile about(const Scalar& origin, const Tile& x) {
  if constexpr (sizeof(T) < 4) return x.cast(f32);
  else return x - origin;
}

// --- a row is one tile ---------------------------------------------------------------------------------------------
// The weights are read behind the statistics: they come from the L2 cache, and would hold registers before.

template <class T>
void layernorm_rows_program(View<const T, 2> x, View<const T, 1> weight, View<const T, 1> bias, View<T, 2> y, Float eps,
                            Tune<Row> row) {
  Scalar from = row_of(x, program_id(0), row);
  Tile c = arange(row.width), v = about<T>(origin_of<T>(from), load(from + c));
  Scalar mean = sum(v) / float(row.width);  // exact where all elements are equal
  Tile d = v - mean;
  Scalar scale = rsqrt(sum(d * d) * (1.f / float(row.width)) + eps);
  Tile w = load(weight.pointer() + c).cast(f32), b = load(bias.pointer() + c).cast(f32);
  store(row_of(y, program_id(0), row) + c, fma(d * scale, w, b).template cast<T>());
}
template <class T>
constinit auto layernorm_rows = kernel("layernorm", layernorm_rows_program<T>).names("x weight bias y eps row");

template <class T>
void rmsnorm_rows_program(View<const T, 2> x, View<const T, 1> weight, View<T, 2> y, Float eps, Tune<Row> row) {
  Tile c = arange(row.width), v = load(row_of(x, program_id(0), row) + c).cast(f32);
  Scalar scale = rsqrt(sum(v * v) * (1.f / float(row.width)) + eps);
  Tile w = load(weight.pointer() + c).cast(f32);
  store(row_of(y, program_id(0), row) + c, (v * scale * w).template cast<T>());
}
template <class T>
constinit auto rmsnorm_rows = kernel("rmsnorm", rmsnorm_rows_program<T>).names("x weight y eps row");

template <class T>
void add_rmsnorm_rows_program(View<const T, 2> x, View<const T, 2> residual, View<const T, 1> weight, View<T, 2> total,
                              View<T, 2> y, Float eps, Tune<Row> row) {
  Scalar r = program_id(0);
  Tile c = arange(row.width);
  Tile h = (load(row_of(x, r, row) + c).cast(f32) + load(row_of(residual, r, row) + c).cast(f32)).template cast<T>();
  store(row_of(total, r, row) + c, h);
  Tile v = h.cast(f32);
  Scalar scale = rsqrt(sum(v * v) * (1.f / float(row.width)) + eps);
  Tile w = load(weight.pointer() + c).cast(f32);
  store(row_of(y, r, row) + c, (v * scale * w).template cast<T>());
}
template <class T>
constinit auto add_rmsnorm_rows =
    kernel("add_rmsnorm", add_rmsnorm_rows_program<T>).names("x residual weight sum y eps row");

// --- longer rows, chunk by chunk -----------------------------------------------------------------------------------

template <class T>
Scalar long_row(const View<T, 2>& x) {
  return x.pointer() + program_id(0) * x.stride(0);
}

template <class T>
void layernorm_long_program(View<const T, 2> x, View<const T, 1> weight, View<const T, 1> bias, View<T, 2> y,
                            Float eps) {
  Scalar width = x.size(1), from = long_row(x), to = long_row(y), origin = origin_of<T>(from);
  Tile c = chunk_positions<T>(), s = zeros(f32, {kLanes}), squares = zeros(f32, {kLanes});
  for (auto at : range(0, width, kChunk<T>)) {
    Tile p = at + c, inside = p < width;
    s += lane_sum(select(inside, about<T>(origin, load(from + p, inside)), 0));
  }
  Scalar mean = sum(s) / width.cast(f32);
  for (auto at : range(0, width, kChunk<T>)) {
    Tile p = at + c, inside = p < width;
    Tile d = select(inside, about<T>(origin, load(from + p, inside)) - mean, 0);
    squares += lane_sum(d * d);
  }
  Scalar scale = rsqrt(sum(squares) / width.cast(f32) + eps);
  for (auto at : range(0, width, kChunk<T>)) {
    Tile p = at + c, inside = p < width, d = about<T>(origin, load(from + p, inside)) - mean;
    Tile w = load(weight.pointer() + p, inside).cast(f32), b = load(bias.pointer() + p, inside).cast(f32);
    store(to + p, fma(d * scale, w, b).template cast<T>(), inside);
  }
}
template <class T>
constinit auto layernorm_long = kernel("layernorm_long", layernorm_long_program<T>).names("x weight bias y eps");

template <class T>
void rmsnorm_long_program(View<const T, 2> x, View<const T, 1> weight, View<T, 2> y, Float eps) {
  Scalar width = x.size(1), from = long_row(x), to = long_row(y);
  Tile c = chunk_positions<T>(), squares = zeros(f32, {kLanes});
  for (auto at : range(0, width, kChunk<T>)) {
    Tile v = load(from + (at + c), at + c < width).cast(f32);
    squares += lane_sum(v * v);
  }
  Scalar scale = rsqrt(sum(squares) / width.cast(f32) + eps);
  for (auto at : range(0, width, kChunk<T>)) {
    Tile p = at + c, inside = p < width, v = load(from + p, inside).cast(f32);
    store(to + p, (v * scale * load(weight.pointer() + p, inside).cast(f32)).template cast<T>(), inside);
  }
}
template <class T>
constinit auto rmsnorm_long = kernel("rmsnorm_long", rmsnorm_long_program<T>).names("x weight y eps");

template <class T>
void add_rmsnorm_long_program(View<const T, 2> x, View<const T, 2> residual, View<const T, 1> weight, View<T, 2> total,
                              View<T, 2> y, Float eps) {
  Scalar width = x.size(1), from = long_row(x), other = long_row(residual), between = long_row(total), to = long_row(y);
  Tile c = chunk_positions<T>(), squares = zeros(f32, {kLanes});
  for (auto at : range(0, width, kChunk<T>)) {
    Tile p = at + c, inside = p < width;
    Tile h = (load(from + p, inside).cast(f32) + load(other + p, inside).cast(f32)).template cast<T>();
    store(between + p, h, inside);
    Tile v = h.cast(f32);
    squares += lane_sum(v * v);
  }
  Scalar scale = rsqrt(sum(squares) / width.cast(f32) + eps);
  for (auto at : range(0, width, kChunk<T>)) {
    Tile p = at + c, inside = p < width, v = load(between + p, inside).cast(f32);
    store(to + p, (v * scale * load(weight.pointer() + p, inside).cast(f32)).template cast<T>(), inside);
  }
}
template <class T>
constinit auto add_rmsnorm_long =
    kernel("add_rmsnorm_long", add_rmsnorm_long_program<T>).names("x residual weight sum y eps");

/// How rmsnorm of rows of 8 to 24 KB is executed: 2 or 3 vectors a thread, with so few registers that three or six
/// blocks fit a multiprocessor. bf16 on one H200, against what the compiler would choose: 4096 elements a row 4095 GB/s
/// for 4050, 8192 4084 for 4057 (with 40 registers 4070), 12288 4105 for 4074. Rows of ragged width and other kernels
/// need more registers.
template <class T>
CompileOptions rmsnorm_options(std::int64_t cols) {
  const std::int64_t bytes = cols * std::int64_t(sizeof(T)), vectors = bytes / 16;
  if (sizeof(T) != 2 || bytes % 16 != 0 || vectors < 512 || vectors > 1536) return {};
  const int warps = vectors <= 3 * 256 ? 8 : 16;
  return {.num_warps = warps, .max_registers = vectors == 2 * 32 * warps ? 36 : 40};
}

template <class T>
void check_weight(const char* function, SourceLoc at, const char* name, const Vector<const T>& w, std::int64_t cols) {
  check_vector(function, at, name, w.size[0], w.stride[0], cols);
}

}  // namespace

template <Real T>
void layernorm(On on, Matrix<const T> x, Vector<const T> weight, Vector<const T> bias, Matrix<T> y, float eps) {
  const bool dense = check_rows("layernorm", on.at, {named<const T>("x", x), named<T>("y", y)});
  const auto [rows, cols] = x.size;
  check_weight<T>("layernorm", on.at, "weight", weight, cols);
  check_weight<T>("layernorm", on.at, "bias", bias, cols);
  if (cols == 0) return;
  if (cols <= kLongestTile) layernorm_rows<T>.launch(on, rows, x, weight, bias, y, eps, {int(cols), dense});
  else layernorm_long<T>.launch(on, rows, x, weight, bias, y, eps);
}

template <Real T>
void rmsnorm(On on, Matrix<const T> x, Vector<const T> weight, Matrix<T> y, float eps) {
  const bool dense = check_rows("rmsnorm", on.at, {named<const T>("x", x), named<T>("y", y)});
  const auto [rows, cols] = x.size;
  check_weight<T>("rmsnorm", on.at, "weight", weight, cols);
  if (cols == 0) return;
  if (cols <= kLongestTile)
    rmsnorm_rows<T>.with(rmsnorm_options<T>(cols)).launch(on, rows, x, weight, y, eps, {int(cols), dense});
  else rmsnorm_long<T>.launch(on, rows, x, weight, y, eps);
}

template <Real T>
void add_rmsnorm(On on, Matrix<const T> x, Matrix<const T> residual, Vector<const T> weight, Matrix<T> sum, Matrix<T> y,
                 float eps) {
  const bool dense = check_rows(
      "add_rmsnorm", on.at,
      {named<const T>("x", x), named<const T>("residual", residual), named<T>("sum", sum), named<T>("y", y)});
  const auto [rows, cols] = x.size;
  check_weight<T>("add_rmsnorm", on.at, "weight", weight, cols);
  if (cols == 0) return;
  if (cols <= kLongestTile)
    return add_rmsnorm_rows<T>.launch(on, rows, x, residual, weight, sum, y, eps, {int(cols), dense});
  add_rmsnorm_long<T>.launch(on, rows, x, residual, weight, sum, y, eps);
}

#define KILN_INSTANTIATE(T)                                                                            \
  template void layernorm<T>(On, Matrix<const T>, Vector<const T>, Vector<const T>, Matrix<T>, float); \
  template void rmsnorm<T>(On, Matrix<const T>, Vector<const T>, Matrix<T>, float);                    \
  template void add_rmsnorm<T>(On, Matrix<const T>, Matrix<const T>, Vector<const T>, Matrix<T>, Matrix<T>, float);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(f16)
KILN_INSTANTIATE(bf16)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib

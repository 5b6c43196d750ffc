#include "dsl/lib/softmax.h"

#include "dsl/lang/control.h"
#include "dsl/lib/chunk.h"

namespace kiln::lib {
namespace {

enum class Form { Softmax, Logarithm };

/// A row's results from its elements, their largest, and Σ e^(x - largest).
template <class T>
Tile normalised(const Tile& x, const Scalar& largest, const Scalar& total, Form form) {
  // Not x - (largest + log(total)): that sum has the rounding of `largest`, which may be far greater than the result.
  if (form == Form::Logarithm) return (x - largest) - log(total);
  return exp_for<T>(x - largest) * (1.f / total);
}

// A row is one tile: read once.
template <class T, Form form>
void short_rows_program(View<const T, 2> x, View<T, 2> y, Tune<Row> row) {
  Tile c = arange(row.width), v = load(row_of(x, program_id(0), row) + c).cast(f32);
  Scalar largest = max(v), total = sum(exp_for<T>(v - largest));
  store(row_of(y, program_id(0), row) + c, normalised<T>(v, largest, total, form).template cast<T>());
}
template <class T, Form form>
constinit auto short_rows =
    kernel(form == Form::Softmax ? "softmax" : "log_softmax", short_rows_program<T, form>).names("x y row");

// The statistics of a row chunk by chunk, then its results.
template <class T, Form form>
void long_rows_program(View<const T, 2> x, View<T, 2> y) {
  const float nothing = -std::numeric_limits<float>::infinity();
  Scalar width = x.size(1), from = x.pointer() + program_id(0) * x.stride(0),
         to = y.pointer() + program_id(0) * y.stride(0);
  Tile c = chunk_positions<T>();
  OnlineSum online;
  for (auto at : range(0, width, kChunk<T>)) online.add<T>(load(from + (at + c), at + c < width, nothing).cast(f32));
  Scalar largest = online.largest(), total = online.template total<T>(largest);
  for (auto at : range(0, width, kChunk<T>)) {
    Tile v = load(from + (at + c), at + c < width).cast(f32);
    store(to + (at + c), normalised<T>(v, largest, total, form).template cast<T>(), at + c < width);
  }
}
template <class T, Form form>
constinit auto long_rows =
    kernel(form == Form::Softmax ? "softmax_long" : "log_softmax_long", long_rows_program<T, form>).names("x y");

template <class T, Form form>
void launch(On on, const char* function, const Matrix<const T>& x, const Matrix<T>& y) {
  const bool dense = check_rows(function, on.at, {named<const T>("x", x), named<T>("y", y)});
  const auto [rows, cols] = x.size;
  if (cols == 0) return;
  if (cols <= kLongestTile) short_rows<T, form>.launch(on, rows, x, y, {int(cols), dense});
  else long_rows<T, form>.launch(on, rows, x, y);
}

}  // namespace

template <Real T>
void softmax(On on, Matrix<const T> x, Matrix<T> y) {
  launch<T, Form::Softmax>(on, "softmax", x, y);
}
template <Real T>
void log_softmax(On on, Matrix<const T> x, Matrix<T> y) {
  launch<T, Form::Logarithm>(on, "log_softmax", x, y);
}

#define KILN_INSTANTIATE(T)                                 \
  template void softmax<T>(On, Matrix<const T>, Matrix<T>); \
  template void log_softmax<T>(On, Matrix<const T>, Matrix<T>);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(f16)
KILN_INSTANTIATE(bf16)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib

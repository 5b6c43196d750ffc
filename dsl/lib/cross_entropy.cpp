#include "dsl/lib/cross_entropy.h"

#include "dsl/lang/control.h"
#include "dsl/lib/chunk.h"

namespace kiln::lib {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

/// What a row's target says.
struct Target {
  Scalar column, ignored, inside;
};
Target target_of(const View<const std::int64_t, 1>& target, const Scalar& ignore, const Scalar& width) {
  const Scalar t = load(target.pointer() + program_id(0));
  return {t, t == ignore, t >= 0 && t < width};
}

/// A row's largest element, and Σ e^(x - largest).
struct Statistics {
  Scalar largest, total;
};
template <class T>
Statistics statistics_of(const Scalar& from, const Scalar& width, const Tile& c) {
  OnlineSum online;
  for (auto at : range(0, width, kChunk<T>)) online.add<T>(load(from + (at + c), at + c < width, kNothing).cast(f32));
  const Scalar largest = online.largest();
  return {largest, online.template total<T>(largest)};
}

Scalar loss_of(const Statistics& row, const Scalar& at_target, const Target& t) {
  // About the largest first: both may be far larger than their difference.
  const Scalar loss = log(row.total) + (row.largest - at_target);
  return select(t.ignored, 0.f, select(t.inside, loss, kNaN));
}

template <class T>
void losses_program(View<const T, 2> logits, View<const std::int64_t, 1> target, View<float, 1> loss,
                    Int64 ignore_index) {
  Scalar width = logits.size(1), from = logits.pointer() + program_id(0) * logits.stride(0);
  const Target t = target_of(target, ignore_index, width);
  const Statistics row = statistics_of<T>(from, width, chunk_positions<T>());
  Scalar at_target = load(from + t.column, t.inside).cast(f32);
  store(loss.pointer() + program_id(0), loss_of(row, at_target, t));
}
template <class T>
constinit auto losses = kernel("cross_entropy", losses_program<T>).names("logits target loss ignore_index");

template <class T>
void gradients_program(View<T, 2> logits, View<const std::int64_t, 1> target, View<float, 1> loss, Float scale,
                       Int64 ignore_index) {
  Scalar width = logits.size(1), row_at = logits.pointer() + program_id(0) * logits.stride(0);
  const Target t = target_of(target, ignore_index, width);
  const Tile c = chunk_positions<T>();
  const Statistics row = statistics_of<T>(row_at, width, c);
  Scalar at_target = load(row_at + t.column, t.inside).cast(f32);
  store(loss.pointer() + program_id(0), loss_of(row, at_target, t));
  Scalar share = 1.f / row.total, factor = select(t.inside, scale, kNaN);
  for (auto at : range(0, width, kChunk<T>)) {
    Tile inside = at + c < width, v = load(row_at + (at + c), inside).cast(f32);
    Tile gradient = select(t.ignored, 0.f, exp_for<T>(v - row.largest) * share * factor);
    store(row_at + (at + c), gradient.template cast<T>(), inside);
  }
  Scalar there = (exp_for<T>(at_target - row.largest) * share - 1.f) * factor;
  store(row_at + t.column, there.template cast<T>(), t.inside && !t.ignored);
}
template <class T>
constinit auto gradients =
    kernel("cross_entropy_gradient", gradients_program<T>).names("logits target loss scale ignore_index");

template <class T>
void check(const char* function, SourceLoc at, const Matrix<T>& logits, const Vector<const std::int64_t>& target,
           const Vector<float>& loss) {
  check_rows(function, at, {named<T>("logits", logits)});
  check_vector(function, at, "target", target.size[0], target.stride[0], logits.size[0]);
  check_vector(function, at, "loss", loss.size[0], loss.stride[0], logits.size[0]);
}

}  // namespace

template <Real T>
void cross_entropy(On on, Matrix<const T> logits, Vector<const std::int64_t> target, Vector<float> loss,
                   std::int64_t ignore_index) {
  check<const T>("cross_entropy", on.at, logits, target, loss);
  losses<T>.launch(on, logits.size[0], logits, target, loss, ignore_index);
}

template <Real T>
void cross_entropy_gradient(On on, Matrix<T> logits, Vector<const std::int64_t> target, Vector<float> loss, float scale,
                            std::int64_t ignore_index) {
  check<T>("cross_entropy_gradient", on.at, logits, target, loss);
  gradients<T>.launch(on, logits.size[0], logits, target, loss, scale, ignore_index);
}

#define KILN_INSTANTIATE(T)                                                                                     \
  template void cross_entropy<T>(On, Matrix<const T>, Vector<const std::int64_t>, Vector<float>, std::int64_t); \
  template void cross_entropy_gradient<T>(On, Matrix<T>, Vector<const std::int64_t>, Vector<float>, float,      \
                                          std::int64_t);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(f16)
KILN_INSTANTIATE(bf16)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib

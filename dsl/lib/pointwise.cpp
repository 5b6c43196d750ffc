#include "dsl/lib/pointwise.h"

#include <fmt/format.h>

#include <cmath>

#include "dsl/lang/arrange.h"
#include "dsl/lang/math.h"
#include "dsl/lang/random.h"
#include "dsl/lib/blocks.h"
#include "runtime/base/error.h"

namespace kiln::lib {
namespace {

/// What an f32 function may cost: results of 16 bits keep no more than the hardware's approximations give.
template <class T>
Tile silu_for(const Tile& x) {
  if constexpr (sizeof(T) < 4) return fast::silu(x);
  else return silu(x);
}
template <class T>
Tile gelu_for(const Tile& x) {
  if constexpr (sizeof(T) < 4) return fast::gelu_tanh(x);
  else return gelu_tanh(x);
}

template <class T>
void check_length(const char* function, SourceLoc at, const char* name, const Vector<T>& v, std::int64_t n) {
  check_vector(function, at, name, v.size[0], v.stride[0], n);
}

// --- dropout -------------------------------------------------------------------------------------------------------

constexpr int kDropoutBlock = 2048;

/// r_i of the elements from 4 · first on, four for each of Philox's blocks.
Tile uniform_numbers(const Scalar& seed, const Scalar& first) {
  const auto [w0, w1, w2, w3] = rand4(seed, first + arange(kDropoutBlock / 4));
  return reshape(join(join(w0, w2), join(w1, w3)), {kDropoutBlock});
}

template <class T>
void dropped_program(View<const T, 1> x, View<T, 1> y, Float p, Float scale, Val<std::uint64_t> seed) {
  Scalar first = program_id(0) * kDropoutBlock;
  Tile keep = uniform_numbers(seed, program_id(0) * (kDropoutBlock / 4)) >= p;
  Tile v = x.load({first}, {kDropoutBlock}).cast(f32) * scale;
  y.store({first}, select(keep, v, 0).template cast<T>());
}
template <class T>
constinit auto dropped = kernel("dropout", dropped_program<T>).names("x y p scale seed");

// --- swiglu --------------------------------------------------------------------------------------------------------

/// One vector a thread of 256 (swiglu 8192x14336 bf16 on one H200: 4414 GB/s).
template <class T>
constexpr int kSwigluBlock = sizeof(T) < 4 ? 2048 : 1024;

template <class T>
void gated_program(View<const T, 2> a, View<const T, 2> b, View<T, 2> y) {
  constexpr int kBlock = kSwigluBlock<T>;
  Scalar r = slow_block(), c = program_id(0) * kBlock;
  Tile gate = silu_for<T>(a.load({r, c}, {1, kBlock}).cast(f32));
  y.store({r, c}, (gate * b.load({r, c}, {1, kBlock}).cast(f32)).template cast<T>());
}
template <class T>
constinit auto gated = kernel("swiglu", gated_program<T>).names("a b y");

/// Whether a matrix has fewer than 2^63 elements. One that has more is refused by the launch.
template <class T>
bool is_countable(const Matrix<T>& m) {
  std::int64_t n = 0;
  return !__builtin_mul_overflow(m.size[0], m.size[1], &n);
}
/// A matrix whose rows follow each other without a gap, as one row. Its stride is never used, and 0 divides by 16.
template <class T>
Matrix<T> flat(Matrix<T> m) {
  m.size = {1, m.size[0] * m.size[1]};
  m.stride = {0, 1};
  return m;
}

// --- gelu ----------------------------------------------------------------------------------------------------------

// A thread has two vectors, in two rows of one block of columns: it reads the bias once for both.
struct GeluBlock {
  int rows = 2, cols = 2048;
};
constexpr int kGeluElements = 4096;  ///< 8192² bf16 on one H200: 4352 GB/s; four rows 3922

template <class T>
void gelus_program(View<const T, 2> x, View<const T, 1> bias, View<const T, 1> scale, View<const T, 2> residual,
                   View<T, 2> y, Tune<GeluBlock> t) {
  Scalar r = slow_block() * t.rows, c = program_id(0) * t.cols;
  Tile b = bias.load({c}, {t.cols}).cast(f32), s = expand(scale.load({r}, {t.rows}).cast(f32), 1);
  Tile v = x.load({r, c}, {t.rows, t.cols}).cast(f32), other = residual.load({r, c}, {t.rows, t.cols}).cast(f32);
  y.store({r, c}, fma(gelu_for<T>(v + b), s, other).template cast<T>());
}
template <class T>
constinit auto gelus = kernel("gelu_bias_scale_residual", gelus_program<T>).names("x bias scale residual y block");

// --- adam ----------------------------------------------------------------------------------------------------------

constexpr int kAdamBlock = 1024;

/// The numbers of a step that all elements share.
struct Coefficients {
  float keep_m, add_m, keep_v, add_v, root, eps, rate, decay;
};

template <class T>
void adam_program(View<T, 1> param, View<const T, 1> grad, View<float, 1> m, View<float, 1> v, Float keep_m,
                  Float add_m, Float keep_v, Float add_v, Float root, Float eps, Float rate, Float decay) {
  Scalar at = program_id(0) * kAdamBlock;
  Tile g = grad.load({at}, {kAdamBlock}).cast(f32), p = param.load({at}, {kAdamBlock}).cast(f32);
  Tile next_m = m.load({at}, {kAdamBlock}) * keep_m + g * add_m;
  Tile next_v = v.load({at}, {kAdamBlock}) * keep_v + g * g * add_v;
  m.store({at}, next_m);
  v.store({at}, next_v);
  param.store({at}, (p * decay - next_m * rate / (sqrt(next_v) * root + eps)).template cast<T>());
}
template <class T>
constinit auto adam =
    kernel("adam_step", adam_program<T>).names("param grad m v keep_m add_m keep_v add_v root eps rate decay");

/// 0 <= value, and below `end` if there is one; not NaN.
void check_number(SourceLoc at, const char* name, double value, double end) {
  if (!(value >= 0)) throw UserError(at, fmt::format("adam_step: {} is {}, must be at least 0", name, value));
  if (!(value < end)) throw UserError(at, fmt::format("adam_step: {} is {}, must be below {}", name, value, end));
}

Coefficients coefficients_of(const AdamW& o, std::int64_t step, SourceLoc at) {
  if (step < 1) throw UserError(at, fmt::format("adam_step: step is {}, must be at least 1", step));
  constexpr double kAny = std::numeric_limits<double>::infinity();
  check_number(at, "beta1", o.beta1, 1);
  check_number(at, "beta2", o.beta2, 1);
  check_number(at, "eps", o.eps, kAny);
  check_number(at, "lr", o.lr, kAny);
  check_number(at, "weight_decay", o.weight_decay, kAny);
  const double first = 1 - std::pow(o.beta1, double(step)), second = 1 - std::pow(o.beta2, double(step));
  return {float(o.beta1),
          float(1 - o.beta1),
          float(o.beta2),
          float(1 - o.beta2),
          float(1 / std::sqrt(second)),
          float(o.eps),
          float(o.lr / first),
          float(1 - o.lr * o.weight_decay)};
}

}  // namespace

template <Real T>
void dropout(On on, Vector<const T> x, Vector<T> y, double p, std::uint64_t seed) {
  const std::int64_t n = x.size[0];
  check_length<const T>("dropout", on.at, "x", x, n);
  check_length<T>("dropout", on.at, "y", y, n);
  if (!(p >= 0 && p < 1)) throw UserError(on.at, fmt::format("dropout: p is {}, must be in [0, 1)", p));
  dropped<T>.launch(on, cdiv(n, kDropoutBlock), x, y, p, 1 / (1 - p), seed);
}

template <Real T>
void swiglu(On on, Matrix<const T> a, Matrix<const T> b, Matrix<T> y) {
  const bool dense = check_rows("swiglu", on.at, {named<const T>("a", a), named<const T>("b", b), named<T>("y", y)});
  if (dense && is_countable<T>(y)) a = flat<const T>(a), b = flat<const T>(b), y = flat<T>(y);
  gated<T>.launch(on, blocks(cdiv(a.size[1], kSwigluBlock<T>), a.size[0]), a, b, y);
}

template <Real T>
void gelu_bias_scale_residual(On on, Matrix<const T> x, Vector<const T> bias, Vector<const T> scale,
                              Matrix<const T> residual, Matrix<T> y) {
  const char* const name = "gelu_bias_scale_residual";
  check_rows(name, on.at, {named<const T>("x", x), named<const T>("residual", residual), named<T>("y", y)});
  const auto [rows, cols] = x.size;
  check_length<const T>(name, on.at, "bias", bias, cols);
  check_length<const T>(name, on.at, "scale", scale, rows);
  GeluBlock block{.cols = block_for(cols, GeluBlock{}.cols)};
  block.rows = block_for(rows, kGeluElements / block.cols);
  gelus<T>.launch(on, blocks(cdiv(cols, block.cols), cdiv(rows, block.rows)), x, bias, scale, residual, y, block);
}

template <Real T>
void adam_step(On on, Vector<T> param, Vector<const T> grad, Vector<float> m, Vector<float> v, const AdamW& options,
               std::int64_t step) {
  const std::int64_t n = param.size[0];
  check_length<T>("adam_step", on.at, "param", param, n);
  check_length<const T>("adam_step", on.at, "grad", grad, n);
  check_length<float>("adam_step", on.at, "m", m, n);
  check_length<float>("adam_step", on.at, "v", v, n);
  const Coefficients c = coefficients_of(options, step, on.at);
  adam<T>.launch(on, cdiv(n, kAdamBlock), param, grad, m, v, c.keep_m, c.add_m, c.keep_v, c.add_v, c.root, c.eps,
                 c.rate, c.decay);
}

#define KILN_INSTANTIATE(T)                                                                                         \
  template void dropout<T>(On, Vector<const T>, Vector<T>, double, std::uint64_t);                                  \
  template void swiglu<T>(On, Matrix<const T>, Matrix<const T>, Matrix<T>);                                         \
  template void gelu_bias_scale_residual<T>(On, Matrix<const T>, Vector<const T>, Vector<const T>, Matrix<const T>, \
                                            Matrix<T>);                                                             \
  template void adam_step<T>(On, Vector<T>, Vector<const T>, Vector<float>, Vector<float>, const AdamW&, std::int64_t);
KILN_INSTANTIATE(float)
KILN_INSTANTIATE(f16)
KILN_INSTANTIATE(bf16)
#undef KILN_INSTANTIATE

}  // namespace kiln::lib

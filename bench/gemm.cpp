#include "bench/gemm.h"

#include <kiln/kiln.h>
#include <kiln/lib.h>

#include "bench/timer.h"

namespace kiln::bench {
namespace {

/// Buffers of a product of T into Y, in turn.
template <class T, class Y>
struct Products {
  std::int64_t m, n, k;
  Rotation rotation;
  Random random;
  InTurn<T> x, w;
  InTurn<Y> y;

  Products(const Device& device, const Shape& s)
      : m(s[0]),
        n(s[1]),
        k(s[2]),
        rotation(rotation_for(static_cast<std::size_t>((m + n) * k) * sizeof(T))),
        x(random.buffers<T>(device, rotation.sets, static_cast<std::size_t>(m * k))),
        w(random.buffers<T>(device, rotation.sets, static_cast<std::size_t>(n * k))),
        y(device, rotation.launches, static_cast<std::size_t>(m * n)) {}

  /// The workload whose launch i is launch(stream, x, w, y) of its buffers.
  template <class F>
  Workload workload(F launch) const {
    const double bytes = static_cast<double>((m + n) * k) * sizeof(T) + static_cast<double>(m * n) * sizeof(Y);
    return {.bytes = bytes,
            .launches = rotation.launches,
            .launch = [p = *this, launch](const Stream& on, int i) mutable { launch(on, p.x[i], p.w[i], p.y[i]); },
            .flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
  }
};

template <class T, class Y = T>
Workload bare(const Device& device, const Shape& shape, const lib::LinearOptions& options = {}) {
  const auto [m, n, k] = std::array{shape[0], shape[1], shape[2]};
  return Products<T, Y>(device, shape)
      .workload([m = m, n = n, k = k, options](const Stream& on, Buffer<T>& x, Buffer<T>& w, Buffer<Y>& y) {
        lib::linear<T>({x, {m, k}}, {w, {n, k}}, options).template run<Y>(on, {y, {m, n}});
      });
}

}  // namespace

Workload prepare_linear_relu(const Device& device, const Shape& shape) {
  const auto [m, n, k] = std::array{shape[0], shape[1], shape[2]};
  auto bias = Random().buffers<bf16>(device, 1, static_cast<std::size_t>(n));
  return Products<bf16, bf16>(device, shape)
      .workload(
          [m = m, n = n, k = k, bias](const Stream& on, Buffer<bf16>& x, Buffer<bf16>& w, Buffer<bf16>& y) mutable {
            lib::linear<bf16>({x, {m, k}}, {w, {n, k}})
                .then(lib::epilogue::bias<bf16>({bias[0], {n}}))
                .then(lib::epilogue::relu)
                .run(on, {y, {m, n}});
          });
}

Workload prepare_matmul_bf16(const Device& device, const Shape& shape) { return bare<bf16>(device, shape); }
Workload prepare_matmul_f16(const Device& device, const Shape& shape) { return bare<f16>(device, shape); }
Workload prepare_matmul_tf32(const Device& device, const Shape& shape) {
  return bare<float>(device, shape, {.precision = Precision::tf32});
}
Workload prepare_matmul_fp8(const Device& device, const Shape& shape) { return bare<f8e4m3, bf16>(device, shape); }
Workload prepare_matmul_fp8_fast(const Device& device, const Shape& shape) {
  return bare<f8e4m3, bf16>(device, shape, {.promote = 0});
}

}  // namespace kiln::bench

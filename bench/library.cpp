#include "bench/library.h"

#include <kiln/kiln.h>
#include <kiln/lib.h>

#include "bench/timer.h"

namespace kiln::bench {

Workload prepare_gelu_bias_scale_residual(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(2 * e.bytes());
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, e.elements),
       residual = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto bias = random.buffers<bf16>(device, 1, e.cols), scale = random.buffers<bf16>(device, 1, e.rows);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(3), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::gelu_bias_scale_residual<bf16>(on, {x[i], e.matrix}, {bias[i], e.row}, {scale[i], e.column},
                                                {residual[i], e.matrix}, {y[i], e.matrix});
          }};
}

Workload prepare_swiglu(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(2 * e.bytes());
  Random random;
  auto a = random.buffers<bf16>(device, rotation.sets, e.elements),
       b = random.buffers<bf16>(device, rotation.sets, e.elements);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(3), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::swiglu<bf16>(on, {a[i], e.matrix}, {b[i], e.matrix}, {y[i], e.matrix});
          }};
}

Workload prepare_transpose(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  auto x = Random().buffers<bf16>(device, rotation.sets, e.elements);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::transpose<bf16>(on, {x[i], e.matrix}, {y[i], e.transposed});
          }};
}

Workload prepare_sum_all(const Device& device, const Shape& shape) {
  const auto n = static_cast<std::size_t>(shape[0]);
  const Rotation rotation = rotation_for(n * sizeof(float));
  auto x = Random().buffers<float>(device, rotation.sets, n);
  InTurn<float> out(device, rotation.launches, 1);
  Buffer<float> workspace(device, static_cast<std::size_t>(lib::kSumWorkspace));
  return {sizeof(float) * static_cast<double>(n), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::sum_all<float>(on, {x[i], {shape[0]}}, {out[i], {1}},
                                {workspace, {static_cast<std::int64_t>(workspace.size())}});
          }};
}

Workload prepare_cross_entropy(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  Random random;
  auto logits = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto target = random.numbers(device, 1, e.rows, shape[1]);
  InTurn<float> loss(device, rotation.launches, e.rows);
  return {e.traffic(1), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::cross_entropy<bf16>(on, {logits[i], e.matrix}, {target[i], e.column}, {loss[i], e.column});
          }};
}

}  // namespace kiln::bench

#include "bench/rows.h"

#include <kiln/kiln.h>
#include <kiln/lib.h>

#include "bench/timer.h"

namespace kiln::bench {
Workload prepare_softmax(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  auto x = Random().buffers<bf16>(device, rotation.sets, e.elements);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::softmax<bf16>(on, {x[i], e.matrix}, {y[i], e.matrix});
          }};
}

Workload prepare_log_softmax(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  auto x = Random().buffers<bf16>(device, rotation.sets, e.elements);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::log_softmax<bf16>(on, {x[i], e.matrix}, {y[i], e.matrix});
          }};
}

Workload prepare_layernorm(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto weight = random.buffers<bf16>(device, 1, e.cols), bias = random.buffers<bf16>(device, 1, e.cols);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::layernorm<bf16>(on, {x[i], e.matrix}, {weight[i], e.row}, {bias[i], e.row}, {y[i], e.matrix});
          }};
}

Workload prepare_rmsnorm(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto weight = random.buffers<bf16>(device, 1, e.cols);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::rmsnorm<bf16>(on, {x[i], e.matrix}, {weight[i], e.row}, {y[i], e.matrix});
          }};
}

Workload prepare_add_rmsnorm(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(2 * e.bytes());
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, e.elements),
       residual = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto weight = random.buffers<bf16>(device, 1, e.cols);
  InTurn<bf16> sum(device, rotation.launches, e.elements), y(device, rotation.launches, e.elements);
  return {e.traffic(4), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::add_rmsnorm<bf16>(on, {x[i], e.matrix}, {residual[i], e.matrix}, {weight[i], e.row},
                                   {sum[i], e.matrix}, {y[i], e.matrix});
          }};
}

}  // namespace kiln::bench

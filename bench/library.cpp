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

// cross_entropy_gradient overwrites its logits: later launches read gradients, which are as random.
Workload prepare_cross_entropy_gradient(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  Random random;
  auto logits = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto target = random.numbers(device, 1, e.rows, shape[1]);
  InTurn<float> loss(device, rotation.launches, e.rows);
  return {
      e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
        lib::cross_entropy_gradient<bf16>(on, {logits[i], e.matrix}, {target[i], e.column}, {loss[i], e.column}, 1.f);
      }};
}

Workload prepare_cumsum(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const Rotation rotation = rotation_for(e.bytes());
  auto x = Random().buffers<bf16>(device, rotation.sets, e.elements);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::cumsum<bf16>(on, {x[i], e.matrix}, {y[i], e.matrix});
          }};
}

Workload prepare_dropout(const Device& device, const Shape& shape) {
  const auto n = static_cast<std::size_t>(shape[0]);
  const Rotation rotation = rotation_for(n * sizeof(bf16));
  auto x = Random().buffers<bf16>(device, rotation.sets, n);
  InTurn<bf16> y(device, rotation.launches, n);
  return {2 * sizeof(bf16) * static_cast<double>(n), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::dropout<bf16>(on, {x[i], {shape[0]}}, {y[i], {shape[0]}}, 0.1, 7);
          }};
}

Workload prepare_adam_step(const Device& device, const Shape& shape) {
  const auto n = static_cast<std::size_t>(shape[0]);
  const Rotation rotation = rotation_for(4 * n * sizeof(float));
  Random random;
  auto param = random.buffers<float>(device, rotation.sets, n), grad = random.buffers<float>(device, rotation.sets, n),
       m = random.buffers<float>(device, rotation.sets, n), v = random.buffers<float>(device, rotation.sets, n);
  for (Buffer<float>& b : v.all()) b.fill_bytes(0);  // of squares
  return {7 * sizeof(float) * static_cast<double>(n), rotation.launches, [=](const Stream& on, int i) mutable {
            const std::array<std::int64_t, 1> size{shape[0]};
            lib::adam_step<float>(on, {param[i], size}, {grad[i], size}, {m[i], size}, {v[i], size}, {}, 1);
          }};
}

// [tokens, heads, dim], positions in order.
Workload prepare_rope(const Device& device, const Shape& shape) {
  const std::array<std::int64_t, 3> heads{shape[0], shape[1], shape[2]};
  const std::array<std::int64_t, 2> table{shape[0], shape[2] / 2};
  const auto n = static_cast<std::size_t>(heads[0] * heads[1] * heads[2]);
  const auto angles = static_cast<std::size_t>(table[0] * table[1]);
  const Rotation rotation = rotation_for(n * sizeof(bf16));
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, n);
  auto cosines = random.buffers<float>(device, 1, angles), sines = random.buffers<float>(device, 1, angles);
  InTurn<bf16> y(device, rotation.launches, n);
  return {2 * sizeof(bf16) * static_cast<double>(n), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::rope<bf16>(on, {x[i], heads}, {cosines[i], table}, {sines[i], table}, {y[i], heads});
          }};
}

// The table has eight rows a token.
Workload prepare_embedding(const Device& device, const Shape& shape) {
  const MatrixExtents e(shape);
  const std::array<std::int64_t, 2> table{8 * shape[0], shape[1]};
  const Rotation rotation = rotation_for(e.bytes());
  Random random;
  auto weights = random.buffers<bf16>(device, 1, static_cast<std::size_t>(table[0] * table[1]));
  auto ids = random.numbers(device, rotation.sets, e.rows, table[0]);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {e.traffic(2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::embedding<bf16>(on, {weights[i], table}, {ids[i], e.column}, {y[i], e.matrix});
          }};
}

}  // namespace kiln::bench

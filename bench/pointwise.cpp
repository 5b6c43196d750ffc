#include "bench/pointwise.h"

#include "bench/kernels.h"
#include "bench/timer.h"

namespace kiln::bench {

// Every launch of a graph has an output of its own; the inputs rotate.
Workload prepare_add_relu(const Device& device, const Shape& shape) {
  const auto n = static_cast<std::size_t>(shape[0]);
  const Rotation rotation = rotation_for(2 * n * sizeof(float));
  Random random;
  auto a = random.buffers<float>(device, rotation.sets, n), b = random.buffers<float>(device, rotation.sets, n);
  InTurn<float> c(device, rotation.launches, n);
  return {3.0 * sizeof(float) * static_cast<double>(n), rotation.launches,
          [a, b, c, n, how = shape_for(n)](const Stream& on, int i) mutable {
            add_relu.with({.num_warps = how.num_warps})
                .launch(on, cdiv(n, how.block), a[i], b[i], c[i], n, Const(how.block));
          }};
}

Workload prepare_copy(const Device& device, const Shape& shape) {
  const auto n = static_cast<std::size_t>(shape[0]);
  const Rotation rotation = rotation_for(2 * n * sizeof(bf16));
  auto from = Random().buffers<bf16>(device, rotation.sets, n);
  InTurn<bf16> to(device, rotation.sets, n);
  return {2.0 * sizeof(bf16) * static_cast<double>(n), rotation.launches,
          [from, to, n](const Stream& on, int i) mutable {
            copy.launch(on, cdiv(n, 2 * kBlock), from[i], to[i], n, Const(2 * kBlock));
          }};
}

}  // namespace kiln::bench

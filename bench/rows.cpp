#include "bench/rows.h"

#include <kiln/kiln.h>
#include <kiln/lib.h>

#include "bench/timer.h"

namespace kiln::bench {
namespace {

struct Extents {
  std::array<std::int64_t, 2> matrix;
  std::array<std::int64_t, 1> row;
  std::size_t rows, cols, elements;
};

Extents extents(const Shape& shape) {
  const auto rows = static_cast<std::size_t>(shape[0]), cols = static_cast<std::size_t>(shape[1]);
  return {{shape[0], shape[1]}, {shape[1]}, rows, cols, rows * cols};
}

/// The bytes of `matrices` of them.
double traffic(const Extents& e, int matrices) {
  return matrices * static_cast<double>(sizeof(bf16)) * static_cast<double>(e.elements);
}

}  // namespace

Workload prepare_softmax(const Device& device, const Shape& shape) {
  const Extents e = extents(shape);
  const Rotation rotation = rotation_for(e.elements * sizeof(bf16));
  auto x = Random().buffers<bf16>(device, rotation.sets, e.elements);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {traffic(e, 2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::softmax<bf16>(on, {x[i], e.matrix}, {y[i], e.matrix});
          }};
}

Workload prepare_layernorm(const Device& device, const Shape& shape) {
  const Extents e = extents(shape);
  const Rotation rotation = rotation_for(e.elements * sizeof(bf16));
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto weight = random.buffers<bf16>(device, 1, e.cols), bias = random.buffers<bf16>(device, 1, e.cols);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {traffic(e, 2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::layernorm<bf16>(on, {x[i], e.matrix}, {weight[i], e.row}, {bias[i], e.row}, {y[i], e.matrix});
          }};
}

Workload prepare_rmsnorm(const Device& device, const Shape& shape) {
  const Extents e = extents(shape);
  const Rotation rotation = rotation_for(e.elements * sizeof(bf16));
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto weight = random.buffers<bf16>(device, 1, e.cols);
  InTurn<bf16> y(device, rotation.launches, e.elements);
  return {traffic(e, 2), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::rmsnorm<bf16>(on, {x[i], e.matrix}, {weight[i], e.row}, {y[i], e.matrix});
          }};
}

Workload prepare_add_rmsnorm(const Device& device, const Shape& shape) {
  const Extents e = extents(shape);
  const Rotation rotation = rotation_for(2 * e.elements * sizeof(bf16));
  Random random;
  auto x = random.buffers<bf16>(device, rotation.sets, e.elements),
       residual = random.buffers<bf16>(device, rotation.sets, e.elements);
  auto weight = random.buffers<bf16>(device, 1, e.cols);
  InTurn<bf16> sum(device, rotation.launches, e.elements), y(device, rotation.launches, e.elements);
  return {traffic(e, 4), rotation.launches, [=](const Stream& on, int i) mutable {
            lib::add_rmsnorm<bf16>(on, {x[i], e.matrix}, {residual[i], e.matrix}, {weight[i], e.row},
                                   {sum[i], e.matrix}, {y[i], e.matrix});
          }};
}

}  // namespace kiln::bench

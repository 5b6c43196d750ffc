// Pointwise kernels written for the benchmarks (kernels.h) as workloads.
#pragma once
#include "bench/workload.h"

namespace kiln::bench {

/// relu(a + b), f32 [n].
Workload prepare_add_relu(const Device&, const Shape&);
/// A copy, bf16 [n]: what the device's memory can do.
Workload prepare_copy(const Device&, const Shape&);

}  // namespace kiln::bench

// The library's row operators as workloads, bf16 [rows, cols]. The bytes are the least that must move: every matrix
// once; weights are small and stay in the L2 cache.
#pragma once
#include "bench/workload.h"

namespace kiln::bench {

Workload prepare_softmax(const Device&, const Shape&);
Workload prepare_log_softmax(const Device&, const Shape&);
Workload prepare_layernorm(const Device&, const Shape&);
Workload prepare_rmsnorm(const Device&, const Shape&);
Workload prepare_add_rmsnorm(const Device&, const Shape&);

}  // namespace kiln::bench

// The library's products as workloads, [M, N, K]. The bytes are those of x, w and y, each once; the operations 2 M N K.
#pragma once
#include "bench/workload.h"

namespace kiln::bench {

/// relu(x wᵀ + bias), bf16.
Workload prepare_linear_relu(const Device&, const Shape&);
/// x wᵀ alone: bf16, f16, f32 as tf32, and e4m3 with the sums promoted into bf16.
Workload prepare_matmul_bf16(const Device&, const Shape&);
Workload prepare_matmul_f16(const Device&, const Shape&);
Workload prepare_matmul_tf32(const Device&, const Shape&);
Workload prepare_matmul_fp8(const Device&, const Shape&);
/// The same with sums that stay in the tensor cores.
Workload prepare_matmul_fp8_fast(const Device&, const Shape&);

}  // namespace kiln::bench

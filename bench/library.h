// The library's other operators as workloads, bf16 unless said otherwise. The bytes are the least that must move.
#pragma once
#include "bench/workload.h"

namespace kiln::bench {

/// [rows, cols]: two matrices read, one written.
Workload prepare_gelu_bias_scale_residual(const Device&, const Shape&);
Workload prepare_swiglu(const Device&, const Shape&);
/// [rows, cols]: one read, one written.
Workload prepare_transpose(const Device&, const Shape&);
/// f32 [n]: read once.
Workload prepare_sum_all(const Device&, const Shape&);
/// [rows, cols], the losses apart: read once.
Workload prepare_cross_entropy(const Device&, const Shape&);
/// … and overwritten.
Workload prepare_cross_entropy_gradient(const Device&, const Shape&);
/// [rows, cols]: one read, one written.
Workload prepare_cumsum(const Device&, const Shape&);
/// [n]: one read, one written.
Workload prepare_dropout(const Device&, const Shape&);
/// f32 [n]: four read, three written.
Workload prepare_adam_step(const Device&, const Shape&);
/// [tokens, heads, dim], the table of angles apart: one read, one written.
Workload prepare_rope(const Device&, const Shape&);
/// [tokens, cols]: as many rows of a larger table read, one written.
Workload prepare_embedding(const Device&, const Shape&);

}  // namespace kiln::bench

#include "bench/cases.h"

#include <fmt/format.h>

#include "bench/gemm.h"
#include "bench/library.h"
#include "bench/pointwise.h"
#include "bench/rows.h"

namespace kiln::bench {
namespace {

const std::vector<Shape> kRows{{32768, 1024}, {32768, 1536}, {16384, 4096}, {16384, 5000},
                               {8192, 8192},  {8192, 12288}, {4096, 32768}, {1024, 131072}};

const std::vector<Shape> kProducts{{8192, 8192, 8192}, {4096, 14336, 4096}, {4096, 4096, 14336}, {4096, 4096, 4096},
                                   {2048, 2048, 2048}, {1024, 1024, 1024},  {512, 4096, 4096},   {256, 512, 512},
                                   {64, 8192, 8192},   {16, 8192, 8192},    {1, 8192, 8192}};

const CaseRow& row_named(const std::string& name) {
  std::string known;
  for (const CaseRow& row : case_rows()) {
    if (row.name == name) return row;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", row.name, row.dtype);
  }
  throw UserError(fmt::format("case '{}' is not known; known: {}", name, known));
}

void check_shape(const Case& what, std::size_t rank) {
  std::int64_t elements = 1;
  bool fits = what.shape.size() == rank;
  for (const std::int64_t extent : what.shape)
    fits = fits && extent > 0 && !__builtin_mul_overflow(elements, extent, &elements);
  if (!fits)
    throw UserError(fmt::format("{}: the shape must be {} positive number{}, with a product below 2^63, got [{}]",
                                what.name, rank, rank == 1 ? "" : "s", fmt::join(what.shape, ", ")));
}

}  // namespace

const std::vector<CaseRow>& case_rows() {
  static const std::vector<CaseRow> rows{
      {"", "copy_ceiling", "bf16", {{1 << 29}}, prepare_copy},
      {"pointwise", "add_relu", "f32", {{100}, {1'000'000}, {10'000'000}, {100'000'000}}, prepare_add_relu},
      {"rows", "softmax", "bf16", kRows, prepare_softmax},
      {"rows", "layernorm", "bf16", kRows, prepare_layernorm},
      {"rows", "rmsnorm", "bf16", kRows, prepare_rmsnorm},
      {"rows", "add_rmsnorm", "bf16", kRows, prepare_add_rmsnorm},
      {"library", "gelu_bias_scale_residual", "bf16", {{8192, 8192}}, prepare_gelu_bias_scale_residual},
      {"library", "swiglu", "bf16", {{8192, 14336}}, prepare_swiglu},
      {"library", "transpose", "bf16", {{16384, 16384}}, prepare_transpose},
      {"library", "sum_all", "f32", {{1 << 28}}, prepare_sum_all},
      {"library", "cross_entropy", "bf16", {{8192, 128256}}, prepare_cross_entropy},
      {"library", "cross_entropy_gradient", "bf16", {{8192, 128256}}, prepare_cross_entropy_gradient},
      {"library", "log_softmax", "bf16", {{8192, 8192}}, prepare_log_softmax},
      {"library", "cumsum", "bf16", {{8192, 8192}}, prepare_cumsum},
      {"library", "dropout", "bf16", {{1 << 26}}, prepare_dropout},
      {"library", "adam_step", "f32", {{1 << 26}}, prepare_adam_step},
      {"library", "rope", "bf16", {{16384, 32, 128}}, prepare_rope},
      {"library", "embedding", "bf16", {{16384, 4096}}, prepare_embedding},
      {"gemm", "linear_relu", "bf16", kProducts, prepare_linear_relu},
      {"gemm", "matmul", "bf16", kProducts, prepare_matmul_bf16},
      {"gemm", "matmul_f16", "f16", {{8192, 8192, 8192}}, prepare_matmul_f16},
      {"gemm", "matmul_tf32", "f32", {{8192, 8192, 8192}}, prepare_matmul_tf32},
      {"gemm", "matmul_fp8", "f8e4m3", {{8192, 8192, 8192}}, prepare_matmul_fp8},
      {"gemm", "matmul_fp8_fast", "f8e4m3", {{8192, 8192, 8192}}, prepare_matmul_fp8_fast},
  };
  return rows;
}

Workload prepare(const Device& device, const Case& what) {
  const CaseRow& row = row_named(what.name);
  if (what.dtype != row.dtype)
    throw UserError(fmt::format("{}: measured for {} alone, got '{}'", what.name, row.dtype, what.dtype));
  check_shape(what, row.shapes.front().size());
  return row.prepare(device, what.shape);
}

}  // namespace kiln::bench

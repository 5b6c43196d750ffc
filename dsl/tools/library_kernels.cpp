#include "dsl/tools/library_kernels.h"

#include <kiln/kiln.h>
#include <kiln/lib.h>

#include "bench/kernels.h"
#include "dsl/lib/epilogue.h"
#include "dsl/lib/linear.h"

namespace kiln::tools {
namespace {

constexpr std::int64_t kRows = 8192, kCols = 4096, kLength = 1 << 26, kVocabulary = 128256;
constexpr std::array<std::int64_t, 2> kMatrix{kRows, kCols}, kLogits{kRows, kVocabulary};
constexpr std::array<std::int64_t, 1> kRow{kCols}, kColumn{kRows}, kVector{kLength};
constexpr std::array<std::int64_t, 3> kHeads{kRows, 32, 128};
constexpr std::array<std::int64_t, 2> kAngles{kRows, 64}, kTable{8 * kRows, kCols};

/// Array number `n` of a call: large enough for every shape here, apart from the others, aligned.
template <class T>
TypedPtr<T> array(DevicePtr n) {
  constexpr std::size_t kBytes = std::size_t{1} << 36;
  return device_ptr<T>((n + 1) * kBytes, kBytes / sizeof(T));
}

void add_relu(const Stream& s) {
  bench::add_relu.launch(s, cdiv(kLength, bench::kBlock), array<float>(0), array<float>(1), array<float>(2), kLength,
                         bench::kBlock);
}
void softmax(const Stream& s) { lib::softmax<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kMatrix}); }
void log_softmax(const Stream& s) { lib::log_softmax<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kMatrix}); }
void layernorm(const Stream& s) {
  lib::layernorm<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kRow}, {array<bf16>(2), kRow},
                       {array<bf16>(3), kMatrix});
}
void rmsnorm(const Stream& s) {
  lib::rmsnorm<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kRow}, {array<bf16>(2), kMatrix});
}
void add_rmsnorm(const Stream& s) {
  lib::add_rmsnorm<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kMatrix}, {array<bf16>(2), kRow},
                         {array<bf16>(3), kMatrix}, {array<bf16>(4), kMatrix});
}
void cross_entropy(const Stream& s) {
  lib::cross_entropy<bf16>(s, {array<bf16>(0), kLogits}, {array<std::int64_t>(1), kColumn}, {array<float>(2), kColumn});
}
void cross_entropy_gradient(const Stream& s) {
  lib::cross_entropy_gradient<bf16>(s, {array<bf16>(0), kLogits}, {array<std::int64_t>(1), kColumn},
                                    {array<float>(2), kColumn}, 1.f);
}
void embedding(const Stream& s) {
  lib::embedding<bf16>(s, {array<bf16>(0), kTable}, {array<std::int64_t>(1), kColumn}, {array<bf16>(2), kMatrix});
}
void transpose(const Stream& s) {
  lib::transpose<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), {kCols, kRows}});
}
void sum_all(const Stream& s) {
  lib::sum_all<float>(s, {array<float>(0), kVector}, {array<float>(1), {1}}, {array<float>(2), {lib::kSumWorkspace}});
}
void cumsum(const Stream& s) { lib::cumsum<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kMatrix}); }
void dropout(const Stream& s) { lib::dropout<bf16>(s, {array<bf16>(0), kVector}, {array<bf16>(1), kVector}, 0.1, 7); }
void swiglu(const Stream& s) {
  lib::swiglu<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kMatrix}, {array<bf16>(2), kMatrix});
}
void gelu_bias_scale_residual(const Stream& s) {
  lib::gelu_bias_scale_residual<bf16>(s, {array<bf16>(0), kMatrix}, {array<bf16>(1), kRow}, {array<bf16>(2), kColumn},
                                      {array<bf16>(3), kMatrix}, {array<bf16>(4), kMatrix});
}
void adam_step(const Stream& s) {
  lib::adam_step<float>(s, {array<float>(0), kVector}, {array<float>(1), kVector}, {array<float>(2), kVector},
                        {array<float>(3), kVector}, {}, 1);
}
void rope(const Stream& s) {
  lib::rope<bf16>(s, {array<bf16>(0), kHeads}, {array<float>(1), kAngles}, {array<float>(2), kAngles},
                  {array<bf16>(3), kHeads});
}

constexpr std::array<std::int64_t, 2> kSquare{4096, 4096};
auto product() {
  return lib::linear<bf16>({array<bf16>(0), kSquare}, {array<bf16>(1), kSquare})
      .then(lib::epilogue::bias<bf16>({array<bf16>(2), {4096}}))
      .then(lib::epilogue::relu);
}
void linear(const Stream& s) { product().run(s, {array<bf16>(3), kSquare}); }
lib::LinearExplanation linear_plan(const Device& d) { return product().explain(d, {array<bf16>(3), kSquare}); }

}  // namespace

const std::vector<LibraryKernel>& library_kernels() {
  static const std::vector<LibraryKernel> kernels{
      {"adam_step", "f32 [2^26]", adam_step},
      {"add_relu", "f32 [2^26], the benchmarks' kernel", add_relu},
      {"add_rmsnorm", "bf16 [8192, 4096]", add_rmsnorm},
      {"cross_entropy", "bf16 [8192, 128256]", cross_entropy},
      {"cross_entropy_gradient", "bf16 [8192, 128256]", cross_entropy_gradient},
      {"cumsum", "bf16 [8192, 4096]", cumsum},
      {"dropout", "bf16 [2^26]", dropout},
      {"embedding", "bf16, 8192 rows of [65536, 4096]", embedding},
      {"gelu_bias_scale_residual", "bf16 [8192, 4096]", gelu_bias_scale_residual},
      {"layernorm", "bf16 [8192, 4096]", layernorm},
      {"linear", "bf16 with bias and relu, M = N = K = 4096", linear, linear_plan},
      {"log_softmax", "bf16 [8192, 4096]", log_softmax},
      {"rmsnorm", "bf16 [8192, 4096]", rmsnorm},
      {"rope", "bf16 [8192, 32, 128]", rope},
      {"softmax", "bf16 [8192, 4096]", softmax},
      {"sum_all", "f32 [2^26], the first of its two kernels", sum_all},
      {"swiglu", "bf16 [8192, 4096]", swiglu},
      {"transpose", "bf16 [8192, 4096]", transpose},
  };
  return kernels;
}

}  // namespace kiln::tools

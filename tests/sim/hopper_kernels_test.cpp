// Kernels of Hopper's whole machinery (cuda/*_hopper.cu, rows_cluster.cu) as PTX of nvcc: warp-specialised GEMM,
// attention, rows over a cluster, run small against references in f64.
#include <cmath>
#include <random>

#include "runtime/base/float16.h"
#include "runtime/tensor_map.h"
#include "tests/sim/cuda_test.h"

namespace kiln::test {
namespace {

double real(bf16 v) { return static_cast<double>(static_cast<float>(v)); }

/// Normal values, rounded to bf16.
std::vector<bf16> normal(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> values;
  std::vector<bf16> v;
  for (std::size_t i = 0; i < n; ++i) v.push_back(bf16(values(random)));
  return v;
}

/// Distance of `got` and `want` relative to the length of `want`.
double error(const std::vector<bf16>& got, const std::vector<double>& want) {
  double apart = 0, length = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = real(got[i]) - want[i];
    apart += d * d;
    length += want[i] * want[i];
  }
  return std::sqrt(apart / length);
}

constexpr double kBf16 = 3e-3;  // half a unit in the last place, and sums of rounded factors

TensorMap map_of(const Device& d, const Buffer<bf16>& b, std::uint32_t rank, std::array<std::uint64_t, 5> sizes,
                 std::array<std::uint32_t, 5> box) {
  TensorSpec spec;
  spec.dtype = DType::bf16;
  spec.base = b.ptr();
  spec.rank = rank;
  spec.sizes = sizes;
  spec.box = box;
  spec.swizzle = TensorSwizzle::Bytes128;
  std::uint64_t stride = 2;
  for (std::size_t i = 0; i + 1 < rank; ++i) spec.strides[i] = stride *= sizes[i];
  return TensorMap::encode(d, spec);
}

class Hopper : public CudaTest {};

TEST_P(Hopper, WarpSpecialisedGemm) {
  struct Gemm {
    TensorMap a, b, c;
    DevicePtr bias;
    std::int32_t n, k_blocks, tiles_m, tiles;
  };
  on_each_device([&](const Device& device) {
    constexpr std::size_t kM = 300, kN = 136, kK = 320;  // ragged tiles, more k-blocks than stages
    const auto a = normal(kM * kK, 1), b = normal(kN * kK, 2), bias = normal(kN, 3);
    const auto da = buffer_of(device, a), db = buffer_of(device, b), dbias = buffer_of(device, bias);
    const auto c = empty_buffer<bf16>(device, kM * kN);
    const Gemm p{map_of(device, da, 2, {kK, kM}, {64, 128}),
                 map_of(device, db, 2, {kK, kN}, {64, 64}),
                 map_of(device, c, 2, {kN, kM}, {64, 64}),
                 dbias.ptr(),
                 kN,
                 kK / 64,
                 2,
                 4};
    call(device, ptx("gemm_hopper"), "gemm", {{4, 1, 1}, {384, 1, 1}, 117000, {2, 1, 1}}, p);
    std::vector<double> want;
    for (std::size_t i = 0; i < kM; ++i)
      for (std::size_t j = 0; j < kN; ++j) {
        double sum = real(bias[j]);
        for (std::size_t k = 0; k < kK; ++k) sum += real(a[i * kK + k]) * real(b[j * kK + k]);
        want.push_back(std::max(sum, 0.0));
      }
    EXPECT_LT(error(c.to_vector(), want), kBf16);
  });
}

/// Causal attention of queries that are the last of the keys.
std::vector<double> attention(const std::vector<bf16>& q, const std::vector<bf16>& k, const std::vector<bf16>& v,
                              std::size_t heads, std::size_t kv_heads, std::size_t queries, std::size_t keys) {
  constexpr std::size_t kDim = 64;
  std::vector<double> out(heads * queries * kDim);
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < queries; ++i) {
      const std::size_t kv = h / (heads / kv_heads), seen = i + keys - queries + 1;
      std::vector<double> weight;
      double most = -1e300, sum = 0;
      for (std::size_t j = 0; j < seen; ++j) {
        double s = 0;
        for (std::size_t e = 0; e < kDim; ++e)
          s += real(q[(h * queries + i) * kDim + e]) * real(k[(kv * keys + j) * kDim + e]);
        weight.push_back(s / 8);
        most = std::max(most, weight.back());
      }
      for (double& w : weight) sum += w = std::exp(w - most);
      for (std::size_t j = 0; j < seen; ++j)
        for (std::size_t e = 0; e < kDim; ++e)
          out[(h * queries + i) * kDim + e] += weight[j] / sum * real(v[(kv * keys + j) * kDim + e]);
    }
  return out;
}

TEST_P(Hopper, CausalAttention) {
  struct Attention {
    TensorMap q, k, v, o;
    std::int32_t heads, kv_heads, queries, keys, tiles_of_head, tiles;
    float scale;
    DevicePtr counter;
  };
  on_each_device([&](const Device& device) {
    constexpr std::size_t kHeads = 2, kKvHeads = 1, kQueries = 150, kKeys = 210, kDim = 64;
    const auto q = normal(kHeads * kQueries * kDim, 1), k = normal(kKvHeads * kKeys * kDim, 2),
               v = normal(kKvHeads * kKeys * kDim, 3);
    const auto dq = buffer_of(device, q), dk = buffer_of(device, k), dv = buffer_of(device, v);
    const auto o = empty_buffer<bf16>(device, kHeads * kQueries * kDim);
    const auto counter = buffer_of<std::int32_t>(device, {0});
    const auto map = [&](const Buffer<bf16>& b, std::size_t heads, std::size_t length) {
      return map_of(device, b, 4, {kDim, length, heads, 1}, {64, 64, 1, 1});
    };
    const std::int32_t tiles = (kQueries + 127) / 128;
    const Attention p{map(dq, kHeads, kQueries),
                      map(dk, kKvHeads, kKeys),
                      map(dv, kKvHeads, kKeys),
                      map(o, kHeads, kQueries),
                      kHeads,
                      kKvHeads,
                      kQueries,
                      kKeys,
                      tiles,
                      tiles * static_cast<std::int32_t>(kHeads),
                      0.125f * 1.4426950408889634f,
                      counter.ptr()};
    call(device, ptx("attention_hopper"), "attention", {{3, 1, 1}, {384, 1, 1}, 68000}, p);
    EXPECT_LT(error(o.to_vector(), attention(q, k, v, kHeads, kKvHeads, kQueries, kKeys)), kBf16);
  });
}

TEST_P(Hopper, LayernormOverACluster) {
  on_each_device([&](const Device& device) {
    constexpr std::size_t kRows = 5, kWidth = 4096;
    const auto x = normal(kRows * kWidth, 1);
    std::vector<float> weight, bias;
    for (std::size_t i = 0; i < kWidth; ++i) {
      weight.push_back(1 + static_cast<float>(i % 7) * 0.125f);
      bias.push_back(static_cast<float>(i % 5) - 2);
    }
    const auto dx = buffer_of(device, x), y = empty_buffer<bf16>(device, x.size());
    const auto dw = buffer_of(device, weight), db = buffer_of(device, bias);
    call(device, ptx("rows_cluster"), "layernorm", {{8, 1, 1}, {128, 1, 1}, 0, {4, 1, 1}}, dx, dw, db, y,
         static_cast<std::int32_t>(kRows), 1e-5f);
    std::vector<double> want;
    for (std::size_t r = 0; r < kRows; ++r) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < kWidth; ++i) sum += real(x[r * kWidth + i]);
      const double mean = sum / kWidth;
      for (std::size_t i = 0; i < kWidth; ++i) squares += std::pow(real(x[r * kWidth + i]) - mean, 2);
      const double scale = 1 / std::sqrt(squares / kWidth + 1e-5);
      for (std::size_t i = 0; i < kWidth; ++i)
        want.push_back((real(x[r * kWidth + i]) - mean) * scale * weight[i] + bias[i]);
    }
    EXPECT_LT(error(y.to_vector(), want), kBf16);
  });
}

TEST_P(Hopper, SoftmaxOverAClusterOfAnySize) {
  on_each_device([&](const Device& device) {
    constexpr std::size_t kRows = 3, kWidth = 1024;
    std::vector<float> x;
    for (bf16 v : normal(kRows * kWidth, 1)) x.push_back(3 * static_cast<float>(v));
    for (std::uint32_t blocks : {2u, 8u}) {
      const auto dx = buffer_of(device, x), y = empty_buffer<float>(device, x.size());
      call(device, ptx("rows_cluster"), "softmax",
           {{static_cast<std::uint32_t>(kRows) * blocks, 1, 1}, {128, 1, 1}, 0, {blocks, 1, 1}}, dx, y,
           static_cast<std::int32_t>(kWidth));
      const auto got = y.to_vector();
      for (std::size_t r = 0; r < kRows; ++r) {
        double sum = 0;
        for (std::size_t i = 0; i < kWidth; ++i) sum += std::exp(static_cast<double>(x[r * kWidth + i]));
        for (std::size_t i = 0; i < kWidth; ++i) {
          const double want = std::exp(static_cast<double>(x[r * kWidth + i])) / sum;
          ASSERT_NEAR(got[r * kWidth + i], want, 1e-5 * want + 1e-12) << r << " " << i << " of " << blocks;
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Nvcc, Hopper,
                         ::testing::Values(Origin{"sm_90a", true, {}, "kept"},
                                           Origin{"sm_90a", false, {"-lineinfo"}, "compiled_with_lines"}),
                         origin_name);

}  // namespace
}  // namespace kiln::test

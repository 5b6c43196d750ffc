// C = relu(A Bᵀ + bias) in bf16 with f32 sums: one warpgroup feeds a ring of shared tiles through tensor copies, two
// multiply. Two blocks of a cluster share each tile of B: either loads half of it, for both.
#include <cuda_bf16.h>

#include "hopper.cuh"

constexpr int kBlockM = 128, kBlockN = 128, kDepth = 64, kStages = 3, kConsumers = 2, kCluster = 2;
constexpr int kBytesA = kBlockM * kDepth * 2, kBytesB = kBlockN * kDepth * 2, kStage = kBytesA + kBytesB;
constexpr int kStaging = 64 * 128;  // of a consumer: 64 rows of 64 columns
constexpr int kThreads = 128 * (kConsumers + 1);

struct Gemm {
  TensorMap a, b, c;  // boxes of 64 x 128, 64 x 64, 64 x 64; 128-byte swizzle
  const __nv_bfloat16* bias;
  int n, k_blocks, tiles_m, tiles;  // a tile is what a cluster makes: 256 x 128
};

extern "C" __global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kCluster, 1, 1)
    gemm(const __grid_constant__ Gemm p) {
  extern __shared__ uint8_t raw[];
  const uint32_t ring = (shared_address(raw) + 1023) & ~1023u;
  const uint32_t staging = ring + kStages * kStage, bars = staging + kConsumers * kStaging;
  const auto full = [&](int s) { return bars + s * 8; };
  const auto empty = [&](int s) { return bars + (kStages + s) * 8; };
  const uint32_t rank = cluster_rank();
  const int cluster = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;

  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full(s), 1);
      barrier_init(empty(s), kConsumers * kCluster);
    }
    barriers_initialised();
  } else if (threadIdx.x == 128) {
    prefetch(&p.a);
    prefetch(&p.b);
    prefetch(&p.c);
  }
  cluster_arrive_relaxed();
  cluster_wait();

  const int group = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 128, 0);
  if (group == 0) {
    fewer_registers<40>();
    if (threadIdx.x == 0) {
      int s = 0;
      uint32_t parity = 1;
      for (int t = cluster; t < p.tiles; t += clusters) {
        const int m0 = (t % p.tiles_m * kCluster + rank) * kBlockM, n0 = t / p.tiles_m * kBlockN;
        for (int k = 0; k < p.k_blocks; ++k) {
          wait(empty(s), parity);
          arrive_expecting(full(s), kStage);
          const uint32_t a = ring + s * kStage, b = a + kBytesA + rank * (kBytesB / 2);
          load_2d(a, &p.a, full(s), k * kDepth, m0);
          load_2d_to(b, &p.b, full(s), k * kDepth, n0 + rank * (kBlockN / 2), 0b11);
          if (++s == kStages) s = 0, parity ^= 1;
        }
      }
      // The other block still signals slots of this one.
      for (int i = 0; i < kStages; ++i) {
        wait(empty(s), parity);
        if (++s == kStages) s = 0, parity ^= 1;
      }
    }
    __syncwarp();
    return;
  }

  more_registers<232>();
  const int consumer = group - 1, thread = threadIdx.x % 128;
  const int warp = __shfl_sync(0xFFFFFFFFu, thread / 32, 0), lane = thread % 32;
  const uint32_t out = staging + consumer * kStaging;
  const auto release = [&](int s) {
    if (thread < kCluster) arrive_in(empty(s), thread);
  };
  float acc[64];
  int s = 0;
  uint32_t parity = 0;
  for (int t = cluster; t < p.tiles; t += clusters) {
    const int m0 = (t % p.tiles_m * kCluster + rank) * kBlockM + consumer * 64, n0 = t / p.tiles_m * kBlockN;
    int previous = 0;
    for (int k = 0; k < p.k_blocks; ++k) {
      wait(full(s), parity);
      const uint64_t a = descriptor(ring + s * kStage + consumer * 64 * 128), b = descriptor(ring + s * kStage + kBytesA);
      wgmma_fence();
#pragma unroll
      for (int kk = 0; kk < kDepth / 16; ++kk) mma_128(acc, a + kk * 2, b + kk * 2, k > 0 || kk > 0);
      wgmma_commit();
      wgmma_wait<1>();
      if (k > 0) release(previous);
      previous = s;
      if (++s == kStages) s = 0, parity ^= 1;
    }
    wgmma_wait<0>();
    pin(acc);
    release(previous);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t packed[16];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int column = n0 + half * 64 + j * 8 + (lane & 3) * 2, i = (half * 8 + j) * 4;
        const float b0 = column < p.n ? __bfloat162float(p.bias[column]) : 0;
        const float b1 = column + 1 < p.n ? __bfloat162float(p.bias[column + 1]) : 0;
        packed[2 * j] = bf16_pair_relu(acc[i] + b0, acc[i + 1] + b1);
        packed[2 * j + 1] = bf16_pair_relu(acc[i + 2] + b0, acc[i + 3] + b1);
      }
      if (thread == 0) stores_read<0>();
      named_sync(1 + consumer, 128);
      const int row = (lane & 7) + (lane >> 3 & 1) * 8;
#pragma unroll
      for (int j = 0; j < 8; j += 2)
        store_matrices(out + (warp * 16 + row) * 128 + ((j + (lane >> 4)) ^ (lane & 7)) * 16, packed[2 * j],
                       packed[2 * j + 1], packed[2 * j + 2], packed[2 * j + 3]);
      fence_async_shared();
      named_sync(1 + consumer, 128);
      if (thread == 0) {
        store_2d(&p.c, out, n0 + half * 64, m0);
        commit_stores();
      }
    }
  }
  if (thread == 0) stores_read<0>();
}

// Rows spread over a cluster: each block holds a part of the row in shared memory.
#include <cuda_bf16.h>

#include "hopper.cuh"

constexpr int kBlocks = 4, kThreads = 128, kWarps = kThreads / 32, kPart = 1024;  // elements of a block

INLINE float2 sum_of_warp(float2 v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
    v.x += __shfl_xor_sync(~0u, v.x, d);
    v.y += __shfl_xor_sync(~0u, v.y, d);
  }
  return v;
}

/// Layernorm. Parts come by bulk copies, one row ahead; every warp sends its sums to every block by asynchronous stores
/// that count on an mbarrier there; results leave by bulk copies.
extern "C" __global__ void __launch_bounds__(kThreads) __cluster_dims__(kBlocks, 1, 1)
    layernorm(const __nv_bfloat16* x, const float* weight, const float* bias, __nv_bfloat16* y, int rows, float epsilon) {
  __shared__ __align__(128) __nv_bfloat16 in[2][kPart];
  __shared__ __align__(128) __nv_bfloat16 out[kPart];
  __shared__ float2 parts[2][kBlocks * kWarps];
  __shared__ __align__(8) uint64_t loaded[2], summed[2];
  const int rank = static_cast<int>(cluster_rank()), thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int first = blockIdx.x / kBlocks, step = gridDim.x / kBlocks, width = kBlocks * kPart;
  const auto load = [&](int row, int slot) {
    arrive_expecting(shared_address(&loaded[slot]), kPart * 2);
    bulk_load(shared_address(in[slot]), x + size_t(row) * width + rank * kPart, kPart * 2, shared_address(&loaded[slot]));
  };
  if (thread == 0) {
    for (int i = 0; i < 2; ++i) {
      barrier_init(shared_address(&loaded[i]), 1);
      barrier_init(shared_address(&summed[i]), 1);
    }
    barriers_initialised();
    wait_for_predecessor();
    if (first < rows) load(first, 0);
  }
  launch_dependents();
  cluster_arrive();
  cluster_wait();
  int n = 0;
  for (int row = first; row < rows; row += step, ++n) {
    const int slot = n & 1;
    const uint32_t parity = n >> 1 & 1;
    if (thread == 0) {
      arrive_expecting(shared_address(&summed[slot]), kBlocks * kWarps * 8);
      if (row + step < rows) load(row + step, slot ^ 1);
    }
    wait(shared_address(&loaded[slot]), parity);
    float v[8];
    float2 sums = {0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] = __bfloat162float(in[slot][thread * 8 + i]);
      sums.x += v[i];
      sums.y += v[i] * v[i];
    }
    sums = sum_of_warp(sums);
    if (lane < kBlocks)
      send_pair(in_block(shared_address(&parts[slot][rank * kWarps + warp]), lane), sums.x, sums.y,
                in_block(shared_address(&summed[slot]), lane));
    wait_cluster(shared_address(&summed[slot]), parity);
    float2 total = {0, 0};
#pragma unroll
    for (int i = 0; i < kBlocks * kWarps; ++i) {
      total.x += parts[slot][i].x;
      total.y += parts[slot][i].y;
    }
    const float mean = total.x / width, scale = rsqrtf(total.y / width - mean * mean + epsilon);
    if (thread == 0) stores_read<0>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int at = thread * 8 + i;
      out[at] = __float2bfloat16((v[i] - mean) * scale * weight[rank * kPart + at] + bias[rank * kPart + at]);
    }
    fence_async_shared();
    __syncthreads();
    if (thread == 0) {
      bulk_store(y + size_t(row) * width + rank * kPart, shared_address(out), kPart * 2);
      commit_stores();
    }
  }
  if (thread == 0) stores_read<0>();
  cluster_arrive();
  cluster_wait();
}

/// Softmax of one row a cluster; the blocks read one another's maxima and sums between cluster barriers.
extern "C" __global__ void __launch_bounds__(kThreads) softmax(const float* x, float* y, int width) {
  __shared__ float own[2], scratch[kWarps];
  uint32_t blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  const uint32_t rank = cluster_rank();
  const int thread = threadIdx.x, warp = thread / 32, part = width / static_cast<int>(blocks);
  const size_t row = blockIdx.x / blocks;
  x += row * width + rank * part;
  y += row * width + rank * part;
  const auto over_block = [&](float v, auto merge) {
    for (int d = 16; d > 0; d >>= 1) v = merge(v, __shfl_xor_sync(~0u, v, d));
    if (thread % 32 == 0) scratch[warp] = v;
    __syncthreads();
    v = scratch[0];
    for (int i = 1; i < kWarps; ++i) v = merge(v, scratch[i]);
    __syncthreads();
    return v;
  };
  const auto over_cluster = [&](float v, int which, auto merge) {
    if (thread == 0) own[which] = v;
    cluster_arrive();
    cluster_wait();
    for (uint32_t i = 0; i < blocks; ++i) {
      float other;
      asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(other) : "r"(in_block(shared_address(&own[which]), i)) : "memory");
      v = i == 0 ? other : merge(v, other);
    }
    return v;
  };
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const auto plus = [](float a, float b) { return a + b; };
  float most = -INFINITY;
  for (int i = thread; i < part; i += kThreads) most = fmaxf(most, x[i]);
  most = over_cluster(over_block(most, larger), 0, larger);
  float sum = 0;
  for (int i = thread; i < part; i += kThreads) sum += __expf(x[i] - most);
  sum = over_cluster(over_block(sum, plus), 1, plus);
  for (int i = thread; i < part; i += kThreads) y[i] = __expf(x[i] - most) / sum;
  cluster_arrive();
  cluster_wait();
}

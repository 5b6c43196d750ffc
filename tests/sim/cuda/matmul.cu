// C = A B in f32 by 16 x 16 tiles, and the same through asynchronous copies with two stages.
#include <cuda_pipeline_primitives.h>

constexpr int kTile = 16;

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[kTile][kTile], tb[kTile][kTile + 1];
  const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * kTile + ty, column = blockIdx.x * kTile + tx;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    ta[ty][tx] = row < m && k0 + tx < k ? a[row * k + k0 + tx] : 0.f;
    tb[ty][tx] = k0 + ty < k && column < n ? b[(k0 + ty) * n + column] : 0.f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += ta[ty][i] * tb[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

/// k and n are multiples of the tile.
extern "C" __global__ void matmul_async(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ __align__(16) float ta[2][kTile][kTile], tb[2][kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * kTile + ty, column = blockIdx.x * kTile + tx;
  const auto fetch = [&](int stage, int k0) {
    if (tx < kTile / 4) {
      const int at = tx * 4;
      const size_t missing = row < m ? 0 : 16;  // rows below the matrix are zeros
      __pipeline_memcpy_async(&ta[stage][ty][at], row < m ? &a[row * k + k0 + at] : a, 16, missing);
      __pipeline_memcpy_async(&tb[stage][ty][at], &b[(k0 + ty) * n + blockIdx.x * kTile + at], 16);
    }
    __pipeline_commit();
  };
  float sum = 0;
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += kTile, stage ^= 1) {
    if (k0 + kTile < k) {
      fetch(stage ^ 1, k0 + kTile);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum = fmaf(ta[stage][ty][i], tb[stage][i][tx], sum);
    __syncthreads();
  }
  if (row < m) c[row * n + column] = sum;
}

// Sums: shuffles within the warp, shared memory between warps, atomics between blocks.
#include <cstdint>

template <class T>
__device__ T block_sum(T v) {
  __shared__ T of_warp[32];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xFFFFFFFFu, v, d);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : T(0);
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xFFFFFFFFu, v, d);
  }
  return v;
}

extern "C" __global__ void sum_f64(const double* x, double* total, int n) {
  double v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) atomicAdd(total, v);
}

/// The index of the largest element, the first of several: value and index in one 64-bit maximum.
extern "C" __global__ void argmax(const float* x, unsigned long long* best, int n) {
  unsigned long long v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint32_t b = __float_as_uint(x[i]), order = b & 0x80000000u ? ~b : b | 0x80000000u;
    v = max(v, (unsigned long long)order << 32 | (0xFFFFFFFFu - i));
  }
  atomicMax(best, v);
}

/// The warp's integer reductions in one instruction each.
extern "C" __global__ void warp_reduce(const int* x, int* out) {
  const int v = x[threadIdx.x];
  const unsigned u = static_cast<unsigned>(v);
  out[threadIdx.x * 4] = __reduce_add_sync(~0u, v);
  out[threadIdx.x * 4 + 1] = __reduce_min_sync(~0u, v);
  out[threadIdx.x * 4 + 2] = static_cast<int>(__reduce_max_sync(~0u, u));
  out[threadIdx.x * 4 + 3] = static_cast<int>(__reduce_xor_sync(~0u, u));
}

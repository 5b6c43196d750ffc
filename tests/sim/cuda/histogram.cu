// Counts of byte values: first in the block's shared memory, then added to those of the grid.
#include <cstdint>

extern "C" __global__ void histogram(const uchar4* data, unsigned* counts, int n4) {
  __shared__ unsigned own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    const uchar4 v = data[i];
    atomicAdd(&own[v.x], 1u);
    atomicAdd(&own[v.y], 1u);
    atomicAdd(&own[v.z], 1u);
    atomicAdd(&own[v.w], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (own[i]) atomicAdd(&counts[i], own[i]);
}

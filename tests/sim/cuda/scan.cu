// Prefix sums in one pass: each block waits for the total of those before it, which the block in front publishes.
extern "C" __global__ void prefix_sum(const int* x, int* y, volatile int* totals, volatile int* ready, int n) {
  __shared__ int of_warp[32], before;
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, lane = t % 32, warp = t / 32;
  int v = i < n ? x[i] : 0;
  for (int d = 1; d < 32; d <<= 1) {
    const int u = __shfl_up_sync(0xFFFFFFFFu, v, d);
    if (lane >= d) v += u;
  }
  if (lane == 31) of_warp[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int w = lane < blockDim.x / 32 ? of_warp[lane] : 0;
    for (int d = 1; d < 32; d <<= 1) {
      const int u = __shfl_up_sync(0xFFFFFFFFu, w, d);
      if (lane >= d) w += u;
    }
    of_warp[lane] = w;
  }
  __syncthreads();
  if (warp > 0) v += of_warp[warp - 1];
  if (t == blockDim.x - 1) {
    int sum = 0;
    if (blockIdx.x > 0) {
      while (ready[blockIdx.x - 1] == 0) {
      }
      __threadfence();
      sum = totals[blockIdx.x - 1];
    }
    before = sum;
    totals[blockIdx.x] = sum + v;
    __threadfence();
    ready[blockIdx.x] = 1;
  }
  __syncthreads();
  if (i < n) y[i] = before + v;
}

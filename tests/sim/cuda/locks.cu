// A list that threads of all blocks push to, and a lock around a plain sum.
extern "C" __global__ void push(int* heads, int* next, const int* bucket, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int seen = heads[bucket[i]], expected;
  do {
    expected = seen;
    next[i] = expected;
    seen = atomicCAS(&heads[bucket[i]], expected, i);
  } while (seen != expected);
}

extern "C" __global__ void locked(int* lock, volatile int* sum) {
  if (threadIdx.x == 0) {
    while (atomicExch(lock, 1) != 0) {
    }
    __threadfence();
    *sum = *sum * 3 + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

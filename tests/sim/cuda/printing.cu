// printf: every kind of argument, and text that is itself an argument.
#include <cstdio>

extern "C" __global__ void printing(const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  printf("thread %d of block %u: x = %6.2f\n", threadIdx.x, blockIdx.x, x[i]);
  if (i == 1) {
    printf("plain, %% and %s|%5s|%-5s|\n", "text", "ab", "cd");
    printf("%c%c %+d % d %05d %x %X %o %#x\n", 'o', 'k', 7, 8, -42, 255u, 255u, 8u, 255u);
    printf("%lld %llu %ld %e %g %.3s\n", -1234567890123ll, 18446744073709551615ull, -5l, 12345.678, 0.0001, "abcdef");
  }
}

extern "C" __global__ void counted(int* result) { *result = printf("%d %d\n", 1, 2); }

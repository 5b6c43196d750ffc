// What the simulator does not run, each in a kernel of its own: it must say so by name.
#include <cuda_fp16.h>
#include <mma.h>

#include <cassert>

__device__ __noinline__ int twice(int x) { return x * 2; }
__device__ __noinline__ int thrice(int x) { return x * 3; }
extern "C" __global__ void function_pointer(int* out, int which) {
  int (*f)(int) = which ? twice : thrice;
  out[threadIdx.x] = f(static_cast<int>(threadIdx.x));
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recursive(int* out) { out[threadIdx.x] = fibonacci(static_cast<int>(threadIdx.x) % 8); }

extern "C" __global__ void heap(int** out) { out[threadIdx.x] = new int[4]; }

extern "C" __global__ void texture(cudaTextureObject_t t, float* out) { out[threadIdx.x] = tex2D<float>(t, 0.5f, 1.5f); }

extern "C" __global__ void old_matrices(const half* a, const half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.f);
  load_matrix_sync(fa, a, 16);
  load_matrix_sync(fb, b, 16);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
}

extern "C" __global__ void video(const unsigned* x, unsigned* out) { out[threadIdx.x] = __vabsdiffu4(x[threadIdx.x], 0x01020304u); }

/// Runs, and stops the kernel where x is negative.
extern "C" __global__ void asserted(const int* x, int* out) {
  assert(x[threadIdx.x] >= 0 && "no negative number");
  out[threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void trapped(const int* x) {
  if (x[threadIdx.x] < 0) __trap();
}

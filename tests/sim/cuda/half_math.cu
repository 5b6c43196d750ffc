// Packed arithmetic of f16 and bf16 through the types of CUDA's headers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half2_ops(const __half2* x, const __half2* y, __half2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half2 a = x[i], b = y[i];
  __half2* o = out + i * 8;
  o[0] = __hfma2(a, b, __hadd2(a, b));
  o[1] = __hfma2_relu(a, b, __hneg2(b));
  o[2] = __hmax2_nan(a, b);
  o[3] = __hmin2(__habs2(a), b);
  o[4] = __hmul2_sat(a, b);
  o[5] = __hsub2_sat(a, b);
  o[6] = __hge2(a, b);
  o[7] = __halves2half2(__float2half_rz(__half2float(__low2half(a)) * 1.25f), hrint(__high2half(b)));
}

extern "C" __global__ void bf162_ops(const __nv_bfloat162* x, const __nv_bfloat162* y, __nv_bfloat162* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __nv_bfloat162 a = x[i], b = y[i];
  __nv_bfloat162* o = out + i * 6;
  o[0] = __hfma2(a, b, a);
  o[1] = __hadd2(a, b);
  o[2] = __hmax2(a, b);
  o[3] = __hmul2(a, __hneg2(b));
  o[4] = __hlt2(a, b);
  o[5] = __floats2bfloat162_rn(__low2float(a) / 3.f, __high2float(b) * 3.f);
}

/// Functions whose results are approximations.
extern "C" __global__ void half2_functions(const __half2* x, __half2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half2* o = out + i * 5;
  o[0] = h2exp(x[i]);
  o[1] = h2sqrt(__habs2(x[i]));
  o[2] = h2rcp(x[i]);
  o[3] = h2log2(__habs2(x[i]));
  o[4] = h2tanh_approx(x[i]);
}

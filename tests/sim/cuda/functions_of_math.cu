// CUDA's mathematical functions, which the compiler expands from its library of device functions.
#include <cmath>

extern "C" __global__ void single(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  float* o = out + i * 12;
  o[0] = sinf(v);
  o[1] = cosf(v * 1e6f);  // reduced by a table of a thread's own
  o[2] = expf(v);
  o[3] = logf(fabsf(v) + 1e-3f);
  o[4] = powf(fabsf(v), 1.7f);
  o[5] = erff(v);
  o[6] = tanhf(v);
  o[7] = cbrtf(v);
  o[8] = lgammaf(fabsf(v) + 0.5f);
  o[9] = fmodf(v, 0.37f);
  o[10] = v / 3.f + sqrtf(fabsf(v));
  o[11] = roundf(v) + truncf(v) * floorf(v) - ceilf(v) + rintf(v);
}

extern "C" __global__ void twofold(const double* x, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
  double* o = out + i * 8;
  o[0] = sin(v);
  o[1] = exp(v);
  o[2] = log(fabs(v) + 1e-3);
  o[3] = pow(fabs(v), 0.3);
  o[4] = v / 7.0;
  o[5] = sqrt(fabs(v));
  o[6] = rsqrt(fabs(v) + 0.1);
  o[7] = hypot(v, 2.0) + atan2(v, 3.0);
}

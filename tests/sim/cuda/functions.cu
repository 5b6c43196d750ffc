// Calls: many parameters, nested ones, a switch by table, early returns, results by pointer to a local array.
__device__ __noinline__ unsigned step(unsigned op, unsigned a, unsigned b) {
  switch (op) {
    case 0: return a + b;
    case 1: return a - b * 3;
    case 2: return a ^ b;
    case 3: return a * b;
    case 4: return __brev(a) + b;
    case 5: return __popc(a) * 17 + b;
    case 6: return a << (b & 31);
    case 7: return __funnelshift_l(a, b, 9);
    case 8: return b ? a / b : 7;
    case 9: return b ? a % b : 9;
    case 10: return __byte_perm(a, b, 0x5140);
    case 11: return __clz(a | 1) + __ffs(b | 4);
    default: return a;
  }
}
__device__ __noinline__ void minmax(const unsigned* v, int n, unsigned* out) {
  out[0] = out[1] = v[0];
  for (int i = 1; i < n; ++i) {
    out[0] = min(out[0], v[i]);
    out[1] = max(out[1], v[i]);
  }
}
__device__ __noinline__ unsigned collatz(unsigned n) {
  unsigned steps = 0;
  while (n > 1) {
    if (steps > 1000) return 0;
    n = n & 1 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  return steps;
}
__device__ __noinline__ unsigned mixed(unsigned char c, signed char s, unsigned short h, bool flag, long long w, double d) {
  return flag ? static_cast<unsigned>(c + s + h + w + static_cast<long long>(d)) : c * 3u;
}

extern "C" __global__ void functions(const unsigned* ops, unsigned* out, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned values[8];
  for (int k = 0; k < 8; ++k) values[k] = step((ops[i] >> (4 * k)) & 15, i * 2654435761u + k, values[k ? k - 1 : 0] * (k > 0) + 5);
  unsigned ends[2];
  minmax(values, 8, ends);
  const unsigned c = collatz(i + 1);
  out[i] = ends[0] ^ ends[1] + c * 1000003u + values[ops[i] & 7] +
           mixed(i, static_cast<signed char>(-static_cast<int>(i)), i * 300, i & 1, -5ll * i, i * 0.75);
}

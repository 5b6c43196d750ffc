// Integers wider than a register: carry chains, products in halves, 64-bit quotients.
extern "C" __global__ void wide(const unsigned long long* x, unsigned long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long a = x[2 * i], b = x[2 * i + 1];
  const unsigned __int128 wide_a = (static_cast<unsigned __int128>(a) << 64) | b, wide_b = (static_cast<unsigned __int128>(b) << 64) | ~a;
  const unsigned __int128 sum = wide_a + wide_b, product = wide_a * wide_b;
  unsigned long long* o = out + i * 10;
  o[0] = static_cast<unsigned long long>(sum >> 64);
  o[1] = static_cast<unsigned long long>(sum);
  o[2] = static_cast<unsigned long long>(product >> 64);
  o[3] = static_cast<unsigned long long>(product);
  o[4] = __umul64hi(a, b);
  o[5] = b ? a / b : 0;
  o[6] = static_cast<unsigned long long>(static_cast<long long>(a) % (static_cast<long long>(b >> 40) + 1));
  o[7] = static_cast<unsigned long long>(__popcll(a)) << 32 | static_cast<unsigned>(__clzll(static_cast<long long>(b)));
  o[8] = __brevll(a);
  o[9] = static_cast<unsigned long long>((static_cast<__int128>(static_cast<long long>(a)) * static_cast<long long>(b)) >> 64);
}

/// A number of 128 bits per thread, added with the carry instructions themselves.
extern "C" __global__ void add_128(const uint4* x, const uint4* y, uint4* out) {
  const uint4 a = x[threadIdx.x], b = y[threadIdx.x];
  uint4 r;
  asm("{\n add.cc.u32 %0, %4, %8;\n addc.cc.u32 %1, %5, %9;\n addc.cc.u32 %2, %6, %10;\n addc.u32 %3, %7, %11;\n}"
      : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "r"(b.z), "r"(b.w));
  out[threadIdx.x] = r;
}

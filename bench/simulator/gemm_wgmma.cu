// out = a · bᵀ in bf16 with f32 sums, by wgmma on operands in swizzled shared memory. a: [m, k], b: [n, k], out: [m, n];
// m and n are multiples of 128, k of 64. Blocks of 256 threads: two warpgroups, each 64 rows of the tile.
#include <cuda_bf16.h>

#include <cstdint>

namespace {

constexpr int kTile = 128, kDepth = 64;

__device__ std::uint32_t shared_address(const void* p) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(p)); }

/// Rows of 128 bytes in which the 16-byte chunks are swizzled by the row.
__device__ void copy_tile(char* to, const __nv_bfloat16* from, int k) {
  for (int i = threadIdx.x; i < kTile * 8; i += blockDim.x) {
    const int row = i / 8, chunk = i % 8;
    *reinterpret_cast<uint4*>(to + row * 128 + ((chunk ^ (row & 7)) * 16)) =
        *reinterpret_cast<const uint4*>(from + std::int64_t(row) * k + chunk * 8);
  }
}

/// K-major, swizzled by 128 bytes, groups of 8 rows 1024 bytes apart.
__device__ std::uint64_t descriptor(std::uint32_t address) {
  return std::uint64_t(1) << 62 | std::uint64_t(64) << 32 | std::uint64_t(1) << 16 | (address & 0x3FFFF) >> 4;
}

__device__ void wgmma(float (&acc)[64], std::uint64_t a, std::uint64_t b) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0; }"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]), "+f"(acc[6]), "+f"(acc[7]), "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]), "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]), "+f"(acc[15]), "+f"(acc[16]), "+f"(acc[17]), "+f"(acc[18]), "+f"(acc[19]), "+f"(acc[20]), "+f"(acc[21]), "+f"(acc[22]), "+f"(acc[23]), "+f"(acc[24]), "+f"(acc[25]), "+f"(acc[26]), "+f"(acc[27]), "+f"(acc[28]), "+f"(acc[29]), "+f"(acc[30]), "+f"(acc[31]), "+f"(acc[32]), "+f"(acc[33]), "+f"(acc[34]), "+f"(acc[35]), "+f"(acc[36]), "+f"(acc[37]), "+f"(acc[38]), "+f"(acc[39]), "+f"(acc[40]), "+f"(acc[41]), "+f"(acc[42]), "+f"(acc[43]), "+f"(acc[44]), "+f"(acc[45]), "+f"(acc[46]), "+f"(acc[47]), "+f"(acc[48]), "+f"(acc[49]), "+f"(acc[50]), "+f"(acc[51]), "+f"(acc[52]), "+f"(acc[53]), "+f"(acc[54]), "+f"(acc[55]), "+f"(acc[56]), "+f"(acc[57]), "+f"(acc[58]), "+f"(acc[59]), "+f"(acc[60]), "+f"(acc[61]), "+f"(acc[62]), "+f"(acc[63])
      : "l"(a), "l"(b));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) gemm_wgmma(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int n, int k) {
  __shared__ __align__(1024) char a_tile[kTile * 128];
  __shared__ __align__(1024) char b_tile[kTile * 128];
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile, group = threadIdx.x / 128;
  float acc[64];
  for (float& v : acc) v = 0;
  for (int at = 0; at < k; at += kDepth) {
    copy_tile(a_tile, a + std::int64_t(row) * k + at, k);
    copy_tile(b_tile, b + std::int64_t(column) * k + at, k);
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int step = 0; step < kDepth / 16; ++step)
      wgmma(acc, descriptor(shared_address(a_tile) + group * 64 * 128 + step * 32), descriptor(shared_address(b_tile) + step * 32));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  __nv_bfloat16* to = out + std::int64_t(row + group * 64 + warp * 16 + lane / 4) * n + column + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < 16; ++j)
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<__nv_bfloat162*>(to + std::int64_t(half) * 8 * n + j * 8) =
          __floats2bfloat162_rn(acc[4 * j + 2 * half], acc[4 * j + 2 * half + 1]);
}

// out = a · bᵀ in bf16 with f32 sums, by mma.sync. a: [m, k], b: [n, k], out: [m, n]; m and n are multiples of 128, k of
// 32. Blocks of 256 threads: 2 × 4 warps, each 64 × 32 of the tile; two stages of cp.async.
#include <cuda_bf16.h>

#include <cstdint>

namespace {

constexpr int kTile = 128, kDepth = 32;

__device__ std::uint32_t shared_address(const void* p) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(p)); }

/// Offset of a 16-byte chunk in a tile with rows of 64 bytes; eight rows of one chunk lie in different banks.
__device__ int place(int row, int chunk) { return row * 64 + ((chunk ^ (row >> 1 & 3)) * 16); }

__device__ void copy_tile(char* to, const __nv_bfloat16* from, int k) {
  for (int i = threadIdx.x; i < kTile * 4; i += 256)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to + place(i / 4, i % 4))),
                 "l"(__cvta_generic_to_global(from + std::int64_t(i / 4) * k + i % 4 * 8))
                 : "memory");
}

__device__ void load_fragments(std::uint32_t (&f)[4], const char* tile, int row, int step) {
  const int lane = threadIdx.x % 32;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(shared_address(tile + place(row + lane % 16, step * 2 + lane / 16)))
               : "memory");
}

__device__ void mma(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) gemm_mma(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int n, int k) {
  __shared__ __align__(128) char a_tile[2][kTile * 64];
  __shared__ __align__(128) char b_tile[2][kTile * 64];
  a += std::int64_t(blockIdx.y) * kTile * k, b += std::int64_t(blockIdx.x) * kTile * k;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / 4 * 64, column = warp % 4 * 32;
  float acc[4][4][4] = {};
  copy_tile(a_tile[0], a, k);
  copy_tile(b_tile[0], b, k);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int at = 0, stage = 0; at < k; at += kDepth, stage ^= 1) {
    if (at + kDepth < k) {
      copy_tile(a_tile[stage ^ 1], a + at + kDepth, k);
      copy_tile(b_tile[stage ^ 1], b + at + kDepth, k);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
      std::uint32_t fa[4][4], fb[2][4];
      for (int i = 0; i < 4; ++i) load_fragments(fa[i], a_tile[stage], row + 16 * i, step);
      for (int j = 0; j < 2; ++j) load_fragments(fb[j], b_tile[stage], column + 16 * j, step);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) mma(acc[i][j], fa[i], fb[j / 2][j % 2], fb[j / 2][j % 2 + 2]);
    }
    __syncthreads();
  }
  out += std::int64_t(blockIdx.y * kTile + row + lane / 4) * n + blockIdx.x * kTile + column + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<__nv_bfloat162*>(out + std::int64_t(16 * i + 8 * half) * n + 8 * j) =
            __floats2bfloat162_rn(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
}

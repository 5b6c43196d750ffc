// The Hopper instructions that CUDA C++ has no functions for: mbarriers, tensor copies, wgmma, clusters.
#pragma once
#include <cstdint>

#define INLINE __device__ __forceinline__

/// What the host's encode call fills: 128 bytes that only the copy unit reads.
struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

INLINE uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// --- mbarriers ---
INLINE void barrier_init(uint32_t bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
INLINE void barriers_initialised() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
INLINE void arrive_expecting(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
INLINE void arrive(uint32_t bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
INLINE uint32_t in_block(uint32_t address, uint32_t rank) {
  uint32_t r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}
INLINE void arrive_in(uint32_t bar, uint32_t rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_block(bar, rank)) : "memory");
}
INLINE void wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred p;\nWAIT_%=:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra WAIT_%=;\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}
INLINE void wait_cluster(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred p;\nWAIT_%=:\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n @p bra DONE_%=;\n"
      " bra WAIT_%=;\nDONE_%=:\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

// --- copies ---
INLINE void prefetch(const TensorMap* m) { asm volatile("prefetch.tensormap [%0];" ::"l"(m) : "memory"); }
INLINE void load_2d(uint32_t to, const TensorMap* m, uint32_t bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
               "l"(m), "r"(bar), "r"(x), "r"(y)
               : "memory");
}
INLINE void load_2d_to(uint32_t to, const TensorMap* m, uint32_t bar, int x, int y, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::
          "r"(to),
      "l"(m), "r"(bar), "r"(x), "r"(y), "h"(blocks)
      : "memory");
}
INLINE void load_4d(uint32_t to, const TensorMap* m, uint32_t bar, int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(m), "r"(bar), "r"(0), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
INLINE void store_2d(const TensorMap* m, uint32_t from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(m), "r"(from), "r"(x), "r"(y)
               : "memory");
}
INLINE void store_4d(const TensorMap* m, uint32_t from, int row, int head, int batch) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(m), "r"(from), "r"(0),
               "r"(row), "r"(head), "r"(batch)
               : "memory");
}
INLINE void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(bar)
               : "memory");
}
INLINE void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
INLINE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kLeft>
INLINE void stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
INLINE void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
INLINE void send_pair(uint32_t to, float x, float y, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to),
               "r"(__float_as_uint(x)), "r"(__float_as_uint(y)), "r"(bar)
               : "memory");
}

// --- threads that work together ---
INLINE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
INLINE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
INLINE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
INLINE uint32_t cluster_rank() {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
INLINE void named_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
INLINE void named_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
template <int kRegisters>
INLINE void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
INLINE void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
INLINE void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
INLINE void wait_for_predecessor() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// --- matrices ---
INLINE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft>
INLINE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
/// Keeps the compiler from moving reads and writes of `r` across.
template <int N>
INLINE void pin(float (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N>
INLINE void pin(uint32_t (&r)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i])::"memory");
}
/// Descriptor of a tile with the 128-byte swizzle: 8 rows are 1024 bytes apart; `panel` bytes between panels of 64 elements.
INLINE uint64_t descriptor(uint32_t address, uint32_t panel = 16) {
  return uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 | uint64_t{panel >> 4} << 16 | ((address & 0x3FFFF) >> 4);
}
INLINE void store_matrices(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
INLINE uint32_t bf16_pair(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
INLINE uint32_t bf16_pair_relu(float low, float high) {
  uint32_t d;
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
INLINE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#define REGS32                                                                                                         \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
  "%24, %25, %26, %27, %28, %29, %30, %31}"
#define IO4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define IO16(d, i) IO4(d, i), IO4(d, i + 4), IO4(d, i + 8), IO4(d, i + 12)
/// d (64 × 64) = a b + (add ? d : 0), k = 16; both from shared memory, `b` with k along its rows.
INLINE void mma_64(float (&d)[32], uint64_t a, uint64_t b, int add) {
  asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %34, 0;\n wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " REGS32
               ", %32, %33, p, 1, 1, 0, 0;\n}"
               : IO16(d, 0), IO16(d, 16)
               : "l"(a), "l"(b), "r"(add));
}
/// … with `a` in registers and n along the rows of `b`.
INLINE void mma_64_registers(float (&d)[32], const uint32_t* a, uint64_t b, int add) {
  asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %37, 0;\n wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " REGS32
               ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}"
               : IO16(d, 0), IO16(d, 16)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
/// d (64 × 128) = a b + (add ? d : 0), k = 16; both from shared memory.
INLINE void mma_128(float (&d)[64], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
      "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0;\n}"
      : IO16(d, 0), IO16(d, 16), IO16(d, 32), IO16(d, 48)
      : "l"(a), "l"(b), "r"(add));
}

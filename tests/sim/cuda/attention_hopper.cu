// Causal attention in bf16, heads of 64: one warpgroup loads Q, K and V, two take turns at the tensor cores, each with 64
// rows of Q. The maximum of a row moves only where it grew by more than 2^8; blocks take tiles from a counter.
#include <cuda_bf16.h>

#include "hopper.cuh"

constexpr int kHead = 64, kKeys = 64, kStages = 2, kConsumers = 2, kRows = 64 * kConsumers;
constexpr int kBytesQ = 64 * kHead * 2, kBytesK = kKeys * kHead * 2;
constexpr int kThreads = 128 * (kConsumers + 1);

struct Attention {
  TensorMap q, k, v, o;  // {head dimension, position, head, batch}, boxes of 64 x 64, 128-byte swizzle
  int heads, kv_heads, queries, keys, tiles_of_head, tiles;
  float scale;  // of the scores, times log2(e)
  int* counter;
};

struct Tile {
  int row, head, batch, blocks;
};
INLINE Tile tile_of(const Attention& p, int t) {
  Tile r;
  const int m = p.tiles_of_head - 1 - t / (p.tiles / p.tiles_of_head), bh = t % (p.tiles / p.tiles_of_head);
  r.batch = bh / p.heads;
  r.head = bh % p.heads;
  r.row = m * kRows;
  const int end = min(p.keys, min(r.row + kRows, p.queries) + p.keys - p.queries);
  r.blocks = (end + kKeys - 1) / kKeys;
  return r;
}

/// Scores become exponentials; `sum` and `most` those of the thread's two rows, `grow` what earlier sums are multiplied with.
INLINE bool softmax(float (&s)[32], float (&most)[2], float (&sum)[2], float (&grow)[2], float scale, int limit0, int limit1,
                    bool first) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    if (8 * j >= limit0) s[4 * j] = -INFINITY;
    if (8 * j + 1 >= limit0) s[4 * j + 1] = -INFINITY;
    if (8 * j >= limit1) s[4 * j + 2] = -INFINITY;
    if (8 * j + 1 >= limit1) s[4 * j + 3] = -INFINITY;
  }
  bool moved = false;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float x = -INFINITY;
#pragma unroll
    for (int j = 0; j < 8; ++j) x = fmaxf(x, fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]));
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
    if (first) {
      most[r] = fmaxf(x, -1e30f);
      grow[r] = 0;
      sum[r] = 0;
    } else {
      const bool up = (x - most[r]) * scale > 8.f;
      grow[r] = up ? exp2_fast((most[r] - x) * scale) : 1.f;
      most[r] = up ? x : most[r];
      moved |= up;
    }
    float total = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& v = s[4 * j + 2 * r + e];
        v = exp2_fast(fmaf(v, scale, -most[r] * scale));
        total += v;
      }
    sum[r] = fmaf(sum[r], grow[r], total);
  }
  return __any_sync(~0u, moved);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) attention(const __grid_constant__ Attention p) {
  extern __shared__ uint8_t raw[];
  const uint32_t sq = (shared_address(raw) + 1023) & ~1023u;
  const uint32_t sk = sq + kConsumers * kBytesQ, sv = sk + kStages * kBytesK, so = sv + kStages * kBytesK;
  const uint32_t bars = so + kConsumers * kBytesQ, slot = bars + 128;
  const auto k_full = [&](int i) { return bars + i * 8; };
  const auto k_empty = [&](int i) { return bars + 16 + i * 8; };
  const auto v_full = [&](int i) { return bars + 32 + i * 8; };
  const auto v_empty = [&](int i) { return bars + 48 + i * 8; };
  const auto q_full = [&](int i) { return bars + 64 + i * 8; };
  const auto q_empty = [&](int i) { return bars + 80 + i * 8; };
  const auto tile_full = [&](int i) { return bars + 96 + i * 8; };
  const auto tile_empty = [&](int i) { return bars + 112 + i * 8; };
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      barrier_init(k_full(i), 1);
      barrier_init(k_empty(i), kConsumers);
      barrier_init(v_full(i), 1);
      barrier_init(v_empty(i), kConsumers);
      barrier_init(q_full(i), 1);
      barrier_init(q_empty(i), 1);
      barrier_init(tile_full(i), 1);
      barrier_init(tile_empty(i), kConsumers * 128);
    }
    barriers_initialised();
  } else if (threadIdx.x == 128) {
    prefetch(&p.q);
    prefetch(&p.k);
    prefetch(&p.v);
    prefetch(&p.o);
  }
  __syncthreads();

  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (group == kConsumers) {
    fewer_registers<40>();
    if (threadIdx.x == kConsumers * 128) {
      int ks = 0, vs = 0, ts = 0;
      uint32_t kp = 1, vp = 1, tp = 1, qp = 1;
      for (int t = blockIdx.x;;) {
        const bool more = t < p.tiles;
        wait(tile_empty(ts), tp);
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(slot + ts * 4), "r"(more ? t : -1) : "memory");
        arrive(tile_full(ts));
        if (++ts == 2) ts = 0, tp ^= 1;
        if (!more) break;
        const Tile tile = tile_of(p, t);
        const int kv = tile.head / (p.heads / p.kv_heads);
        const auto load_k = [&](int j) {
          wait(k_empty(ks), kp);
          arrive_expecting(k_full(ks), kBytesK);
          load_4d(sk + ks * kBytesK, &p.k, k_full(ks), j * kKeys, kv, tile.batch);
          if (++ks == kStages) ks = 0, kp ^= 1;
        };
        const auto load_v = [&](int j) {
          wait(v_empty(vs), vp);
          arrive_expecting(v_full(vs), kBytesK);
          load_4d(sv + vs * kBytesK, &p.v, v_full(vs), j * kKeys, kv, tile.batch);
          if (++vs == kStages) vs = 0, vp ^= 1;
        };
        load_k(tile.blocks - 1);
#pragma unroll
        for (int c = 0; c < kConsumers; ++c) {
          wait(q_empty(c), qp);
          arrive_expecting(q_full(c), kBytesQ);
          load_4d(sq + c * kBytesQ, &p.q, q_full(c), tile.row + c * 64, tile.head, tile.batch);
        }
        qp ^= 1;
        for (int j = tile.blocks - 2; j >= 0; --j) {
          load_k(j);
          load_v(j + 1);
        }
        load_v(0);
        t = gridDim.x + atomicAdd(p.counter, 1);
      }
    }
    return;
  }

  more_registers<232>();
  const int c = group, thread = threadIdx.x % 128, warp = __shfl_sync(~0u, thread / 32, 0), lane = thread % 32;
  const auto turn = [&] { named_sync(1 + c, 256); };
  const auto pass = [&] { named_arrive(1 + (c ^ 1), 256); };
  if (c == 1) named_arrive(1, 256);
  const uint32_t own_q = sq + c * kBytesQ, own_o = so + c * kBytesQ;
  int ks = 0, vs = 0, ts = 0;
  uint32_t kp = 0, vp = 0, tp = 0, qp = 0;
  float o[32], s[32], most[2], sum[2], grow[2];
  uint32_t weights[16];
  const auto scores = [&] {
    const uint64_t q = descriptor(own_q), k = descriptor(sk + ks * kBytesK);
#pragma unroll
    for (int i = 0; i < kHead / 16; ++i) mma_64(s, q + i * 2, k + i * 2, i > 0);
    wgmma_commit();
  };
  const auto values = [&](int add) {
    const uint64_t v = descriptor(sv + vs * kBytesK, 8192);
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) mma_64_registers(o, weights + 4 * i, v + i * 128, i > 0 ? 1 : add);
    wgmma_commit();
  };
  const auto release_k = [&] {
    if (thread == 0) arrive(k_empty(ks));
    if (++ks == kStages) ks = 0, kp ^= 1;
  };
  const auto release_v = [&] {
    if (thread == 0) arrive(v_empty(vs));
    if (++vs == kStages) vs = 0, vp ^= 1;
  };
  const auto pack = [&] {
#pragma unroll
    for (int i = 0; i < 16; ++i) weights[i] = bf16_pair(s[2 * i], s[2 * i + 1]);
  };
  for (;;) {
    wait(tile_full(ts), tp);
    int t;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(t) : "r"(slot + ts * 4) : "memory");
    arrive(tile_empty(ts));
    if (++ts == 2) ts = 0, tp ^= 1;
    t = __shfl_sync(~0u, t, 0);
    if (t < 0) break;
    const Tile tile = tile_of(p, t);
    const int row = tile.row + c * 64 + warp * 16 + (lane >> 2), ahead = p.keys - p.queries + 1 - 2 * (lane & 3);
    const int limit0 = min(p.keys - 2 * (lane & 3), row + ahead), limit1 = min(p.keys - 2 * (lane & 3), row + 8 + ahead);
    wait(q_full(c), qp);
    qp ^= 1;
    int j = tile.blocks - 1;
    wait(k_full(ks), kp);
    turn();
    pin(s);
    wgmma_fence();
    scores();
    pass();
    wgmma_wait<0>();
    pin(s);
    release_k();
    softmax(s, most, sum, grow, p.scale, limit0 - j * kKeys, limit1 - j * kKeys, true);
    pack();
    int add = 0;
    for (--j; j >= 0; --j) {
      wait(k_full(ks), kp);
      turn();
      pin(o);
      pin(s);
      pin(weights);
      wgmma_fence();
      scores();
      wait(v_full(vs), vp);
      values(add);
      wgmma_wait<1>();
      pin(s);
      pass();
      release_k();
      const bool moved = softmax(s, most, sum, grow, p.scale, limit0 - j * kKeys, limit1 - j * kKeys, false);
      wgmma_wait<0>();
      pin(o);
      pin(s);
      release_v();
      if (moved) {
#pragma unroll
        for (int i = 0; i < 32; ++i) o[i] *= grow[i >> 1 & 1];
      }
      pack();
      add = 1;
    }
    if (thread == 0) arrive(q_empty(c));
    wait(v_full(vs), vp);
    turn();
    pin(o);
    pin(weights);
    wgmma_fence();
    values(add);
    pass();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
      sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
      sum[r] = sum[r] > 0.f ? __frcp_rn(sum[r]) : 0.f;
    }
    wgmma_wait<0>();
    pin(o);
    release_v();
    if (thread == 0) stores_read<0>();
    named_sync(5 + c, 128);
    const int r = (lane & 7) + (lane >> 3 & 1) * 8;
#pragma unroll
    for (int i = 0; i < 8; i += 2)
      store_matrices(own_o + (warp * 16 + r) * 128 + ((i + (lane >> 4)) ^ (lane & 7)) * 16,
                     bf16_pair(o[4 * i] * sum[0], o[4 * i + 1] * sum[0]), bf16_pair(o[4 * i + 2] * sum[1], o[4 * i + 3] * sum[1]),
                     bf16_pair(o[4 * i + 4] * sum[0], o[4 * i + 5] * sum[0]),
                     bf16_pair(o[4 * i + 6] * sum[1], o[4 * i + 7] * sum[1]));
    fence_async_shared();
    named_sync(5 + c, 128);
    if (thread == 0) {
      store_4d(&p.o, own_o, tile.row + c * 64, tile.head, tile.batch);
      commit_stores();
    }
  }
  if (thread == 0) stores_read<0>();
  if (c == 0) named_sync(1, 256);  // the credit of the first turn
}

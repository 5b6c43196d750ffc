// Cooperative groups: tiles of a warp, lanes that happen to be together, reductions and scans of the library.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const int* x, int* sums, int* scans) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = static_cast<int>(blockIdx.x * block.size() + block.thread_rank());
  sums[i] = cg::reduce(tile, x[i], cg::plus<int>());
  scans[i] = cg::exclusive_scan(tile, x[i]);
}

/// Stream compaction: lanes with a positive element take places together, by one atomic of their leader.
extern "C" __global__ void keep_positive(const int* x, int* kept, int* count, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n && x[i] > 0) {
    const auto group = cg::coalesced_threads();
    int base = 0;
    if (group.thread_rank() == 0) base = atomicAdd(count, static_cast<int>(group.size()));
    kept[group.shfl(base, 0) + group.thread_rank()] = x[i];
  }
}

/// How many lanes of the warp have the same key.
extern "C" __global__ void same_key(const int* keys, int* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto group = cg::labeled_partition(warp, keys[threadIdx.x]);
  out[threadIdx.x] = static_cast<int>(group.size()) * 100 + static_cast<int>(group.thread_rank());
}

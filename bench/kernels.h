// The kernels that the benchmarks run.
#pragma once
#include <kiln/kiln.h>

#include <cstddef>

namespace kiln::bench {

inline constexpr int kBlock = 1024;

/// How a pointwise kernel over n elements is launched. A small array is all latency: one element a thread, and code
/// without vectors and their tails. Otherwise the compiler chooses (num_warps 0).
struct PointwiseShape {
  int block = kBlock, num_warps = 0;
};
inline PointwiseShape shape_for(std::size_t n) { return n <= 16384 ? PointwiseShape{128, 4} : PointwiseShape{}; }

inline constinit auto add_relu =
    kernel("add_relu", [](In<float> a, In<float> b, Out<float> c, Int n, Const<int> BLOCK) {
      Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
      store(c + i, relu(load(a + i, mask) + load(b + i, mask)), mask);
    });

inline constinit auto copy = kernel("copy", [](In<bf16> from, Out<bf16> to, Int n, Const<int> BLOCK) {
  Tile i = program_id(0) * BLOCK + arange(BLOCK), mask = i < n;
  store(to + i, load(from + i, mask), mask);
});

}  // namespace kiln::bench

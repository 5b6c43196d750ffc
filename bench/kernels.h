// The kernels that the benchmarks run.
#pragma once
#include <kiln/kiln.h>

#include <algorithm>
#include <bit>

namespace kiln::bench {

inline constexpr int kBlock = 1024;

/// The block of a pointwise kernel over n elements: small arrays are spread over the multiprocessors, 64 elements at least.
inline int block_for(std::size_t n) {
  constexpr std::size_t kPrograms = 128;
  return static_cast<int>(std::clamp<std::size_t>(std::bit_ceil(n / kPrograms), 64, kBlock));
}

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

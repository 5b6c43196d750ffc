// The kernels that the benchmarks run.
#pragma once
#include <kiln/kiln.h>

namespace kiln::bench {

inline constexpr int kBlock = 1024;

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

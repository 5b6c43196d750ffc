// Random register layouts: any assignment of places to coordinates, replication included.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "backend/ir/layout.h"

namespace kiln::test {

struct LayoutKind {
  std::vector<std::int64_t> shape;  ///< powers of two
  int warps = 1;
  bool mixed = false;       ///< bases of several bits (swizzles)
  bool replicated = false;  ///< more places than elements
};

inline LayoutKind random_kind(std::mt19937& random) {
  const auto up_to = [&](int n) { return std::uniform_int_distribution<>(0, n)(random); };
  LayoutKind kind;
  const int rank = 1 + up_to(2);
  for (int k = 0; k < rank; ++k) kind.shape.push_back(std::int64_t(1) << up_to(rank == 1 ? 9 : 5));
  kind.warps = 1 << up_to(2);
  kind.mixed = up_to(2) == 0;
  kind.replicated = up_to(2) == 0;
  return kind;
}

/// A surjective layout of that kind.
inline ir::LinearLayout random_layout(std::mt19937& random, const LayoutKind& kind) {
  ir::LinearLayout l(kind.shape);
  using Coord = ir::LinearLayout::Coord;
  const auto rank = kind.shape.size();
  std::vector<Coord> bases;
  for (std::size_t k = 0; k < rank; ++k)
    for (std::int64_t step = 1; step < kind.shape[k]; step *= 2) {
      Coord c(rank, 0);
      c[k] = step;
      bases.push_back(c);
    }
  const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const auto add = [&](Coord& to, const Coord& c) {
    for (std::size_t k = 0; k < rank; ++k) to[k] ^= c[k];
  };
  const std::size_t n = bases.size();
  if (kind.mixed)
    for (std::size_t i = 0; n > 1 && i < 2 * n; ++i)  // elementary operations keep the span
      if (const std::size_t a = pick(n), b = pick(n); a != b) add(bases[a], bases[b]);
  const int warp_bits = kind.warps == 1 ? 0 : kind.warps == 2 ? 1 : 2;
  const auto threads = std::size_t(5 + warp_bits);
  std::size_t extra = kind.replicated ? pick(4) : 0;
  if (n + extra < threads) extra = threads - n;
  for (std::size_t i = 0; i < extra; ++i) {
    Coord c(rank, 0);
    if (kind.replicated && kind.mixed && n > 0 && pick(2) == 0) c = bases[pick(n)];
    bases.push_back(c);
  }
  std::shuffle(bases.begin(), bases.end(), random);
  for (std::size_t i = 0; i < bases.size(); ++i)
    l.add_bit(i < 5 ? ir::Hw::Lane : i < threads ? ir::Hw::Warp : ir::Hw::Register, bases[i]);
  return l;
}

}  // namespace kiln::test

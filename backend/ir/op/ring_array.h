// Elements of a block of an array, as the interpreter finds them.
#pragma once
#include <span>
#include <vector>

#include "backend/ir/op/evaluator.h"

namespace kiln::ir {

inline std::int64_t index_at(Evaluator& e, const Inst& inst, std::size_t operand) {
  return *e.in<std::int64_t>(inst.operands[operand]);
}

/// Calls fn(element, address, inside) for each element of a block in row-major order; the operands of `inst` from
/// `first` on describe the array: base, sizes, strides, first coordinates.
template <class Fn>
void for_block(Evaluator& e, const Inst& inst, std::size_t first, std::span<const std::int64_t> extents, Fn&& fn) {
  const std::size_t rank = extents.size();
  const auto base = *e.in<std::uint64_t>(inst.operands[first]);
  const std::size_t bytes = std::size_t(kiln::bytes(e.type(inst.operands[first]).dtype));
  std::vector<std::int64_t> at(rank, 0);
  std::size_t count = 1;
  for (std::int64_t extent : extents) count *= std::size_t(extent);
  for (std::size_t i = 0; i < count; ++i) {
    bool inside = true;
    std::uint64_t address = base;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t x = index_at(e, inst, first + 1 + 2 * rank + d) + at[d];
      inside = inside && x >= 0 && x < index_at(e, inst, first + 1 + d);
      address += std::uint64_t(x) * std::uint64_t(index_at(e, inst, first + 1 + rank + d)) * bytes;
    }
    fn(i, address, inside);
    for (std::size_t d = rank; d-- > 0 && ++at[d] == extents[d];) at[d] = 0;
  }
}

}  // namespace kiln::ir

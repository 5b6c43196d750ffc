// Sort along an axis, and histogram.
#include "backend/ir/op/sort.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "backend/ir/layout_zoo.h"
#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/numeric.h"
#include "backend/ir/op/scratch.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

/// Whether `a` stands before `b`: NaN is last in both directions.
template <class T>
bool before(T a, T b, bool descending) {
  if constexpr (num::is_floating<T>) {
    const double x = num::widen(a), y = num::widen(b);
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x);
    return descending ? x > y : x < y;
  } else {
    return descending ? a > b : a < b;
  }
}

/// Positions `first`, `first` + `stride`, … (`n` of them) in the order of their keys.
template <class T>
std::vector<std::size_t> sorted_positions(const T* keys, std::size_t first, std::size_t stride, std::size_t n,
                                          bool descending) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = first + i * stride;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return before(keys[x], keys[y], descending); });
  return order;
}

}  // namespace

Types infer_Sort(const InferInput& in) {
  if (in.operands.empty()) in.fail("takes one tile or more");
  checked_axis(in, in.type(0));
  Types types;
  for (std::size_t i = 0; i < in.operands.size(); ++i) {
    const Type& x = in.type(i);
    if (x.ptr) in.fail("pointers are not sorted: " + x.str());
    if (!x.tile || x.shape != in.type(0).shape) in.fail("shapes differ: " + in.type(0).str() + " and " + x.str());
    types.push_back(laid_out(in, x, i));
  }
  return types;
}
void eval_Sort(Evaluator& e, const Inst& inst) {
  const Type& key = e.type(inst.operands[0]);
  const auto axis = std::size_t(inst.i64(AttrKey::axis));
  const auto n = std::size_t(key.shape[axis]);
  std::size_t stride = 1;
  for (std::size_t i = axis + 1; i < key.shape.size(); ++i) stride *= std::size_t(key.shape[i]);
  for (Value r : inst.results) e.define(r);
  for (std::size_t line = 0; line < e.elements(inst.operands[0]) / n; ++line) {
    const std::size_t first = line / stride * stride * n + line % stride;
    const std::vector<std::size_t> order = num::dispatch(key.dtype, [&]<class T>(std::type_identity<T>) {
      return sorted_positions(e.in<T>(inst.operands[0]), first, stride, n, inst.flag(AttrKey::descending));
    });
    for (std::size_t t = 0; t < inst.results.size(); ++t) {
      const std::size_t bytes = element_bytes(e.type(inst.results[t]));
      const std::byte* from = e.data(inst.operands[t]);
      std::byte* to = e.define(inst.results[t]);
      for (std::size_t i = 0; i < n; ++i)
        std::memcpy(to + (first + i * stride) * bytes, from + order[i] * bytes, bytes);
    }
  }
}

std::optional<SortPlace> sort_place(const LinearLayout& l, int axis, int bit) {
  LinearLayout::Coord wanted(std::size_t(l.rank()), 0);
  wanted[std::size_t(axis)] = std::int64_t(1) << bit;
  for (Hw h : {Hw::Register, Hw::Lane})
    for (int i = 0; i < l.in_bits(h); ++i)
      if (l.basis(h, i) == wanted) return SortPlace{h, i};
  return std::nullopt;
}

int sort_position_bits(const Function& f, const Inst& sort) {
  const std::int64_t extent = f.type(sort.operands[0]).shape[std::size_t(sort.i64(AttrKey::axis))];
  return std::countr_zero(std::uint64_t(padded(extent)));
}

// The key, its position, and for floats whether it is -0, which has the order of +0.
int sort_packed_bytes(const Function& f, const Inst& sort) {
  const DType key = f.type(sort.operands[0]).dtype;
  const int wanted = std::max(bits(key), 8) + sort_position_bits(f, sort) + (is_float(key) ? 1 : 0);
  return std::max(4, int(std::bit_ceil(unsigned(wanted))) / 8);
}

/// Packed keys where elements of different warps are compared; then one tile at a time that follows the first.
std::int64_t scratch_sort(const Function& f, const Inst& sort) {
  const Type& key = f.type(sort.results[0]);
  const LinearLayout& l = f.layout(key.layout);
  std::int64_t element = 0;
  for (int bit = 0; bit < sort_position_bits(f, sort); ++bit)
    if (!sort_place(l, int(sort.i64(AttrKey::axis)), bit)) element = sort_packed_bytes(f, sort);
  for (std::size_t t = 1; t < sort.results.size(); ++t)
    element = std::max(element, std::int64_t(bytes(f.type(sort.results[t]).dtype)));
  return element * padded_elements(key.shape);
}

std::int64_t scratch_histogram(const Function& f, const Inst& histogram) {
  return padded_elements(f.type(histogram.results[0]).shape) * bytes(DType::i32);
}

Types infer_Histogram(const InferInput& in) {
  const Type& x = in.type(0);
  if (!x.tile || x.ptr || !is_int(x.dtype)) in.fail("takes a tile of integers, not " + x.str());
  if (in.operands.size() > 1 && in.type(1) != x.with(DType::i1))
    in.fail("mask is " + in.type(1).str() + ", must be " + x.with(DType::i1).str());
  const Shape& to = in.wanted().shape;
  check_shape(in, to);
  if (to.size() != 1) in.fail("counts are a tile of one axis, not of shape " + shape_str(to));
  return {laid_out(in, Type::tile_of(DType::i32, to))};
}
void eval_Histogram(Evaluator& e, const Inst& inst) {
  const Value x = inst.operands[0], r = inst.results[0];
  const bool* mask = inst.operands.size() > 1 ? e.in<bool>(inst.operands[1]) : nullptr;
  auto* counts = e.out<std::int32_t>(r);
  std::fill_n(counts, e.elements(r), 0);
  num::dispatch(e.type(x).dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::integral<T>) {
      const T* in = e.in<T>(x);
      for (std::size_t i = 0; i < e.elements(x); ++i)
        if ((!mask || mask[i]) && std::uint64_t(in[i]) < e.elements(r)) ++counts[in[i]];
    }
  });
}

}  // namespace kiln::ir

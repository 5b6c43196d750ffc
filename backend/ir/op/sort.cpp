// Sort along an axis, and histogram.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/numeric.h"
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

// Ops that make and reshape values: constants, program coordinates, arange, splat, axes, casts, select, pointers.
// Tiles are stored in row-major order.
#include <cstring>

#include "backend/ir/op/evaluator.h"
#include "backend/ir/op/infer.h"
#include "backend/ir/op/numeric.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

Types scalar_index(const InferInput&) { return {Type::scalar(DType::index)}; }

void check_grid_axis(const InferInput& in) {
  const std::int64_t axis = in.i64(AttrKey::axis);
  if (axis < 0 || axis > 2) in.fail("grid axes are 0, 1 and 2, axis is " + std::to_string(axis));
}

/// Copies one element of `bytes` bytes to each of n places.
void fill(std::byte* out, const std::byte* element, std::size_t bytes, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) std::memcpy(out + i * bytes, element, bytes);
}

}  // namespace

// --- constant, param
// ---------------------------------------------------------------------------------------------------
Types infer_Constant(const InferInput& in) {
  const Literal& value = *in.literal(AttrKey::value);
  const Type t = Type::scalar(value.dtype);
  if (value.dtype == DType::i1 ? value.bits > 1 : bits(value.dtype) < 64 && value.bits >> bits(value.dtype))
    in.fail("literal has bits outside of " + t.str());
  return {t};
}
void eval_Constant(Evaluator& e, const Inst& inst) {
  const std::uint64_t bits = inst.literal().bits;
  std::memcpy(e.define(inst.results[0]), &bits, element_bytes(e.type(inst.results[0])));
}

Types infer_Param(const InferInput& in) {
  const std::int64_t i = in.i64(AttrKey::index);
  if (i < 0 || i >= std::int64_t(in.f.params.size()))
    in.fail("kernel has " + std::to_string(in.f.params.size()) + " parameters, index is " + std::to_string(i));
  return {in.f.params[std::size_t(i)].type};
}
void eval_Param(Evaluator& e, const Inst& inst) {
  const std::uint64_t bits = e.arg(inst.i64(AttrKey::index)).bits;
  std::memcpy(e.define(inst.results[0]), &bits, element_bytes(e.type(inst.results[0])));
}

// --- program coordinates
// -----------------------------------------------------------------------------------------------
Types infer_ProgramId(const InferInput& in) {
  check_grid_axis(in);
  return scalar_index(in);
}
void eval_ProgramId(Evaluator& e, const Inst& inst) {
  *e.out<std::int64_t>(inst.results[0]) = e.pid()[std::size_t(inst.i64(AttrKey::axis))];
}

Types infer_NumPrograms(const InferInput& in) {
  check_grid_axis(in);
  return scalar_index(in);
}
void eval_NumPrograms(Evaluator& e, const Inst& inst) {
  *e.out<std::int64_t>(inst.results[0]) = e.programs()[std::size_t(inst.i64(AttrKey::axis))];
}

// --- arange, splat, axes
// -----------------------------------------------------------------------------------------------
Types infer_Arange(const InferInput& in) {
  const std::int64_t start = in.i64(AttrKey::start), end = in.i64(AttrKey::end);
  if (end <= start)
    in.fail("end must be above start, range is " + std::to_string(start) + " to " + std::to_string(end));
  const std::uint64_t n = std::uint64_t(end) - std::uint64_t(start);
  if (n > std::uint64_t(kMaxTileElements))
    in.fail("range " + std::to_string(start) + " to " + std::to_string(end) + " has more than 1048576 elements");
  return {laid_out(in, Type::tile_of(DType::index, {std::int64_t(n)}))};
}
void eval_Arange(Evaluator& e, const Inst& inst) {
  auto* out = e.out<std::int64_t>(inst.results[0]);
  const std::int64_t start = inst.i64(AttrKey::start);
  for (std::size_t i = 0; i < e.elements(inst.results[0]); ++i) out[i] = start + std::int64_t(i);
}

Types infer_Splat(const InferInput& in) {
  const Type& x = in.type(0);
  if (x.tile) in.fail("takes a scalar, not " + x.str());
  check_shape(in, in.wanted().shape);
  return {laid_out(in, x.with_shape(in.wanted().shape))};
}
void eval_Splat(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  fill(e.define(r), e.data(inst.operands[0]), element_bytes(e.type(r)), e.elements(r));
}

Types infer_ExpandDims(const InferInput& in) {
  const Type& x = in.type(0);
  const std::int64_t axis = in.i64(AttrKey::axis);
  if (!x.tile) in.fail("takes a tile, not " + x.str());
  if (axis < 0 || axis > std::int64_t(x.shape.size()))
    in.fail("axis " + std::to_string(axis) + " is not in 0 to " + std::to_string(x.shape.size()) + " for " + x.str());
  Shape shape = x.shape;
  shape.insert(shape.begin() + axis, 1);
  return {laid_out(in, x.with_shape(std::move(shape)))};
}
void eval_ExpandDims(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  std::memcpy(e.define(r), e.data(inst.operands[0]), element_bytes(e.type(r)) * e.elements(r));
}

Types infer_Broadcast(const InferInput& in) {
  const Type& x = in.type(0);
  const Shape& to = in.wanted().shape;
  if (!x.tile) in.fail("takes a tile, not " + x.str());
  bool fits = x.shape.size() == to.size();
  for (std::size_t i = 0; fits && i < to.size(); ++i) fits = x.shape[i] == to[i] || x.shape[i] == 1;
  if (!fits) in.fail(x.str() + " does not broadcast to shape " + shape_str(to));
  check_shape(in, to);
  return {laid_out(in, x.with_shape(to))};
}
void eval_Broadcast(Evaluator& e, const Inst& inst) {
  const Value x = inst.operands[0], r = inst.results[0];
  const Shape &from = e.type(x).shape, &to = e.type(r).shape;
  const std::size_t bytes = element_bytes(e.type(r)), n = e.elements(r);
  const std::byte* in = e.data(x);
  std::byte* out = e.define(r);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t source = 0, stride = 1, rest = i;
    for (std::size_t axis = to.size(); axis-- > 0;) {
      const std::size_t coordinate = rest % std::size_t(to[axis]);
      rest /= std::size_t(to[axis]);
      if (from[axis] != 1) source += coordinate * stride;
      stride *= std::size_t(from[axis]);
    }
    std::memcpy(out + i * bytes, in + source * bytes, bytes);
  }
}

// --- conversions
// -------------------------------------------------------------------------------------------------------
Types infer_Cast(const InferInput& in) {
  const Type &x = in.type(0), &to = in.wanted();
  if (x.ptr || to.ptr) in.fail("pointers are not converted: " + x.str() + " to " + to.str());
  if (in.i64(AttrKey::saturate) && !is_float(to.dtype))
    in.fail(std::string("saturate is for float results, ") + name(to.dtype) +
            " always saturates from float and wraps from int");
  return {x.with(to.dtype)};
}
void eval_Cast(Evaluator& e, const Inst& inst) {
  const Value x = inst.operands[0], r = inst.results[0];
  const bool saturate = inst.flag(AttrKey::saturate);
  const std::size_t n = e.elements(r);
  num::dispatch(e.type(x).dtype, [&]<class From>(std::type_identity<From>) {
    num::dispatch(e.type(r).dtype, [&]<class To>(std::type_identity<To>) {
      const From* in = e.in<From>(x);
      To* out = e.out<To>(r);
      for (std::size_t i = 0; i < n; ++i) out[i] = num::convert<To>(in[i], saturate);
    });
  });
}

Types infer_Bitcast(const InferInput& in) {
  const Type &x = in.type(0), &to = in.wanted();
  if (x.ptr || to.ptr || bits(x.dtype) != bits(to.dtype))
    in.fail("widths differ: " + x.str() + " read as " + (to.ptr ? to.str() : name(to.dtype)));
  return {x.with(to.dtype)};
}
void eval_Bitcast(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  std::memcpy(e.define(r), e.data(inst.operands[0]), element_bytes(e.type(r)) * e.elements(r));
}

Types infer_Convert(const InferInput& in) {
  const Type& x = in.type(0);
  if (!x.tile) in.fail("takes a tile, not " + x.str());
  return {laid_out(in, x)};
}
void eval_Convert(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  std::memcpy(e.define(r), e.data(inst.operands[0]), element_bytes(e.type(r)) * e.elements(r));
}

// --- select, ptr_add
// ---------------------------------------------------------------------------------------------------
Types infer_Select(const InferInput& in) {
  const Type &cond = in.type(0), &a = in.type(1), &b = in.type(2);
  if (a != b) in.fail("branches differ: " + a.str() + " and " + b.str());
  if (cond != a.with(DType::i1)) in.fail("condition is " + cond.str() + ", must be " + a.with(DType::i1).str());
  return {a};
}
void eval_Select(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0];
  const bool* cond = e.in<bool>(inst.operands[0]);
  const std::byte *a = e.data(inst.operands[1]), *b = e.data(inst.operands[2]);
  const std::size_t bytes = element_bytes(e.type(r)), n = e.elements(r);
  std::byte* out = e.define(r);
  for (std::size_t i = 0; i < n; ++i) std::memcpy(out + i * bytes, (cond[i] ? a : b) + i * bytes, bytes);
}

Types infer_PtrAdd(const InferInput& in) {
  const Type &ptr = in.type(0), &offset = in.type(1);
  if (!ptr.ptr) in.fail("takes a pointer, not " + ptr.str());
  if (offset.ptr || !is_int(offset.dtype)) in.fail("offset must be an integer, is " + offset.str());
  if (ptr.tile != offset.tile || ptr.shape != offset.shape || ptr.layout != offset.layout)
    in.fail("shapes differ: " + ptr.str() + " and " + offset.str());
  return {ptr};
}
void eval_PtrAdd(Evaluator& e, const Inst& inst) {
  const Value r = inst.results[0], offset = inst.operands[1];
  const auto* in = e.in<std::uint64_t>(inst.operands[0]);
  auto* out = e.out<std::uint64_t>(r);
  const auto size = std::uint64_t(bytes(e.type(r).dtype));
  num::dispatch(e.type(offset).dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::integral<T>) {
      const T* by = e.in<T>(offset);
      for (std::size_t i = 0; i < e.elements(r); ++i) out[i] = in[i] + std::uint64_t(by[i]) * size;
    }
  });
}

}  // namespace kiln::ir

#include "dsl/lang/shaping.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsl/lang/promote.h"

namespace kiln::detail {

ir::Value value_as(Tracer& t, const Operand& o, DType d, const char* who, SourceLoc at) {
  if (o.handle) return t.read(*o.handle, at);
  const auto literal = literal_of(o.number, d);
  if (!literal) t.fail(at, fmt::format("{}: the constant {} does not fit {}", who, text_of(o.number), name(d)));
  return t.constant(*literal, at);
}

ir::Value value_of(Tracer& t, const Operand& o, SourceLoc at) { return value_as(t, o, o.number.own, "constant", at); }

std::pair<ir::Value, ir::Value> read_pair(Tracer& t, const Operand& a, const Operand& b, const char* who,
                                          SourceLoc at) {
  ir::Value x, y;
  if (a.handle) x = t.read(*a.handle, at);
  if (b.handle) y = t.read(*b.handle, at);
  auto beside = [&](const Operand& number, ir::Value other) {
    if (!other.valid()) return value_of(t, number, at);
    const ir::Type& type = t.type(other);
    return value_as(t, number, type.ptr ? DType::index : number_dtype(number.number, type.dtype), who, at);
  };
  if (!x.valid()) x = beside(a, y);
  if (!y.valid()) y = beside(b, x);
  return {x, y};
}

std::vector<ir::Value> meet(Tracer& t, const std::vector<const Operand*>& operands, const char* who, SourceLoc at) {
  std::vector<ir::Value> v(operands.size());
  std::optional<ir::Type> type;  // dtype and pointer-ness that all met in so far; the first variable's, to begin with
  auto join = [&](const ir::Type& next) {
    const auto d = type ? promote(type->dtype, next.dtype) : next.dtype;
    if (!d || (type && (type->ptr != next.ptr || (next.ptr && type->dtype != next.dtype))))
      t.fail(at, fmt::format("{}: no dtype holds both {} and {}; cast one of them", who, type->str(), next.str()));
    if (!type) type = next;
    type->dtype = *d;
  };
  for (std::size_t i = 0; i < v.size(); ++i)
    if (operands[i]->handle) join(t.type(v[i] = t.read(*operands[i]->handle, at)));
  const std::optional<DType> variables = type ? std::optional(type->dtype) : std::nullopt;
  for (const Operand* o : operands)
    if (!o->handle) join(ir::Type::scalar(variables ? number_dtype(o->number, *variables) : o->number.own));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = operands[i]->handle ? cast_to(t, v[i], type->dtype, at) : value_as(t, *operands[i], type->dtype, who, at);
  ir::Type shape = t.type(v[0]);
  for (ir::Value x : v) shape = common_shape(t, shape, t.type(x), who, at);
  for (ir::Value& x : v) x = broadcast_like(t, x, shape, who, at);
  return v;
}

ir::Value cast_to(Tracer& t, ir::Value x, DType d, SourceLoc at) {
  if (t.type(x).dtype == d) return x;
  return t.emit(at, [&](ir::Builder& b) { return b.cast(x, d, false, at); });
}

ir::Type common_shape(Tracer& t, const ir::Type& a, const ir::Type& b, const char* who, SourceLoc at) {
  if (!a.tile) return b;
  if (!b.tile) return a;
  ir::Shape shape(std::max(a.shape.size(), b.shape.size()));
  auto extent = [&](const ir::Type& x, std::size_t from_right) {
    return from_right < x.shape.size() ? x.shape[x.shape.size() - 1 - from_right] : 1;
  };
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t p = extent(a, i), q = extent(b, i);
    if (p != q && p != 1 && q != 1)
      t.fail(at, fmt::format("{}: shapes do not broadcast: {} and {}", who, a.str(), b.str()));
    shape[shape.size() - 1 - i] = p == 1 ? q : p;
  }
  return a.with_shape(std::move(shape));
}

ir::Value broadcast_like(Tracer& t, ir::Value x, const ir::Type& like, const char* who, SourceLoc at) {
  if (!like.tile) {
    if (t.type(x).tile) t.fail(at, fmt::format("{}: {} is a tile, {} a scalar", who, t.type(x).str(), like.str()));
    return x;
  }
  if (!t.type(x).tile) return t.emit(at, [&](ir::Builder& b) { return b.splat(x, like.shape, at); });
  if (common_shape(t, t.type(x), like, who, at).shape != like.shape)
    t.fail(at, fmt::format("{}: {} does not broadcast to the shape of {}", who, t.type(x).str(), like.str()));
  while (t.type(x).shape.size() < like.shape.size())
    x = t.emit(at, [&](ir::Builder& b) { return b.expand_dims(x, 0, at); });
  if (t.type(x).shape == like.shape) return x;
  return t.emit(at, [&](ir::Builder& b) { return b.broadcast(x, like.shape, at); });
}

int normal_axis(Tracer& t, int axis, int rank, const char* who, SourceLoc at) {
  const int normal = axis < 0 ? axis + rank : axis;
  if (normal < 0 || normal >= rank) t.fail(at, fmt::format("{}: axis {} of a tile of rank {}", who, axis, rank));
  return normal;
}

}  // namespace kiln::detail

#include "dsl/lang/reduce.h"

#include <limits>

#include "dsl/lang/shaping.h"
#include "dsl/lang/tracer.h"

namespace kiln {
namespace {

using detail::Tracer;
using ir::Attr;
using ir::AttrKey;
using ir::Builder;
using ir::Literal;
using ir::Op;
using ir::Type;
using ir::Value;
using Values = std::vector<Value>;

/// Combines two groups of values.
using Combine = detail::FunctionRef<Values(Builder&, const Values&, SourceLoc)>;

std::vector<Type> scalars_of(Tracer& t, const Values& tiles) {
  std::vector<Type> types;
  for (Value v : tiles) types.push_back(Type::scalar(t.type(v).dtype));
  return types;
}

/// One reduction or scan whose region `fill` traces.
template <class Fill>
Values make(Tracer& t, Op op, const Values& operands, std::size_t tiles, std::vector<Attr> attrs, SourceLoc at,
            Fill&& fill) {
  ir::InstId inst = ir::kNone;
  t.emit_effect(at, [&](Builder& b) { inst = b.append(op, operands, {}, std::move(attrs), at); });
  std::vector<Type> yields = scalars_of(t, {operands.begin(), operands.begin() + std::ptrdiff_t(tiles)});
  std::vector<Type> params = yields;
  params.insert(params.end(), yields.begin(), yields.end());
  fill(inst, params, yields);
  return t.function().inst(inst).results;
}

/// The region of a reduction by name.
void fill_region(Tracer& t, ir::InstId inst, const std::vector<Type>& params, Combine combine, SourceLoc at) {
  t.emit_effect(at, [&](Builder& b) {
    ir::Function& f = b.function();
    const ir::RegionId outside = b.region(), region = f.add_region(inst);
    Values values;
    for (const Type& p : params) values.push_back(f.add_region_param(region, p));
    b.set_region(region);
    b.append(Op::Yield, combine(b, values, at), {}, {}, at);
    b.set_region(outside);
  });
}

Value kept(Tracer& t, Value reduced, int axis, SourceLoc at) {
  return t.emit(at, [&](Builder& b) {
    return b.function().type(reduced).tile ? b.expand_dims(reduced, axis, at) : b.splat(reduced, {1}, at);
  });
}

const Type& checked_tile(Tracer& t, Value x, const char* who, SourceLoc at) {
  const Type& type = t.type(x);
  if (!type.tile || type.shape.empty()) t.fail(at, std::string(who) + ": takes a tile, not " + type.str());
  return type;
}

/// Reduces along `axis`, or over all axes, the last first; `reduce_once` makes one reduction.
template <class Once>
Values reduce_axes(Tracer& t, Values x, int axis, bool keep_dims, const char* who, SourceLoc at, Once&& reduce_once) {
  const int rank = int(checked_tile(t, x.at(0), who, at).shape.size());
  if (axis == detail::kAllAxes) {
    for (int a = rank; a-- > 0;) x = reduce_once(x, a);
    return x;
  }
  const int normal = detail::normal_axis(t, axis, rank, who, at);
  if (rank == 1 && !keep_dims)
    t.fail(at, std::string(who) + ": " + t.type(x[0]).str() +
                   " has one axis, so the result is a Scalar: leave out the "
                   "axis, or keep it (keep_dims)");
  x = reduce_once(x, normal);
  if (keep_dims)
    for (Value& v : x) v = kept(t, v, normal, at);
  return x;
}

Values reduce_by(Tracer& t, const Values& x, int axis, bool keep_dims, const char* who, SourceLoc at, Combine combine) {
  return reduce_axes(t, x, axis, keep_dims, who, at, [&](const Values& tiles, int a) {
    return make(t, Op::Reduce, tiles, tiles.size(), {{AttrKey::axis, std::int64_t(a)}}, at,
                [&](ir::InstId i, const std::vector<Type>& params, const std::vector<Type>&) {
                  fill_region(t, i, params, combine, at);
                });
  });
}

bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }
bool is_number(DType d) { return is_int(d) || is_half(d) || d == DType::f32 || d == DType::f64; }

/// The operand of a reduction by name, whose dtype must be a number, or floating.
Value operand(Tracer& t, const Tile& x, const char* who, bool floating, SourceLoc at) {
  const Value v = t.read(x, at);
  const Type& type = checked_tile(t, v, who, at);
  if (type.ptr || !is_number(type.dtype) || (floating && !is_float(type.dtype)))
    t.fail(at, std::string(who) + ": takes " + (floating ? "floating elements" : "numbers") + ", not " + type.str() +
                   (type.dtype == DType::i1 ? "; cast it first, or use any and all" : ""));
  return v;
}

/// x in the dtype in which it is added or multiplied up.
Value widened(Tracer& t, Value x, SourceLoc at) {
  return is_half(t.type(x).dtype) ? detail::cast_to(t, x, f32, at) : x;
}

Value fold(Tracer& t, Value x, Op op, int axis, bool keep_dims, const char* who, SourceLoc at) {
  return reduce_by(t, {x}, axis, keep_dims, who, at, [&](Builder& b, const Values& p, SourceLoc l) {
    return Values{b.elementwise(op, {p[0], p[1]}, l)};
  })[0];
}

Value accumulate(Tracer& t, Op op, const Tile& tile, int axis, bool keep_dims, const char* who, SourceLoc at) {
  const Value x = operand(t, tile, who, false, at);
  return detail::cast_to(t, fold(t, widened(t, x, at), op, axis, keep_dims, who, at), t.type(x).dtype, at);
}

Value extreme(Tracer& t, Op op, const Tile& tile, int axis, bool keep_dims, const char* who, SourceLoc at) {
  return fold(t, operand(t, tile, who, false, at), op, axis, keep_dims, who, at);
}

Value logic(Tracer& t, Op op, const Tile& tile, int axis, bool keep_dims, const char* who, SourceLoc at) {
  const Value x = t.read(tile, at);
  if (const Type& type = checked_tile(t, x, who, at); type.ptr || type.dtype != DType::i1)
    t.fail(at, std::string(who) + ": takes i1, not " + type.str() + ": compare first");
  return fold(t, x, op, axis, keep_dims, who, at);
}

Value filled(Builder& b, Literal l, const Type& like, SourceLoc at) {
  const Value c = b.constant(l, at);
  return like.tile ? b.splat(c, like.shape, at) : c;
}

Value mean_of(Tracer& t, const Tile& tile, int axis, bool keep_dims, SourceLoc at) {
  const Value x = operand(t, tile, "mean", true, at);
  const Type type = t.type(x);
  const Value total = fold(t, widened(t, x, at), Op::Add, axis, keep_dims, "mean", at);
  const int rank = int(type.shape.size());
  const std::int64_t n = axis == detail::kAllAxes
                             ? type.elements()
                             : type.shape[std::size_t(detail::normal_axis(t, axis, rank, "mean", at))];
  const Value ratio = t.emit(at, [&](Builder& b) {
    const Type& sum_type = b.function().type(total);
    const Value count = filled(b, Literal::of_int(sum_type.dtype, n), Type(sum_type), at);
    return b.elementwise(Op::Div, {total, count}, at);
  });
  return detail::cast_to(t, ratio, type.dtype, at);
}

/// e^(x - m) cannot overflow; where the largest element m is infinite or NaN, x itself decides: m is taken as 0.
Value logsumexp_of(Tracer& t, const Tile& tile, int axis, bool keep_dims, SourceLoc at) {
  const char* who = "logsumexp";
  const Value given = operand(t, tile, who, true, at);
  const Value x = widened(t, given, at);
  const Type type = t.type(x);
  if (type.dtype != f32) t.fail(at, std::string(who) + ": takes f16, bf16 and f32, not " + type.str());
  const bool all = axis == detail::kAllAxes;
  const Value largest = fold(t, x, Op::Max, axis, !all, who, at);
  const auto constant = [](Builder& b, double v, const Type& like, SourceLoc l) {
    return filled(b, Literal::of_float(f32, v), like, l);
  };
  const Value shift = t.emit(at, [&](Builder& b) {
    const Type like = b.function().type(largest);
    const Value infinity = constant(b, std::numeric_limits<double>::infinity(), like, at);
    const Value finite = b.elementwise(Op::Lt, {b.elementwise(Op::Abs, {largest}, at), infinity}, at);
    return b.select(finite, largest, constant(b, 0, like, at), at);
  });
  const Value powers = t.emit(at, [&](Builder& b) {
    const Value wide = all ? b.splat(shift, type.shape, at) : b.broadcast(shift, type.shape, at);
    return b.elementwise(Op::Exp, {b.elementwise(Op::Sub, {x, wide}, at)}, at);
  });
  const Value total = fold(t, powers, Op::Add, axis, !all, who, at);
  Value result = t.emit(at, [&](Builder& b) {
    return b.elementwise(Op::Add, {b.elementwise(Op::Log, {total}, at), shift}, at);
  });
  if (!all && !keep_dims) result = fold(t, result, Op::Max, axis, false, who, at);
  return detail::cast_to(t, result, t.type(given).dtype, at);
}

/// The better of two (value, position) pairs; written so that swapping them changes nothing.
Values better(Builder& b, Op op, const Values& p, SourceLoc at) {
  const Value best = b.elementwise(op, {p[0], p[2]}, at);
  const Value none = b.constant(Literal::of_int(i32, std::numeric_limits<std::int32_t>::max()), at);
  const auto position = [&](Value value, Value where) {
    Value wins = b.elementwise(Op::Eq, {value, best}, at);
    if (is_float(b.function().type(value).dtype))
      wins = b.elementwise(Op::Or, {wins, b.elementwise(Op::Ne, {value, value}, at)}, at);
    return b.select(wins, where, none, at);
  };
  return {best, b.elementwise(Op::Min, {position(p[0], p[1]), position(p[2], p[3])}, at)};
}

/// i32: each element's position along `axis`, or among all in row-major order.
Value positions(Builder& b, const ir::Shape& shape, int axis, SourceLoc at) {
  Value all;
  std::int64_t step = 1;
  for (int a = int(shape.size()); a-- > 0; step *= shape[std::size_t(a)]) {
    if (axis != detail::kAllAxes && a != axis) continue;
    Value i = b.cast(b.arange(0, shape[std::size_t(a)], at), i32, false, at);
    for (int k = 0; k < a; ++k) i = b.expand_dims(i, 0, at);
    for (int k = a + 1; k < int(shape.size()); ++k) i = b.expand_dims(i, k, at);
    i = b.broadcast(i, shape, at);
    if (axis == detail::kAllAxes && step > 1)
      i = b.elementwise(Op::Mul, {i, filled(b, Literal::of_int(i32, step), Type::tile_of(i32, shape), at)}, at);
    all = all.valid() ? b.elementwise(Op::Add, {all, i}, at) : i;
  }
  return all;
}

Value arg_extreme(Tracer& t, Op op, const Tile& tile, int axis, bool keep_dims, const char* who, SourceLoc at) {
  const Value x = operand(t, tile, who, false, at);
  const ir::Shape shape = t.type(x).shape;
  const int along = axis == detail::kAllAxes ? axis : detail::normal_axis(t, axis, int(shape.size()), who, at);
  const Value where = t.emit(at, [&](Builder& b) { return positions(b, shape, along, at); });
  const Values best = reduce_by(t, {x, where}, axis, keep_dims, who, at,
                                [&](Builder& b, const Values& p, SourceLoc l) { return better(b, op, p, l); });
  return detail::cast_to(t, best[1], DType::index, at);
}

Value running(Tracer& t, Op op, const Tile& tile, int axis, bool reverse, const char* who, SourceLoc at) {
  const Value x = operand(t, tile, who, false, at);
  const int rank = int(t.type(x).shape.size());
  std::vector<Attr> attrs{{AttrKey::axis, std::int64_t(detail::normal_axis(t, axis, rank, who, at))}};
  if (reverse) attrs.push_back({AttrKey::reverse, std::int64_t(1)});
  const auto combine = [&](Builder& b, const Values& p, SourceLoc l) {
    return Values{b.elementwise(op, {p[0], p[1]}, l)};
  };
  const Values all = make(t, Op::Scan, {widened(t, x, at)}, 1, std::move(attrs), at,
                          [&](ir::InstId i, const std::vector<Type>& params, const std::vector<Type>&) {
                            fill_region(t, i, params, combine, at);
                          });
  return detail::cast_to(t, all[0], t.type(x).dtype, at);
}

}  // namespace

namespace detail {

std::vector<ValueId> reduce(const std::vector<const Handle*>& x, int axis, bool keep_dims, Combining combining,
                            SourceLoc at) {
  Tracer& t = Tracer::current(at);
  Values tiles;
  for (const Handle* h : x) tiles.push_back(t.read(*h, at));
  const Values results = reduce_axes(t, tiles, axis, keep_dims, "reduce", at, [&](const Values& v, int a) {
    return make(t, Op::Reduce, v, v.size(), {{AttrKey::axis, std::int64_t(a)}}, at,
                [&](ir::InstId i, const std::vector<Type>& params, const std::vector<Type>& yields) {
                  t.combine(i, "reduce", params, yields, combining, at);
                });
  });
  std::vector<ValueId> ids;
  for (Value v : results) ids.push_back(v.id);
  return ids;
}

std::vector<ValueId> scan(const std::vector<const Handle*>& x, int axis, const std::vector<Operand>* init, bool reverse,
                          Combining combining, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  Values operands;
  for (const Handle* h : x) operands.push_back(t.read(*h, at));
  const int rank = int(checked_tile(t, operands.at(0), "scan", at).shape.size());
  std::vector<Attr> attrs{{AttrKey::axis, std::int64_t(normal_axis(t, axis, rank, "scan", at))}};
  if (reverse) attrs.push_back({AttrKey::reverse, std::int64_t(1)});
  if (init) attrs.push_back({AttrKey::exclusive, std::int64_t(1)});
  for (std::size_t i = 0; init && i < init->size(); ++i)
    operands.push_back(value_as(t, (*init)[i], t.type(operands[i]).dtype, "exclusive_scan", at));
  const Values results = make(t, Op::Scan, operands, x.size(), std::move(attrs), at,
                              [&](ir::InstId i, const std::vector<Type>& params, const std::vector<Type>& yields) {
                                t.combine(i, "scan", params, yields, combining, at);
                              });
  std::vector<ValueId> ids;
  for (Value v : results) ids.push_back(v.id);
  return ids;
}

}  // namespace detail

#define KILN_DEFINE_REDUCTION(name, ...)                         \
  Scalar name(const Tile& x, RawLoc l) {                         \
    Tracer& t = Tracer::current(l);                              \
    const int axis = detail::kAllAxes;                           \
    const bool keep_dims = false;                                \
    return Scalar(detail::Made{(__VA_ARGS__).id});               \
  }                                                              \
  Tile name(const Tile& x, int axis, bool keep_dims, RawLoc l) { \
    Tracer& t = Tracer::current(l);                              \
    return Tile(detail::Made{(__VA_ARGS__).id});                 \
  }
KILN_DEFINE_REDUCTION(sum, accumulate(t, Op::Add, x, axis, keep_dims, "sum", l))
KILN_DEFINE_REDUCTION(prod, accumulate(t, Op::Mul, x, axis, keep_dims, "prod", l))
KILN_DEFINE_REDUCTION(max, extreme(t, Op::Max, x, axis, keep_dims, "max", l))
KILN_DEFINE_REDUCTION(min, extreme(t, Op::Min, x, axis, keep_dims, "min", l))
KILN_DEFINE_REDUCTION(mean, mean_of(t, x, axis, keep_dims, l))
KILN_DEFINE_REDUCTION(logsumexp, logsumexp_of(t, x, axis, keep_dims, l))
KILN_DEFINE_REDUCTION(any, logic(t, Op::Or, x, axis, keep_dims, "any", l))
KILN_DEFINE_REDUCTION(all, logic(t, Op::And, x, axis, keep_dims, "all", l))
KILN_DEFINE_REDUCTION(argmax, arg_extreme(t, Op::Max, x, axis, keep_dims, "argmax", l))
KILN_DEFINE_REDUCTION(argmin, arg_extreme(t, Op::Min, x, axis, keep_dims, "argmin", l))
#undef KILN_DEFINE_REDUCTION

Tile cumsum(const Tile& x, int axis, bool reverse, RawLoc l) {
  return Tile(detail::Made{running(Tracer::current(l), Op::Add, x, axis, reverse, "cumsum", l).id});
}
Tile cumprod(const Tile& x, int axis, bool reverse, RawLoc l) {
  return Tile(detail::Made{running(Tracer::current(l), Op::Mul, x, axis, reverse, "cumprod", l).id});
}

}  // namespace kiln

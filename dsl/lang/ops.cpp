#include "dsl/lang/ops.h"

#include <fmt/format.h>

#include "dsl/lang/pointer.h"

namespace kiln {
namespace {

using detail::Made;
using detail::Operand;
using detail::Tracer;

ir::CacheHint hint_of(Tracer& t, Hints hints, const ir::Type& ptr, const char* who, SourceLoc at) {
  if (ptr.shared && hints.cache != Cache::plain)
    t.fail(at, fmt::format("{}: a cache hint on the pointer {}: shared memory has no cache", who, ptr.str()));
  switch (hints.cache) {
    case Cache::plain: return ir::CacheHint::Plain;
    case Cache::no_allocate: return ir::CacheHint::NoAllocate;
    case Cache::streaming: return ir::CacheHint::Streaming;
    case Cache::evict_first: return ir::CacheHint::EvictFirst;
    case Cache::evict_last: return ir::CacheHint::EvictLast;
  }
  t.fail(at, fmt::format("{}: {} is no cache hint", who, int(hints.cache)));
}

Made do_load(const Handle& ptr, const Operand* mask, const Operand* other, Hints hints, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  const ir::Value p = detail::pointer_operand(t, ptr, "load", at);
  const ir::Type type = t.type(p);
  const ir::CacheHint hint = hint_of(t, hints, type, "load", at);
  ir::Value m, o;
  if (mask) m = detail::mask_operand(t, *mask, type, "load", at);
  if (other) o = detail::element_operand(t, *other, type, "load", "other", at);
  return {t.emit(at, [&](ir::Builder& b) { return b.load(p, m, o, hint, at); }).id};
}

void do_store(const Handle& ptr, const Operand& value, const Operand* mask, Hints hints, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  const ir::Value p = detail::written_pointer(t, ptr, "store", at);
  const ir::Type type = t.type(p);
  const ir::CacheHint hint = hint_of(t, hints, type, "store", at);
  const ir::Value v = detail::element_operand(t, value, type, "store", "value", at);
  ir::Value m;
  if (mask) m = detail::mask_operand(t, *mask, type, "store", at);
  t.emit_effect(at, [&](ir::Builder& b) { b.store(p, v, m, hint, at); });
}

Made do_select(const Handle& cond, const Operand& a, const Operand& b, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  ir::Value c = t.read(cond, at);
  if (t.type(c).dtype != DType::i1 || t.type(c).ptr)
    t.fail(at, fmt::format("select: condition must be i1, not {}", t.type(c).str()));
  std::vector<ir::Value> v = detail::meet(t, {&a, &b}, "select", at);
  const ir::Type shape = detail::common_shape(t, t.type(c), t.type(v[0]), "select", at);
  c = detail::broadcast_like(t, c, shape, "select", at);
  for (ir::Value& x : v) x = detail::broadcast_like(t, x, shape, "select", at);
  return {t.emit(at, [&](ir::Builder& m) { return m.select(c, v[0], v[1], at); }).id};
}

Made do_arange(std::int64_t begin, std::int64_t end, SourceLoc at) {
  return {Tracer::current(at).emit(at, [&](ir::Builder& b) { return b.arange(begin, end, at); }).id};
}

Made do_broadcast(const Handle& x, const Shape& shape, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  const ir::Value v = t.read(x, at);
  ir::Type like = t.type(v);
  like.tile = true;
  like.shape = shape.extents();
  return {detail::broadcast_like(t, v, like, "broadcast_to", at).id};
}

}  // namespace

Scalar program_id(int axis, RawLoc l) {
  return Scalar(Made{Tracer::current(l).emit(l, [&](ir::Builder& b) { return b.program_id(axis, l); }).id});
}
Scalar num_programs(int axis, RawLoc l) {
  return Scalar(Made{Tracer::current(l).emit(l, [&](ir::Builder& b) { return b.num_programs(axis, l); }).id});
}

Tile arange(std::int64_t n, RawLoc l) { return Tile(do_arange(0, n, l)); }
Tile arange(std::int64_t begin, std::int64_t end, RawLoc l) { return Tile(do_arange(begin, end, l)); }

Tile full(DType d, const Shape& shape, SArg value, RawLoc l) {
  Tracer& t = Tracer::current(l);
  for (std::int64_t extent : shape.extents())
    if (extent < 1)
      t.fail(l, fmt::format("a tile's extents are positive, shape is [{}]", fmt::join(shape.extents(), ",")));
  const ir::Value v = detail::value_as(t, value, d, "full", l);
  if (t.type(v).dtype != d || t.type(v).ptr)
    t.fail(l, fmt::format("full: value is {}, not {}; cast first", t.type(v).str(), name(d)));
  return Tile(Made{t.emit(l, [&](ir::Builder& b) { return b.splat(v, shape.extents(), l); }).id});
}
Tile zeros(DType d, const Shape& shape, RawLoc l) {
  return full(d, shape, d == DType::i1 ? SArg(false, l) : SArg(0, l), l);
}

Tile expand(const Tile& x, int axis, RawLoc l) {
  Tracer& t = Tracer::current(l);
  const ir::Value v = t.read(x, l);
  const int at = detail::normal_axis(t, axis, int(t.type(v).shape.size()) + 1, "expand", l);
  return Tile(Made{t.emit(l, [&](ir::Builder& b) { return b.expand_dims(v, at, l); }).id});
}
Tile broadcast_to(const Tile& x, const Shape& shape, RawLoc l) { return Tile(do_broadcast(x, shape, l)); }
Tile broadcast_to(const Scalar& x, const Shape& shape, RawLoc l) { return Tile(do_broadcast(x, shape, l)); }

#define KILN_LOAD(Handle, Any)                                                                                         \
  Handle load(const Handle& ptr, RawLoc l) { return Handle(do_load(ptr, nullptr, nullptr, {}, l)); }                   \
  Handle load(const Handle& ptr, Any mask, RawLoc l) { return Handle(do_load(ptr, &mask, nullptr, {}, l)); }           \
  Handle load(const Handle& ptr, Any mask, Any other, RawLoc l) { return Handle(do_load(ptr, &mask, &other, {}, l)); } \
  Handle load(const Handle& ptr, Hints h, RawLoc l) { return Handle(do_load(ptr, nullptr, nullptr, h, l)); }           \
  Handle load(const Handle& ptr, Any mask, Hints h, RawLoc l) { return Handle(do_load(ptr, &mask, nullptr, h, l)); }   \
  Handle load(const Handle& ptr, Any mask, Any other, Hints h, RawLoc l) {                                             \
    return Handle(do_load(ptr, &mask, &other, h, l));                                                                  \
  }                                                                                                                    \
  void store(const Handle& ptr, Any value, RawLoc l) { do_store(ptr, value, nullptr, {}, l); }                         \
  void store(const Handle& ptr, Any value, Any mask, RawLoc l) { do_store(ptr, value, &mask, {}, l); }                 \
  void store(const Handle& ptr, Any value, Hints h, RawLoc l) { do_store(ptr, value, nullptr, h, l); }                 \
  void store(const Handle& ptr, Any value, Any mask, Hints h, RawLoc l) { do_store(ptr, value, &mask, h, l); }
KILN_LOAD(Tile, Arg)
KILN_LOAD(Scalar, SArg)
#undef KILN_LOAD

Tile select(const Tile& cond, Arg a, Arg b, RawLoc l) { return Tile(do_select(cond, a, b, l)); }
Tile select(const Scalar& cond, const Tile& a, Arg b, RawLoc l) { return Tile(do_select(cond, Operand(a, l), b, l)); }
Tile select(const Scalar& cond, SArg a, const Tile& b, RawLoc l) { return Tile(do_select(cond, a, Operand(b, l), l)); }
Scalar select(const Scalar& cond, SArg a, SArg b, RawLoc l) { return Scalar(do_select(cond, a, b, l)); }

Tile abs(const Tile& x, RawLoc l) { return Tile(detail::unary(ir::Op::Abs, Operand(x, l), l)); }
Scalar abs(const Scalar& x, RawLoc l) { return Scalar(detail::unary(ir::Op::Abs, Operand(x, l), l)); }
Tile relu(const Tile& x, RawLoc l) { return Tile(detail::unary(ir::Op::Relu, Operand(x, l), l)); }
Scalar relu(const Scalar& x, RawLoc l) { return Scalar(detail::unary(ir::Op::Relu, Operand(x, l), l)); }

Tile minimum(const Tile& a, Arg b) { return Tile(detail::binary(ir::Op::Min, Operand(a, b.at), b, b.at)); }
Tile minimum(SArg a, const Tile& b) { return Tile(detail::binary(ir::Op::Min, a, Operand(b, a.at), a.at)); }
Scalar minimum(const Scalar& a, SArg b) { return Scalar(detail::binary(ir::Op::Min, Operand(a, b.at), b, b.at)); }
Scalar minimum(CArg a, const Scalar& b) { return Scalar(detail::binary(ir::Op::Min, a, Operand(b, a.at), a.at)); }
Tile maximum(const Tile& a, Arg b) { return Tile(detail::binary(ir::Op::Max, Operand(a, b.at), b, b.at)); }
Tile maximum(SArg a, const Tile& b) { return Tile(detail::binary(ir::Op::Max, a, Operand(b, a.at), a.at)); }
Scalar maximum(const Scalar& a, SArg b) { return Scalar(detail::binary(ir::Op::Max, Operand(a, b.at), b, b.at)); }
Scalar maximum(CArg a, const Scalar& b) { return Scalar(detail::binary(ir::Op::Max, a, Operand(b, a.at), a.at)); }

namespace {

template <class H>
H ceil_quotient(const Operand& a, const Operand& b, SourceLoc at) {
  const H q(detail::binary(ir::Op::Div, a, b, at)), r(detail::binary(ir::Op::Rem, a, b, at));
  const H more(detail::binary(ir::Op::Ne, Operand(r, at), Operand(detail::Number::of(0), at), at));
  const H one(detail::cast(more, q.dtype(), false, at));
  return H(detail::binary(ir::Op::Add, Operand(q, at), Operand(one, at), at));
}

template <class H>
std::pair<H, H> quotient_and_remainder(const Operand& a, const Operand& b, SourceLoc at) {
  H q(detail::binary(ir::Op::Div, a, b, at));
  H r(detail::binary(ir::Op::Rem, a, b, at));
  return {q, r};
}

}  // namespace

Scalar cdiv(const Scalar& a, SArg b) { return ceil_quotient<Scalar>(Operand(a, b.at), b, b.at); }
Scalar cdiv(CArg a, const Scalar& b) { return ceil_quotient<Scalar>(a, Operand(b, a.at), a.at); }
Tile cdiv(const Tile& a, Arg b) { return ceil_quotient<Tile>(Operand(a, b.at), b, b.at); }

std::pair<Scalar, Scalar> divmod(const Scalar& a, SArg b) {
  return quotient_and_remainder<Scalar>(Operand(a, b.at), b, b.at);
}
std::pair<Scalar, Scalar> divmod(CArg a, const Scalar& b) {
  return quotient_and_remainder<Scalar>(a, Operand(b, a.at), a.at);
}
std::pair<Tile, Tile> divmod(const Tile& a, Arg b) { return quotient_and_remainder<Tile>(Operand(a, b.at), b, b.at); }
std::pair<Tile, Tile> divmod(SArg a, const Tile& b) { return quotient_and_remainder<Tile>(a, Operand(b, a.at), a.at); }

}  // namespace kiln

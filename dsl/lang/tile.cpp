#include "dsl/lang/tile.h"

#include <fmt/format.h>

#include "dsl/lang/promote.h"
#include "dsl/lang/shaping.h"

namespace kiln {
namespace detail {
namespace {

bool is_bitwise(ir::Op op) { return ir::info(op).rule == ir::TypeRule::Bits; }

/// pointer + integer, integer + pointer, pointer - integer.
ir::Value offset_pointer(Tracer& t, ir::Op op, ir::Value x, ir::Value y, SourceLoc at) {
  if (op == ir::Op::Add && !t.type(x).ptr) std::swap(x, y);
  const ir::Type p = t.type(x), q = t.type(y);
  if (q.ptr || !p.ptr || (op != ir::Op::Add && op != ir::Op::Sub))
    t.fail(at, fmt::format("pointers allow only pointer + integer and pointer - integer, not {} of {} and {}",
                           ir::mnemonic(op), p.str(), q.str()));
  if (!is_int(q.dtype)) t.fail(at, fmt::format("a pointer offset must be an integer, not {}", q.str()));
  if (op == ir::Op::Sub) {
    if (!is_signed(q.dtype)) y = cast_to(t, y, DType::index, at);
    y = t.emit(at, [&](ir::Builder& b) { return b.elementwise(ir::Op::Neg, {y}, at); });
  }
  const ir::Type shape = common_shape(t, p, q, ir::mnemonic(op), at);
  x = broadcast_like(t, x, shape, ir::mnemonic(op), at);
  y = broadcast_like(t, y, shape, ir::mnemonic(op), at);
  return t.emit(at, [&](ir::Builder& b) { return b.ptr_add(x, y, at); });
}

DType meeting_dtype(Tracer& t, ir::Op op, const ir::Type& p, const ir::Type& q, SourceLoc at) {
  const bool on_i1 = is_bitwise(op) || op == ir::Op::Eq || op == ir::Op::Ne;
  if ((p.dtype == DType::i1 || q.dtype == DType::i1) && !(on_i1 && p.dtype == q.dtype))
    t.fail(
        at,
        fmt::format(
            "'{}' of {} and {}: i1 takes part in no arithmetic; write a <= b && b < c instead of a <= b < c, or cast",
            ir::mnemonic(op), p.str(), q.str()));
  const auto d = promote(p.dtype, q.dtype);
  if (!d)
    t.fail(at,
           fmt::format("'{}' of {} and {}: no dtype holds both; cast one of them", ir::mnemonic(op), p.str(), q.str()));
  return *d;
}

/// The line of an operator that captured none: the line of an operand's value.
SourceLoc place_of(Tracer& t, const Operand& a) { return a.at.known() || !a.handle ? a.at : t.place_of(*a.handle); }

}  // namespace

Made constant(const Operand& o) {
  Tracer& t = Tracer::current(o.at);
  return {value_of(t, o, o.at).id};
}

Made binary(ir::Op op, const Operand& a, const Operand& b, SourceLoc at, bool fast) {
  Tracer& t = Tracer::current(at);
  const char* who = ir::mnemonic(op);
  auto [x, y] = read_pair(t, a, b, who, at);
  if (t.type(x).ptr || t.type(y).ptr) return {offset_pointer(t, op, x, y, at).id};
  const DType d = meeting_dtype(t, op, t.type(x), t.type(y), at);
  x = cast_to(t, x, d, at);
  y = cast_to(t, y, d, at);
  const ir::Type shape = common_shape(t, t.type(x), t.type(y), who, at);
  x = broadcast_like(t, x, shape, who, at);
  y = broadcast_like(t, y, shape, who, at);
  return {t.emit(at, [&, x = x, y = y](ir::Builder& m) { return m.elementwise(op, {x, y}, at, fast); }).id};
}

Made unary(ir::Op op, const Operand& a, SourceLoc at, bool fast) {
  Tracer& t = Tracer::current(at);
  const ir::Value x = value_of(t, a, at);
  return {t.emit(at, [&](ir::Builder& b) { return b.elementwise(op, {x}, at, fast); }).id};
}

Made logical(ir::Op op, const Operand& a, const Operand& b) {
  Tracer& t = Tracer::current({});
  SourceLoc at = place_of(t, a);
  if (!at.known()) at = place_of(t, b);
  auto [x, y] = read_pair(t, a, b, ir::mnemonic(op), at);
  if (t.type(x).dtype != DType::i1 || t.type(y).dtype != DType::i1 || t.type(x).ptr || t.type(y).ptr)
    t.fail(at, fmt::format("'{}' needs two i1 operands, not {} and {}", op == ir::Op::And ? "&&" : "||",
                           t.type(x).str(), t.type(y).str()));
  return binary(op, a, b, at);
}

Made logical_not(const Operand& a) {
  Tracer& t = Tracer::current({});
  const SourceLoc at = place_of(t, a);
  const ir::Type& type = t.type(t.read(*a.handle, at));
  if (type.dtype != DType::i1 || type.ptr) t.fail(at, fmt::format("'!' needs an i1 operand, not {}", type.str()));
  return unary(ir::Op::Not, a, at);
}

Made cast(const Handle& h, DType d, bool saturate, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  const ir::Value x = t.read(h, at);
  if (t.type(x).ptr) t.fail(at, fmt::format("cast of {}: a pointer has no conversion", t.type(x).str()));
  if (!saturate) return {cast_to(t, x, d, at).id};
  return {t.emit(at, [&](ir::Builder& b) { return b.cast(x, d, true, at); }).id};
}

Made bitcast(const Handle& h, DType d, SourceLoc at) {
  Tracer& t = Tracer::current(at);
  const ir::Value x = t.read(h, at);
  return {t.emit(at, [&](ir::Builder& b) { return b.bitcast(x, d, at); }).id};
}

void assign_binary(Scalar& a, ir::Op op, const Operand& b) { a = Scalar(binary(op, Operand(a, b.at), b, b.at)); }

}  // namespace detail

using detail::binary;
using detail::Operand;

#define KILN_BINARY(sym, op)                                                                                     \
  Tile operator sym(const Tile& a, Arg b) { return Tile(binary(ir::Op::op, Operand(a, b.at), b, b.at)); }        \
  Tile operator sym(SArg a, const Tile& b) { return Tile(binary(ir::Op::op, a, Operand(b, a.at), a.at)); }       \
  Scalar operator sym(const Scalar& a, SArg b) { return Scalar(binary(ir::Op::op, Operand(a, b.at), b, b.at)); } \
  Scalar operator sym(CArg a, const Scalar& b) { return Scalar(binary(ir::Op::op, a, Operand(b, a.at), a.at)); }
#define KILN_COMPOUND(sym, op) \
  Tile& operator sym##=(Tile& a, Arg b) { return a = Tile(binary(ir::Op::op, Operand(a, b.at), b, b.at)); }
#include "dsl/lang/operators.def"

Shape Tile::shape(RawLoc at) const {
  detail::Tracer& t = detail::Tracer::current(at);
  return Shape(t.type(t.read(*this, at)).shape);
}

std::int64_t Tile::extent(int axis, RawLoc at) const {
  detail::Tracer& t = detail::Tracer::current(at);
  const ir::Shape& shape = t.type(t.read(*this, at)).shape;
  return shape[std::size_t(detail::normal_axis(t, axis, int(shape.size()), "extent", at))];
}

}  // namespace kiln

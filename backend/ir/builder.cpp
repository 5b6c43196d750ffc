#include "backend/ir/builder.h"

#include "backend/ir/fold.h"
#include "backend/ir/op/infer.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

Attr number(AttrKey key, std::int64_t v) { return {key, v}; }

}  // namespace

InstId Builder::append(Op op, std::vector<Value> operands, std::vector<Type> stated, std::vector<Attr> attrs,
                       SourceLoc loc) {
  Types types = infer({f_, op, operands, attrs, stated, loc});
  const InstId i = f_.create(op, std::move(operands), std::move(types), std::move(attrs), loc);
  f_.append(region_, i);
  return i;
}

Value Builder::make(Op op, std::vector<Value> operands, std::vector<Attr> attrs, SourceLoc loc,
                    std::optional<Type> result) {
  std::vector<Type> stated;
  if (result) stated.push_back(std::move(*result));
  const Types types = infer({f_, op, operands, attrs, stated, loc});
  if (types.size() == 1) {
    const Folded known = fold(f_, op, operands, attrs, types[0]);
    if (const auto* v = std::get_if<Value>(&known)) return *v;
    if (const auto* l = std::get_if<Literal>(&known)) return filled(*l, types[0], loc);
  }
  const InstId i = f_.create(op, std::move(operands), types, std::move(attrs), loc);
  f_.append(region_, i);
  return types.empty() ? Value{} : f_.inst(i).results[0];
}

Value Builder::filled(const Literal& l, const Type& type, SourceLoc loc) {
  const Value c = constant(l, loc);
  return type.tile ? make(Op::Splat, {c}, {}, loc, type) : c;
}

Value Builder::constant(Literal l, SourceLoc loc) { return make(Op::Constant, {}, {{AttrKey::value, l}}, loc); }
Value Builder::param(int index, SourceLoc loc) { return make(Op::Param, {}, {number(AttrKey::index, index)}, loc); }
Value Builder::program_id(int axis, SourceLoc loc) {
  return make(Op::ProgramId, {}, {number(AttrKey::axis, axis)}, loc);
}
Value Builder::num_programs(int axis, SourceLoc loc) {
  return make(Op::NumPrograms, {}, {number(AttrKey::axis, axis)}, loc);
}
Value Builder::arange(std::int64_t start, std::int64_t end, SourceLoc loc) {
  return make(Op::Arange, {}, {number(AttrKey::start, start), number(AttrKey::end, end)}, loc);
}
Value Builder::splat(Value x, Shape shape, SourceLoc loc) {
  return make(Op::Splat, {x}, {}, loc, f_.type(x).with_shape(std::move(shape)));
}
Value Builder::expand_dims(Value x, int axis, SourceLoc loc) {
  return make(Op::ExpandDims, {x}, {number(AttrKey::axis, axis)}, loc);
}
Value Builder::broadcast(Value x, Shape shape, SourceLoc loc) {
  return make(Op::Broadcast, {x}, {}, loc, f_.type(x).with_shape(std::move(shape)));
}
Value Builder::cast(Value x, DType to, bool saturate, SourceLoc loc) {
  std::vector<Attr> attrs;
  if (saturate) attrs.push_back(number(AttrKey::saturate, 1));
  return make(Op::Cast, {x}, std::move(attrs), loc, Type::scalar(to));
}
Value Builder::bitcast(Value x, DType to, SourceLoc loc) { return make(Op::Bitcast, {x}, {}, loc, Type::scalar(to)); }
Value Builder::select(Value cond, Value a, Value b, SourceLoc loc) { return make(Op::Select, {cond, a, b}, {}, loc); }
Value Builder::ptr_add(Value ptr, Value offset, SourceLoc loc) { return make(Op::PtrAdd, {ptr, offset}, {}, loc); }

Value Builder::load(Value ptr, Value mask, Value other, CacheHint hint, SourceLoc loc) {
  std::vector<Value> operands{ptr};
  if (mask.valid()) operands.push_back(mask);
  if (mask.valid() && other.valid()) operands.push_back(other);
  std::vector<Attr> attrs;
  if (hint != CacheHint::Plain) attrs.push_back(number(AttrKey::cache, int(hint)));
  return make(Op::Load, std::move(operands), std::move(attrs), loc);
}

void Builder::store(Value ptr, Value value, Value mask, CacheHint hint, SourceLoc loc) {
  std::vector<Value> operands{ptr, value};
  if (mask.valid()) operands.push_back(mask);
  std::vector<Attr> attrs;
  if (hint != CacheHint::Plain) attrs.push_back(number(AttrKey::cache, int(hint)));
  make(Op::Store, std::move(operands), std::move(attrs), loc);
}

Value Builder::elementwise(Op op, std::vector<Value> operands, SourceLoc loc, bool fast) {
  KILN_CHECK(info(op).elementwise, std::string(mnemonic(op)) + " is not elementwise");
  std::vector<Attr> attrs;
  if (fast) attrs.push_back(number(AttrKey::fast, 1));
  return make(op, std::move(operands), std::move(attrs), loc);
}

std::optional<Literal> Builder::literal(Value v) const { return literal_of(f_, v); }

}  // namespace kiln::ir

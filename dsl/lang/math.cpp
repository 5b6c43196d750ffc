#include "dsl/lang/math.h"

#include "dsl/lang/shaping.h"

namespace kiln {
namespace {

using detail::Operand;

detail::Made ternary(ir::Op op, const Operand& a, const Operand& b, const Operand& c, SourceLoc at, bool fast);

}  // namespace

#define KILN_DEFINE_1(op, name, fast)                                                                    \
  Tile name(const Tile& x, RawLoc l) { return Tile(detail::unary(ir::Op::op, Operand(x, l), l, fast)); } \
  Scalar name(const Scalar& x, RawLoc l) { return Scalar(detail::unary(ir::Op::op, Operand(x, l), l, fast)); }
#define KILN_DEFINE_2(op, name, fast)                                                                                  \
  Tile name(const Tile& x, Arg y) { return Tile(detail::binary(ir::Op::op, Operand(x, y.at), y, y.at, fast)); }        \
  Tile name(SArg x, const Tile& y) { return Tile(detail::binary(ir::Op::op, x, Operand(y, x.at), x.at, fast)); }       \
  Scalar name(const Scalar& x, SArg y) { return Scalar(detail::binary(ir::Op::op, Operand(x, y.at), y, y.at, fast)); } \
  Scalar name(CArg x, const Scalar& y) { return Scalar(detail::binary(ir::Op::op, x, Operand(y, x.at), x.at, fast)); }
#define KILN_DEFINE_3(op, name, fast)                                                                                \
  Tile name(const Tile& x, Arg y, Arg z) { return Tile(ternary(ir::Op::op, Operand(x, y.at), y, z, y.at, fast)); }   \
  Tile name(SArg x, const Tile& y, Arg z) { return Tile(ternary(ir::Op::op, x, Operand(y, x.at), z, x.at, fast)); }  \
  Tile name(SArg x, SArg y, const Tile& z) { return Tile(ternary(ir::Op::op, x, y, Operand(z, x.at), x.at, fast)); } \
  Scalar name(const Scalar& x, SArg y, SArg z) {                                                                     \
    return Scalar(ternary(ir::Op::op, Operand(x, y.at), y, z, y.at, fast));                                          \
  }                                                                                                                  \
  Scalar name(CArg x, const Scalar& y, SArg z) {                                                                     \
    return Scalar(ternary(ir::Op::op, x, Operand(y, x.at), z, x.at, fast));                                          \
  }                                                                                                                  \
  Scalar name(CArg x, CArg y, const Scalar& z) {                                                                     \
    return Scalar(ternary(ir::Op::op, x, y, Operand(z, x.at), x.at, fast));                                          \
  }
#define KILN_FUNCTION_Float(op, name, arity) KILN_DEFINE_##arity(op, name, false)
#define KILN_FUNCTION_Math(op, name, arity) KILN_DEFINE_##arity(op, name, false)
#define KILN_FUNCTION_Num(op, name, arity)
#define KILN_FUNCTION_Int(op, name, arity)
#define KILN_FUNCTION_Bits(op, name, arity)
#define KILN_FUNCTION_Cmp(op, name, arity)
#define KILN_EW(Enum, mnemonic, arity, rule, ...) KILN_FUNCTION_##rule(Enum, mnemonic, arity)
#include "backend/ir/ops.def"

namespace fast {
#define KILN_FAST_Exact(op, name, arity)
#define KILN_FAST_ExactOrFast(op, name, arity) KILN_DEFINE_##arity(op, name, true)
#define KILN_FAST_Ulp(n) KILN_FAST_ExactOrFast
#define KILN_FAST_Rel(n) KILN_FAST_ExactOrFast
#define KILN_EW(Enum, mnemonic, arity, rule, exactness, ...) KILN_FAST_##exactness(Enum, mnemonic, arity)
#include "backend/ir/ops.def"
}  // namespace fast

namespace {

/// Three operands: numbers take the dtype that the variables meet in; then all are cast and broadcast.
detail::Made ternary(ir::Op op, const Operand& a, const Operand& b, const Operand& c, SourceLoc at, bool fast) {
  detail::Tracer& t = detail::Tracer::current(at);
  std::vector<ir::Value> v = detail::meet(t, {&a, &b, &c}, ir::mnemonic(op), at);
  return {t.emit(at, [&](ir::Builder& m) { return m.elementwise(op, std::move(v), at, fast); }).id};
}

}  // namespace
}  // namespace kiln

// Elementwise ops on one element: what ops.def says, as LLVM instructions without undefined behaviour or poison.
//
// 16-bit floats: add, sub, mul and fma are the type's own (one rounding); the rest goes through f32, which for div,
// sqrt and the roundings to integral values gives the same as one rounding, because f32 has more than 2·11+2 digits.
// Math functions are the templates of backend/llvm/math.
#include <llvm/IR/Intrinsics.h>

#include "backend/llvm/emit_context.h"
#include "backend/llvm/math/fast.h"
#include "backend/llvm/math/float_rem.h"
#include "backend/llvm/math/ir_arith.h"
#include "backend/llvm/math/pow.h"
#include "backend/llvm/math/trig.h"
#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

/// One elementwise op being emitted: its operands and the questions every case asks.
class Element {
 public:
  Element(EmitContext& c, DType dtype, llvm::ArrayRef<Value*> operands, bool fast)
      : c_(c), b_(c.b), dtype_(dtype), v_(operands), fast_(fast) {}

  Value* emit(ir::Op op);

 private:
  llvm::Type* type() const { return v_[0]->getType(); }
  bool is_float() const { return kiln::is_float(dtype_); }
  bool is_half() const { return dtype_ == DType::f16 || dtype_ == DType::bf16; }
  /// i1 compares as unsigned: false < true.
  bool is_signed() const { return kiln::is_signed(dtype_); }
  /// Whether an exact op gives way to the hardware's approximation; f64 has none.
  bool approximate() const { return fast_ && dtype_ != DType::f64; }
  Value* zero() const { return llvm::Constant::getNullValue(type()); }
  Value* integer(std::int64_t n) const { return llvm::ConstantInt::getSigned(type(), n); }

  Value* call(Intrinsic::ID id, llvm::ArrayRef<Value*> operands) {
    return b_.CreateIntrinsic(id, operands[0]->getType(), operands);
  }
  /// `f` on the operands as f32, its result rounded back, where the type is 16 bits wide; else `f` on them as they are.
  template <class F>
  Value* in_single(F f) {
    if (!is_half()) return f(v_);
    llvm::SmallVector<Value*, 3> wide;
    for (Value* v : v_) wide.push_back(b_.CreateFPExt(v, b_.getFloatTy()));
    return b_.CreateFPTrunc(f(wide), type());
  }
  Value* single(Intrinsic::ID id) {
    return in_single([&](llvm::ArrayRef<Value*> x) { return call(id, x); });
  }

  Value* div();
  Value* float_div();
  Value* sqrt();
  Value* rem();
  Value* min_max(Intrinsic::ID of_float, Intrinsic::ID of_signed, Intrinsic::ID of_unsigned, Value* a, Value* b);
  Value* shift(ir::Op op);
  Value* compare(llvm::CmpInst::Predicate of_float, llvm::CmpInst::Predicate of_signed,
                 llvm::CmpInst::Predicate of_unsigned);
  /// A math function: its accurate form, what `fast` allows, what a result rounded to 16 bits allows.
  template <class Accurate, class Fast, class Narrow>
  Value* math(Accurate accurate, Fast fast, Narrow narrow);
  template <class Accurate>
  Value* math(Accurate only) {
    return math(only, only, only);
  }

  EmitContext& c_;
  llvm::IRBuilder<>& b_;
  DType dtype_;
  llvm::ArrayRef<Value*> v_;
  bool fast_;
};

Value* Element::float_div() {
  return in_single([&](llvm::ArrayRef<Value*> x) -> Value* {
    if (!approximate()) return b_.CreateFDiv(x[0], x[1]);
    math::IrArith a(b_);
    return a.value(math::fast_div(a, math::IrArith::F(x[0]), math::IrArith::F(x[1])));
  });
}

Value* Element::sqrt() {
  return in_single([&](llvm::ArrayRef<Value*> x) -> Value* {
    if (!approximate()) return call(Intrinsic::sqrt, x);
    math::IrArith a(b_);
    return a.value(math::fast_sqrt(a, math::IrArith::F(x[0])));
  });
}

/// The divisor is replaced where the machine's division has no defined result, and the result where the op defines one.
Value* Element::div() {
  if (is_float()) return float_div();
  Value *a = v_[0], *d = v_[1];
  Value* by_zero = b_.CreateICmpEQ(d, zero());
  if (!is_signed()) return b_.CreateSelect(by_zero, zero(), b_.CreateUDiv(a, b_.CreateSelect(by_zero, integer(1), d)));
  Value* by_minus_one = b_.CreateICmpEQ(d, integer(-1));
  Value* safe = b_.CreateSelect(b_.CreateOr(by_zero, by_minus_one), integer(1), d);
  Value* q = b_.CreateSelect(by_minus_one, b_.CreateNeg(a), b_.CreateSDiv(a, safe));
  return b_.CreateSelect(by_zero, zero(), q);
}

/// A remainder by 0 or -1 is 0, which is the remainder by 1.
Value* Element::rem() {
  if (is_float()) return in_single([&](llvm::ArrayRef<Value*> x) { return math::emit_float_rem(b_, x[0], x[1]); });
  Value *a = v_[0], *d = v_[1];
  Value* special = b_.CreateICmpEQ(d, zero());
  if (!is_signed()) return b_.CreateURem(a, b_.CreateSelect(special, integer(1), d));
  special = b_.CreateOr(special, b_.CreateICmpEQ(d, integer(-1)));
  return b_.CreateSRem(a, b_.CreateSelect(special, integer(1), d));
}

Value* Element::min_max(Intrinsic::ID of_float, Intrinsic::ID of_signed, Intrinsic::ID of_unsigned, Value* a,
                        Value* b) {
  return call(is_float() ? of_float : is_signed() ? of_signed : of_unsigned, {a, b});
}

/// A count outside [0, bits) is, as an unsigned number, at least bits. LLVM folds a select on that comparison into
/// PTX's clamping shift; that looks at 32 bits of the count, so a 64-bit one is bounded in a way that is not folded.
Value* Element::shift(ir::Op op) {
  Value *x = v_[0], *n = v_[1];
  int bits = static_cast<int>(type()->getIntegerBitWidth());
  if (op == ir::Op::Shr && is_signed()) return b_.CreateAShr(x, call(Intrinsic::umin, {n, integer(bits - 1)}));
  Value* inside = b_.CreateICmpULT(n, integer(bits));
  Value* safe = bits == 64 ? call(Intrinsic::umin, {n, integer(63)}) : b_.CreateSelect(inside, n, zero());
  Value* shifted = op == ir::Op::Shl ? b_.CreateShl(x, safe) : b_.CreateLShr(x, safe);
  return b_.CreateSelect(inside, shifted, zero());
}

Value* Element::compare(llvm::CmpInst::Predicate of_float, llvm::CmpInst::Predicate of_signed,
                        llvm::CmpInst::Predicate of_unsigned) {
  if (!is_float()) return b_.CreateICmp(is_signed() ? of_signed : of_unsigned, v_[0], v_[1]);
  auto wide = [&](Value* v) { return is_half() ? b_.CreateFPExt(v, b_.getFloatTy()) : v; };
  return b_.CreateFCmp(of_float, wide(v_[0]), wide(v_[1]));
}

template <class Accurate, class Fast, class Narrow>
Value* Element::math(Accurate accurate, Fast fast, Narrow narrow) {
  if (dtype_ == DType::f64) throw UserError(c_.loc, "math functions take f16, bf16 and f32, not f64");
  return in_single([&](llvm::ArrayRef<Value*> x) {
    math::IrArith a(b_);
    return a.value(fast_ ? fast(a, x) : is_half() ? narrow(a, x) : accurate(a, x));
  });
}

// A math template as an argument.
using Single = llvm::ArrayRef<Value*>;
#define KILN_FN(name) [](math::IrArith& a, Single x) { return math::name(a, math::IrArith::F(x[0])); }

Value* Element::emit(ir::Op op) {
  using P = llvm::CmpInst;
  using ir::Op;
  switch (op) {
    case Op::Add: return is_float() ? b_.CreateFAdd(v_[0], v_[1]) : b_.CreateAdd(v_[0], v_[1]);
    case Op::Sub: return is_float() ? b_.CreateFSub(v_[0], v_[1]) : b_.CreateSub(v_[0], v_[1]);
    case Op::Mul: return is_float() ? b_.CreateFMul(v_[0], v_[1]) : b_.CreateMul(v_[0], v_[1]);
    case Op::Div: return div();
    case Op::Rem: return rem();
    case Op::Fma: return call(Intrinsic::fma, v_);
    case Op::Neg: return is_float() ? b_.CreateFNeg(v_[0]) : b_.CreateNeg(v_[0]);
    case Op::Abs:
      if (is_float()) return call(Intrinsic::fabs, v_);
      return is_signed() ? b_.CreateIntrinsic(Intrinsic::abs, type(), {v_[0], b_.getFalse()}) : v_[0];
    case Op::Min: return min_max(Intrinsic::minimum, Intrinsic::smin, Intrinsic::umin, v_[0], v_[1]);
    case Op::Max: return min_max(Intrinsic::maximum, Intrinsic::smax, Intrinsic::umax, v_[0], v_[1]);
    case Op::Relu: return min_max(Intrinsic::maximum, Intrinsic::smax, Intrinsic::umax, v_[0], zero());
    case Op::Floor: return single(Intrinsic::floor);
    case Op::Ceil: return single(Intrinsic::ceil);
    case Op::Trunc: return single(Intrinsic::trunc);
    case Op::Round: return single(Intrinsic::roundeven);

    case Op::And: return b_.CreateAnd(v_[0], v_[1]);
    case Op::Or: return b_.CreateOr(v_[0], v_[1]);
    case Op::Xor: return b_.CreateXor(v_[0], v_[1]);
    case Op::Not: return b_.CreateNot(v_[0]);
    case Op::Shl:
    case Op::Shr: return shift(op);

    case Op::Lt: return compare(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
    case Op::Le: return compare(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
    case Op::Gt: return compare(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
    case Op::Ge: return compare(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
    case Op::Eq: return compare(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
    case Op::Ne: return compare(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);

    case Op::Sqrt: return sqrt();
    case Op::Rsqrt: return math(KILN_FN(rsqrt), KILN_FN(fast_rsqrt), KILN_FN(narrow_rsqrt));
    case Op::Exp: return math(KILN_FN(exp), KILN_FN(fast_exp), KILN_FN(narrow_exp));
    case Op::Exp2: return math(KILN_FN(exp2), KILN_FN(fast_exp2), KILN_FN(narrow_exp2));
    case Op::Log: return math(KILN_FN(log), KILN_FN(fast_log), KILN_FN(log));
    case Op::Log2: return math(KILN_FN(log2), KILN_FN(fast_log2), KILN_FN(log2));
    case Op::Sin: return math(KILN_FN(sin), KILN_FN(fast_sin), KILN_FN(sin));
    case Op::Cos: return math(KILN_FN(cos), KILN_FN(fast_cos), KILN_FN(cos));
    case Op::Tanh: return math(KILN_FN(tanh), KILN_FN(fast_tanh), KILN_FN(tanh));
    case Op::Erf: return math(KILN_FN(erf));
    case Op::Pow:
      return math(
          [](math::IrArith& a, Single x) { return math::pow(a, math::IrArith::F(x[0]), math::IrArith::F(x[1])); });
    case Op::Sigmoid: return math(KILN_FN(sigmoid), KILN_FN(fast_sigmoid), KILN_FN(narrow_sigmoid));
    case Op::Silu: return math(KILN_FN(silu), KILN_FN(fast_silu), KILN_FN(narrow_silu));
    case Op::Gelu: return math(KILN_FN(gelu));
    case Op::GeluTanh: return math(KILN_FN(gelu_tanh), KILN_FN(fast_gelu_tanh), KILN_FN(narrow_gelu_tanh));

#define KILN_OP(Enum, ...) case Op::Enum:
#include "backend/ir/ops.def"
      break;
  }
  throw InternalError(std::string(ir::mnemonic(op)) + " is no elementwise op");
}
#undef KILN_FN

}  // namespace

Value* emit_elementwise(EmitContext& c, ir::Op op, DType dtype, llvm::ArrayRef<Value*> operands, bool fast) {
  return Element(c, dtype, operands, fast).emit(op);
}

}  // namespace kiln::cg

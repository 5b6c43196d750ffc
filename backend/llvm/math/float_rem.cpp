// Long division of the significands as integers. With a = ma·2^ea and b = mb·2^eb, ea >= eb:
//   r = ma mod mb;  while ea > eb: k = min(ea - eb, step); r = (r << k) mod mb; ea -= k
// and the remainder is r·2^eb. `step` is what an integer of the float's width leaves above a significand.
#include "backend/llvm/math/float_rem.h"

#include <llvm/IR/Intrinsics.h>

namespace kiln::cg::math {
namespace {

using llvm::Value;

struct Rem {
  explicit Rem(llvm::IRBuilder<>& builder, llvm::Type* type) : b(builder), real(type) {
    bool single = type->isFloatTy();
    integer = single ? b.getInt32Ty() : b.getInt64Ty();
    mantissa_bits = single ? 23 : 52;
    exponent_mask = single ? 0xff : 0x7ff;
    step = single ? 8 : 11;
  }

  Value* number(std::int64_t n) const { return llvm::ConstantInt::getSigned(integer, n); }
  Value* real_number(double v) const { return llvm::ConstantFP::get(real, v); }
  Value* smaller(Value* x, Value* y) { return b.CreateIntrinsic(llvm::Intrinsic::umin, integer, {x, y}); }
  Value* larger(Value* x, Value* y) { return b.CreateIntrinsic(llvm::Intrinsic::umax, integer, {x, y}); }

  struct Parts {
    Value *mantissa, *exponent;
  };
  /// Of a positive finite number: mantissa · 2^(exponent - bias - mantissa_bits), denormals with the smallest exponent.
  Parts split(Value* bits) {
    Value* field = b.CreateLShr(bits, static_cast<std::uint64_t>(mantissa_bits));
    Value* fraction = b.CreateAnd(bits, number((std::int64_t{1} << mantissa_bits) - 1));
    Value* normal = b.CreateICmpNE(field, number(0));
    Value* implicit = b.CreateSelect(normal, number(std::int64_t{1} << mantissa_bits), number(0));
    return {b.CreateOr(fraction, implicit), larger(field, number(1))};
  }

  /// The remainder of two magnitudes; any value unless both are finite and the second is not 0.
  Value* divide(Value* a, Value* d) {
    Parts x = split(a), y = split(d);
    Value* divisor = larger(y.mantissa, number(1));  // 0 would be undefined; the caller discards that result
    Value* first = b.CreateURem(x.mantissa, divisor);
    Value* distance =
        b.CreateSelect(b.CreateICmpUGT(x.exponent, y.exponent), b.CreateSub(x.exponent, y.exponent), number(0));
    Value* r = loop(first, distance, divisor);
    // r·2^(exponent - bias - mantissa_bits) in two exact steps, of which only the second can reach denormals.
    Value* scaled = b.CreateFMul(b.CreateUIToFP(r, real), real_number(mantissa_bits == 23 ? 0x1p-23 : 0x1p-52));
    Value* power = b.CreateBitCast(b.CreateShl(y.exponent, static_cast<std::uint64_t>(mantissa_bits)), real);
    return b.CreateFMul(scaled, power);
  }

  Value* loop(Value* first, Value* distance, Value* divisor) {
    llvm::Function* f = b.GetInsertBlock()->getParent();
    llvm::BasicBlock* before = b.GetInsertBlock();
    llvm::BasicBlock* head = llvm::BasicBlock::Create(b.getContext(), "rem", f);
    llvm::BasicBlock* body = llvm::BasicBlock::Create(b.getContext(), "rem_step", f);
    llvm::BasicBlock* after = llvm::BasicBlock::Create(b.getContext(), "rem_end", f);
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode* r = b.CreatePHI(integer, 2);
    llvm::PHINode* left = b.CreatePHI(integer, 2);
    b.CreateCondBr(b.CreateICmpNE(left, number(0)), body, after);
    b.SetInsertPoint(body);
    Value* k = smaller(left, number(step));
    Value* next = b.CreateURem(b.CreateShl(r, k), divisor);
    Value* rest = b.CreateSub(left, k);
    b.CreateBr(head);
    r->addIncoming(first, before), r->addIncoming(next, body);
    left->addIncoming(distance, before), left->addIncoming(rest, body);
    b.SetInsertPoint(after);
    return r;
  }

  llvm::IRBuilder<>& b;
  llvm::Type* real;
  llvm::Type* integer;
  int mantissa_bits, step;
  std::int64_t exponent_mask;
};

}  // namespace

Value* emit_float_rem(llvm::IRBuilder<>& b, Value* a, Value* divisor) {
  Rem rem(b, a->getType());
  auto magnitude = [&](Value* v) { return b.CreateIntrinsic(llvm::Intrinsic::fabs, rem.real, v); };
  Value *x = magnitude(a), *y = magnitude(divisor);
  Value* infinity = llvm::ConstantFP::getInfinity(rem.real);
  Value* r = rem.divide(b.CreateBitCast(x, rem.integer), b.CreateBitCast(y, rem.integer));
  r = b.CreateIntrinsic(llvm::Intrinsic::copysign, rem.real, {r, a});
  r = b.CreateSelect(b.CreateFCmpOLT(x, y), a, r);  // also an infinite divisor
  Value* defined = b.CreateAnd(b.CreateFCmpOLT(x, infinity), b.CreateFCmpOGT(y, llvm::ConstantFP::get(rem.real, 0.0)));
  return b.CreateSelect(defined, r, llvm::ConstantFP::getNaN(rem.real));
}

}  // namespace kiln::cg::math

#include "backend/llvm/math/ir_arith.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>

namespace kiln::cg::math {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

Value* IrArith::value(F x) const { return x.value ? x.value : llvm::ConstantFP::get(b_.getFloatTy(), x.constant); }
Value* IrArith::val(I x) const { return x.value ? x.value : llvm::ConstantInt::getSigned(b_.getInt32Ty(), x.constant); }
Value* IrArith::call(unsigned intrinsic, llvm::ArrayRef<llvm::Type*> overload, llvm::ArrayRef<Value*> operands) {
  return b_.CreateIntrinsic(static_cast<Intrinsic::ID>(intrinsic), overload, operands);
}

using A = IrArith;
A::F A::add(F x, F y) { return b_.CreateFAdd(val(x), val(y)); }
A::F A::sub(F x, F y) { return b_.CreateFSub(val(x), val(y)); }
A::F A::mul(F x, F y) { return b_.CreateFMul(val(x), val(y)); }
A::F A::fma(F x, F y, F z) { return call(Intrinsic::fma, b_.getFloatTy(), {val(x), val(y), val(z)}); }
A::F A::neg(F x) { return b_.CreateFNeg(val(x)); }
A::F A::abs(F x) { return call(Intrinsic::fabs, b_.getFloatTy(), val(x)); }
A::F A::trunc(F x) { return call(Intrinsic::trunc, b_.getFloatTy(), val(x)); }
A::F A::min(F x, F y) { return call(Intrinsic::minimum, b_.getFloatTy(), {val(x), val(y)}); }
A::F A::max(F x, F y) { return call(Intrinsic::maximum, b_.getFloatTy(), {val(x), val(y)}); }

A::I A::bits(F x) { return b_.CreateBitCast(val(x), b_.getInt32Ty()); }
A::F A::from_bits(I x) { return b_.CreateBitCast(val(x), b_.getFloatTy()); }
A::F A::to_float(I x) { return b_.CreateSIToFP(val(x), b_.getFloatTy()); }
A::I A::iadd(I x, I y) { return b_.CreateAdd(val(x), val(y)); }
A::I A::isub(I x, I y) { return b_.CreateSub(val(x), val(y)); }
A::I A::imul(I x, I y) { return b_.CreateMul(val(x), val(y)); }
A::I A::iand(I x, I y) { return b_.CreateAnd(val(x), val(y)); }
A::I A::ior(I x, I y) { return b_.CreateOr(val(x), val(y)); }
A::I A::ixor(I x, I y) { return b_.CreateXor(val(x), val(y)); }
A::I A::shl(I x, int n) { return b_.CreateShl(val(x), static_cast<std::uint64_t>(n)); }
A::I A::shr(I x, int n) { return b_.CreateLShr(val(x), static_cast<std::uint64_t>(n)); }
A::I A::sar(I x, int n) { return b_.CreateAShr(val(x), static_cast<std::uint64_t>(n)); }

A::L A::umul(I x, I y) {
  return {b_.CreateMul(b_.CreateZExt(val(x), b_.getInt64Ty()), b_.CreateZExt(val(y), b_.getInt64Ty()))};
}
A::L A::join(I high, I low) {
  Value* top = b_.CreateShl(b_.CreateZExt(val(high), b_.getInt64Ty()), 32);
  return {b_.CreateOr(top, b_.CreateZExt(val(low), b_.getInt64Ty()))};
}
A::I A::high(L x) { return b_.CreateTrunc(b_.CreateLShr(x.value, 32), b_.getInt32Ty()); }
A::L A::ladd(L x, L y) { return {b_.CreateAdd(x.value, y.value)}; }
A::L A::lshl(L x, I n) { return {b_.CreateShl(x.value, b_.CreateZExt(val(n), b_.getInt64Ty()))}; }
A::L A::lshr(L x, I n) { return {b_.CreateLShr(x.value, b_.CreateZExt(val(n), b_.getInt64Ty()))}; }
A::F A::scaled(L x, double k) {
  Value* wide = b_.CreateSIToFP(x.value, b_.getDoubleTy());
  return b_.CreateFPTrunc(b_.CreateFMul(wide, llvm::ConstantFP::get(b_.getDoubleTy(), k)), b_.getFloatTy());
}

A::B A::lt(F x, F y) { return b_.CreateFCmpOLT(val(x), val(y)); }
A::B A::gt(F x, F y) { return b_.CreateFCmpOGT(val(x), val(y)); }
A::B A::eq(F x, F y) { return b_.CreateFCmpOEQ(val(x), val(y)); }
A::B A::ne(F x, F y) { return b_.CreateFCmpUNE(val(x), val(y)); }
A::B A::ilt(I x, I y) { return b_.CreateICmpSLT(val(x), val(y)); }
A::B A::ieq(I x, I y) { return b_.CreateICmpEQ(val(x), val(y)); }
A::B A::both(B x, B y) { return b_.CreateAnd(x, y); }
A::B A::either(B x, B y) { return b_.CreateOr(x, y); }
A::B A::nope(B x) { return b_.CreateNot(x); }
A::F A::sel(B c, F x, F y) { return b_.CreateSelect(c, val(x), val(y)); }
A::I A::isel(B c, I x, I y) { return b_.CreateSelect(c, val(x), val(y)); }

A::F A::ex2(F x) { return call(Intrinsic::nvvm_ex2_approx, b_.getFloatTy(), val(x)); }
A::F A::ex2_ftz(F x) { return call(Intrinsic::nvvm_ex2_approx_ftz, b_.getFloatTy(), val(x)); }
A::F A::lg2_ftz(F x) { return call(Intrinsic::nvvm_lg2_approx_ftz_f, {}, val(x)); }
A::F A::rcp_ftz(F x) { return call(Intrinsic::nvvm_rcp_approx_ftz_f, {}, val(x)); }
A::F A::rsqrt_approx(F x) { return call(Intrinsic::nvvm_rsqrt_approx_f, {}, val(x)); }
A::F A::rsqrt_ftz(F x) { return call(Intrinsic::nvvm_rsqrt_approx_ftz_f, {}, val(x)); }
A::F A::sqrt_ftz(F x) { return call(Intrinsic::nvvm_sqrt_approx_ftz_f, {}, val(x)); }
A::F A::div_full_ftz(F x, F y) { return call(Intrinsic::nvvm_div_full_ftz, {}, {val(x), val(y)}); }
A::F A::sin_approx(F x) { return call(Intrinsic::nvvm_sin_approx_f, {}, val(x)); }
A::F A::cos_approx(F x) { return call(Intrinsic::nvvm_cos_approx_f, {}, val(x)); }
A::F A::tanh_approx(F x) {  // no intrinsic of its own: tanh with afn is selected as tanh.approx.f32
  Value* v = call(Intrinsic::tanh, b_.getFloatTy(), val(x));
  llvm::cast<llvm::Instruction>(v)->setHasApproxFunc(true);
  return v;
}

A::Fork A::begin(B c) {
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(b_.getContext(), name, f); };
  Fork fork{block("rare"), block("usual"), block("joined"), nullptr};
  b_.CreateCondBr(c, fork.then_end, fork.other, llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
  b_.SetInsertPoint(fork.then_end);
  return fork;
}
void A::next(Fork& fork) {
  fork.then_end = b_.GetInsertBlock();
  b_.CreateBr(fork.joined);
  b_.SetInsertPoint(fork.other);
}
void A::join(Fork& fork) {
  fork.other_end = b_.GetInsertBlock();
  b_.CreateBr(fork.joined);
  b_.SetInsertPoint(fork.joined);
}
Value* A::merge(const Fork& fork, Value* then, Value* other) {
  llvm::PHINode* phi = b_.CreatePHI(then->getType(), 2);
  phi->addIncoming(then, fork.then_end);
  phi->addIncoming(other, fork.other_end);
  return phi;
}

}  // namespace kiln::cg::math

// The conversion of ops.def's cast on one element: every pair of element types, one rounding.
//
// Where the target has no single conversion, the value is first brought to f32 exactly or rounded to odd (truncated,
// with the last bit set if anything was lost); a later rounding to fewer than 23 digits then gives what one rounding
// would.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "backend/llvm/emit_context.h"

namespace kiln::cg {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

bool is_f8(DType d) { return d == DType::f8e4m3 || d == DType::f8e5m2; }
/// Integers that every f32 conversion takes without rounding.
bool fits_f32(DType d) { return kiln::bits(d) <= 16; }

class Caster {
 public:
  explicit Caster(EmitContext& c) : c_(c), b_(c.b) {}

  Value* from_int(Value* x, DType from, DType to, bool saturate);
  Value* to_int(Value* x, DType from, DType to);
  Value* from_float(Value* x, DType from, DType to, bool saturate);

 private:
  llvm::Type* f32() const { return b_.getFloatTy(); }
  Value* i32(std::uint32_t n) const { return b_.getInt32(n); }
  Value* call(Intrinsic::ID id, llvm::ArrayRef<llvm::Type*> overload, llvm::ArrayRef<Value*> operands) {
    return b_.CreateIntrinsic(id, overload, operands);
  }
  Value* magnitude_bits(Value* single) {
    return b_.CreateAnd(b_.CreateBitCast(single, b_.getInt32Ty()), i32(0x7fffffff));
  }

  /// f32, or f64 unchanged.
  Value* widened(Value* x, DType from);
  Value* e4m3_to_f32(Value* x);
  Value* odd_from_int(Value* x, DType from);
  Value* odd_from_f64(Value* x);
  Value* saturated(Value* x, DType dtype);
  /// `x` is an f32 that holds the value exactly or rounded to odd.
  Value* from_single(Value* x, DType to, bool saturate);
  Value* f8_software(Value* x, DType to, bool saturate);
  Value* f8_hardware(Value* x, DType to, bool saturate);
  bool has_f8() const { return c_.target.compute() >= 89 && c_.target.ptx >= 81; }

  EmitContext& c_;
  llvm::IRBuilder<>& b_;
};

Value* Caster::widened(Value* x, DType from) {
  if (from == DType::f64 || from == DType::f32) return x;
  if (from == DType::f8e4m3) return e4m3_to_f32(x);
  if (from == DType::f8e5m2) {  // the upper half of an f16
    Value* half = b_.CreateShl(b_.CreateZExt(x, b_.getInt16Ty()), 8);
    x = b_.CreateBitCast(half, b_.getHalfTy());
  }
  return b_.CreateFPExt(x, f32());
}

/// Shifted to the place of f32's fields a pattern means its value times 2^(7-127), denormals included.
Value* Caster::e4m3_to_f32(Value* x) {
  if (has_f8()) {
    Value* pair = call(Intrinsic::nvvm_e4m3x2_to_f16x2_rn, {}, b_.CreateZExt(x, b_.getInt16Ty()));
    return b_.CreateFPExt(b_.CreateExtractElement(pair, std::uint64_t{0}), f32());
  }
  Value* u = b_.CreateZExt(x, b_.getInt32Ty());
  Value* magnitude = b_.CreateAnd(u, i32(0x7f));
  Value* value =
      b_.CreateFMul(b_.CreateBitCast(b_.CreateShl(magnitude, 20), f32()), llvm::ConstantFP::get(f32(), 0x1p120));
  value = b_.CreateSelect(b_.CreateICmpEQ(magnitude, i32(0x7f)), llvm::ConstantFP::getNaN(f32()), value);
  Value* sign = b_.CreateShl(b_.CreateAnd(u, i32(0x80)), 24);
  return b_.CreateBitCast(b_.CreateOr(b_.CreateBitCast(value, b_.getInt32Ty()), sign), f32());
}

Value* Caster::odd_from_int(Value* x, DType from) {
  bool sign = is_signed(from), wide = kiln::bits(from) == 64;
  Intrinsic::ID id = wide ? (sign ? Intrinsic::nvvm_ll2f_rz : Intrinsic::nvvm_ull2f_rz)
                          : (sign ? Intrinsic::nvvm_i2f_rz : Intrinsic::nvvm_ui2f_rz);
  Value* toward_zero = call(id, {}, x);
  // Truncation never leaves the integer's range, so the way back is defined.
  Value* back = sign ? b_.CreateFPToSI(toward_zero, x->getType()) : b_.CreateFPToUI(toward_zero, x->getType());
  Value* lost = b_.CreateZExt(b_.CreateICmpNE(back, x), b_.getInt32Ty());
  return b_.CreateBitCast(b_.CreateOr(b_.CreateBitCast(toward_zero, b_.getInt32Ty()), lost), f32());
}

Value* Caster::odd_from_f64(Value* x) {
  Value* toward_zero = call(Intrinsic::nvvm_d2f_rz, {}, x);
  Value* lost = b_.CreateFCmpUNE(b_.CreateFPExt(toward_zero, b_.getDoubleTy()), x);
  Value* bits = b_.CreateOr(b_.CreateBitCast(toward_zero, b_.getInt32Ty()), b_.CreateZExt(lost, b_.getInt32Ty()));
  return b_.CreateBitCast(bits, f32());
}

/// Rounds the magnitude at the format's last bit, once as a normal number and once as a denormal, and takes the one
/// that applies. Larger than the largest is overflow.
Value* Caster::f8_software(Value* x, DType to, bool saturate) {
  bool e4m3 = to == DType::f8e4m3;
  std::uint32_t shift = e4m3 ? 20 : 21, bias = e4m3 ? 7 : 15, largest = e4m3 ? 0x7e : 0x7b;
  std::uint32_t smallest_normal = (128 - bias) << 23;
  Value* u = magnitude_bits(x);
  Value* odd = b_.CreateAnd(b_.CreateLShr(u, shift), 1);
  Value* rounded = b_.CreateAdd(b_.CreateAdd(u, i32((1u << (shift - 1)) - 1)), odd);
  Value* normal = b_.CreateSub(b_.CreateLShr(rounded, shift), i32((127 - bias) << (23 - shift)));
  // Adding 2^(23 + exponent of the last denormal bit) rounds there.
  float anchor = e4m3 ? 0x1p14f : 0x1p7f;
  Value* sum = b_.CreateFAdd(b_.CreateBitCast(u, f32()), llvm::ConstantFP::get(f32(), anchor));
  Value* denormal = b_.CreateSub(b_.CreateBitCast(sum, b_.getInt32Ty()), i32(e4m3 ? 0x46800000 : 0x43000000));
  Value* r = b_.CreateSelect(b_.CreateICmpULT(u, i32(smallest_normal)), denormal, normal);
  r = b_.CreateSelect(b_.CreateICmpUGT(r, i32(largest)), i32(saturate ? largest : largest + 1), r);
  r = b_.CreateSelect(b_.CreateICmpUGT(u, i32(0x7f800000)), i32(0x7f), r);
  Value* sign = b_.CreateAnd(b_.CreateLShr(b_.CreateBitCast(x, b_.getInt32Ty()), 24), 0x80);
  return b_.CreateTrunc(b_.CreateOr(r, sign), b_.getInt8Ty());
}

/// The instruction saturates. Otherwise what rounds beyond the largest value is infinity (e5m2; ties go there) or NaN.
Value* Caster::f8_hardware(Value* x, DType to, bool saturate) {
  bool e4m3 = to == DType::f8e4m3;
  Intrinsic::ID id = e4m3 ? Intrinsic::nvvm_ff_to_e4m3x2_rn : Intrinsic::nvvm_ff_to_e5m2x2_rn;
  Value* r = call(id, {}, {llvm::ConstantFP::get(f32(), 0.0), x});
  r = b_.CreateTrunc(r, b_.getInt8Ty());
  if (saturate) return r;
  Value* size = call(Intrinsic::fabs, f32(), x);
  Value* over = e4m3 ? b_.CreateFCmpOGT(size, llvm::ConstantFP::get(f32(), 464.0))
                     : b_.CreateFCmpOGE(size, llvm::ConstantFP::get(f32(), 61440.0));
  return b_.CreateSelect(over, b_.CreateAdd(r, b_.getInt8(1)), r);
}

/// The largest finite value instead of an infinity: the pattern below it.
Value* Caster::saturated(Value* x, DType dtype) {
  if (is_f8(dtype)) {
    if (dtype == DType::f8e4m3) return x;
    Value* infinite = b_.CreateICmpEQ(b_.CreateAnd(x, b_.getInt8(0x7f)), b_.getInt8(0x7c));
    return b_.CreateSelect(infinite, b_.CreateSub(x, b_.getInt8(1)), x);
  }
  Value* bits = b_.CreateBitCast(x, b_.getIntNTy(static_cast<unsigned>(kiln::bits(dtype))));
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  // The magnitude is compared as an integer, so that no 16-bit float instruction is needed.
  Value* pattern = b_.CreateBitCast(infinity, bits->getType());
  Value* magnitude =
      b_.CreateAnd(bits, b_.CreateNot(llvm::ConstantInt::get(
                             bits->getType(), llvm::APInt::getSignMask(bits->getType()->getIntegerBitWidth()))));
  Value* below = b_.CreateBitCast(b_.CreateSub(bits, llvm::ConstantInt::get(bits->getType(), 1)), x->getType());
  return b_.CreateSelect(b_.CreateICmpEQ(magnitude, pattern), below, x);
}

Value* Caster::from_single(Value* x, DType to, bool saturate) {
  if (is_f8(to)) return has_f8() ? f8_hardware(x, to, saturate) : f8_software(x, to, saturate);
  Value* r = to == DType::f32   ? x
             : to == DType::f64 ? b_.CreateFPExt(x, b_.getDoubleTy())
                                : b_.CreateFPTrunc(x, c_.type(to));
  return saturate ? saturated(r, to) : r;
}

Value* Caster::from_float(Value* x, DType from, DType to, bool saturate) {
  if (from == to) return saturate ? saturated(x, to) : x;
  Value* wide = widened(x, from);
  if (from != DType::f64) return from_single(wide, to, saturate);
  if (to == DType::bf16 || is_f8(to)) return from_single(odd_from_f64(wide), to, saturate);
  Value* r = b_.CreateFPTrunc(wide, c_.type(to));
  return saturate ? saturated(r, to) : r;
}

Value* Caster::from_int(Value* x, DType from, DType to, bool saturate) {
  auto convert = [&](llvm::Type* t) { return is_signed(from) ? b_.CreateSIToFP(x, t) : b_.CreateUIToFP(x, t); };
  if (to == DType::bf16 || is_f8(to))
    return from_single(fits_f32(from) ? convert(f32()) : odd_from_int(x, from), to, saturate);
  Value* r = convert(c_.type(to));
  return saturate && to == DType::f16 ? saturated(r, to) : r;  // f32 and f64 hold every integer's magnitude
}

Value* Caster::to_int(Value* x, DType from, DType to) {
  Value* wide = widened(x, from);
  Intrinsic::ID id = is_signed(to) ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat;
  return call(id, {c_.type(to), wide->getType()}, wide);
}

}  // namespace

Value* emit_cast(EmitContext& c, Value* x, DType from, DType to, bool saturate) {
  Caster caster(c);
  llvm::IRBuilder<>& b = c.b;
  if (is_float(from)) {
    if (is_float(to)) return caster.from_float(x, from, to, saturate);
    if (to != DType::i1) return caster.to_int(x, from, to);
    Value* single = caster.from_float(x, from, from == DType::f64 ? DType::f64 : DType::f32, false);
    return b.CreateFCmpUNE(single, llvm::ConstantFP::get(single->getType(), 0.0));
  }
  if (is_float(to)) return caster.from_int(x, from, to, saturate);
  if (to == DType::i1) return from == DType::i1 ? x : b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
  return is_signed(from) ? b.CreateSExtOrTrunc(x, c.type(to)) : b.CreateZExtOrTrunc(x, c.type(to));
}

}  // namespace kiln::cg

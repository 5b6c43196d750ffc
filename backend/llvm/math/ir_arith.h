// The arithmetic of arith.h on LLVM values: every member appends the instruction it names.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "backend/llvm/math/arith.h"

namespace kiln::cg::math {

class IrArith {
 public:
  /// A value, or a constant that becomes one where it is used.
  struct F {
    F(float k) : constant(k) {}      // NOLINT: constants are written as plain literals
    F(llvm::Value* v) : value(v) {}  // NOLINT
    llvm::Value* value = nullptr;
    float constant = 0;
  };
  struct I {
    I(int k) : constant(k) {}        // NOLINT
    I(llvm::Value* v) : value(v) {}  // NOLINT
    llvm::Value* value = nullptr;
    int constant = 0;
  };
  struct L {
    llvm::Value* value;
  };
  using B = llvm::Value*;

  explicit IrArith(llvm::IRBuilder<>& builder) : b_(builder) {}
  llvm::Value* value(F x) const;

  F add(F x, F y);
  F sub(F x, F y);
  F mul(F x, F y);
  F fma(F x, F y, F z);
  F neg(F x);
  F abs(F x);
  F trunc(F x);
  F min(F x, F y);
  F max(F x, F y);

  I bits(F x);
  F from_bits(I x);
  F to_float(I x);
  I iadd(I x, I y);
  I isub(I x, I y);
  I imul(I x, I y);
  I iand(I x, I y);
  I ior(I x, I y);
  I ixor(I x, I y);
  I shl(I x, int n);
  I shr(I x, int n);
  I sar(I x, int n);

  L umul(I x, I y);
  L join(I high, I low);
  I high(L x);
  L ladd(L x, L y);
  L lshl(L x, I n);
  L lshr(L x, I n);
  F scaled(L x, double k);

  B lt(F x, F y);
  B gt(F x, F y);
  B eq(F x, F y);
  B ne(F x, F y);
  B ilt(I x, I y);
  B ieq(I x, I y);
  B both(B x, B y);
  B either(B x, B y);
  B nope(B x);
  F sel(B c, F x, F y);
  I isel(B c, I x, I y);

  /// A real branch around rare work. Both ways give a struct of two values (F or I).
  template <class Then, class Else>
  auto branch(B c, Then then, Else other) {
    Fork fork = begin(c);
    auto [x0, x1] = then();
    next(fork);
    auto [y0, y1] = other();
    join(fork);
    return decltype(then()){merge(fork, val(x0), val(y0)), merge(fork, val(x1), val(y1))};
  }

  F ex2(F x);
  F ex2_ftz(F x);
  F lg2_ftz(F x);
  F rcp_ftz(F x);
  F rsqrt_approx(F x);
  F rsqrt_ftz(F x);
  F sqrt_ftz(F x);
  F div_full_ftz(F x, F y);
  F sin_approx(F x);
  F cos_approx(F x);
  F tanh_approx(F x);

 private:
  struct Fork {
    llvm::BasicBlock *then_end, *other, *joined, *other_end;
  };
  Fork begin(B c);
  void next(Fork& fork);
  void join(Fork& fork);
  llvm::Value* merge(const Fork& fork, llvm::Value* then, llvm::Value* other);

  llvm::Value* val(F x) const { return value(x); }
  llvm::Value* val(I x) const;
  llvm::Value* call(unsigned intrinsic, llvm::ArrayRef<llvm::Type*> overload, llvm::ArrayRef<llvm::Value*> operands);

  llvm::IRBuilder<>& b_;
};

}  // namespace kiln::cg::math

// opaque: the same bits, of which LLVM no longer knows where they come from. An empty statement that claims to change
// them; pairs of 16-bit elements go through one register, as they were loaded.
#include <llvm/IR/InlineAsm.h>

#include "backend/llvm/emitter.h"

namespace kiln::cg {
namespace {

llvm::Value* hide(llvm::IRBuilder<>& b, llvm::Value* word) {
  llvm::Type* type = word->getType();
  const char* constraint = type->isIntegerTy(16) ? "=h,0" : type->isIntegerTy(32) ? "=r,0" : "=l,0";
  auto* text = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", constraint,
                                    /*hasSideEffects=*/true);
  llvm::CallInst* call = b.CreateCall(text, {word});
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  return call;
}

llvm::Value* hide_element(llvm::IRBuilder<>& b, llvm::Value* x) {
  llvm::Type* type = x->getType();
  if (type->isPointerTy()) return b.CreateIntToPtr(hide(b, b.CreatePtrToInt(x, b.getInt64Ty())), type);
  const unsigned width = unsigned(type->getPrimitiveSizeInBits().getFixedValue());
  llvm::Value* bits = b.CreateBitCast(x, b.getIntNTy(width));
  bits = b.CreateTrunc(hide(b, b.CreateZExt(bits, b.getIntNTy(std::max(width, 16u)))), b.getIntNTy(width));
  return b.CreateBitCast(bits, type);
}

void hide_pair(llvm::IRBuilder<>& b, llvm::Value*& low, llvm::Value*& high) {
  llvm::Type* i32 = b.getInt32Ty();
  const auto wide = [&](llvm::Value* x) { return b.CreateZExt(b.CreateBitCast(x, b.getInt16Ty()), i32); };
  llvm::Value* word = hide(b, b.CreateOr(wide(low), b.CreateShl(wide(high), 16)));
  low = b.CreateBitCast(b.CreateTrunc(word, b.getInt16Ty()), low->getType());
  high = b.CreateBitCast(b.CreateTrunc(b.CreateLShr(word, 16), b.getInt16Ty()), high->getType());
}

}  // namespace

void emit_Opaque(Emitter& e, const ir::Inst& inst) {
  TileValue t = e.as_plain(inst.operands[0]);
  for (std::size_t r = 0; r < t.regs.size(); ++r) {
    llvm::Value*& x = t.regs[r].v;
    if (x == nullptr) continue;
    llvm::Value** next = r + 1 < t.regs.size() && t.regs[r + 1].v != nullptr ? &t.regs[r + 1].v : nullptr;
    if (x->getType()->getPrimitiveSizeInBits() != 16 || next == nullptr) x = hide_element(e.b, x);
    else hide_pair(e.b, x, *next), ++r;
  }
  e.set_plain(inst.results[0], std::move(t));
}

}  // namespace kiln::cg

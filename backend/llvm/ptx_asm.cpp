#include "backend/llvm/ptx_asm.h"

#include <llvm/IR/InlineAsm.h>

#include "runtime/base/error.h"

namespace kiln::cg {
namespace {

char constraint_of(const llvm::Type* type) {
  if (type->isPointerTy()) return 'l';
  if (type->isFloatTy()) return 'f';
  if (type->isDoubleTy()) return 'd';
  switch (type->getPrimitiveSizeInBits().getFixedValue()) {
    case 1: return 'b';
    case 16: return 'h';
    case 32: return 'r';
    case 64: return 'l';
    default: KILN_CHECK(false, "no PTX register class for an operand");
  }
  return 0;
}

}  // namespace

std::string PtxAsm::name(char constraint, const char* prefix) {
  if (!constraints_.empty()) constraints_ += ',';
  constraints_ += prefix;
  constraints_ += constraint;
  return "$" + std::to_string(outs_.size() + ins_.size());
}

std::string PtxAsm::out(llvm::Type* type) {
  KILN_CHECK(ins_.empty(), "results come before operands");
  // Early clobber: a masked access writes its results' defaults before it reads the address.
  std::string n = name(constraint_of(type), "=&");
  outs_.push_back(type);
  return n;
}

std::string PtxAsm::in(llvm::Value* v, char constraint) {
  if (auto* k = llvm::dyn_cast<llvm::ConstantInt>(v); k != nullptr && k->getBitWidth() > 1)
    return std::to_string(k->getSExtValue());
  std::string n = name(constraint != 0 ? constraint : constraint_of(v->getType()), "");
  ins_.push_back(v);
  return n;
}

std::string PtxAsm::in_register(llvm::Value* v) {
  std::string n = name(constraint_of(v->getType()), "");
  ins_.push_back(v);
  return n;
}

llvm::CallInst* PtxAsm::emit(llvm::IRBuilder<>& b) {
  return call(b, constraints_ + (constraints_.empty() ? "~{memory}" : ",~{memory}"));
}

void PtxAsm::emit_comment(llvm::IRBuilder<>& b) { call(b, constraints_)->setOnlyAccessesInaccessibleMemory(); }

llvm::CallInst* PtxAsm::call(llvm::IRBuilder<>& b, const std::string& constraints) {
  llvm::Type* result = outs_.empty()       ? b.getVoidTy()
                       : outs_.size() == 1 ? outs_[0]
                                           : llvm::StructType::get(b.getContext(), outs_);
  std::vector<llvm::Type*> types;
  for (llvm::Value* v : ins_) types.push_back(v->getType());
  auto* signature = llvm::FunctionType::get(result, types, false);
  call_ = b.CreateCall(llvm::InlineAsm::get(signature, text_, constraints, /*hasSideEffects=*/true), ins_);
  call_->setDoesNotThrow();
  return call_;
}

llvm::Value* PtxAsm::result(llvm::IRBuilder<>& b, unsigned i) const {
  return outs_.size() == 1 ? call_ : b.CreateExtractValue(call_, i);
}

}  // namespace kiln::cg

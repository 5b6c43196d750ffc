// PtxAsm: one inline-PTX statement under construction. Operands are named as they are added; $n and constraints follow.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <string>
#include <vector>

namespace kiln::cg {

class PtxAsm {
 public:
  /// Names a result register of the given type ("$0"); to be called before any in().
  std::string out(llvm::Type*);
  /// Names an operand; `constraint` 0: by its type. Constants of integer type are printed as immediates.
  std::string in(llvm::Value*, char constraint = 0);
  /// Names an operand that is in a register even where it is constant: PTX has no immediates of 16-bit floats.
  std::string in_register(llvm::Value*);
  void line(const std::string& instruction) { text_ += text_.empty() ? instruction : "\n\t" + instruction; }

  /// The call; it is ordered with every other memory operation. Results are read with result().
  llvm::CallInst* emit(llvm::IRBuilder<>&);
  /// A statement that is a comment: it keeps its operands in registers, and is ordered with nothing but its like.
  void emit_comment(llvm::IRBuilder<>&);
  /// Result number i of the emitted statement.
  llvm::Value* result(llvm::IRBuilder<>&, unsigned i) const;

 private:
  std::string name(char constraint, const char* prefix);
  llvm::CallInst* call(llvm::IRBuilder<>&, const std::string& constraints);
  std::string text_, constraints_;
  std::vector<llvm::Type*> outs_;
  std::vector<llvm::Value*> ins_;
  llvm::CallInst* call_ = nullptr;
};

}  // namespace kiln::cg

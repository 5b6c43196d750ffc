// Line information only (.loc and .file): no variables, no types, no debug target.
#pragma once
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/DebugLoc.h>

#include <map>
#include <string>

#include "runtime/base/source_loc.h"

namespace kiln::cg {

class DebugInfo {
 public:
  /// Does nothing at all when not `enabled`. `at`: where the user defined the kernel.
  DebugInfo(llvm::Module&, llvm::Function& kernel, SourceLoc at, bool enabled);

  /// Of an instruction at `loc`; the kernel's own place where that is unknown.
  llvm::DebugLoc at(SourceLoc loc);
  void finish();

 private:
  llvm::DIFile* file(const std::string& path);
  llvm::DIScope* scope(const std::string& path);

  bool enabled_;
  llvm::DIBuilder builder_;
  llvm::LLVMContext& context_;
  SourceLoc definition_;
  llvm::DISubprogram* kernel_ = nullptr;
  std::string kernel_file_;
  std::map<std::string, llvm::DIScope*> scopes_;
};

}  // namespace kiln::cg

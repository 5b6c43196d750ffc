#include "backend/llvm/debug_info.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

namespace kiln::cg {

DebugInfo::DebugInfo(llvm::Module& m, llvm::Function& kernel, SourceLoc at, bool enabled)
    : enabled_(enabled && at.known()), builder_(m), context_(m.getContext()), definition_(at) {
  if (!enabled_) return;
  m.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  m.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 2);
  kernel_file_ = at.file;
  llvm::DIFile* f = file(kernel_file_);
  builder_.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus_14), f, "kiln", true, "", 0,
                             "", llvm::DICompileUnit::DebugDirectivesOnly);
  llvm::DISubroutineType* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  kernel_ = builder_.createFunction(f, kernel.getName(), kernel.getName(), f, at.line, type, at.line,
                                    llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition);
  kernel.setSubprogram(kernel_);
}

llvm::DIFile* DebugInfo::file(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return builder_.createFile(path, "");
  return builder_.createFile(path.substr(slash + 1), path.substr(0, slash));
}

llvm::DIScope* DebugInfo::scope(const std::string& path) {
  if (path == kernel_file_) return kernel_;
  llvm::DIScope*& s = scopes_[path];
  if (s == nullptr) s = builder_.createLexicalBlockFile(kernel_, file(path));
  return s;
}

llvm::DebugLoc DebugInfo::at(SourceLoc loc) {
  if (!enabled_) return {};
  if (!loc.known()) loc = definition_;
  return llvm::DILocation::get(context_, loc.line, loc.column, scope(loc.file));
}

void DebugInfo::finish() {
  if (enabled_) builder_.finalize();
}

}  // namespace kiln::cg

// llvm::Module → PTX text through LLVM's NVPTX target.
#pragma once
#include <memory>
#include <string>

#include "backend/target.h"

namespace llvm {
class Module;
class LLVMContext;
}  // namespace llvm

namespace kiln::cg {

/// Newest PTX ISA this LLVM can print.
inline constexpr int kNewestPtx = 90;

/// Sets triple and data layout, which must stand before any instruction or pass looks at the module.
void prepare(llvm::Module&, const Target&);

/// Verifies and optimises `m` with Kiln's short pass list; `m` must have been prepared for `target`. `late`: what is
/// computed for one branch is computed there, which needs fewer registers.
void optimise(llvm::Module& m, const Target& target, bool late);

/// PTX of an optimised module. Throws InternalError with LLVM's diagnostics.
std::string to_ptx(llvm::Module& m, const Target& target);

/// LLVM assembly of `m`, for dumps.
std::string text_of(const llvm::Module& m);

/// What the generated text depends on here: LLVM's version and the pass list.
std::string llvm_version();

}  // namespace kiln::cg

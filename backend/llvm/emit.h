// Function at stage allocated → llvm::Module with one kernel.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/ir/function.h"
#include "backend/target.h"

namespace llvm {
class Module;
class LLVMContext;
}  // namespace llvm

namespace kiln::cg {

/// The kernel's symbol: `name` with everything PTX does not allow in one replaced.
std::string entry_name(const std::string& name);

/// The hidden parameters that the kernel of `f` takes behind the user's, in order.
std::vector<rt::HiddenParam> hidden_params(const ir::Function& f);

/// The module is prepared for `target` (nvptx.h) and not yet optimised. The kernel has the name of `f` and its
/// parameters in order, naturally aligned, as rt::ArgSig lays them out. Throws UserError for what the target cannot
/// run.
std::unique_ptr<llvm::Module> emit(const ir::Function& f, const Target& target, bool line_info, llvm::LLVMContext&);

}  // namespace kiln::cg

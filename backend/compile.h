// compile: tile IR → KernelImage. No LLVM type appears here; this is all that dsl/jit knows of the back end.
#pragma once
#include <string>

#include "backend/ir/function.h"
#include "backend/options.h"
#include "backend/target.h"
#include "runtime/image/kernel_image.h"

namespace kiln {

/// Runs the pipeline on a copy of `function` and emits PTX. A function that is already at stage laid (hand-written, or from
/// kiln_opt) is emitted as it is. Calls no driver. `stats` may be null.
/// Throws UserError for kernels the target cannot run, InternalError (with the dump's path) for Kiln's own faults.
rt::KernelImage compile(const ir::Function& function, const Target&, const CompileOptions&, CompileStats* stats = nullptr);

/// Changes whenever generated code may change: Kiln's and LLVM's version, the pass list. Part of every disk-cache key.
std::string compiler_version();

}  // namespace kiln

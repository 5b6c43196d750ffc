// Function at stage laid → PTX: emit, optimise, print. What the rest of the back end knows of LLVM.
#pragma once
#include <string>

#include "backend/ir/function.h"
#include "backend/options.h"
#include "backend/pass/artefacts.h"
#include "backend/target.h"

namespace kiln::cg {

/// The PTX of `f`. Adds the times of its steps to `stats` (may be null) and publishes LLVM IR and PTX as artefacts; PTX
/// that KILN_OVERRIDE gives replaces the generated one. Throws UserError for what the target cannot run, InternalError
/// with LLVM's diagnostics.
std::string generate(const ir::Function& f, const Target& target, bool line_info, CompileStats* stats,
                     ir::Artefacts& artefacts);

}  // namespace kiln::cg

// run_pipeline: the compiler's passes in order, from the traced kernel to the form that backend/llvm emits.
#pragma once
#include <span>

#include "backend/ir/function.h"
#include "backend/options.h"
#include "backend/target.h"

namespace kiln {

namespace ir {
class Artefacts;
enum class Pass : std::uint8_t;
}  // namespace ir

/// The passes of the pipeline in order (backend/pass/pass.h).
std::span<const ir::Pass> pipeline();

/// Takes `f` from stage traced to stage laid. `stats` (may be null) receives one time per pass. `artefacts` (may be
/// null: made here) numbers and writes the dumps; compile() passes its own so that LLVM IR and PTX continue the count.
/// Throws UserError for kernels the target cannot run, InternalError that names the pass and the path of the IR before
/// it.
void run_pipeline(ir::Function& f, const Target& target, const CompileOptions& options, CompileStats* stats,
                  ir::Artefacts* artefacts = nullptr);

}  // namespace kiln

// The compiler's table of contents: the passes in order. From here backend/llvm takes over.
#include "backend/pipeline.h"

#include "backend/pass/artefacts.h"
#include "backend/pass/pass.h"
#include "runtime/base/env.h"

namespace kiln {

void run_pipeline(ir::Function& f, const Target& target, const CompileOptions& options, CompileStats* stats,
                  ir::Artefacts* artefacts) {
  std::optional<ir::Artefacts> own;
  if (!artefacts) artefacts = &own.emplace(f, target, options);
  artefacts->publish("traced", f);
  ir::PassRunner runner(target, options, stats, *artefacts, int(env::KILN_VERIFY()));
  for (ir::Pass pass : pipeline())  // a function that comes in at a later stage has these passes behind it
    if (f.stage <= ir::info(pass).from || f.stage < ir::info(pass).to) runner.run(pass, f);
}

std::span<const ir::Pass> pipeline() {
  using enum ir::Pass;
  static constexpr ir::Pass passes[] = {
      choose_mma,       // what follows depends on the unit
      stage_products,   // while blocks are whole
      stage_results,
      expand_blocks,
      infer_facts,  // so that what facts decide is folded away like any other constant
      canonicalise,
      choose_exec,      // stage canonical: who executes a program
      rematerialise,   // before layouts, so that what is computed again has its own
      chunk,            // few registers at the end of a row
      assign_layouts,   // stage laid: where every element lives
      early_loads,      // with the registers of layouts, before what follows tells programs apart
      walk_programs,    // one ring for all programs of a team
      specialise,       // two roles where there is a ring
      skew,             // a ring that the same threads fill, where loads are left that products wait for
      allocate_shared,  // stage allocated: where elements meet on their way to other threads
  };
  return passes;
}

}  // namespace kiln

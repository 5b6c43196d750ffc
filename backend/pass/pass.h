// Pass: one named transformation of a function. PassRunner: what happens around every pass, which no pass knows about.
//
// Around a pass the runner: checks the stage, times it, verifies the result (KILN_VERIFY: 1 invariants of the stage, 2
// also that "changed" is truthful, 3 also that the interpreter gives the same memory), writes and replaces artefacts
// (artefacts.h), and turns any fault into an InternalError that names the pass and a file with the IR before it.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/ir/function.h"
#include "backend/options.h"
#include "backend/target.h"

namespace kiln::ir {

class Artefacts;

/// What a pass may know besides the function.
struct PassContext {
  const Target& target;
  const CompileOptions& options;
};

// The passes: each returns whether it changed the function.
#define KILN_PASS(fn, flag, doc, from, to) bool fn(PassContext&, Function&);
#include "backend/pass/passes.def"

enum class Pass : std::uint8_t {
#define KILN_PASS(fn, ...) fn,
#include "backend/pass/passes.def"
};

struct PassInfo {
  const char* flag;
  const char* doc;
  Stage from, to;
  bool (*run)(PassContext&, Function&);
};
const PassInfo& info(Pass);
std::span<const PassInfo> all_passes();
std::optional<Pass> pass_named(std::string_view flag);
inline const char* name(Pass p) { return info(p).flag; }

class PassRunner {
 public:
  /// `stats` may be null. `verify`: as KILN_VERIFY.
  PassRunner(const Target& target, const CompileOptions& options, CompileStats* stats, Artefacts& artefacts,
             int verify);
  /// Runs one pass. Throws the pass's own UserError, InternalError for faults, and as Artefacts::publish.
  /// @post f.stage >= pass.to
  void run(const PassInfo& pass, Function& f);
  void run(Pass p, Function& f) { run(info(p), f); }

 private:
  bool apply(const PassInfo& pass, Function& f);
  void check(const PassInfo& pass, const Function& before, const Function& after, bool changed);

  PassContext context_;
  CompileStats* stats_;
  Artefacts& artefacts_;
  int verify_;
};

}  // namespace kiln::ir

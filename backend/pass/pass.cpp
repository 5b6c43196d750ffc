// The registry of passes and the runner around each.
#include "backend/pass/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "backend/ir/text.h"
#include "backend/ir/verify.h"
#include "backend/pass/artefacts.h"
#include "backend/pass/eval_compare.h"
#include "runtime/base/error.h"

namespace kiln::ir {
namespace {

constexpr std::array kPasses{
#define KILN_PASS(fn, flag, doc, from, to) PassInfo{flag, doc, Stage::from, Stage::to, fn},
#include "backend/pass/passes.def"
};

}  // namespace

const PassInfo& info(Pass p) { return kPasses[std::size_t(p)]; }
std::span<const PassInfo> all_passes() { return kPasses; }

std::optional<Pass> pass_named(std::string_view flag) {
  for (std::size_t i = 0; i < kPasses.size(); ++i)
    if (flag == kPasses[i].flag) return Pass(i);
  return std::nullopt;
}

PassRunner::PassRunner(const Target& target, const CompileOptions& options, CompileStats* stats, Artefacts& artefacts,
                       int verify)
    : context_{target, options}, stats_(stats), artefacts_(artefacts), verify_(verify) {}

void PassRunner::run(const PassInfo& pass, Function& f) {
  if (f.stage < pass.from || f.stage > pass.to)
    throw UserError(fmt::format("{}: takes stages {} to {}, {} is at {}", pass.flag, name(pass.from), name(pass.to),
                                f.name, name(f.stage)));
  const Function before = f;
  bool changed = false;
  try {
    changed = apply(pass, f);
    check(pass, before, f, changed);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& e) {
    const std::string where = artefacts_.reproducer(pass.flag, "kir", print(before));
    throw InternalError(fmt::format("{}: pass {} failed: {}\nIR before it: {}", f.name, pass.flag, e.what(), where));
  }
  artefacts_.publish(pass.flag, f, changed);
}

bool PassRunner::apply(const PassInfo& pass, Function& f) {
  const auto start = std::chrono::steady_clock::now();
  const bool changed = pass.run(context_, f);
  f.stage = std::max(f.stage, pass.to);
  const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - start;
  if (stats_) stats_->times.push_back({pass.flag, us.count()});
  return changed;
}

void PassRunner::check(const PassInfo& pass, const Function& before, const Function& after, bool changed) {
  if (verify_ < 1) return;
  if (const auto violations = verify(after); !violations.empty())
    throw InternalError("the result is not well formed\n" + format(after, violations));
  if (verify_ < 2) return;
  Function staged = before;  // the stage is the runner's, not the pass's
  staged.stage = after.stage;
  if ((print(staged) != print(after)) != changed)
    throw InternalError(fmt::format("{} reports {}, which is not so", pass.flag, changed ? "a change" : "no change"));
  if (verify_ < 3) return;
  if (const std::string difference = eval_difference(before, after); !difference.empty())
    throw InternalError("the interpreter's result changed: " + difference);
}

}  // namespace kiln::ir

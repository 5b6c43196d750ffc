// The outcome of a case, for readers and for programs.
#pragma once
#include <string>

#include "runtime/tools/sim_run.h"

namespace kiln::rt::tools {

/// What kiln-sim ends with.
enum class Verdict : int {
  Match = 0,     ///< every output matches, or there is nothing to compare with
  Mismatch = 1,  ///< an output differs
  Findings = 2,  ///< the kernel did something wrong, whatever it computed
  BadInput = 3,  ///< the command or its files are wrong
};
Verdict verdict(const Outcome&);

/// A line for the launch, one for each buffer, and one that sums up; `print`: elements of each buffer shown.
std::string outcome_text(const Case&, const Outcome&, std::size_t print);
/// kiln-sim-1, described in docs/simulator.md.
std::string outcome_json(const Case&, const Outcome&);

}  // namespace kiln::rt::tools

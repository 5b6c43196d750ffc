// Running a case on a simulator.
#pragma once
#include <string>
#include <vector>

#include "runtime/finding.h"
#include "runtime/profile.h"
#include "runtime/tools/compare.h"
#include "runtime/tools/sim_case.h"

namespace kiln::rt::tools {

/// A buffer after the run; in the order of the arguments.
struct Result {
  const Argument* argument = nullptr;
  Bytes after;
  std::optional<Comparison> comparison;  ///< where it is known what it must hold
};

struct Outcome {
  std::string device;
  std::vector<Finding> findings;
  std::string error;  ///< of a launch that was refused or ended without a finding
  std::vector<Result> results;
  Profile profile;

  bool compared() const;
  bool matches() const;  ///< every buffer that can be compared does
};

/// Runs it once. The kernel's own errors are part of the outcome; throws DeviceError where the kernel cannot be loaded,
/// UserError where its arguments do not fit. `c` must outlive the result.
Outcome run_case(const Case& c);

}  // namespace kiln::rt::tools

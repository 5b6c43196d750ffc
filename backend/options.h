// CompileOptions and CompileStats: what a compilation is asked for and what it reports, known to every layer from the
// passes up.
#pragma once
#include <string>
#include <vector>

#include "runtime/base/source_loc.h"

namespace kiln {

/// What the user may fix; 0 = the compiler chooses. All but `at` is part of every cache key.
struct CompileOptions {
  int num_warps = 0;
  int cluster = 0;
  int max_registers = 0;
  int stages = 0;                  ///< slots of the rings of loops without a hint of their own; 1: no rings
  bool line_info = true;
  bool strict = false;             ///< no fma formation, no rewrites that change rounding
  /// Variables keep their names and values for the simulator's debugger (docs/simulator.md says what that changes). Set
  /// for every kernel where KILN_SIM_DEBUG is.
  bool debug = false;
  SourceLoc at = {};               ///< the user's call of with(), for errors
  bool operator==(const CompileOptions& o) const {
    return num_warps == o.num_warps && cluster == o.cluster && max_registers == o.max_registers && stages == o.stages &&
           line_info == o.line_info && strict == o.strict && debug == o.debug;
  }
};

struct StageTime {
  std::string stage;               ///< pass name, "llvm", …
  double us = 0;
};
struct CompileStats {
  std::vector<StageTime> times;
};

}  // namespace kiln

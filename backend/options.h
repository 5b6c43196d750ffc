// CompileOptions and CompileStats: what a compilation is asked for and what it reports, known to every layer from the
// passes up.
#pragma once
#include <string>
#include <vector>

namespace kiln {

/// What the user may fix; 0 = the compiler chooses. Part of every cache key.
struct CompileOptions {
  int num_warps = 0;
  int cluster = 0;
  int max_registers = 0;
  bool line_info = true;
  bool strict = false;             ///< no fma formation, no rewrites that change rounding
  bool operator==(const CompileOptions&) const = default;
};

struct StageTime {
  std::string stage;               ///< pass name, "llvm", …
  double us = 0;
};
struct CompileStats {
  std::vector<StageTime> times;
};

}  // namespace kiln

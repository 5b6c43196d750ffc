// Checks: which of the simulator's costly checks a launch makes. Bounds, alignment, divergence and deadlock always are.
#pragma once
#include <string_view>

namespace kiln::rt::sim {

struct Checks {
  bool races = true;   ///< of shared and global memory
  bool uninit = true;     ///< loads of what nobody wrote
  bool registers = true;  ///< of asynchronous matrix products before they are waited for

  /// The text of KILN_SIM_CHECK: "all", "none" or names separated by commas. Throws UserError that lists them.
  static Checks parse(std::string_view text);
};

}  // namespace kiln::rt::sim

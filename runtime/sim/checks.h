// Checks: which of the simulator's costly checks a launch makes. Bounds, alignment, divergence and deadlock always are.
#pragma once
#include <string_view>

namespace kiln::rt::sim {

struct Checks {
  bool races = true;   ///< of shared and global memory
  bool uninit = true;  ///< loads of what nobody wrote
  /// … in shared memory. Not of kernels that Kiln compiled: threads beyond a tile's edge may load places there that
  /// nobody wrote, and what they compute is dropped.
  bool uninit_shared = true;
  bool registers = true;  ///< of asynchronous matrix products before they are waited for

  /// The text of KILN_SIM_CHECK: "all", "none" or names separated by commas. Throws UserError that lists them.
  static Checks parse(std::string_view text);
};

}  // namespace kiln::rt::sim

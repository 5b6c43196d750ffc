// Target: what the compiler may use. One row a GPU architecture, in target.cpp.
#pragma once
#include <string>
#include <vector>

namespace kiln {

struct Target {
  std::string arch = "sm_90a";     ///< sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a
  int ptx = 0;                     ///< PTX ISA 10·major + minor, at most what the driver takes; 0: the arch's minimum
  int sms = 132;
  int max_threads_per_sm = 2048;
  std::size_t max_shared_bytes = 232448;

  int compute() const;             ///< 80, 86, 89, 90, 100, 120
  bool has_bf16_arith() const { return compute() >= 90; }
  bool has_warpgroups() const { return compute() == 90; }  ///< wgmma, tensor maps, setmaxnreg
  bool has_cluster() const { return compute() >= 90; }
  bool has_dependent_launch() const { return compute() >= 90; }
};

/// The row of `arch`; throws UserError with the list of known ones. `driver_ptx`: newest ISA the driver takes (0: any).
Target target_named(const std::string& arch, int driver_ptx = 0);
std::vector<std::string> known_targets();

}  // namespace kiln

// Arch: a GPU architecture by name, "sm_90a": what code it runs and what its blocks may use.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::rt::sim {

struct Arch {
  int number = 0;   ///< 90
  char suffix = 0;  ///< 'a': this architecture only, 'f': its family; 0: portable

  /// Throws DeviceError listing the known names if `text` is none of them.
  static Arch parse(std::string_view text);
  std::string name() const;
  /// Whether code for `code` runs here.
  bool runs(const Arch& code) const;
  /// The first version of PTX that has it: 10·major + minor.
  int least_ptx() const;
  /// Dynamic shared memory a block may ask for.
  std::size_t max_shared_bytes() const;
};

}  // namespace kiln::rt::sim

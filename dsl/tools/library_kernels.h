// The library's kernels by name, each with a call at its default configuration, for `kiln dump`.
#pragma once
#include <vector>

#include "runtime/device.h"

namespace kiln::tools {

struct LibraryKernel {
  const char* name;
  const char* what;  ///< dtype and shapes of the call
  /// Compiles and launches it on arrays that are not there: only for a compilation that stops before the launch.
  void (*call)(const Stream&);
};

const std::vector<LibraryKernel>& library_kernels();

}  // namespace kiln::tools

// The library's kernels by name, each with a call at its default configuration, for `kiln dump` and `kiln explain`.
#pragma once
#include <vector>

#include "dsl/lib/linear_tuning.h"
#include "runtime/device.h"

namespace kiln::tools {

struct LibraryKernel {
  const char* name;
  const char* what;  ///< dtype and shapes of the call
  /// Compiles and launches it on arrays that are not there: for a compilation that stops before the launch, or a launch
  /// whose error is expected.
  void (*call)(const Stream&);
  /// Why it is cut as it is, and the bound to expect; null where the library has no choice to explain.
  lib::LinearExplanation (*plan)(const Device&) = nullptr;
};

const std::vector<LibraryKernel>& library_kernels();

}  // namespace kiln::tools

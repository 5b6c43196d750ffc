// The sections of `kiln bench`: each is a list of figures.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench/figure.h"
#include "runtime/device.h"

namespace kiln::bench {

using Sink = std::function<void(const Figure&)>;

struct Section {
  const char* name;
  const char* what;  ///< one line for --help
  bool needs_gpu;    ///< measures GPU time, which the simulator has not
  void (*run)(const Device&, const Sink&);
};

const std::vector<Section>& sections();

/// The message for a section or case that needs a GPU where there is none.
std::string needs_gpu_message(const std::string& name, const Device& device);

}  // namespace kiln::bench

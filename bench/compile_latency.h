// What the first launch of a kernel costs, measured in new processes: nothing cached, disk cache, memory cache.
#pragma once
#include <string>
#include <vector>

#include "bench/figure.h"

namespace kiln::bench {

/// Spawns this program again (`kiln bench --probe …`) with a fresh cache folder, several times; medians. The stages are
/// measured in processes of their own, without any cache.
std::vector<Figure> measure_compile_latency();

/// What the new process does, after it has opened the device: "launches" times the first launch of add_relu, a second
/// one and one with another block size; "stages" times tracing, the passes, LLVM and the device's loading. One JSON
/// object.
std::string probe_compile_latency(const std::string& probe);

}  // namespace kiln::bench

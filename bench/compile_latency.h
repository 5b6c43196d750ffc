// What the first launch of a kernel costs, measured in new processes: nothing cached, disk cache, memory cache.
#pragma once
#include <string>
#include <vector>

#include "bench/figure.h"
#include "runtime/device.h"

namespace kiln::bench {

/// A kernel whose first launch is measured, and another specialisation of it that is launched next (or no name).
struct LatencyCase {
  Case first, variant = {};
};

/// add_relu and a second variant of it. / The library's operators, on few rows: a launch takes next to no time. The
/// product, bf16 with bias and relu, is of 4096x4096x4096 on a GPU, and of the least extents with the same kernel on a
/// simulator, which would work on the large one for minutes.
std::vector<LatencyCase> add_relu_latency();
std::vector<LatencyCase> library_latency(const Device&);

/// Medians over new processes of this program (`kiln bench --probe …`), each round with a fresh cache folder. The
/// stages are measured in processes of their own, without any cache, and are those of KILN_TIME: "trace", "passes",
/// "llvm" and "driver", which is what the device makes of the PTX; where an operator launches several kernels they are
/// added.
std::vector<Figure> measure_compile_latency(const LatencyCase&);

/// What the new process does. `probe` is a JSON array of cases; the answer is an array of the milliseconds that their
/// launches took, in turn: {"first":…,"again":…}. Buffers are made before.
std::string probe_compile_latency(const std::string& probe);

}  // namespace kiln::bench

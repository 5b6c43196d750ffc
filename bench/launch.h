// What a launch costs the host, and what a kernel costs inside a graph.
#pragma once
#include <vector>

#include "bench/figure.h"
#include "runtime/device.h"

namespace kiln::bench {

/// call_overhead: one launch of a cached kernel on a saturated stream, by Kiln and by a bare cuLaunchKernel of the same
/// kernel, in alternation; of 4 arguments, of 16, and of three views that become tensor maps (sm_90 and newer). Needs a
/// GPU.
std::vector<Figure> measure_call_overhead(const Stream& stream);

/// Launches each of these kernels once by Kiln, on any device.
void launch_each(const Stream& stream);

/// graph_node: GPU time of one add_relu of 100 elements in a graph of 200. Needs a GPU.
Figure measure_graph_node(const Stream& stream);

}  // namespace kiln::bench

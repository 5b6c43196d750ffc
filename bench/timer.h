// How GPU time is measured: median over replays of a CUDA graph that holds several launches over rotating buffers,
// which together exceed the L2 cache, so that neither launch gaps nor cache hits flatter a kernel. The peers in
// bench/peers measure in the same way.
#pragma once
#include <cstddef>
#include <functional>

#include "runtime/device.h"

namespace kiln::bench {

/// How many input sets rotate, and how many launches one graph holds.
struct Rotation {
  int sets = 1;
  int launches = 8;
};

/// For inputs of `input_bytes` a set: sets of four times 60 MB in total, 4 to 64 of them (on some GPUs one place in memory
/// costs 4 % against another, so that two sets would measure luck), and at least 8 launches.
Rotation rotation_for(std::size_t input_bytes);

/// A captured sequence of launches, timed by events around its replay.
class GraphTimer {
 public:
  /// Captures `launch(stream, i)` for i in [0, launches). The kernels must have run once before.
  GraphTimer(const Stream& stream, int launches, const std::function<void(const Stream&, int)>& launch);
  /// Microseconds a launch: median over `replays`, after three that are not counted.
  double us_per_launch(int replays = 15);

 private:
  Stream stream_;
  int launches_;
  Graph graph_;
};

/// Microseconds of host time one call of `call` takes: `calls` in a row on an idle stream without waiting for the
/// device, which is idle again when the function returns.
double host_us_per_call(const Stream& stream, int calls, const std::function<void()>& call);

}  // namespace kiln::bench

#include "bench/prepared.h"

#include "bench/cases.h"

namespace kiln::bench {

// Compiles, and loads what a capture must find loaded.
static const Stream& warm(const Stream& stream, const Workload& w) {
  for (int i = 0; i < 3; ++i) w.launch(stream, i);
  stream.synchronize();
  return stream;
}

Prepared::Prepared(const Stream& stream, Case what)
    : what_(std::move(what)),
      workload_(prepare(stream.device(), what_)),
      timer_(warm(stream, workload_), workload_.launches, workload_.launch) {}

Figure Prepared::measure() {
  const double us = timer_.us_per_launch();
  const double tflops = workload_.flops > 0 ? workload_.flops / us / 1e6 : -1;
  return {.what = what_, .us = us, .gbs = workload_.bytes / us / 1e3, .tflops = tflops};
}

}  // namespace kiln::bench

// Pointwise kernels: GPU time and the bandwidth it amounts to.
#pragma once
#include <functional>

#include "bench/figure.h"
#include "bench/timer.h"

namespace kiln::bench {

/// A case with its buffers, its compiled kernel and its graph, ready to be measured again and again.
class Prepared {
 public:
  /// `launch(stream, i)` is launch i of `launches`; together with its buffers it stays alive here. `bytes` must move a
  /// launch.
  Prepared(const Stream& stream, Case what, double bytes, int launches, std::function<void(const Stream&, int)> launch);
  Figure measure();

 private:
  Case what_;
  double bytes_;
  std::function<void(const Stream&, int)> launch_;
  GraphTimer timer_;
};

/// add_relu (f32, [n]) or copy_ceiling (bf16, [n]). Throws UserError that says what is known for any other case.
Prepared prepare_pointwise(const Stream& stream, const Case& what);

}  // namespace kiln::bench

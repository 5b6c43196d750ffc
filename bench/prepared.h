// Prepared: a case with its buffers, its compiled kernel and its graph, ready to be timed again and again.
#pragma once
#include "bench/figure.h"
#include "bench/timer.h"
#include "bench/workload.h"

namespace kiln::bench {

class Prepared {
 public:
  /// Compiles and captures. Throws UserError for a case that cases.h does not have.
  Prepared(const Stream& stream, Case what);
  const Case& what() const { return what_; }
  Figure measure();

 private:
  Case what_;
  Workload workload_;
  GraphTimer timer_;
};

}  // namespace kiln::bench

// Runs a test under every schedule of asynchronous operations: a right program gives the same under all.
#pragma once
#include <gtest/gtest.h>

#include "tests/support/knob.h"

namespace kiln::test {

/// `f()` under each of them.
template <class F>
void under_every_schedule(F&& f) {
  for (const char* schedule : {"late", "early", "random:1", "random:2", "random:77"}) {
    SCOPED_TRACE(schedule);
    const Knob scope("KILN_SIM_SCHEDULE", schedule);
    f();
  }
}

}  // namespace kiln::test
